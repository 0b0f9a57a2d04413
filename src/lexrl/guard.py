"""A guard over returns: tolerances that are small at every state may add up to a large loss over an episode.

Some episodes are played without exploration, by the full policy and by the prefix policies ("the first i objectives
alone"). Their returns for objective i differ by what the objectives after i cost it:

    loss_i = J_i(prefix i) - J_i(full policy)

Where the loss exceeds the slack tau_i (if that is 0: by more than sampling explains), the scale c_i of what objective i
gives away at each state is halved; where it does not, the scale grows back slowly. Losses are measured in discounted
and in undiscounted returns, and neither may exceed the slack.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from lexrl import lex
from lexrl.errors import InputError
from lexrl.reprs import short_repr
from lexrl.schedules import OfRun, require_nonnegative, shown
from lexrl.tolerance import Tolerances, as_standard_errors, of_returns
from lexrl.units import counts


class Returns(NamedTuple):
    """Returns that were measured since the last decision, of each objective i: under the policy of the first i
    objectives, and under the full policy (first axis); discounted and undiscounted (second axis)."""

    num_episodes: Float[Array, "2 M"]
    mean: Float[Array, "2 2 M"]
    squares: Float[Array, "2 2 M"]
    """Sum of squared deviations from the mean."""


class State(NamedTuple):
    """What the guard remembers."""

    scale: Float[Array, " M"]
    """`c_i`; 0 for the last objective, which gives nothing away."""
    measured: Returns
    lowest: Float[Array, "2 M"]
    """The smallest return so far, discounted and undiscounted, and the largest."""
    highest: Float[Array, "2 M"]
    decided: Int[Array, ""]
    """When the last decision was made."""


class Guard(eqx.Module):
    """How returns are compared, and what follows from it."""

    standard_errors: float = 4.0
    """Without a slack, a loss counts if it is larger than so many of its standard errors."""
    margin: float = 0.005
    """A loss smaller than this share of the range of returns never counts."""
    num_episodes: float = 16.0
    """Episodes of each policy before a decision."""
    interval: float | OfRun = eqx.field(default=OfRun(0.02), metadata=counts("updates"))
    """Updates between two decisions, at least: every decision is another opportunity to err."""
    growth: float = 1.2
    """Factor by which a scale below 1 grows where no loss was found."""
    growth_ends: float | OfRun = eqx.field(default=OfRun(0.8), metadata=counts("updates"))
    """No scale grows after so many updates."""

    __repr__ = short_repr

    def __check_init__(self):
        require_nonnegative("the number of standard errors of a guard", self.standard_errors)
        require_nonnegative("the margin of a guard", self.margin)
        require_nonnegative("the number of episodes of a guard", self.num_episodes)
        if isinstance(self.growth, int | float) and not self.growth >= 1:
            raise InputError(f"growth is {self.growth:g}; it must be 1 or more.")

    def __str__(self) -> str:
        return shown(self.standard_errors)

    def init(self, num_objectives: int) -> State:
        m = num_objectives
        nothing = Returns(jnp.zeros((2, m)), jnp.zeros((2, 2, m)), jnp.zeros((2, 2, m)))
        most = jnp.full((2, m), np.finfo(np.float32).max)
        return State(jnp.asarray(lex.gives_way(m)), nothing, most, -most, jnp.int32(0))

    def update(
        self,
        state: State,
        num_objectives: Int[Array, ""],
        returns: Float[Array, "2 M"],
        tolerance: Tolerances,
        time: Int[Array, ""],
    ) -> State:
        """After an episode of the policy for the first `num_objectives` objectives.

        Args:
            state: the guard's state.
            num_objectives: how many objectives the policy served: all of them is the full policy.
            returns: of the episode, discounted and undiscounted.
            tolerance: what each objective may lose, in units of its return.
            time: updates so far.
        """
        if isinstance(self.interval, OfRun) or isinstance(self.growth_ends, OfRun):
            raise InputError("A guard decides by fractions of a run, whose length is not known; train with it.")
        m = returns.shape[-1]
        lowest, highest = jnp.minimum(state.lowest, returns), jnp.maximum(state.highest, returns)
        played = jnp.stack([jnp.arange(1, m + 1) == num_objectives, jnp.full(m, num_objectives == m)])
        measured = _add(state.measured, returns, played)
        decides = (measured.num_episodes >= self.num_episodes).all() & (time - state.decided >= self.interval)
        slack = of_returns(tolerance, measured.mean[0, 0], time)
        lost = self._lost(measured, slack, highest - lowest)
        grown = jnp.minimum(self.growth * state.scale, lex.gives_way(m))
        scale = jnp.where(lost, 0.5 * state.scale, jnp.where(time <= self.growth_ends, grown, state.scale))
        return State(
            scale=jnp.where(decides, scale, state.scale),
            measured=Returns(*(jnp.where(decides, 0.0, leaf) for leaf in measured)),
            lowest=lowest,
            highest=highest,
            decided=jnp.where(decides, time, state.decided),
        )

    def _lost(self, measured: Returns, slack: Float[Array, " M"], span: Float[Array, "2 M"]) -> Bool[Array, " M"]:
        """Which objectives lose more than their slack, discounted or not."""
        count = measured.num_episodes[:, None]
        variance = measured.squares / jnp.maximum(count - 1, 1) / jnp.maximum(count, 1)
        loss = measured.mean[0] - measured.mean[1] - slack
        least = self.margin * span
        unclear = jnp.maximum(self.standard_errors * jnp.sqrt(variance.sum(axis=0)), least)
        least = jnp.where(slack > 0, least, unclear)  # what was granted is granted without a margin for errors
        return (loss > least).any(axis=0)


def as_guard(given: Any) -> Any:
    """A number of standard errors; `none` is no guard."""
    if isinstance(given, str):
        return None if given.strip() == "none" else Guard(as_standard_errors(given, "guard"))
    return Guard(float(given)) if isinstance(given, int | float) else given


def _add(measured: Returns, returns: Float[Array, "2 M"], played: Bool[Array, "2 M"]) -> Returns:
    """Welford's algorithm, for the entries that were played."""
    count = measured.num_episodes + played
    away = returns - measured.mean
    mean = measured.mean + jnp.where(played, 1 / jnp.maximum(count, 1), 0.0)[:, None] * away
    squares = measured.squares + played[:, None] * away * (returns - mean)
    return Returns(count, mean, squares)
