"""Gradient projection: PPO whose less important objectives move the policy only where no more important one loses.

    theta <- theta + learning_rate P_s(g_s)        P_s: onto { d : g_j . d >= 0 for every j < s that must be guarded }

with `g_s` the gradient of PPO's surrogate of objective s, whose stage it is (`lexrl.stages`). An objective below its
threshold beyond doubt is improved instead, the most important one first. All earlier objectives are guarded; one that
has slack, or is beyond its limit, only once the others have used most of it. Thresholds, references and the choice of
the policy are LPPO's (`lexrl.algorithms.staged`), but there are no multipliers whose size must be found. After Tercan &
Prabhu's lexicographic projection (2024). With one objective this is PPO.
"""

import math
from functools import partial
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jaxtyping import Bool, Float

from lexrl import nnls, stages
from lexrl.algorithms import actor_critic, ppo, staged, validation
from lexrl.algorithms.actor_critic import Agent, Batch
from lexrl.algorithms.ppo import Surrogate
from lexrl.algorithms.staged import Course
from lexrl.backend import fusion_barrier
from lexrl.networks import Actor, Networks
from lexrl.reprs import short_repr
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.stages import Stages
from lexrl.tolerance import Absolute, Tolerances, as_tolerance
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts

NEAR = 0.05
"""Standard deviations of the return: an objective this close to its limit is guarded."""


class State(NamedTuple):
    """The networks, and where several objectives stand."""

    agent: Agent
    course: Course | None
    violation: Float[Array, " M"]
    """`Progress.violation` after the last update."""


