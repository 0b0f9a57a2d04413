"""What constrained algorithms share: a multiplier for each limit, moved by how far episodes violate it.

    lambda_k <- max(0, lambda_k + ki e_k)        e_k: the violation of limit k, on average over recent episodes

or, as a PID controller (Stooke et al. 2020), `max(0, kp e_k + I_k + kd max(0, change of e_k))`, where `I_k` is the sum
above. Multipliers move per episode, on a slower time scale than the networks.

A gain that is right for a cost of 200 per episode is wrong for one of 0.02. `UnitFreeLagrangian` therefore divides the
sums of episodes by their standard deviation `u` since training began, before a PID controller sees them, and the
policy follows `A_0 / u_0 + sum_k lambda_k A_k / u_k`: neither gains nor multipliers have units.

Limits are about signals as the environment gives them, rewards about objectives as the order signs and sorts them:
`constraint_weights` and `objective_weights` translate.
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from lexrl.algorithms import validation
from lexrl.constraints import Limit
from lexrl.errors import InputError
from lexrl.reprs import short_repr
from lexrl.returns import share
from lexrl.schedules import Constant, Schedule, named
from lexrl.types import Spec
from lexrl.units import counts


class State(NamedTuple):
    """Statistics and multipliers of K limits."""

    mean: Float[Array, " K"]
    """Mean over recent episodes of what is bounded from below."""
    num_episodes: Float[Array, ""]
    integral: Float[Array, " K"]
    """`I_k`"""
    violation: Float[Array, " K"]
    """`e_k`; negative: by how much the limit is kept."""
    value: Float[Array, " K"]
    """`lambda_k`"""
    num_updates: Int[Array, ""]


class EndedEpisodes(NamedTuple):
    """Episodes that ended: how many, and the sums over them of what is optimized and of each limited signal."""

    episodes: Float[Array, ""]
    total: Float[Array, " rows"]
    squares: Float[Array, " rows"]


class PIDLagrangian(eqx.Module):
    """How the multipliers of limits move, in the units of the signals."""

    ki: Schedule = eqx.field(converter=named("ki"), default=Constant(0.05), metadata=counts("updates"))
    """Integral gain: added to a multiplier per unit of violation and window of episodes; may be a schedule over the
    updates."""
    kp: float = 0.0
    """Proportional gain: added per unit of violation."""
    kd: float = 0.0
    """Derivative gain: added per unit of increase of the violation."""
    stats_window_size: float = 100.0
    """Number of episodes over which the sums of signals are averaged."""
    max_multiplier: float = 100.0
    """Upper bound of the multipliers."""

    __repr__ = short_repr

    def __check_init__(self):
        validation.require_at_least(0.0, kp=self.kp, kd=self.kd, max_multiplier=self.max_multiplier)
        validation.require_at_least(1.0, stats_window_size=self.stats_window_size)

    def init(self, num_limits: int) -> State:
        zeros = jnp.zeros(num_limits)
        return State(zeros, jnp.float32(0), zeros, zeros, zeros, jnp.int32(0))

    def update(
        self,
        state: State,
        num_episodes: Float[Array, ""],
        total: Float[Array, " K"],
        lower_bounds: Float[Array, " K"],
    ) -> State:
        """Take in the episodes that ended: their number, and the sum over them of what is bounded from below."""
        seen = state.num_episodes + num_episodes
        here = total / jnp.maximum(num_episodes, 1.0)
        mean = state.mean + share(num_episodes, seen, self.stats_window_size) * (here - state.mean)
        violation = jnp.where(seen > 0, lower_bounds - mean, 0.0)
        num_updates = state.num_updates + 1
        integral = jnp.clip(
            state.integral + self.ki(num_updates) * num_episodes / self.stats_window_size * violation,
            0.0,
            self.max_multiplier,
        )
        growth = self.kd * jnp.maximum(violation - state.violation, 0.0)
        value = jnp.clip(self.kp * violation + integral + growth, 0.0, self.max_multiplier)
        # Without a new episode there is no new violation: the derivative term of the last one still counts.
        value = jnp.where(num_episodes > 0, value, state.value)
        return State(mean, seen, integral, violation, value, num_updates)

    def follow(self, state: State, ended: EndedEpisodes, lower_bounds: Float[Array, " K"]) -> State:
        """`update` with the episodes that ended."""
        return self.update(state, ended.episodes, ended.total[1:], lower_bounds)

    def weights(self, state: State) -> Float[Array, " rows"]:
        """Of the objective and of the limited signals."""
        return jnp.concatenate([jnp.ones(1), state.value])


class UnitFreeState(NamedTuple):
    """The multipliers, and what their units come from."""

    inner: State
    sums: EndedEpisodes
    """Of all episodes since training began."""

    @property
    def unit(self) -> Float[Array, " rows"]:
        """The standard deviation of an episode's sum; 1 as long as all were alike."""
        episodes = jnp.maximum(self.sums.episodes, 1.0)
        mean, square = self.sums.total / episodes, self.sums.squares / episodes
        # What is lost to rounding must not pass for a deviation.
        variance = square - mean**2
        return jnp.where(variance > ROUNDING * square, jnp.sqrt(variance), 1.0)

    @property
    def value(self) -> Float[Array, " K"]:
        return self.inner.value

    @property
    def violation(self) -> Float[Array, " K"]:
        """In the units of the signals."""
        return self.inner.violation * self.unit[1:]


