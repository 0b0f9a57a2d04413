"""The dual side of policy-based lexicographic RL: where each objective stands, when it holds, and what it charges.

For every objective j a level `J_j` is estimated. Until the objective has settled its floor `k_j` follows the level;
then it holds, and only rises. A price `lambda_j` grows while `J_j < k_j - tau_j` and shrinks while it is above:

    lambda_j <- max(0, lambda_j + eta (k_j - tau_j - J_j))        c_i = beta_i + lambda_i sum_{j>i} beta_j

Objectives settle in their order: the second is not asked before the first holds.
"""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lexrl import lex
from lexrl.backend import compute_once
from lexrl.errors import InputError
from lexrl.returns import EpisodeStats, share
from lexrl.schedules import Constant, Schedule, as_schedule
from lexrl.tolerance import Moment as Now
from lexrl.tolerance import Tolerances, slack

Schedules = Schedule | tuple[Schedule, ...]


def as_schedules(given: Any, name: str = "rate") -> Any:
    """One schedule, or one each."""
    several = isinstance(given, list | tuple)
    return tuple(as_schedule(one, name=name) for one in given) if several else as_schedule(given, name=name)


class State(NamedTuple):
    """What is known of the objectives so far."""

    quick: Float[Array, " M"]
    """Average level over the last `window` episodes: the estimate of `J_j`."""
    slow: Float[Array, " M"]
    """The same over four times as many."""
    spread: Float[Array, " M"]
    """Variance of one episode's return."""
    seen: Float[Array, ""]
    """Episodes seen."""
    calm: Float[Array, " M"]
    """Episodes since a trend was last seen."""
    settled: Bool[Array, " M"]
    floor: Float[Array, " M"]
    """`k_j`"""
    multipliers: Float[Array, " M"]
    """`lambda_j`; the last is always 0."""
    lack: Float[Array, " M"]
    """How far the level is below `k_j - tau_j`, in the units that prices are moved by."""
    pulls: Any
    """`nu_j`: for each objective a direction like the actor's parameters; None without second order."""
    time: Int[Array, ""]


