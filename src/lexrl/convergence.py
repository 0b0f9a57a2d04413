"""When an objective counts as converged, and the return it must keep from then on.

For every objective j the return `J_j` is estimated. Until the objective has converged, its threshold `k_j` follows the
estimate; afterwards it only rises. Objectives converge in order of importance: an objective can neither converge nor
raise its threshold while a more important one has not converged, or is below its own threshold.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lexrl.backend import compute_once
from lexrl.errors import InputError
from lexrl.reprs import short_repr
from lexrl.returns import EpisodeStats, share
from lexrl.tolerance import Tolerances, of_returns


class State(NamedTuple):
    """Statistics of every objective's return, and what follows from them."""

    mean: Float[Array, " M"]
    """Mean return of the last `stats_window_size` episodes: the estimate of `J_j`."""
    slow_mean: Float[Array, " M"]
    """The same over four times as many episodes."""
    variance: Float[Array, " M"]
    """Variance of the return of an episode."""
    num_episodes: Float[Array, ""]
    num_stable: Float[Array, " M"]
    """Episodes since the return last showed a trend."""
    converged: Bool[Array, " M"]
    threshold: Float[Array, " M"]
    """`k_j`"""
    num_updates: Int[Array, ""]


class Sample(NamedTuple):
    """New evidence of the returns, summed over episodes."""

    num_episodes: Float[Array, ""]
    total: Float[Array, " M"]
    squares: Float[Array, " M"]
    change: Float[Array, " M"] | float = 0.0
    """How much the last gradient steps are predicted to have added to the returns."""
    drift: float = 0.0
    """The part of its tolerance by which an estimate may move within a window and still count as stable."""


class Progress(NamedTuple):
    """Where the objectives stand after an update: what the multipliers need to know."""

    converged: Bool[Array, " M"]
    required: Float[Array, " M"]
    """`k_j - tau_j`"""
    return_estimate: Float[Array, " M"]
    """`J_j`"""
    scale: Float[Array, " M"]
    """Standard deviation of the return of an episode, plus the tolerance."""
    num_episodes: Float[Array, ""]
    """Episodes that ended since the last update."""
    stats_window_size: Any
    num_updates: Int[Array, ""]


class Convergence(eqx.Module):
    """Decides when objectives have converged."""

    stats_window_size: float = 100.0
    """Number of episodes over which returns are averaged."""
    patience: float = 200.0
    """Number of episodes without a trend after which an objective has converged."""
    sequential: bool = eqx.field(static=True, default=False)
    """Optimize one objective at a time, in order of importance, instead of all at once."""

    __repr__ = short_repr

    def __check_init__(self):
        for name, value, least in (("stats_window_size", self.stats_window_size, 1), ("patience", self.patience, 0)):
            if isinstance(value, int | float) and not value >= least:
                raise InputError(f"{name} is {value:g}; it must be {least} or more.")

    def init(self, num_objectives: int) -> State:
        zeros, never = jnp.zeros(num_objectives), jnp.zeros(num_objectives, bool)
        return State(zeros, zeros, zeros, jnp.float32(0), zeros, never, zeros, jnp.int32(0))

    def active(self, state: State) -> Bool[Array, " M"]:
        """The objectives that are optimized now: all, or, one at a time, the first that has not converged."""
        m = state.converged.shape[0]
        if not self.sequential:
            return jnp.ones(m, bool)
        return jnp.arange(m) == jnp.minimum(state.converged.sum(), m - 1)

    def update(self, state: State, sample: Sample, tolerance: Tolerances) -> tuple[State, Progress]:
        """Update the estimates, see which objectives have converged, and move the thresholds."""
        num_updates = state.num_updates + 1
        state = self._average(state, sample)
        trend = jnp.abs(state.mean - state.slow_mean)
        noise = jnp.sqrt(state.variance * (0.5 + 0.125) / self.stats_window_size)  # of the difference of the two means
        enough = state.num_episodes > self.stats_window_size  # before, both means are over the same episodes
        free = self._unrestricted(state, tolerance)
        allowed = 2 * noise + sample.drift * of_returns(tolerance, state.mean, num_updates)
        num_stable = jnp.where((trend <= allowed) & enough & free, state.num_stable + sample.num_episodes, 0.0)
        stable = state.converged | (num_stable >= self.patience)
        converged = jnp.cumprod(stable.astype(jnp.int32)).astype(bool)
        raised = jnp.where(free, jnp.maximum(state.threshold, state.slow_mean), state.threshold)
        threshold = jnp.where(state.converged, raised, state.mean)
        tau = of_returns(tolerance, threshold, num_updates)
        progress = Progress(
            converged=converged,
            required=threshold - tau,
            return_estimate=state.mean + sample.change,
            scale=jnp.sqrt(state.variance) + tau,
            num_episodes=sample.num_episodes,
            stats_window_size=self.stats_window_size,
            num_updates=num_updates,
        )
        state = state._replace(num_stable=num_stable, converged=converged, threshold=threshold, num_updates=num_updates)
        return state, progress

    def metrics(self, state: State) -> dict[str, Array]:
        converged = state.converged.astype(jnp.float32)
        return {"return_estimate": state.mean, "threshold": state.threshold, "converged": converged}

    def _average(self, state: State, sample: Sample) -> State:
        """Running means over episodes: plain ones until the window is full."""
        count = sample.num_episodes
        num_episodes = state.num_episodes + count
        here = sample.total / jnp.maximum(count, 1.0)
        fast, slow = (share(count, num_episodes, times * self.stats_window_size) for times in (1, 4))
        center = jnp.where(state.num_episodes > 0, state.slow_mean, here)
        # (x - center)^2, multiplied out. `compute_once`: every training loop must round the parts alike.
        parts = (sample.squares / jnp.maximum(count, 1.0), 2 * here * center, center**2)
        square, product, center_square = compute_once(parts, count >= 0)
        deviation = jnp.maximum(square - product + center_square, 0.0)
        steps = (fast * (here - state.mean), slow * (here - state.slow_mean), slow * (deviation - state.variance))
        steps = compute_once(steps, count >= 0)
        return state._replace(
            mean=state.mean + steps[0],
            slow_mean=state.slow_mean + steps[1],
            variance=state.variance + steps[2],
            num_episodes=num_episodes,
        )

    def _unrestricted(self, state: State, tolerance: Tolerances) -> Bool[Array, " M"]:
        """Objectives that may converge and raise their threshold: all more important ones keep theirs.

        A return reached while a more important objective is below its threshold is lost when that one recovers.
        """
        tau = of_returns(tolerance, state.threshold, state.num_updates + 1)
        error = jnp.sqrt(state.variance * 0.125 / self.stats_window_size)
        keeps = state.converged & (state.slow_mean >= state.threshold - tau - 2 * error)
        return jnp.concatenate([jnp.ones(1, bool), jnp.cumprod(keeps.astype(jnp.int32)).astype(bool)[:-1]])


def from_episodes(episode_stats: EpisodeStats) -> Sample:
    """The discounted returns of the episodes that ended."""
    return Sample(episode_stats.episodes, episode_stats.total, episode_stats.squares)


def from_critic(value: Float[Array, "T N M"], first: Bool[Array, "T N"]) -> Sample:
    """The critic's values of the states in which episodes began.

    Episodes that all begin in the same state have no variance here, so every change of the critic would look like a
    trend: hence the drift.
    """
    began = jnp.where(first[..., None], value, 0.0)
    return Sample(first.sum().astype(jnp.float32), began.sum(axis=(0, 1)), (began**2).sum(axis=(0, 1)), drift=0.25)