class Projection(eqx.Module):
    """PPO with lexicographically projected gradients."""

    surrogate: ClassVar[Surrogate] = "clip"

    num_envs: int = eqx.field(static=True, default=16)
    """Number of parallel environments."""
    num_steps: int = eqx.field(static=True, default=64)
    """Steps of each environment between updates."""
    num_epochs: int = eqx.field(static=True, default=4)
    """Number of passes over each rollout."""
    num_minibatches: int = eqx.field(static=True, default=4)
    """Number of minibatches, and so of gradient steps, per epoch."""
    gamma: tuple[float, ...] | float = 0.99
    """Discount factor: one number for all objectives, or one each."""
    gae_lambda: float = 0.97
    """Lambda of generalized advantage estimation: 0 relies on the critic, 1 on the returns."""
    learning_rate: Schedule = eqx.field(converter=as_schedule, default=Constant(1e-3), metadata=counts("updates"))
    """Learning rate of the actor: a number, or a schedule over the updates."""
    critic_learning_rate: Schedule = eqx.field(
        converter=named("critic_learning_rate"), default=Constant(1e-3), metadata=counts("updates")
    )
    """Learning rate of the critic: a number, or a schedule over the updates."""
    clip_range: float = 0.2
    """Clip the probability ratio to 1 plus or minus this."""
    ent_coef: Schedule = eqx.field(converter=named("ent_coef"), default=Constant(0.0), metadata=counts("updates"))
    """Coefficient of the entropy bonus, relative to the normalized advantage; may be a schedule over the updates."""
    tolerance: Tolerances = eqx.field(converter=as_tolerance, default=Absolute(0.0))
    """Loss of return that is acceptable in favor of less important objectives: one number for all objectives, or one
    each."""
    mixture: bool = eqx.field(static=True, default=True)
    """Use the slack with a mixture of policies, one of which is drawn for each episode; otherwise the best single
    policy is kept."""
    limits: tuple[float, ...] | float = math.inf
    """Undiscounted return of each objective that is sufficient, as given by the order: `cost <= 10` is -10; infinite
    without a limit."""
    stages: Stages = Stages()
    networks: Networks = Networks()

    __repr__ = short_repr

    def __check_init__(self):
        validation.require_in_unit_interval(gamma=self.gamma, gae_lambda=self.gae_lambda)
        validation.require_above_zero(clip_range=self.clip_range)
        ppo.check_minibatches(self.num_steps, self.num_envs, self.num_minibatches, self.num_epochs)

    def init(self, spec: Spec, key: Array) -> State:
        m = len(spec.objectives)
        validation.require_per_objective(m, gamma=self.gamma, tolerance=self.tolerance, limits=self.limits)
        agent = actor_critic.init_agent(self.networks, spec, key, self.num_envs)
        return State(agent, staged.init(self, spec, agent, multipliers=None), jnp.zeros(m))

    act = staged.act
    probabilities = staged.probabilities
    num_candidates = staged.num_candidates
    candidate = staged.candidate
    first_returns = staged.first_returns
    num_columns = staged.num_columns
    mix = staged.mix
    begin = staged.begin
    weights = staged.mixture_weights
    component = staged.candidate
    describe_candidate = staged.describe_candidate
    is_sampled = staged.is_sampled

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        agent, batch = actor_critic.advantages(
            self.networks, state.agent, rollout, self.gamma, self.gae_lambda,
            allowed=staged.allowed(state.course, rollout.obs),
        )  # fmt: skip
        course, advantage, pace, weights = staged.combine(
            self, state.course, batch, agent.num_updates, partial(moves, violation=state.violation)
        )
        no_penalty = jnp.float32(0.0)
        if course is None:
            agent, _, metrics = ppo.epochs(self, agent, batch, advantage, no_penalty, key, pace=pace)
            return State(agent, None, state.violation), metrics
        batch = batch._replace(advantage=fusion_barrier(batch.advantage / staged.unit(course)))
        term = partial(self._term, is_guarded(course.stages, state.violation))
        agent, _, metrics = ppo.epochs(self, agent, batch, advantage, no_penalty, key, pace=pace, gradient_term=term)
        course, progress = staged.judge(self, course, agent, rollout)
        course, agent = staged.keep_policies(course, agent, progress)
        metrics = metrics | self.stages.metrics(course.stages) | {"gradient_weight": weights}
        return State(agent, course, progress.violation), metrics

    def _term(self, guarded: Bool[Array, " M"], actor: Actor, batch: Batch, gradient: Any) -> Any:
        """What the guarded objectives add to the direction, the negative gradient of the loss."""

        def gain(actor: Actor, advantage: Float[Array, " B"]) -> Array:
            ratio = jnp.exp(batch.policy_of(actor).log_prob(batch.action) - batch.log_prob)
            return ppo.surrogate("clip", self.clip_range, ratio, advantage - advantage.mean())

        each = jax.lax.map(lambda advantage: ravel_pytree(jax.grad(gain)(actor, advantage))[0], batch.advantage.T)
        direction, restore = ravel_pytree(jax.tree.map(jnp.negative, gradient))
        every = jnp.concatenate([each, direction[None]])
        # Sums of products, and nothing fused with them: a product of matrices is rounded by how many seeds there are.
        inner = fusion_barrier(jnp.sum(every[:, None] * every, axis=-1))
        added = fusion_barrier(nnls.weights(inner[:-1, :-1], inner[:-1, -1], jnp.sqrt(inner[-1, -1]), guarded))
        return restore(jnp.sum(added[:, None] * each, axis=0))


def moves(course: Course, next_weight: Float[Array, ""], violation: Float[Array, " M"]) -> Float[Array, " M"]:
    """The weights of the objectives that move the policy: the first one that is violated alone, or the stage's and
    those after it."""
    index, violated = jnp.arange(violation.shape[0]), violation > 0
    later = jnp.where(index < course.stages.stage, 0.0, next_weight ** jnp.maximum(index - course.stages.stage, 0))
    return jnp.where(violated.any(), 1.0 * (index == jnp.argmax(violated)), later)


def is_guarded(stage: stages.State, violation: Float[Array, " M"]) -> Bool[Array, " M"]:
    """Which objectives must not lose: all before the stage's and before the first violated one, but not those whose
    slack, or what is beyond their limit, is not used up nearly."""
    index, violated = jnp.arange(violation.shape[0]), violation > 0
    first = jnp.where(violated.any(), jnp.argmax(violated), stage.stage)
    return (index < first) & (violation > jnp.where(stage.at_limit, -NEAR, -1.0))
