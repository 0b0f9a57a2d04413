"""What constrained learners share: a price for each limit, moved by how far episodes are beyond it.

    lambda_k <- max(0, lambda_k + eta e_k)        e_k = how far limit k is missed, on average over recent episodes

or, as a controller (Stooke et al. 2020), `max(0, P e_k + I_k + D (e_k - e_k before)+)`, where `I_k` is the sum above.
Prices move per episode, on a slower scale than the networks.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from lexrl.errors import InputError
from lexrl.returns import share
from lexrl.schedules import Constant, Schedule, named


class State(NamedTuple):
    """Where each of K limits stands."""

    level: Float[Array, " K"]
    """Average over the last episodes of what is limited from below."""
    seen: Float[Array, ""]
    """Episodes."""
    sums: Float[Array, " K"]
    """`I_k`"""
    before: Float[Array, " K"]
    """`e_k` when it was last looked at."""
    multipliers: Float[Array, " K"]
    time: Int[Array, ""]
    """Updates so far."""


class PIDLagrangian(eqx.Module):
    """How prices are found."""

    ki: Schedule = eqx.field(converter=named("eta"), default=Constant(0.05))
    """How much a price rises while a limit is missed by 1, per window of episodes; by the number of updates."""
    kp: float = 0.0
    """Added to the price, per unit by which a limit is missed."""
    kd: float = 0.0
    """Added to the price, per unit by which that has grown."""
    stats_window_size: float = 100.0
    """Episodes that a level is averaged over."""
    max_multiplier: float = 100.0
    """No price rises above this."""

    def __check_init__(self):
        for name, given, least in (
            ("proportional", self.kp, 0),
            ("derivative", self.kd, 0),
            ("window", self.stats_window_size, 1),
            ("ceiling", self.max_multiplier, 0),
        ):
            if isinstance(given, int | float) and not given >= least:
                raise InputError(f"{name} is {given:g}; it must be {least} or more.")

    def start(self, limits: int) -> State:
        zeros = jnp.zeros(limits)
        return State(zeros, jnp.float32(0), zeros, zeros, zeros, jnp.int32(0))

    def observe(
        self, state: State, episodes: Float[Array, ""], total: Float[Array, " K"], least: Float[Array, " K"]
    ) -> State:
        """Take in the sum of the levels of the episodes that ended, of which each should be `least` on average."""
        seen = state.seen + episodes
        here = total / jnp.maximum(episodes, 1.0)
        level = state.level + share(episodes, seen, self.stats_window_size) * (here - state.level)
        missed = jnp.where(seen > 0, least - level, 0.0)
        time = state.time + 1
        sums = jnp.clip(
            state.sums + self.ki(time) * episodes / self.stats_window_size * missed, 0.0, self.max_multiplier
        )
        growth = self.kd * jnp.maximum(missed - state.before, 0.0)
        multipliers = jnp.clip(self.kp * missed + sums + growth, 0.0, self.max_multiplier)
        # Without an episode nothing was learned of the levels: what has grown last still counts.
        return State(level, seen, sums, missed, jnp.where(episodes > 0, multipliers, state.multipliers), time)


def metrics(state: State, sides: Float[Array, "K M"]) -> dict[str, Array]:
    """What is worth watching, one number per objective: the prices of its limits, and by how much the worst of these is
    missed (below 0: by how much all are kept)."""
    of_objective = jnp.abs(sides)
    worst = jnp.where(of_objective > 0, state.before[:, None], -jnp.inf).max(axis=0)
    return {"multiplier": state.multipliers @ of_objective, "violation": jnp.where(jnp.isfinite(worst), worst, 0.0)}
