"""Lagrange multipliers of the objectives that are done, and the weights of all objectives' advantages.

In stage s the policy follows the combined advantage, each objective's in its own unit `u_j`, the root mean square of
its advantages since training began:

    A = sum_j w_j A_j / u_j        w_j = lambda_j (j < s),  1 (j = s),  preview^(j - s) (j > s)

A multiplier moves in log space. It rises by how far its objective is below what it must keep, beyond doubt and in units
of that doubt (at most 1), as the evidence is renewed; and it falls with time while nothing is violated, until the last
quarter of the stage:

    log lambda_j <- log lambda_j + step_size * violation_j * (share of the evidence that is new)
    log lambda_j <- log lambda_j - decay * (share of the stage)

so that neither its value nor its steps depend on units, or on how long episodes and stages are.

With slack there is one multiplier at which the slack is just used, and the policy jumps where it is crossed. One that
follows the violation would wind up. So the mean returns J(c) of all blocks c of the stage, and of the policy it began
with, are kept, and at the end of a block the multiplier becomes the shadow price of the best mixture of them,

    lambda = argmin_{l >= 0} max_c ( J_s(c) / u_s + sum_j l_j (J_j(c) - (k_j - tau_j)) / u_j )

(the dual of its linear program), but moves at most by a factor of 4.

An objective at its limit is held there from both sides: nothing decays, violations of either sign count in standard
deviations of the return, the steps are a quarter as long, and the multiplier leads by `damping * violation_j`, without
which it would swing (the proportional part of a PI controller).
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from lexrl.errors import InputError
from lexrl.reprs import short_repr
from lexrl.stages import NUM_BLOCKS, Progress

LARGEST_CHANGE = math.log(4.0)
"""Of the logarithm of a multiplier with slack, at the end of a block."""

LEAST = 0.01
"""Multipliers at a limit that does not bind do not fall below it: else they could not be back in time."""


class State(NamedTuple):
    """The multipliers."""

    log: Float[Array, " M"]
    """`log lambda_j`; it means something for the objectives before the stage's."""
    returns: Float[Array, "columns M"]
    """Mean returns of the policy that the stage began with, and of each block so far."""
    lead: Float[Array, " M"]
    """Added to the logarithm: `damping * violation_j` of objectives at their limits, else 0."""


class Multipliers(eqx.Module):
    """How multipliers move."""

    initial_multiplier: float = 1.0
    """A multiplier when its objective's stage has ended."""
    step_size: float = 2.0
    """Largest rise of the logarithm while all of the evidence is renewed."""
    decay: float = 8.0
    """Fall of the logarithm over a whole stage in which nothing is violated."""
    max_multiplier: float = 1e4
    """Multipliers do not rise above it."""
    damping: float = 10.0
    """How far the logarithm leads at a limit, per unit of violation."""

    __repr__ = short_repr

    def __check_init__(self):
        for name in ("initial_multiplier", "max_multiplier"):
            value = getattr(self, name)
            if isinstance(value, int | float) and not value > 0:
                raise InputError(f"{name} is {value:g}; it must be above 0.")

    def init(self, num_objectives: int) -> State:
        zeros = jnp.zeros(num_objectives)
        return State(zeros, jnp.zeros((NUM_BLOCKS + 1, num_objectives)), zeros)

    def weights(self, state: State, stage: Int[Array, ""], next_weight: Float[Array, ""]) -> Float[Array, " M"]:
        """`w_j`"""
        index = jnp.arange(state.log.shape[0])
        later = next_weight ** jnp.maximum(index - stage, 0)
        return jnp.where(index < stage, jnp.exp(state.log + state.lead), later)

    def update(self, state: State, progress: Progress, unit: Float[Array, " M"]) -> State:
        """One step for every objective before the stage's; the one whose stage has ended gets its first multiplier.
        `unit` is `u_j`."""
        index = jnp.arange(state.log.shape[0])
        step_size = jnp.where(progress.at_limit, 0.25 * self.step_size, self.step_size)
        rise = step_size * progress.violation * progress.renewed
        fall = self.decay * progress.time * (progress.fraction < 0.75)
        step = jnp.where((progress.violation > 0) | progress.at_limit, rise, jnp.minimum(rise, -fall))
        returns = state.returns.at[progress.block + 1].set(progress.returns)
        returns = jnp.where(progress.ended, progress.returns, jnp.where(progress.block_ended, returns, state.returns))
        wanted = jax.lax.cond(
            progress.block_ended & jnp.any(progress.slack),
            lambda: self._shadow_prices(state._replace(returns=returns), progress, unit),
            lambda: jnp.exp(state.log),
        )
        change = jnp.clip(jnp.log(wanted) - state.log, -LARGEST_CHANGE, LARGEST_CHANGE)
        step = jnp.where(progress.slack, change * progress.block_ended, step)
        moved = jnp.minimum(state.log + step, jnp.log(self.max_multiplier))
        moved = jnp.where(progress.at_limit, jnp.maximum(moved, math.log(LEAST)), moved)
        first = jnp.log(self.initial_multiplier)
        ends_now = progress.ended & (index == progress.stage)
        log = jnp.where(ends_now, first, jnp.where(index < progress.stage, moved, 0.0))
        lead = jnp.where(progress.at_limit, self.damping * progress.violation, 0.0)
        return state._replace(log=log, returns=returns, lead=lead)

    def _shadow_prices(self, state: State, progress: Progress, unit: Float[Array, " M"]) -> Float[Array, " M"]:
        """The multipliers of the best mixture; those without slack stay as they are."""
        index = jnp.arange(state.log.shape[0])
        before = index < progress.stage
        searched = progress.slack & before
        above = (state.returns - jnp.where(before, progress.threshold, 0.0)) / unit
        weights = jnp.where(before, jnp.exp(state.log), index == progress.stage)
        offset, slope = above @ jnp.where(searched, 0.0, weights), jnp.where(searched, above, 0.0)

        def improve(j: Array, found: Array) -> Array:
            others = offset + slope @ jnp.where(index == j, 0.0, found)
            return found.at[j].set(jnp.minimum(_lowest_maximum(others, slope[:, j]), self.max_multiplier))

        found = jax.lax.fori_loop(0, index.shape[0], improve, _saddle_point(offset, slope))
        return jnp.where(searched, found, weights)

    def metrics(self, state: State, stage: Array, weights: Float[Array, " M"]) -> dict[str, Array]:
        value = jnp.where(jnp.arange(state.log.shape[0]) < stage, jnp.exp(state.log + state.lead), 0.0)
        return {"multiplier": value, "gradient_weight": weights}


