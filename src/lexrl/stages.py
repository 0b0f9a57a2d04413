"""One objective at a time, in order of importance; what an objective has reached by the end of its stage, it must keep.

A run of U updates is divided into M stages, the last of which is twice as long as the others, and stage s optimizes
objective s. Every objective before it has a threshold `k_j`, taken from evidence: the highest lower bound
`mean - 2 standard errors` of its returns in a block of the last quarter of its stage (a stage has 16 blocks) in which
all more important objectives kept their thresholds. It rises if a later block of that kind shows a higher bound.

An objective with a limit counts only up to it: its threshold is `min(evidence, limit)`, its stage ends once a block
shows that the limit is reached, and from then on it leaves all that is beyond the limit to the others. Limits are about
undiscounted returns, as users count them.

Returns are judged discounted, as they are optimized, and undiscounted, as users count them: a discount must not hide a
cost that comes late in an episode. All comparisons are in units of the returns themselves. Episodes that do not end are
cut into segments an eighth of a stage long, so that there is something to judge.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lexrl import returns
from lexrl.backend import fusion_barrier, reciprocal
from lexrl.errors import InputError
from lexrl.reprs import short_repr
from lexrl.returns import EpisodeTracker
from lexrl.schedules import OfRun, as_length, require_nonnegative
from lexrl.tolerance import Tolerances, of_returns
from lexrl.units import counts

NUM_BLOCKS = 16
"""In a stage."""
PATIENCE = 0.25
"""How much of its stage an objective may stay silent."""
MIN_EPISODES = 5
"""Fewer are no evidence."""


class Evidence(NamedTuple):
    """Sums over episodes: of returns, discounted in row 0 and undiscounted in row 1, and of their squares. Returns are
    counted from an origin, so that the variance of large ones is not lost in rounding."""

    episodes: Float[Array, ""]
    total: Float[Array, "2 M"]
    squares: Float[Array, "2 M"]

    def plus(self, other: "Evidence", keep: Array) -> "Evidence":
        """With others added, after forgetting all but a share `keep`."""
        return Evidence(*(keep * mine + new for mine, new in zip(self, other, strict=True)))

    def mean(self) -> Float[Array, "2 M"]:
        return self.total * reciprocal(self.episodes)

    def variance(self) -> Float[Array, "2 M"]:
        return jnp.maximum(self.squares * reciprocal(self.episodes) - self.mean() ** 2, 0.0)

    def doubt(self) -> Float[Array, "2 M"]:
        """Two standard errors of the mean."""
        return 2.0 * jnp.sqrt(self.variance() * reciprocal(self.episodes))


class State(NamedTuple):
    """Which objective is optimized, and what is known about the returns."""

    stage: Int[Array, ""]
    """From 0 on."""
    begin: Float[Array, ""]
    """Updates before the stage."""
    episode_tracker: EpisodeTracker
    origin: Float[Array, "2 M"]
    """Mean returns of the first episodes that ended."""
    recent: Evidence
    """Of the last ten updates, or the last 100 episodes if that is longer."""
    block: Evidence
    """Since the block began."""
    variance: Float[Array, "2 M"]
    """Of an episode's return: the average of the variance of `recent` over all updates."""
    threshold: Float[Array, "2 M"]
    """`k_j`, from the origin; for the stage's objective and those after it, what the last stage left them."""
    best: Float[Array, "2 M"]
    """Lower bounds of the returns in the best block of the stage's last quarter."""
    found: Bool[Array, ""]
    """All more important objectives kept their thresholds in that block."""
    at_limit: Bool[Array, " M"]
    """The threshold is the objective's limit: more is of no use."""


class Progress(NamedTuple):
    """Where the run stands after an update."""

    stage: Int[Array, ""]
    fraction: Float[Array, ""]
    """Of the stage that is over."""
    violation: Float[Array, " M"]
    """How far below `k_j - tau_j` the return is beyond doubt, in units of the doubt, at most 1; negative: how far
    above. 0 for the stage's objective and those after it. At a limit, in units of the standard deviation."""
    at_limit: Bool[Array, " M"]
    """The threshold is the objective's limit."""
    renewed: Float[Array, ""]
    """How much of the recent evidence is of this update."""
    time: Float[Array, ""]
    """How much of the stage this update is."""
    improved: Bool[Array, ""]
    """The policy is the best of its stage so far."""
    ended: Bool[Array, ""]
    """The stage ends with this update."""
    block: Int[Array, ""]
    """The number of the block, from 0 on."""
    block_ended: Bool[Array, ""]
    """The block ends with this update."""
    slack: Bool[Array, " M"]
    """Which objectives may lose something to less important ones."""
    returns: Float[Array, " M"]
    """Mean discounted returns of the block, from the origin."""
    threshold: Float[Array, " M"]
    """`k_j - tau_j` for them."""
    found: Bool[Array, ""]
    """The stage has had a policy with which all more important objectives keep their thresholds."""