ROUNDING = 1e-5
"""Of a mean square in single precision."""


class UnitFreeLagrangian(eqx.Module):
    """A PID controller for which the units of the signals do not matter."""

    pid: PIDLagrangian = eqx.field(default_factory=lambda: PIDLagrangian(ki=Constant(0.2), kp=0.5, max_multiplier=10.0))
    """Its gains are per standard deviation of an episode's sum, and its multipliers weight signals in such units."""

    __repr__ = short_repr

    def init(self, num_limits: int) -> UnitFreeState:
        zeros = jnp.zeros(1 + num_limits)
        return UnitFreeState(self.pid.init(num_limits), EndedEpisodes(jnp.float32(0), zeros, zeros))

    def follow(self, state: UnitFreeState, ended: EndedEpisodes, lower_bounds: Float[Array, " K"]) -> UnitFreeState:
        """Take in the episodes that ended."""
        before, state = state.unit, state._replace(sums=jax.tree.map(jnp.add, state.sums, ended))
        unit = state.unit[1:]
        # What the controller remembers is in units of before.
        mean = state.inner.mean * (before[1:] / unit)
        inner = state.inner._replace(mean=mean, violation=state.inner.violation * (before[1:] / unit))
        total, bounds = ended.total[1:] / unit, lower_bounds / unit
        return state._replace(inner=self.pid.update(inner, ended.episodes, total, bounds))

    def weights(self, state: UnitFreeState) -> Float[Array, " rows"]:
        """Of the objective and of the limited signals."""
        return self.pid.weights(state.inner) / state.unit


def metrics(state: State | UnitFreeState, weights: Float[Array, "K M"]) -> dict[str, Array]:
    """One number per objective: the sum of its multipliers, and the largest violation of its limits (negative: all are
    kept, by at least that much)."""
    of_objective = jnp.abs(weights)
    worst = jnp.where(of_objective > 0, state.violation[:, None], -jnp.inf).max(axis=0)
    return {"multiplier": state.value @ of_objective, "violation": jnp.where(jnp.isfinite(worst), worst, 0.0)}


def constraint_weights(names: Sequence[str], signs: Sequence[int], spec: Spec) -> Float[np.ndarray, "K M"]:
    """One row for each name: the row times the rewards is the signal in the environment's sign, times `signs`."""
    rows = np.zeros((len(names), len(spec.objectives)), np.float32)
    order_signs = spec.signs or (1,) * len(spec.objectives)
    _require_known(names, spec)
    for row, name, sign in zip(rows, names, signs, strict=True):
        column = spec.objectives.index(name)
        row[column] = sign * order_signs[column]
    return rows


def objective_weights(algorithm: str, limited: Sequence[str], spec: Spec) -> Float[np.ndarray, " M"]:
    """The row that selects the one objective without a limit: the one to be optimized."""
    _require_known(limited, spec)
    free = [name for name in spec.objectives if name not in limited]
    if len(free) != 1:
        found = ", ".join(map(repr, free)) or "none"
        raise InputError(
            f"{algorithm} optimizes the one objective that has no limit, but of "
            f"{', '.join(map(repr, spec.objectives))} there is {found}; give limits to all but one."
        )
    return np.array([name == free[0] for name in spec.objectives], np.float32)


def lower_bounds(limits: Sequence[Limit]) -> Float[Array, " K"]:
    """The bound of each limit, signed so that more is better."""
    return jnp.stack([limit.side * jnp.asarray(limit.bound, jnp.float32) for limit in limits])


def _require_known(names: Sequence[str], spec: Spec) -> None:
    for name in names:
        if name not in spec.objectives:
            raise InputError(
                f"A limit names {name!r}, but the order has {', '.join(map(repr, spec.objectives))}; limit one of "
                "these, or add it to the order."
            )
