"""What LPPO and LA2C add to PPO and A2C: stages, multipliers, references and candidates. Projection has the same but
for the multipliers.

- *Stages* (`lexrl.stages`) optimize one objective after the other and say what each must keep.
- *References*: the policy of a stage, softened by its entropy bonus, says where its objective is indifferent. Later
  stages choose only among actions that it finds at least a tenth as likely as its favorite: admissible sets, formed
  from logarithms of probabilities instead of Q-values, so that no noise of earlier objectives enters. Continuous
  actions have no such sets, and an objective that has reached its limit excludes nothing.
- *Multipliers* (`lexrl.multipliers`) add what sets cannot see: losses too small to notice at a state that add up over
  an episode.
- *Candidates*: policies are averages of the actor over the last quarter of a stage; each stage hands in the best by its
  own evidence, and its last one. The last one is also tried with less freedom: narrower sets, or continuous actions
  closer to those of the reference. When training is over, fresh episodes decide between them
  (`lexrl.loops.selection`): if no policy of a later stage keeps what it must, one of an earlier stage wins.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lexrl import lex, multipliers, stages
from lexrl.algorithms import actor_critic
from lexrl.algorithms.actor_critic import AS_SET, Agent, Batch, Pace, positive
from lexrl.backend import fusion_barrier, reciprocal
from lexrl.distributions import Categorical, Distribution
from lexrl.errors import InputError
from lexrl.multipliers import Multipliers
from lexrl.networks import Actor
from lexrl.types import Metrics, Spec, Transition

LEAST_LIKELY = 0.1
"""Of the most likely action: what is less likely is excluded by a reference."""
PER_STAGE = 2
"""Policies that a stage keeps: the best, and the last."""


class Variant(NamedTuple):
    """How a policy that was kept may be played."""

    policy: str
    """The `best` or the `last` of its stage."""
    sampled: bool = False
    freedom: float = 1.0
    """See `Course.freedom`."""


VARIANTS = (
    *(Variant(policy, sampled) for sampled in (False, True) for policy in ("last", "best")),
    *(Variant("last", freedom=freedom) for freedom in (0.7, 0.45, 0.2)),
)
"""The candidates of a stage, in order of preference."""
IN_FIRST_STAGE = sum(variant.freedom == 1.0 for variant in VARIANTS)
"""It has no references to be bound to."""
SOFTER = 3.0
"""What logits are divided by before a stage that may use slack."""
COLUMNS = stages.NUM_BLOCKS
"""Candidates for mixtures, of every stage but the first: the greedy policy at the end of each block."""


class Course(NamedTuple):
    """Where several objectives stand, and the policies that are kept."""

    stages: stages.State
    multipliers: multipliers.State | None
    """None: the algorithm has none."""
    square: Float[Array, " M"]
    """`u_j` squared: the mean square of all advantages so far."""
    average: Actor
    """The actor, averaged over the last quarter of the stage so far; before that quarter, the actor itself."""
    num_averaged: Float[Array, ""]
    references: Actor
    """Leading axis M - 1: the best policy of each stage."""
    num_references: Int[Array, ""]
    """How many of them the policy knows."""
    restricts: Bool[Array, " M-1"]
    """Does a reference exclude actions? Not if its objective has slack to give, which would not be used."""
    freedom: Float[Array, ""]
    """How far the policy may depart from its references: 1 while training, less in candidates that are more careful.
    The logarithm of what is likely enough is multiplied by it, and so is the distance of continuous actions."""
    candidates: Actor
    """Leading axis 2 M."""
    columns: Actor
    """Leading axis 16 (M - 1): what mixtures may need besides, one for each block of every stage but the first."""
    weights: Float[Array, " candidates"]
    """The probability of each candidate and column in the mixture that is handed over; all 0: it is no mixture."""
    sampled: Bool[Array, ""]
    """The greedy policy loses something important, so the actions of the policy handed over are sampled."""


def init(algorithm: Any, spec: Spec, agent: Agent, multipliers: Multipliers | None) -> Course | None:
    """None with one objective."""
    m = len(spec.objectives)
    if m == 1:
        return None
    algorithm.stages.check(m)
    copies = lambda n: jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (n, *leaf.shape)), agent.actor)  # noqa: E731
    return Course(
        stages=algorithm.stages.init(m, algorithm.num_envs),
        multipliers=None if multipliers is None else multipliers.init(m),
        square=jnp.zeros(m),
        average=agent.actor,
        num_averaged=jnp.float32(0),
        references=copies(m - 1),
        num_references=jnp.int32(0),
        restricts=jnp.ones(m - 1, bool),
        freedom=jnp.float32(1.0),
        candidates=copies(PER_STAGE * m),
        columns=copies(COLUMNS * (m - 1)),
        weights=jnp.zeros(num_candidates(algorithm, m) + num_columns(algorithm, m)),
        sampled=jnp.bool_(False),
    )


def policy(state: Any, obs: Array) -> Distribution:
    """The policy of a state, restricted by its references."""
    return actor_critic.restrict(state.agent.actor(obs), allowed(state.course, obs))


def allowed(course: Course | None, obs: Array) -> Bool[Array, "*batch A"] | None:
    """The actions that the references leave; None: all."""
    if course is None or course.references.log_std is not None:
        return None
    logits = jax.vmap(lambda actor: actor(obs).logits, out_axes=-2)(course.references)
    restricts = course.restricts & ~course.stages.at_limit[:-1]
    sets = lex.levels(logits, jnp.where(restricts, -math.log(LEAST_LIKELY) * course.freedom, jnp.inf)).sets
    return jnp.take(sets, course.num_references, axis=-2)


def act(self: Any, state: Any, obs: Array, key: Array, *, greedy: bool = False) -> Array:
    """An action for one observation; greedy: the most likely one, unless actions of this policy must be sampled."""
    found = policy(state, obs)
    if not greedy:
        return found.sample(key)
    return found.mode() if state.course is None else jnp.where(state.course.sampled, found.sample(key), found.mode())


def probabilities(self: Any, state: Any, obs: Array, *, greedy: bool = False) -> Float[Array, "*batch A"]:
    """The policy's probability of each discrete action; greedy: 1 for the most likely one, as in `act`."""
    found = policy(state, obs)
    if not isinstance(found, Categorical):
        raise InputError("Continuous actions have densities, not probabilities; sample the policy with `act` instead.")
    sampled = jax.nn.softmax(found.logits)
    if not greedy:
        return sampled
    mode = jax.nn.one_hot(found.mode(), found.logits.shape[-1])
    return mode if state.course is None else jnp.where(state.course.sampled, sampled, mode)