class Stages(eqx.Module):
    """Divides a run into one stage for each objective. With one objective there are no stages, and nothing applies."""

    budget: float | OfRun = eqx.field(converter=as_length, default=OfRun(), metadata=counts("updates"))
    """Updates of all stages together; a run that is continued extends its last stage."""
    last_length: float = 2.0
    """How many times as long as the others the last stage is: nothing comes after it to go on with what it learned."""
    preview: float = 0.3
    """Weight of the next objective at the beginning of a stage; it is 0 once the stage is 60 % over. The one after it
    has the square of it, and so on."""
    initial_ent_coef: float = 0.07
    """Entropy coefficient of the first half of a stage, in units of the advantages: what an objective is indifferent to
    must not be decided by accident, since the next ones will choose among it."""
    final_ent_coef: float = 0.017
    """Entropy coefficient at the end of a stage; in the last stage it is 0."""
    slack_ent_coef: float = 1.0
    """Entropy coefficient at the beginning of a stage that may use the slack of a more important objective: what that
    objective has ruled out must be tried again. It falls to a fiftieth until the stage is 60 % over."""
    initial_rate: float = 4.0
    """What the learning rate of the actor is multiplied by at the beginning of a stage."""
    final_rate: float = 0.1
    """What the learning rate of the actor is multiplied by at the end of a stage; in between in a straight line."""
    critic_initial_rate: float = 1.0
    """What the learning rate of the critic is multiplied by at the beginning of a stage."""
    critic_final_rate: float = 0.05
    """What the learning rate of the critic is multiplied by at the end of a stage."""

    __repr__ = short_repr

    def __check_init__(self):
        if isinstance(self.last_length, int | float) and not 0 < self.last_length < math.inf:
            raise InputError(f"The last_length is {self.last_length:g}; it must be above 0 and finite.")
        names = (
            "preview",
            "initial_ent_coef",
            "final_ent_coef",
            "slack_ent_coef",
            "initial_rate",
            "final_rate",
            "critic_initial_rate",
            "critic_final_rate",
        )
        for name in names:
            require_nonnegative(f"the {name}", getattr(self, name))

    def check(self, num_objectives: int) -> None:
        """Raise an error if there are fewer updates than stages; traced budgets are not checked again."""
        if isinstance(self.budget, int | float) and num_objectives > 1 and self.budget < num_objectives:
            raise InputError(
                f"The number of updates is {self.budget:g}, fewer than the {num_objectives} objectives, each of which "
                "needs a stage of its own: train for more steps, or with fewer environments or steps per update."
            )

    def init(self, num_objectives: int, num_envs: int) -> State:
        zeros = jnp.zeros((2, num_objectives))
        nothing = Evidence(jnp.float32(0), zeros, zeros)
        return State(
            stage=jnp.int32(0),
            begin=jnp.float32(0),
            episode_tracker=returns.init_tracker(num_envs, 2 * num_objectives),
            origin=zeros,
            recent=nothing,
            block=nothing,
            variance=zeros,
            threshold=zeros,
            best=zeros,
            found=jnp.bool_(False),
            at_limit=jnp.zeros(num_objectives, bool),
        )

    def fraction(self, state: State, num_updates: Array) -> Float[Array, ""]:
        """How much of the stage is over before the update with this number, from 1 on."""
        return jnp.clip((num_updates - 1 - state.begin) * reciprocal(self._length(state)), 0.0, 1.0)

    def next_weight(self, fraction: Float[Array, ""]) -> Float[Array, ""]:
        """The weight of the objective after the stage's."""
        return self.preview * jnp.maximum(0.0, 1.0 - fraction / 0.6)

    def entropy(self, state: State, fraction: Float[Array, ""], slack: Bool[Array, ""]) -> Float[Array, ""]:
        """The entropy coefficient; `slack`: some more important objective has slack."""
        to_final = jnp.clip((fraction - 0.5) / 0.4, 0.0, 1.0)
        early = _between(self.initial_ent_coef, self.final_ent_coef, to_final)
        late = self.initial_ent_coef * (1.0 - jnp.clip(fraction / 0.7, 0.0, 1.0))
        # The best policy at a limit is a mixture, which goes on being adjusted and must not become deterministic.
        index = jnp.arange(state.at_limit.shape[0])
        adjusting = (state.stage < index[-1]) | (state.at_limit & (index < state.stage)).any()
        falling = self.slack_ent_coef * 0.02 ** jnp.clip((fraction - 0.15) / 0.45, 0.0, 1.0)
        return jnp.where(slack, falling, jnp.where(adjusting, early, late))

    def rates(self, fraction: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """What the learning rates of actor and critic are multiplied by."""
        return (
            _between(self.initial_rate, self.final_rate, fraction),
            _between(self.critic_initial_rate, self.critic_final_rate, fraction),
        )

    def update(
        self,
        state: State,
        num_updates: Int[Array, ""],
        reward: Float[Array, "T N M"],
        last: Bool[Array, "T N"],
        gamma: Float[Array, " M"],
        tolerance: Tolerances,
        silent: Bool[Array, " M"],
        limits: Float[Array, " M"] | float = jnp.inf,
    ) -> tuple[State, Progress]:
        """Add the episodes that ended to the evidence, judge the block if it is over, and begin the next stage in time.

        An objective that is `silent`, because nothing the policy did has made a difference to it, gets no more time
        once a quarter of its stage is over. `limits` are the returns that are enough, infinite without a limit.
        """
        state, num_episodes = self._collect(state, num_updates, reward, last, returns.judged_discount(gamma, limits))
        fraction, following = self.fraction(state, num_updates), self.fraction(state, num_updates + 1)
        tau = of_returns(tolerance, state.threshold[0] + state.origin[0], num_updates)
        limit, enough = limits - state.origin, state.block.episodes >= MIN_EPISODES
        judged, block = _judge_block(state, tau), jnp.floor(NUM_BLOCKS * fraction)
        passed = jnp.floor(NUM_BLOCKS * following) > block
        satisfied = passed & enough & judged.keeps.all() & (judged.lower >= limit)[0, state.stage]
        in_vain = silent[state.stage] & (fraction >= PATIENCE)
        ended = ((following >= 1.0) | in_vain | satisfied) & (state.stage < gamma.shape[0] - 1)
        over = passed | ended
        block_ended = over & enough
        progress = Progress(
            stage=state.stage,
            fraction=fraction,
            violation=_violation(state, tau),
            at_limit=state.at_limit,
            renewed=num_episodes / jnp.maximum(state.recent.episodes, 1.0),
            time=following - fraction,
            improved=ended | (block_ended & (fraction >= 0.75)),
            ended=ended,
            block=jnp.minimum(block, NUM_BLOCKS - 1).astype(jnp.int32),
            block_ended=over,
            slack=(tau > 0) & ~state.at_limit,
            returns=_of_block(state).mean()[0],
            threshold=state.threshold[0] - tau,
            found=state.found,
        )
        return self._judge(state, progress, num_updates, block_ended, judged, limit)

    def metrics(self, state: State) -> dict[str, Array]:
        shown = state.stage.astype(jnp.float32) + 1.0
        # An objective without a threshold yet is shown with its return.
        threshold = jnp.where(
            jnp.arange(state.origin.shape[1]) < state.stage, state.threshold[0], state.recent.mean()[0]
        )
        returns = state.origin[0] + state.recent.mean()[0]
        return {"stage": shown, "return_estimate": returns, "threshold": state.origin[0] + threshold}

    @property
    def _updates(self) -> Any:
        """The budget, which is a number once the length of the run is known."""
        if isinstance(self.budget, OfRun):
            raise InputError(
                "The budget of the stages is a fraction of the run, whose length is known only in training; give the "
                "number of updates, as in Stages(budget=1000)."
            )
        return self.budget

    def _length(self, state: State) -> Float[Array, ""]:
        """Updates of the stage: what is left of the budget is divided, evenly but for the last stage."""
        num_left = state.origin.shape[1] - state.stage
        parts = jnp.where(num_left > 1, num_left - 1 + self.last_length, 1)
        return jnp.maximum((self._updates - state.begin) / parts, 1.0)

    def _collect(
        self, state: State, num_updates: Array, reward: Array, last: Array, gamma: Array
    ) -> tuple[State, Float[Array, ""]]:
        """The evidence with the episodes, or segments, that ended in a rollout; and their number."""
        m, num_steps = gamma.shape[0], reward.shape[0]
        both = jnp.concatenate([reward, reward], axis=-1), jnp.concatenate([gamma, jnp.ones(m)])
        tracker, stats = returns.track_episodes(
            state.episode_tracker,
            both[0],
            last,
            both[1],
            max_length=jnp.maximum(self._updates / (m - 1 + self.last_length) / 8, 1.0) * num_steps,
        )
        ended, earned = stats.ended[..., None, None], stats.earned.reshape(*last.shape, 2, m)
        count, seen = stats.episodes, state.recent.episodes > 0
        origin = jnp.where(seen, state.origin, stats.total.reshape(2, m) * reciprocal(count))
        away = jnp.where(ended, earned - origin, 0.0)
        new = Evidence(count, away.sum(axis=(0, 1)), (away**2).sum(axis=(0, 1)))
        recent = state.recent.plus(new, jnp.clip(100.0 / jnp.maximum(state.recent.episodes, 1.0), 0.9, 1.0))
        variance = state.variance + (recent.variance() - state.variance) * reciprocal(num_updates)
        block = state.block.plus(new, jnp.float32(1.0))
        state = state._replace(episode_tracker=tracker, origin=origin, recent=recent, block=block, variance=variance)
        return state, count

    def _judge(
        self,
        state: State,
        progress: Progress,
        num_updates: Array,
        block_ended: Array,
        judged: "Block",
        limit: Float[Array, "2 M"],
    ) -> tuple[State, Progress]:
        """Move thresholds and see whether the policy is the best of its stage, at the end of a block or of a stage."""
        index, ended, lower = jnp.arange(limit.shape[1]), progress.ended, judged.lower
        kept = jnp.cumprod(judged.keeps.astype(jnp.int32)).astype(bool)
        rises = block_ended & jnp.concatenate([jnp.ones(1, bool), kept[:-1]]) & (index < state.stage)
        feasible, own = judged.keeps.all(), state.stage
        improved = progress.improved & (~state.found | (feasible & (lower[0, own] > state.best[0, own])))
        best, found = jnp.where(improved, lower, state.best), state.found | (improved & feasible)
        threshold = jnp.where(rises, jnp.maximum(state.threshold, lower), state.threshold)
        threshold = jnp.minimum(jnp.where(ended & found & (index >= state.stage), best, threshold), limit)
        state = state._replace(
            stage=state.stage + ended,
            begin=jnp.where(ended, num_updates.astype(jnp.float32), state.begin),
            block=Evidence(*(jnp.where(block_ended | ended, 0.0, part) for part in state.block)),
            threshold=threshold,
            best=best,
            found=found & ~ended,
            at_limit=(threshold >= limit)[0],
        )
        return state, progress._replace(improved=improved, found=found)


def _between(first: Any, last: Any, fraction: Float[Array, ""]) -> Float[Array, ""]:
    """A number on the straight line; multiplied and added in two steps, which XLA rounds as one in some programs."""
    return first + fusion_barrier(fraction * (last - first))


def _of_block(state: State) -> Evidence:
    """The evidence of the block, or the recent evidence while that is too little."""
    enough = state.block.episodes >= MIN_EPISODES
    return Evidence(*(jnp.where(enough, *parts) for parts in zip(state.block, state.recent, strict=True)))


class Block(NamedTuple):
    """What a block shows."""

    lower: Float[Array, "2 M"]
    """Lower bounds of the returns."""
    keeps: Bool[Array, " M"]
    """The objective keeps its threshold, as far as can be told; so do all without one."""


def _judge_block(state: State, tau: Float[Array, " M"]) -> Block:
    evidence = _of_block(state)
    lower, upper = evidence.mean() - evidence.doubt(), evidence.mean() + evidence.doubt()
    later = jnp.arange(tau.shape[0]) >= state.stage
    return Block(lower, ((upper >= state.threshold - tau) | _not_judged(tau) | later).all(axis=0))


def _not_judged(tau: Float[Array, " M"]) -> Bool[Array, "2 M"]:
    """Slack is granted on discounted returns, so undiscounted ones are judged only where there is none."""
    return jnp.stack([jnp.zeros_like(tau, bool), tau > 0])


def _violation(state: State, tau: Float[Array, " M"]) -> Float[Array, " M"]:
    """`Progress.violation`. Without slack it is never negative: a return above the threshold is what is wanted.

    At a limit it is not: there the mean itself is held, from both sides.
    """
    mean, doubt = state.recent.mean(), state.recent.doubt()
    short = jnp.where(state.at_limit, state.threshold, jnp.maximum(state.threshold, mean)) - tau - mean
    beyond_doubt = jnp.where((short > 0) & ~state.at_limit, jnp.maximum(short - doubt, 0.0), short)
    # Where nothing is random there is no doubt: a twentieth of the standard deviation of the run so far is the least.
    unit = jnp.where(state.at_limit, 1.0, 0.05) * jnp.sqrt(state.variance) + jnp.where(state.at_limit, 0.0, doubt)
    relative = jnp.clip(beyond_doubt / jnp.where(unit > 0, unit, 1.0), -1.0, 1.0)
    judged = jnp.where(_not_judged(tau), -1.0, relative).max(axis=0)
    return jnp.where(jnp.arange(tau.shape[0]) < state.stage, judged, 0.0)
