"""Multilayer perceptrons.

A discrete observation picks a row of the first layer, as a one-hot vector would at the cost of a product; so a network
without hidden layers and biases is a table on such observations.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl.errors import InputError
from lexrl.types import Box, Discrete

Activation = Literal["tanh", "relu", "elu", "gelu", "silu"]

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "elu": jax.nn.elu,
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
}

Space = Discrete | Box


class Normalizer(eqx.Module):
    """Mean and variance of each number of the observations so far; what is beyond ten standard deviations is clipped.

    Not a parameter: no gradient reaches it.
    """

    mean: Float[Array, " features"]
    variance: Float[Array, " features"]

    def __call__(self, x: Float[Array, "*batch features"]) -> Float[Array, "*batch features"]:
        mean, variance = jax.lax.stop_gradient((self.mean, self.variance))
        return jnp.clip((x - mean) * jax.lax.rsqrt(variance + 1e-8), -10.0, 10.0)

    def update(self, obs: Array, share: Array) -> "Normalizer":
        """With observations that are a `share` of all so far."""
        rows = obs.reshape(-1, self.mean.shape[0])
        mean, variance = rows.mean(axis=0), rows.var(axis=0)
        gap = mean - self.mean
        between = share * (1.0 - share) * gap**2
        return Normalizer(self.mean + share * gap, self.variance + share * (variance - self.variance) + between)


class MLP(eqx.Module):
    """A fully connected network from observations to arrays of a shape; every leaf is an array."""

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    """As many as weights, or none."""
    activation: Activation = eqx.field(static=True)
    input_shape: tuple[int, ...] | None = eqx.field(static=True)
    """Of one observation; None: it is discrete."""
    output_shape: tuple[int, ...] = eqx.field(static=True)
    normalizer: Normalizer | None = None
    """Of the observations; None: they are taken as they are."""

    def __call__(self, obs: Array) -> Float[Array, "..."]:
        if self.input_shape is None:
            x = jnp.asarray(self.weights[0])[obs]
        else:
            batch = obs.shape[: obs.ndim - len(self.input_shape)]
            flat = obs.reshape(*batch, math.prod(self.input_shape))
            x = (flat if self.normalizer is None else self.normalizer(flat)) @ self.weights[0]
        activation = ACTIVATIONS[self.activation]
        for i in range(len(self.weights)):
            if i > 0:
                x = activation(x) @ self.weights[i]
            if self.biases:
                x = x + self.biases[i]
        return x.reshape(*x.shape[:-1], *self.output_shape)

    def shrink(self, factor: float) -> "MLP":
        """With its output divided by a factor."""
        *hidden, last = self.weights
        biases = (*self.biases[:-1], self.biases[-1] / factor) if self.biases else ()
        return eqx.tree_at(lambda net: (net.weights, net.biases), self, ((*hidden, last / factor), biases))


def mlp(
    key: Array,
    observation_space: Space,
    output_shape: tuple[int, ...],
    hidden_sizes: Sequence[int],
    *,
    activation: Activation = "tanh",
    use_bias: bool = True,
    output_scale: float | Array = 1.0,
    normalize_observations: bool = False,
) -> MLP:
    """A new network: weights normal with variance 1 / inputs, biases 0; `output_scale` multiplies the last weights.

    A network without hidden layers starts at 0, as tables do.
    """
    output_scale = output_scale if hidden_sizes else 0.0
    discrete = isinstance(observation_space, Discrete)
    inputs = observation_space.n if discrete else math.prod(observation_space.shape)
    sizes = (inputs, *hidden_sizes, math.prod(output_shape))
    keys = jax.random.split(key, len(sizes) - 1)
    weights = []
    for i, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes)):
        std = 1.0 if discrete and i == 0 else fan_in**-0.5  # only one entry of a one-hot vector is not 0
        scale = std * (output_scale if i == len(sizes) - 2 else 1.0)
        weights.append(scale * jax.random.normal(keys[i], (fan_in, fan_out)))
    biases = tuple(jnp.zeros(size) for size in sizes[1:]) if use_bias else ()
    normalizer = Normalizer(jnp.zeros(inputs), jnp.ones(inputs)) if normalize_observations and not discrete else None
    shape = None if discrete else observation_space.shape
    return MLP(tuple(weights), biases, activation, shape, output_shape, normalizer)


def require_layers(activation: str, *hidden_sizes: Sequence[int]) -> None:
    """Refuse an unknown activation, and layers without neurons."""
    if activation not in ACTIVATIONS:
        raise InputError(f"activation is {activation!r}; it must be one of {', '.join(map(repr, ACTIVATIONS))}.")
    for sizes in hidden_sizes:
        if not isinstance(sizes, Sequence) or isinstance(sizes, str):
            raise InputError(f"hidden_sizes is {sizes!r}; give one size for each layer, as in (64, 64).")
        if not all(isinstance(size, int) and size >= 1 for size in sizes):
            raise InputError(f"hidden_sizes is {tuple(sizes)}; each size must be 1 or more, and () makes it linear.")