class Dual(eqx.Module):
    """How prices are found."""

    beta: Schedules = eqx.field(converter=partial(as_schedules, name="beta"), default=Constant(1.0))
    """How fast each objective moves the policy relative to the first, by the number of updates: one, or one each; less
    important ones slower."""
    eta: Schedules = eqx.field(converter=partial(as_schedules, name="eta"), default=Constant(1.0))
    """How fast prices move, per window of episodes: one rate, or M + 1, of which the i-th holds once i objectives have
    settled."""
    normalize_violation: bool = eqx.field(static=True, default=True)
    """Measure how far a level is from its floor in standard deviations of an episode's return, instead of in its own
    units: the same eta then fits objectives of any size."""
    damping: float = 0.0
    """Charge `1 + damping x lack` times the price, where the lack is how far a level is below its floor (negative above
    it): without, price and level chase each other round the point where several policies are worth the same."""
    max_multiplier: float = 100.0
    """No price rises above this, times itself for every objective between it and the last but one: less important
    objectives always keep some weight, and more important ones can always outbid them."""
    stats_window_size: float = 100.0
    """Episodes that a level is averaged over."""
    patience: float = 200.0
    """An objective has settled when this many episodes showed no trend."""
    sequential: bool = eqx.field(static=True, default=False)
    """Finish one objective before the next begins, instead of all at once."""
    second_order: bool = eqx.field(static=True, default=False)
    """Also hold settled objectives where their gradients are 0, by multipliers of their own."""

    def __check_init__(self):
        for name, given, least in (
            ("window", self.stats_window_size, 1),
            ("patience", self.patience, 0),
            ("ceiling", self.max_multiplier, 0),
            ("damping", self.damping, 0),
        ):
            if isinstance(given, int | float) and not given >= least:
                raise InputError(f"{name} is {given:g}; it must be {least} or more.")

    def check(self, objectives: int) -> None:
        """Complain about rates that do not fit the objectives: their number, and less important ones that vanish later.

        Traced rates pass: their owner checked them before.
        """
        for name, given, needed in (("beta", self.beta, objectives), ("eta", self.eta, objectives + 1)):
            if not isinstance(given, tuple):
                continue
            if len(given) != needed:
                raise InputError(
                    f"{name} has {len(given)} rates for {objectives} objectives; give one for all, or {needed}."
                )
            if not all(isinstance(leaf, int | float) for leaf in jax.tree.leaves(given)):
                continue
            for i, (before, after) in enumerate(itertools.pairwise(given), 1):
                if after.decay() < before.decay():
                    raise InputError(
                        f"Rate {i + 1} of {name} ({after}) vanishes more slowly than rate {i} ({before}), which turns "
                        "the order of importance around; each must fall at least as fast as the one before it: try "
                        "constants, or n^-p with a p that grows from one to the next."
                    )

    def start(self, objectives: int, actor: Any) -> State:
        zeros, never = jnp.zeros(objectives), jnp.zeros(objectives, bool)
        pulls = None
        if self.second_order:
            pulls = jax.tree.map(lambda leaf: jnp.zeros((objectives, *leaf.shape)), actor)
        return State(zeros, zeros, zeros, jnp.float32(0), zeros, never, zeros, zeros, zeros, pulls, jnp.int32(0))

    def weights(self, state: State) -> Float[Array, " M"]:
        """Each objective's weight `c_i` in the combined gradient."""
        charged = state.multipliers * jnp.maximum(0.0, 1.0 + self.damping * state.lack)
        return lex.gradient_weights(self._beta(state), charged)

    def bend(
        self, state: State, gains: Callable[[Any], Float[Array, " M"]], actor: Any, *, standardised: bool = False
    ) -> Any:
        """The second-order term of the combined gradient, `sum_j (sum_{i>j} beta_i) H_j nu_j`.

        Each Lagrangian `L_i` also holds the settled objectives j < i to `grad K_j = 0`, which adds `nu_j . grad K_j`;
        the gradient of that is the Hessian of `K_j` times `nu_j`. `gains` gives `K [M]`; `standardised` says that the
        weights `c_i` are made to sum to 1, and these with them.
        """
        beta = self._beta(state)
        later = lex.gradient_weights(beta, jnp.ones_like(beta)) - beta
        if standardised:
            later = later / self.weights(state).sum()
        _, products = slopes(gains, actor, state.pulls)
        return jax.tree.map(lambda leaf: jnp.tensordot(later, leaf, axes=1), products)

    def pull(self, state: State, gains: Callable[[Any], Float[Array, " M"]], actor: Any) -> State:
        """Move the multipliers of the second order: `nu_j <- nu_j - eta grad K_j` for settled j, no longer than 1."""
        steep, _ = slopes(gains, actor, state.pulls)
        rate = self._rate(state.settled, state.time + 1)
        holds = state.settled & (jnp.arange(state.settled.shape[0]) < state.settled.shape[0] - 1)

        def move(nu: Array, slope: Array) -> Array:
            return jnp.where(holds.reshape(-1, *[1] * (nu.ndim - 1)), nu - rate * slope, 0.0)

        moved = jax.tree.map(move, state.pulls, steep)
        squares = [jnp.sum(leaf.reshape(leaf.shape[0], -1) ** 2, axis=1) for leaf in jax.tree.leaves(moved)]
        cut = 1 / jnp.maximum(1.0, jnp.sqrt(jnp.stack(squares).sum(axis=0)))
        return state._replace(pulls=jax.tree.map(lambda leaf: leaf * cut.reshape(-1, *[1] * (leaf.ndim - 1)), moved))

    def _beta(self, state: State) -> Float[Array, " M"]:
        m = state.multipliers.shape[0]
        each = self.beta if isinstance(self.beta, tuple) else (self.beta,) * m
        beta = jnp.stack([jnp.asarray(one(state.time + 1), jnp.float32) for one in each])
        if self.sequential:  # only the first objective that has not settled moves on its own
            turn = jnp.minimum(state.settled.sum(), m - 1)
            beta = jnp.where(jnp.arange(m) == turn, beta, 0.0)
        return beta

    def observe(self, state: State, sample: "Sample", tolerance: Tolerances) -> State:
        """Take in the returns of the episodes that ended, let objectives settle, and move the prices."""
        state = self._average(state, sample)
        trend = jnp.abs(state.quick - state.slow)
        noise = jnp.sqrt(state.spread * (0.5 + 0.125) / self.stats_window_size)  # of the difference of the two averages
        telling = state.seen > self.stats_window_size  # before, both averages are over the same episodes
        turn = self._turn(state, tolerance)
        still = 2 * noise + sample.drift * self._tolerance(state.quick, tolerance, state.time + 1)
        calm = jnp.where((trend <= still) & telling & turn, state.calm + sample.episodes, 0.0)
        ready = calm >= self.patience
        settled = jnp.cumprod((state.settled | ready).astype(jnp.int32)).astype(bool)
        floor = jnp.where(
            state.settled, jnp.where(turn, jnp.maximum(state.floor, state.slow), state.floor), state.quick
        )
        tau = self._tolerance(floor, tolerance, state.time + 1)
        level = state.quick + sample.change
        unit = jnp.maximum(jnp.sqrt(state.spread) + tau, 1e-6) if self.normalize_violation else jnp.ones_like(tau)
        rate = self._rate(settled, state.time + 1) * sample.episodes / self.stats_window_size / unit
        m = floor.shape[0]
        ceiling = self.max_multiplier ** jnp.maximum(m - 1 - jnp.arange(m), 1)
        multipliers = jnp.minimum(lex.dual_ascent(state.multipliers, rate, floor - tau, level), ceiling)
        return state._replace(
            calm=calm,
            settled=settled,
            floor=floor,
            multipliers=jnp.where(settled, multipliers, 0.0),
            lack=(floor - tau - level) / unit,
            time=state.time + 1,
        )

    def _turn(self, state: State, tolerance: Tolerances) -> Bool[Array, " M"]:
        """Whose turn it is to settle, and whose floor may rise: those before which every other one holds.

        What is reached while a more important objective is below its floor cannot be kept once that is mended.
        """
        tau = self._tolerance(state.floor, tolerance, state.time + 1)
        error = jnp.sqrt(state.spread * 0.125 / self.stats_window_size)
        holds = state.settled & (state.slow >= state.floor - tau - 2 * error)
        return jnp.concatenate([jnp.ones(1, bool), jnp.cumprod(holds.astype(jnp.int32)).astype(bool)[:-1]])

    def short(self, state: State, tolerance: Tolerances) -> Bool[Array, " M"]:
        """Which objectives still want more: those that have not settled, or are below their floor; always the last."""
        below = state.quick < state.floor - self._tolerance(state.floor, tolerance, state.time)
        return (~state.settled | below).at[-1].set(True)

    def _average(self, state: State, sample: "Sample") -> State:
        """Running averages over episodes: plain ones until the window is full."""
        count = sample.episodes
        seen = state.seen + count
        here = sample.total / jnp.maximum(count, 1.0)
        quick, slow = (share(count, seen, times * self.stats_window_size) for times in (1, 4))
        middle = jnp.where(state.seen > 0, state.slow, here)
        parts = (sample.squares / jnp.maximum(count, 1.0), 2 * here * middle, middle**2)
        square, product, centre = compute_once(parts, count >= 0)  # so that every loop rounds them alike
        away = square - product + centre
        steps = (
            quick * (here - state.quick),
            slow * (here - state.slow),
            slow * (jnp.maximum(away, 0.0) - state.spread),
        )
        steps = compute_once(steps, count >= 0)  # these, too
        return state._replace(
            quick=state.quick + steps[0], slow=state.slow + steps[1], spread=state.spread + steps[2], seen=seen
        )

    def _tolerance(self, floor: Array, tolerance: Tolerances, time: Array) -> Array:
        tau = slack(tolerance, Now(time))
        return jnp.stack([jnp.asarray(tau(i, floor[i], True, floor[i]), jnp.float32) for i in range(floor.shape[0])])

    def _rate(self, settled: Array, time: Array) -> Array:
        if not isinstance(self.eta, tuple):
            return jnp.asarray(self.eta(time), jnp.float32)
        return jnp.stack([jnp.asarray(one(time), jnp.float32) for one in self.eta])[settled.sum()]