def _lowest_maximum(offset: Float[Array, " columns"], slope: Float[Array, " columns"]) -> Float[Array, ""]:
    """`argmin_{l >= 0} max_c (offset_c + l slope_c)`: where two lines meet, or 0; infinite if all fall."""
    apart = slope[None, :] - slope[:, None]
    meeting = (offset[:, None] - offset[None, :]) / jnp.where(apart == 0, 1.0, apart)
    points = jnp.where((apart != 0) & (meeting > 0), meeting, 0.0).reshape(-1)
    lowest = points[jnp.argmin(jnp.max(offset + points[:, None] * slope, axis=1))]
    return jnp.where(jnp.max(slope) < 0, jnp.inf, lowest)


def _saddle_point(offset: Float[Array, " columns"], slope: Float[Array, "columns M"]) -> Float[Array, " M"]:
    """Nearly `argmin_{l >= 0} max_c (offset_c + sum_j slope_cj l_j)`, by the primal-dual hybrid gradient method.

    To improve one multiplier at a time is not enough: where two lines meet, that may be stuck.
    """
    largest, spread = jnp.max(jnp.abs(slope), axis=0), jnp.max(offset) - jnp.min(offset)
    unit, height = jnp.where(largest > 0, largest, 1.0), jnp.where(spread > 0, spread, 1.0)
    matrix, gain = slope / unit, (offset - jnp.max(offset)) / height
    step = 1.0 / jnp.maximum(jnp.linalg.norm(matrix), 1e-6)

    def iterate(_: Array, point: tuple[Array, Array]) -> tuple[Array, Array]:
        mixture, before = point
        after = jnp.maximum(before - step * (mixture @ matrix), 0.0)
        return _on_simplex(mixture + step * (gain + matrix @ (2 * after - before))), after

    start = jnp.full(offset.shape, 1.0 / offset.shape[0]), jnp.zeros(slope.shape[1])
    return jax.lax.fori_loop(0, 1000, iterate, start)[1] * height / unit


def _on_simplex(point: Float[Array, " columns"]) -> Float[Array, " columns"]:
    """The nearest probabilities."""
    falling = jnp.sort(point)[::-1]
    shift = (jnp.cumsum(falling) - 1.0) / jnp.arange(1, point.shape[0] + 1)
    return jnp.maximum(point - shift[jnp.sum(falling > shift) - 1], 0.0)
