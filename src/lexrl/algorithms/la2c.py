"""LA2C: A2C for objectives in order of importance, one stage for each.

    theta <- theta + learning_rate grad E[ log pi(a | s) A ]        A = sum_j w_j A_j / u_j

Everything but the gradient step is as in `lexrl.algorithms.lppo`. With one objective this is A2C, to the last bit.
"""

import math
from typing import NamedTuple

import equinox as eqx
from jax import Array

from lexrl.algorithms import a2c, actor_critic, staged, validation
from lexrl.algorithms.actor_critic import Agent
from lexrl.algorithms.staged import Course
from lexrl.multipliers import Multipliers
from lexrl.networks import Networks
from lexrl.reprs import short_repr
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.stages import Stages
from lexrl.tolerance import Absolute, Tolerances, as_tolerance
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts


class State(NamedTuple):
    """The networks, and where several objectives stand."""

    agent: Agent
    course: Course | None


class LA2C(eqx.Module):
    """Lexicographic advantage actor-critic."""

    num_envs: int = eqx.field(static=True, default=16)
    """Number of parallel environments."""
    num_steps: int = eqx.field(static=True, default=16)
    """Steps of each environment between updates."""
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
    multipliers: Multipliers = Multipliers()
    networks: Networks = Networks()

    __repr__ = short_repr

    def __check_init__(self):
        validation.require_in_unit_interval(gamma=self.gamma, gae_lambda=self.gae_lambda)
        validation.require_positive(num_steps=self.num_steps, num_envs=self.num_envs)

    def init(self, spec: Spec, key: Array) -> State:
        validation.require_per_objective(
            len(spec.objectives), gamma=self.gamma, tolerance=self.tolerance, limits=self.limits
        )
        agent = actor_critic.init_agent(self.networks, spec, key, self.num_envs)
        return State(agent, staged.init(self, spec, agent, self.multipliers))

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
        course, advantage, pace, weights = staged.combine(self, state.course, batch, agent.num_updates)
        agent, metrics = a2c.step(self, agent, batch, advantage, pace=pace)
        course, agent, stage_metrics = staged.advance(self, course, agent, rollout, weights)
        return State(agent, course), metrics | stage_metrics