def slopes(gains: Callable[[Any], Float[Array, " M"]], parameters: Any, directions: Any) -> tuple[Any, Any]:
    """Gradients of each `K_j` and its Hessian's product with a direction of its own, leading axis j."""
    m = jax.tree.leaves(directions)[0].shape[0]

    def one(pick: Array, direction: Any) -> tuple[Any, Any]:
        return jax.jvp(jax.grad(lambda theta: gains(theta) @ pick), (parameters,), (direction,))

    return jax.vmap(one)(jnp.eye(m), directions)


class Sample(NamedTuple):
    """Fresh evidence of the levels."""

    episodes: Float[Array, ""]
    total: Float[Array, " M"]
    squares: Float[Array, " M"]
    change: Float[Array, " M"] | float = 0.0
    """What the last step is thought to have added to the levels."""
    drift: float = 0.0
    """How much of its tolerance a level may move in a window and still count as calm."""


def from_episodes(episode_stats: EpisodeStats) -> Sample:
    """The discounted returns of the episodes that ended."""
    return Sample(episode_stats.episodes, episode_stats.total, episode_stats.squares)


def from_critic(value: Float[Array, "T N M"], first: Bool[Array, "T N"]) -> Sample:
    """The critic's values at the states where episodes began.

    Where all episodes begin alike they do not scatter, and the critic's own wandering would always look like a trend.
    """
    begun = jnp.where(first[..., None], value, 0.0)
    return Sample(first.sum().astype(jnp.float32), begun.sum(axis=(0, 1)), (begun**2).sum(axis=(0, 1)), drift=0.25)


def from_rewards(reward: Float[Array, "T N M"]) -> Sample:
    """The mean rewards per step, for limit averages: each world's rollout counts as an episode."""
    each = reward.mean(axis=0)
    return Sample(jnp.float32(each.shape[0]), each.sum(axis=0), (each**2).sum(axis=0))


def metrics(state: State, weights: Float[Array, " M"]) -> dict[str, Array]:
    """What is worth watching, one number per objective."""
    return {
        "return_estimate": state.quick,
        "threshold": state.floor,
        "multiplier": state.multipliers,
        "gradient_weight": weights,
        "converged": state.settled.astype(jnp.float32),
    }
