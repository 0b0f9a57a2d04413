"""Small networks and the step that trains them: the only file that calls the optimiser.

A numbered observation picks a row of the first layer, which is what a one-hot vector would do at the cost of a
product; so a network without hidden layers and biases on such observations is a table.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Float

from lexrl.distributions import Categorical, Distribution, Normal, Squashed
from lexrl.errors import InputError
from lexrl.types import Box, Discrete, Spec

Activation = Literal["tanh", "relu"]


class MLP(eqx.Module):
    """A fully connected network from observations to numbers of a shape; every leaf is an array."""

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    """As many as weights, or none."""
    activation: Activation = eqx.field(static=True)
    seen: tuple[int, ...] | None = eqx.field(static=True)
    """Shape of an observation; None: it is a number."""
    shape: tuple[int, ...] = eqx.field(static=True)
    """Shape of the answer."""

    def __call__(self, obs: Array) -> Float[Array, "..."]:
        if self.seen is None:
            x = jnp.asarray(self.weights[0])[obs]
        else:
            batch = obs.shape[: obs.ndim - len(self.seen)]
            x = obs.reshape(*batch, math.prod(self.seen)) @ self.weights[0]
        squash = jnp.tanh if self.activation == "tanh" else jax.nn.relu
        for i in range(len(self.weights)):
            if i > 0:
                x = squash(x) @ self.weights[i]
            if self.biases:
                x = x + self.biases[i]
        return x.reshape(*x.shape[:-1], *self.shape)


def mlp(
    key: Array,
    observation: Discrete | Box,
    shape: tuple[int, ...],
    hidden_sizes: Sequence[int],
    *,
    activation: Activation = "tanh",
    use_bias: bool = True,
    last: float | Array = 1.0,
) -> MLP:
    """A new network: weights normal with variance 1 / inputs, biases 0; `last` scales the last layer's weights.

    A network without hidden_sizes layers starts at 0: what it has not seen, it has no opinion of.
    """
    last = last if hidden_sizes else 0.0
    seen = None if isinstance(observation, Discrete) else observation.shape
    inputs = observation.n if isinstance(observation, Discrete) else math.prod(observation.shape)
    sizes = (inputs, *hidden_sizes, math.prod(shape))
    keys = jax.random.split(key, len(sizes) - 1)
    weights = []
    for i, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes)):
        size = 1.0 if seen is None and i == 0 else fan_in**-0.5  # of a one-hot vector only one entry comes in
        scale = size * (last if i == len(sizes) - 2 else 1.0)
        weights.append(scale * jax.random.normal(keys[i], (fan_in, fan_out)))
    biases = tuple(jnp.zeros(size) for size in sizes[1:]) if use_bias else ()
    return MLP(tuple(weights), biases, activation, seen, shape)


def require_widths(hidden: Sequence[int]) -> None:
    """Complain about layers without neurons."""
    if not all(width >= 1 for width in hidden):
        raise InputError(
            f"The hidden layers have widths {tuple(hidden)}; each needs 1 or more, and none makes it linear."
        )


class Actor(eqx.Module):
    """A policy: a network, and for continuous actions a spread of its own for each dimension."""

    net: MLP
    log_std: Array | None
    bounds: tuple[float, float] | None = eqx.field(static=True)
    """Press actions between these; None: leave them free."""

    def __call__(self, obs: Array) -> Distribution:
        out = self.net(obs)
        if self.log_std is None:
            return Categorical(out)
        normal = Normal(out, jnp.broadcast_to(self.log_std, out.shape))
        if self.bounds is None:
            return normal
        return Squashed(normal, *(jnp.full(out.shape, end) for end in self.bounds))


def actor(
    key: Array,
    spec: Spec,
    hidden_sizes: Sequence[int],
    *,
    activation: Activation,
    use_bias: bool,
    squash_output: bool,
    spread: Any,
) -> Actor:
    """A new policy for a world, nearly uniform (or centred) at first."""
    small = 0.01
    if isinstance(spec.action_space, Discrete):
        net = mlp(
            key,
            spec.observation_space,
            (spec.action_space.n,),
            hidden_sizes,
            activation=activation,
            use_bias=use_bias,
            last=small,
        )
        return Actor(net, None, None)
    if len(spec.action_space.shape) != 1:
        raise InputError(f"Actions are arrays of shape {spec.action_space.shape}; a policy here answers with a vector.")
    bounds = (float(spec.action_space.low), float(spec.action_space.high))
    if squash_output and not all(map(math.isfinite, bounds)):
        raise InputError(f"Actions lie in {bounds}; squashing needs finite bounds: leave them free instead.")
    net = mlp(
        key,
        spec.observation_space,
        spec.action_space.shape,
        hidden_sizes,
        activation=activation,
        use_bias=use_bias,
        last=small,
    )
    log_std = jnp.full(spec.action_space.shape, jnp.log(spread))
    return Actor(net, log_std, bounds if squash_output else None)


class OptState(NamedTuple):
    """What the optimiser remembers of earlier gradients."""

    moments: Any


class Optimiser(eqx.Module):
    """Adam (or plain gradient steps), with the gradient's length cut off."""

    method: Literal["adam", "sgd"] = eqx.field(static=True, default="adam")
    """Adam, or plain gradient steps as the theorems want them."""
    longest: float = 0.5
    """A longer gradient is shortened to this length; 0: never."""

    def start(self, parameters: Any) -> OptState:
        return OptState(optax.scale_by_adam(eps=1e-5).init(parameters) if self.method == "adam" else ())

    def step(self, parameters: Any, gradient: Any, opt_state: OptState, rate: Any) -> tuple[Any, OptState]:
        """The parameters after a step of size `rate` *down* the gradient."""
        length = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient)))
        cut = jnp.where((self.longest > 0) & (length > self.longest), self.longest / length, 1.0)
        moments: Any = opt_state.moments
        direction = jax.tree.map(lambda leaf: leaf * cut, gradient)
        if self.method == "adam":
            direction, moments = optax.scale_by_adam(eps=1e-5).update(direction, moments)
        moved = jax.tree.map(lambda old, change: old - rate * change, parameters, direction)
        return moved, OptState(moments)


