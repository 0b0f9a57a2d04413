"""Networks for sets: observations of rows x features, where each row is a thing that may or may not be there.

The first row is the agent itself, the others are what it sees, in any order; the first feature says whether a row is
there at all. A small network, the same for all rows, embeds each; then either the agent attends to the others,

    h_i = embed(row_i)        a_i = softmax_i(q(h_0) . k(h_i) / sqrt(d)) over the rows that are there
    x   = [h_0, sum_i a_i v(h_i)]                                        several heads side by side

or they are pooled: x = [h_0, max_i h_i, mean_i h_i] over the others; or they are pooled after each of them was embedded
together with the agent, h_i = embed([row_i, row_0]), which can tell whether the two are going to meet. Another network
reads the answer off x. What comes out does not depend on the order of the others, nor on what stands in rows that are
not there: a perceptron on the flattened rows would have to learn both.
"""

import dataclasses
import math
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl.errors import InputError
from lexrl.perceptrons import ACTIVATIONS, MLP, Activation, Normalizer, mlp, require_layers
from lexrl.types import Box, Spec

Mode = Literal["attention", "pooling", "pairs"]

_MODES = "'attention', 'pooling' or 'pairs'"


class SetNetwork(eqx.Module):
    """Answers to sets; every leaf is an array. It takes one observation `[rows, features]`."""

    normalizer: Normalizer | None
    """Of the features, over all rows; None: they are taken as they are."""
    embed: MLP
    """Of each row, or with pairs of each other row beside the agent's."""
    own: MLP | None
    """Of the agent's row, with pairs."""
    project: Array
    """Queries, keys and values of all heads `[3, width, heads, d]`; empty without attention."""
    read: MLP

    def __call__(self, obs: Float[Array, "R F"]) -> Float[Array, "..."]:
        present = obs[:, 0] > 0.5
        rows = self._embed(obs if self.normalizer is None else self.normalizer(obs))
        together = self._attend(rows, present) if self.project.size else self._pool(rows, present)
        return self.read(jnp.concatenate([rows[0], together]))

    def shrink(self, factor: float) -> "SetNetwork":
        """With its output divided by a factor."""
        return eqx.tree_at(lambda net: net.read, self, self.read.shrink(factor))

    def _embed(self, rows: Float[Array, "R F"]) -> Float[Array, "R H"]:
        activate = ACTIVATIONS[self.embed.activation]
        if self.own is None:
            return activate(self.embed(rows))
        agent, others = rows[:1], rows[1:]
        both = jnp.concatenate([others, jnp.broadcast_to(agent, others.shape)], axis=-1)
        return activate(jnp.concatenate([self.own(agent), self.embed(both)]))

    def _attend(self, rows: Float[Array, "R H"], present: Array) -> Array:
        # The agent has one query, so it is cheaper to project that than the keys and values of all rows.
        query = jnp.einsum("h,hnd->nd", rows[0], self.project[0])
        scores = jnp.einsum("nd,hnd,rh->nr", query, self.project[1], rows) / math.sqrt(query.shape[-1])
        weights = jax.nn.softmax(jnp.where(present.at[0].set(True), scores, -jnp.inf), axis=-1)
        return jnp.einsum("nr,rh,hnd->nd", weights, rows, self.project[2]).reshape(-1)

    def _pool(self, rows: Float[Array, "R H"], present: Array) -> Array:
        others = present.at[0].set(False)[:, None]
        largest = jnp.where(others.any(), jnp.max(jnp.where(others, rows, -jnp.inf), axis=0, initial=-1e9), 0.0)
        mean = jnp.where(others, rows, 0.0).sum(axis=0) / jnp.maximum(others.sum(), 1)
        return jnp.concatenate([largest, mean])


@dataclasses.dataclass(frozen=True)
class SetEncoder:
    """A network for sets, as an actor, a critic or a Q-network: `Networks(actor=SetEncoder(), critic=SetEncoder())`."""

    mode: str = "attention"
    """Attention from the agent's row to the others, pooling of all other rows, or pooling of pairs: each other row
    together with the agent's."""
    width: int = 64
    """Size of the embedding of a row."""
    embed_sizes: tuple[int, ...] = (64,)
    """Sizes of the hidden layers that embed each row."""
    num_heads: int = 2
    """Number of attention heads; they split the width."""
    hidden_sizes: tuple[int, ...] = (64,)
    """Sizes of the hidden layers after attention or pooling."""
    activation: Activation = "relu"
    normalize_observations: bool = True
    """Subtract the running mean of each feature and divide by its running standard deviation, over all rows; only in
    algorithms with an actor."""
    output_scale: float = 0.1
    """Scale of the initial weights of the last layer."""

    def __post_init__(self):
        require_layers(self.activation, self.embed_sizes, self.hidden_sizes)
        if self.mode not in get_args(Mode):
            raise InputError(f"The mode of a set encoder is {self.mode!r}; it must be {_MODES}.")
        if not self.embed_sizes:
            raise InputError("embed_sizes is (); a set encoder needs at least one hidden layer that embeds the rows.")
        if self.num_heads < 1 or self.width < 1 or self.width % self.num_heads:
            raise InputError(
                f"num_heads is {self.num_heads} and width is {self.width}; the width must be a multiple of the heads."
            )

    def __str__(self) -> str:
        return self.mode

    def build(self, key: Array, spec: Spec, output_shape: tuple[int, ...]) -> SetNetwork:
        """A new network that answers arrays of a shape."""
        space = spec.observation_space
        if not isinstance(space, Box) or len(space.shape) != 2:
            raise InputError(f"A set encoder needs observations of rows x features, but these are {space}.")
        width, heads, features = self.width, self.num_heads, space.shape[1]
        keys = jax.random.split(key, 4)

        def embedding(key: Array, inputs: int) -> MLP:
            return mlp(key, Box((inputs,)), (width,), self.embed_sizes, activation=self.activation)

        pairs = self.mode == "pairs"
        shape = (3, width, heads, width // heads) if self.mode == "attention" else (0,)
        inputs = width * (2 if self.mode == "attention" else 3)
        read = mlp(
            keys[2], Box((inputs,)), output_shape, self.hidden_sizes,
            activation=self.activation, output_scale=self.output_scale,
        )  # fmt: skip
        return SetNetwork(
            normalizer=Normalizer(jnp.zeros(features), jnp.ones(features)) if self.normalize_observations else None,
            embed=embedding(keys[0], 2 * features if pairs else features),
            own=embedding(keys[3], features) if pairs else None,
            project=width**-0.5 * jax.random.normal(keys[1], shape),
            read=read,
        )