Weigh = Callable[[Course, Float[Array, ""]], Float[Array, " M"]]
"""The weights of the objectives, from the course and the weight of the objective after the stage's."""


def combine(
    algorithm: Any, course: Course | None, batch: Batch, num_updates: Array, weigh: Weigh | None = None
) -> tuple[Course | None, Float[Array, " B"], Pace, Float[Array, " M"]]:
    """The combined advantage with its weights, which are the multipliers' unless `weigh` says others, and the pace of
    this update. One objective is normalized, as in PPO."""
    if course is None:
        return None, actor_critic.normalize(batch.advantage[:, 0]), AS_SET, jnp.ones(1)
    course, fraction = measure(course, batch, num_updates), algorithm.stages.fraction(course.stages, num_updates)
    next_weight = algorithm.stages.next_weight(fraction)
    if weigh is None:
        weights = algorithm.multipliers.weights(course.multipliers, course.stages.stage, next_weight)
    else:
        weights = weigh(course, next_weight)
    whole = jnp.sum(weights * (batch.advantage / unit(course)), axis=-1)
    whole, pace, weights = fusion_barrier((whole - whole.mean(), pace_of(algorithm, course, fraction), weights))
    return course, whole, pace, weights


def measure(course: Course, batch: Batch, num_updates: Array) -> Course:
    """With the advantages of an update in the units."""
    change = (jnp.mean(batch.advantage**2, axis=0) - course.square) * reciprocal(num_updates)
    return course._replace(square=course.square + change)


def unit(course: Course) -> Float[Array, " M"]:
    """`u_j`; 1 where all advantages were 0."""
    return positive(jnp.sqrt(course.square))


def pace_of(algorithm: Any, course: Course, fraction: Float[Array, ""]) -> Pace:
    """The pace of an update, by how much of the stage is over."""
    rate, critic_rate = algorithm.stages.rates(fraction)
    return Pace(rate, critic_rate, algorithm.stages.entropy(course.stages, fraction, _has_slack(course)))