def minibatches(key: Array, size: int, epochs: int, parts: int) -> Array:
    """The rows of each gradient step on a rollout, `[epochs x parts, size / parts]`: shuffled anew in every epoch."""
    orders = jax.vmap(lambda key: shuffled(key, size, parts))(jax.random.split(key, epochs))
    return orders.reshape(epochs * parts, -1)


def shuffled(key: Array, size: int, parts: int) -> Array:
    """The numbers 0 .. size-1 in a scrambled order, as `[parts, size / parts]`: minibatches of a rollout.

    `i -> a i + b mod size` with a random `a` that shares no divisor with the size visits every number once, and costs
    nothing; a true shuffle would cost as much as the learning. The factors are near the golden section of the size, so
    that each part takes evenly from the whole rollout.
    """
    require_shuffled(size)
    coprime = [a for a in range(1, size + 1) if math.gcd(a, size) == 1]
    golden = [a for a in coprime if 0.37 * size < min(a, size - a) < 0.395 * size] or coprime
    few = jnp.asarray(golden[:: -(-len(golden) // 256)], jnp.uint32)
    bits = jax.random.bits(key, (2,), jnp.uint32)
    factor, offset = few[bits[0] % few.shape[0]], bits[1] % size
    return ((jnp.arange(size, dtype=jnp.uint32) * factor + offset) % size).astype(jnp.int32).reshape(parts, -1)


def require_shuffled(size: int) -> None:
    """Complain about a rollout that `shuffled` cannot take: its products must fit into 32 bits."""
    if size >= 2**16:
        raise InputError(f"A rollout of {size} transitions is too long to shuffle; take fewer steps or worlds.")
