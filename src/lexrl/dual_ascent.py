"""Lagrange multipliers, and the weight that each objective's gradient gets from them.

A multiplier grows while its objective is below what it must keep, and shrinks while it is above:

    lambda_j <- max(0, lambda_j + eta (k_j - tau_j - J_j))        c_i = beta_i + lambda_i sum_{j>i} beta_j
"""

import itertools
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lexrl.convergence import Progress
from lexrl.errors import InputError
from lexrl.reprs import short_repr
from lexrl.schedules import Constant, Schedules, as_schedules
from lexrl.units import counts


class State(NamedTuple):
    """The multipliers."""

    value: Float[Array, " M"]
    """`lambda_j`; the last is always 0."""
    violation: Float[Array, " M"]
    """How far the return is below `k_j - tau_j`, in the units that multipliers move by."""


class DualAscent(eqx.Module):
    """How multipliers move, and how fast each objective moves the policy."""

    beta: Schedules = eqx.field(
        converter=partial(as_schedules, name="beta"), default=Constant(1.0), metadata=counts("updates")
    )
    """Step size of each objective relative to `learning_rate`: one number or schedule over the updates for all, or one
    each; smaller for less important objectives."""
    eta: Schedules = eqx.field(
        converter=partial(as_schedules, name="eta"), default=Constant(1.0), metadata=counts("updates")
    )
    """Step size of the multipliers, per window of episodes: one, or M + 1, of which the i-th applies while i objectives
    have converged."""
    normalize_violation: bool = eqx.field(static=True, default=True)
    """Measure violations in standard deviations of an episode's return, so that eta does not depend on the scale of the
    returns."""
    damping: float = 0.0
    """Weight gradients by `lambda (1 + damping x violation)`, which prevents oscillation of multipliers and returns
    where several policies are equally good."""
    max_multiplier: float = 100.0
    """Upper bound of the multiplier of the second-to-last objective; the bound of each more important one is larger by
    this factor, so that it can always outweigh the next."""

    __repr__ = short_repr

    def __check_init__(self):
        for name, value in (("max_multiplier", self.max_multiplier), ("damping", self.damping)):
            if isinstance(value, int | float) and not value >= 0:
                raise InputError(f"{name} is {value:g}; it must be 0 or more.")

    def check(self, num_objectives: int) -> None:
        """Raise an error if there are too few or too many rates, or a less important one decays more slowly.

        Traced rates are not checked again.
        """
        for name, given, needed in (("beta", self.beta, num_objectives), ("eta", self.eta, num_objectives + 1)):
            if not isinstance(given, tuple):
                continue
            if len(given) != needed:
                raise InputError(
                    f"{name} has {len(given)} rates for {num_objectives} objectives; give one for all, or {needed}."
                )
            if not all(isinstance(leaf, int | float) for leaf in jax.tree.leaves(given)):
                continue
            for i, (before, after) in enumerate(itertools.pairwise(given), 1):
                if after.decay() < before.decay():
                    raise InputError(
                        f"Rate {i + 1} of {name} ({after}) decays more slowly than rate {i} ({before}), which reverses "
                        "the order of importance; each must decay at least as fast as the one before it: try "
                        "constants, or n^-p with a p that grows from one to the next."
                    )

    def init(self, num_objectives: int) -> State:
        return State(jnp.zeros(num_objectives), jnp.zeros(num_objectives))

    def weights(self, state: State, active: Bool[Array, " M"], num_updates: Int[Array, ""]) -> Float[Array, " M"]:
        """The weight `c_i` of each objective in the combined gradient of the update with this number."""
        damped = state.value * jnp.maximum(0.0, 1.0 + self.damping * state.violation)
        return gradient_weights(self.beta_at(active, num_updates), damped)

    def update(self, state: State, progress: Progress) -> State:
        """One step of dual ascent for every converged objective; the other multipliers are 0."""
        scale = jnp.maximum(progress.scale, 1e-6) if self.normalize_violation else jnp.ones_like(progress.scale)
        rate = self.eta_at(progress.converged, progress.num_updates)
        rate = rate * progress.num_episodes / progress.stats_window_size / scale
        m = state.value.shape[0]
        largest = self.max_multiplier ** jnp.maximum(m - 1 - jnp.arange(m), 1)
        value = ascend(state.value, rate, progress.required, progress.return_estimate)
        return State(
            value=jnp.where(progress.converged, jnp.minimum(value, largest), 0.0),
            violation=(progress.required - progress.return_estimate) / scale,
        )

    def metrics(self, state: State, weights: Float[Array, " M"]) -> dict[str, Array]:
        return {"multiplier": state.value, "gradient_weight": weights}

    def beta_at(self, active: Bool[Array, " M"], num_updates: Int[Array, ""]) -> Float[Array, " M"]:
        """`beta_i`, and 0 for objectives that are not optimized now."""
        each = self.beta if isinstance(self.beta, tuple) else (self.beta,) * active.shape[0]
        return jnp.where(active, jnp.stack([jnp.asarray(one(num_updates), jnp.float32) for one in each]), 0.0)

    def eta_at(self, converged: Bool[Array, " M"], num_updates: Int[Array, ""]) -> Float[Array, ""]:
        """`eta`, by the number of objectives that have converged."""
        if not isinstance(self.eta, tuple):
            return jnp.asarray(self.eta(num_updates), jnp.float32)
        return jnp.stack([jnp.asarray(one(num_updates), jnp.float32) for one in self.eta])[converged.sum()]


def gradient_weights(beta: Float[Any, " M"], multipliers: Float[Any, " M"]) -> Float[Any, " M"]:
    """The weight of each objective's gradient in the combined gradient of a policy-based algorithm:

        c_i = beta_i + lambda_i * sum_{j>i} beta_j

    Objective i moves the policy at its own rate beta_i, and, weighted by lambda_i, once more for every less important
    objective j > i whose Lagrangian constrains i. It is the sum of the M Lagrangian updates, collected.
    """
    xp = beta.__array_namespace__()
    from_here_on = xp.flip(xp.cumsum(xp.flip(beta, axis=-1), axis=-1), axis=-1)
    later = xp.concatenate([from_here_on[..., 1:], xp.zeros_like(beta[..., :1])], axis=-1)
    return beta + multipliers * later


def ascend(
    multipliers: Float[Any, " M"], rate: Any, required: Float[Any, " M"], returns: Float[Any, " M"]
) -> Float[Any, " M"]:
    """One step: `lambda_j <- max(0, lambda_j + eta (k_j - tau_j - J_j))`, with `required = k_j - tau_j`.

    The last objective constrains no other: its multiplier stays 0.
    """
    xp = multipliers.__array_namespace__()
    moved = multipliers + rate * (required - returns)
    constrains = xp.arange(multipliers.shape[-1]) < multipliers.shape[-1] - 1
    return xp.where(constrains & (moved > 0), moved, xp.zeros_like(moved))