def advance(
    algorithm: Any, course: Course | None, agent: Agent, rollout: Transition, weights: Float[Array, " M"]
) -> tuple[Course | None, Agent, Metrics]:
    """Judge the returns after an update, move the multipliers, and keep the policies that are to be kept."""
    if course is None:
        return None, agent, {}
    course, progress = judge(algorithm, course, agent, rollout)
    multiplier = algorithm.multipliers.update(course.multipliers, progress, unit(course))
    course, agent = keep_policies(course._replace(multipliers=multiplier), agent, progress)
    stage = course.stages
    metrics = algorithm.stages.metrics(stage) | algorithm.multipliers.metrics(multiplier, stage.stage, weights)
    return course, agent, metrics


def judge(algorithm: Any, course: Course, agent: Agent, rollout: Transition) -> tuple[Course, stages.Progress]:
    """The course with the episodes of an update, and where the run stands after it."""
    gamma = actor_critic.per_objective(algorithm.gamma, rollout.reward.shape[-1])
    stage, progress = algorithm.stages.update(
        course.stages, agent.num_updates, rollout.reward, rollout.last, gamma, algorithm.tolerance, course.square == 0,
        actor_critic.per_objective(algorithm.limits, gamma.shape[0]),
    )  # fmt: skip
    return course._replace(stages=stage), progress


def keep_policies(course: Course, agent: Agent, progress: stages.Progress) -> tuple[Course, Agent]:
    """Keep the policies that are to be kept. A stage that may use slack begins with a softer policy, which tries again
    what was ruled out."""
    course, actor = keep(course, agent.actor, progress)
    soften = progress.ended & _has_slack(course)
    actor = jax.tree.map(lambda new, old: jnp.where(soften, new, old), actor.soften(SOFTER), actor)
    return course, agent._replace(actor=actor)


def _has_slack(course: Course) -> Bool[Array, ""]:
    """May the stage use slack of a more important objective?"""
    return jnp.any(~course.restricts & (jnp.arange(course.restricts.shape[0]) < course.stages.stage))


def keep(course: Course, actor: Actor, progress: stages.Progress) -> tuple[Course, Actor]:
    """Average the actor, and store the average where it is a candidate. The best of a stage becomes its reference.

    A stage that found no policy with which all more important objectives keep their thresholds is as if it had not
    been: the policy before it becomes its reference, too, and the actor goes on from there.
    """
    late = progress.fraction >= 0.75
    num_averaged = jnp.where(late, course.num_averaged + 1, 0.0)
    share = reciprocal(num_averaged)
    average = jax.tree.map(
        lambda mean, new: jnp.where(late, mean + (new - mean) * share, new),
        course.average,
        actor,
    )

    m = course.stages.origin.shape[1]
    candidates = put(course.candidates, average, PER_STAGE * progress.stage, progress.improved)
    candidates = put(candidates, average, PER_STAGE * progress.stage + 1, progress.ended | (progress.stage == m - 1))
    column = COLUMNS * (progress.stage - 1) + progress.block
    source = PER_STAGE * jnp.maximum(jnp.where(progress.found, progress.stage, progress.stage - 1), 0)
    reference = jax.tree.map(lambda leaf: leaf[source], candidates)
    course = course._replace(
        average=average,
        num_averaged=jnp.where(progress.ended, 0.0, num_averaged),
        references=put(course.references, reference, progress.stage, progress.ended),
        num_references=course.stages.stage,
        restricts=jnp.where(
            (jnp.arange(m - 1) == progress.stage) & progress.ended, ~progress.slack[: m - 1], course.restricts
        ),
        candidates=candidates,
        columns=put(course.columns, actor, column, progress.block_ended & (progress.stage > 0)),
    )
    failed = progress.ended & ~progress.found
    return course, jax.tree.map(lambda before, now: jnp.where(failed, before, now), reference, actor)


def put(kept: Actor, actor: Actor, index: Array, when: Array) -> Actor:
    """Store an actor among those that are kept."""

    def store(all_: Array, one: Array) -> Array:
        return all_.at[jnp.where(when, index, all_.shape[0])].set(one, mode="drop")

    return jax.tree.map(store, kept, actor)


