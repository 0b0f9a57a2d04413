"""Units of returns, found while learning: a network learns best where its targets are about 1.

The unit of an objective is a power of two. It starts at the size of the first reward that is not 0, and doubles when
the mean squared target exceeds 1; the last layer's weights are halved with it, so that the values stay as they are. All
of this is exact in floating point: rewards times 2^k give the same policy, bit for bit.
"""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from lexrl.networks import Network
from lexrl.perceptrons import MLP

WINDOW = 100
"""Gradient steps that the running means look back."""


class Scale(NamedTuple):
    """The unit of each objective, and what is known about targets in it."""

    unit: Float[Array, " M"]
    """0 before the first reward that is not 0."""
    gain: Float[Array, " M"]
    """What a network of the user's own is multiplied by: its last layer is not ours to halve."""
    mean_square: Float[Array, " M"]
    lowest: Float[Array, " M"]
    highest: Float[Array, " M"]
    """Running means over batches: of the squared targets, the smallest and the largest."""

    @property
    def size(self) -> Float[Array, " M"]:
        """The unit, or 1 where there is none yet."""
        return jnp.where(self.unit > 0, self.unit, 1.0)

    @property
    def span(self) -> Float[Array, " M"]:
        """The range of the targets, in units of the returns."""
        return self.size * (self.highest - self.lowest)


def init(fixed: Float[Array, " M"] | None, num_objectives: int) -> Scale:
    """Units that were given, or none yet."""
    zero = jnp.zeros(num_objectives)
    return Scale(zero if fixed is None else fixed, zero + 1, zero, zero, zero)


def begin(scale: Scale, reward: Float[Array, "*batch M"]) -> Scale:
    """A unit for every objective that has none and whose rewards are no longer all 0: the next power of two."""
    largest = jnp.abs(reward).max(axis=tuple(range(reward.ndim - 1)))
    _, exponent = jnp.frexp(largest)
    found = jnp.where(largest > 0, jnp.ldexp(jnp.ones_like(largest), exponent), 0.0)
    return scale._replace(unit=jnp.where(scale.unit > 0, scale.unit, found))


def observe(scale: Scale, targets: Float[Array, "*batch M"], num_updates: Int[Array, ""]) -> Scale:
    """After another batch of targets, in units of the scale."""
    axes, share = tuple(range(targets.ndim - 1)), jnp.maximum(1 / WINDOW, 1 / num_updates)

    def toward(old: Array, new: Array) -> Array:
        return old + share * (new - old)

    return scale._replace(
        mean_square=toward(scale.mean_square, (targets**2).mean(axis=axes)),
        lowest=toward(scale.lowest, targets.min(axis=axes)),
        highest=toward(scale.highest, targets.max(axis=axes)),
    )


def double(scale: Scale, *networks: Network | None) -> tuple[Scale, *tuple[Network | None, ...]]:
    """Units twice as large where targets have outgrown them, and networks with the same values as before."""
    factor = jnp.where(scale.mean_square > 1, 0.5, 1.0)
    ours = isinstance(networks[0], MLP)
    after = Scale(
        unit=scale.unit / factor,
        gain=scale.gain if ours else scale.gain * factor,
        mean_square=scale.mean_square * factor**2,
        lowest=scale.lowest * factor,
        highest=scale.highest * factor,
    )
    return after, *(_scaled(net, factor) if isinstance(net, MLP) else net for net in networks)


def _scaled(net: MLP, factor: Float[Array, " M"]) -> MLP:
    """The outputs of each objective times a factor."""
    each = jnp.repeat(factor, net.output_shape[-1])
    weights = (*net.weights[:-1], net.weights[-1] * each)
    biases = (*net.biases[:-1], *(bias * each for bias in net.biases[-1:]))
    return dataclasses.replace(net, weights=weights, biases=biases)
