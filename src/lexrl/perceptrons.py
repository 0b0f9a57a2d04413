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


class MLP(eqx.Module):
    """A fully connected network from observations to arrays of a shape; every leaf is an array."""

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    """As many as weights, or none."""
    activation: Activation = eqx.field(static=True)
    input_shape: tuple[int, ...] | None = eqx.field(static=True)
    """Of one observation; None: it is discrete."""
    output_shape: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, obs: Array) -> Float[Array, "..."]:
        if self.input_shape is None:
            x = jnp.asarray(self.weights[0])[obs]
        else:
            batch = obs.shape[: obs.ndim - len(self.input_shape)]
            x = obs.reshape(*batch, math.prod(self.input_shape)) @ self.weights[0]
        activation = ACTIVATIONS[self.activation]
        for i in range(len(self.weights)):
            if i > 0:
                x = activation(x) @ self.weights[i]
            if self.biases:
                x = x + self.biases[i]
        return x.reshape(*x.shape[:-1], *self.output_shape)


def mlp(
    key: Array,
    observation_space: Space,
    output_shape: tuple[int, ...],
    hidden_sizes: Sequence[int],
    *,
    activation: Activation = "tanh",
    use_bias: bool = True,
    output_scale: float | Array = 1.0,
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
    return MLP(tuple(weights), biases, activation, None if discrete else observation_space.shape, output_shape)


def require_layers(activation: str, *hidden_sizes: Sequence[int]) -> None:
    """Refuse an unknown activation, and layers without neurons."""
    if activation not in ACTIVATIONS:
        raise InputError(f"activation is {activation!r}; it must be one of {', '.join(map(repr, ACTIVATIONS))}.")
    for sizes in hidden_sizes:
        if not all(size >= 1 for size in sizes):
            raise InputError(f"hidden_sizes is {tuple(sizes)}; each size must be 1 or more, and () makes it linear.")