def is_sampled(self: Any, state: Any) -> Any:
    """Whether the actions of this policy are sampled even where the greedy ones are asked for."""
    return jnp.asarray(False if state.course is None else state.course.sampled)


def num_candidates(self: Any, num_objectives: int) -> int:
    """All variants of the policies of each stage."""
    return 0 if num_objectives == 1 else len(VARIANTS) * (num_objectives - 1) + IN_FIRST_STAGE


def num_columns(self: Any, num_objectives: int) -> int:
    """Greedy policies only: between the corners that they are, mixtures do better than sampled actions."""
    return COLUMNS * (num_objectives - 1)


def candidate(self: Any, state: Any, index: Array) -> Any:
    """The state that plays a candidate. In order of preference: later stages first, and of a stage its `VARIANTS`.
    Columns come behind them."""
    course: Course = state.course
    m = course.stages.origin.shape[1]
    column = index - num_candidates(self, m)
    stage = jnp.where(column < 0, m - 1 - index // len(VARIANTS), 1 + column // COLUMNS)
    is_last, sampled, freedom = (
        jnp.where(column < 0, jnp.asarray(of_variants)[index % len(VARIANTS)], of_column)
        for of_variants, of_column in (
            ([variant.policy == "last" for variant in VARIANTS], False),
            ([variant.sampled for variant in VARIANTS], False),
            ([variant.freedom for variant in VARIANTS], 1.0),
        )
    )
    place = PER_STAGE * stage + is_last
    actor = jax.tree.map(
        lambda kept, more: jnp.where(column < 0, kept[place], more[column]), course.candidates, course.columns
    )
    course = course._replace(
        num_references=stage, sampled=sampled, freedom=freedom, weights=jnp.zeros_like(course.weights)
    )
    return state._replace(agent=state.agent._replace(actor=_bound(course, actor)), course=course)


def _bound(course: Course, actor: Actor) -> Actor:
    """A policy of continuous actions with little freedom is between the reference and what was learned from there on,
    which is close enough to it for the parameters to be averaged."""
    if actor.log_std is None:
        return actor
    reference = jax.tree.map(lambda leaf: leaf[course.num_references - 1], course.references)
    return jax.tree.map(
        lambda own, base: jnp.where(course.freedom < 1, base + course.freedom * (own - base), own), actor, reference
    )


def first_returns(self: Any, state: Any) -> Float[Array, "2 M"]:
    """Mean returns of the first episodes that ended."""
    return state.course.stages.origin


def mix(self: Any, state: Any, weights: Float[Array, " candidates"]) -> Any:
    """The state that plays a mixture of candidates. Until one is drawn, it plays the most likely one."""
    state = candidate(self, state, jnp.argmax(weights))
    several = jnp.max(weights) < jnp.sum(weights)
    return state._replace(course=state.course._replace(weights=jnp.where(several, weights, 0.0)))


def mixture_weights(self: Any, state: Any) -> Float[Array, " candidates"]:
    """The probability of each candidate; all 0 if the policy is no mixture."""
    return jnp.zeros(1) if state.course is None else state.course.weights


def begin(self: Any, state: Any, key: Array) -> Any:
    """The state that plays an episode: of a mixture, the candidate that is drawn for it."""
    if state.course is None:
        return state
    below = jnp.cumsum(state.course.weights)
    drawn = candidate(self, state, jnp.searchsorted(below, jax.random.uniform(key) * below[-1], side="right"))
    mixed = below[-1] > 0
    return jax.tree.map(lambda one, same: same if one is same else jnp.where(mixed, one, same), drawn, state)


def describe_candidate(self: Any, num_objectives: int, index: int) -> dict[str, Any]:
    """The stage it comes from, which policy of that stage it is, how its actions are chosen, and how much freedom it
    has if that is less than in training."""
    column = index - num_candidates(self, num_objectives)
    if column >= 0:
        return {"stage": 2 + column // COLUMNS, "policy": f"block {1 + column % COLUMNS}", "actions": "greedy"}
    variant = VARIANTS[index % len(VARIANTS)]
    return {
        "stage": num_objectives - index // len(VARIANTS),
        "policy": variant.policy,
        "actions": "sampled" if variant.sampled else "greedy",
    } | ({} if variant.freedom == 1.0 else {"freedom": variant.freedom})
