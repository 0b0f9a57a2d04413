"""LA2C as the paper has it: PB-LRL, its Algorithm 3, with K = A2C's objective.

    theta <- theta + grad sum_i c_i K_i(theta)        c_i = beta_i + lambda_i sum_{j>i} beta_j
    K_i = E[ log pi(a | s) A_i ]

The sum is the policy gradient of one combined advantage `sum_i c_i A_i`. Only the ratios between the c_i matter (the
advantage is normalized, Adam divides a common factor out), so they are made to sum to 1. The multipliers lambda follow
the returns `J_i`, since `log pi A` has the gradient of J_i but not its value: see `lexrl.convergence` and
`lexrl.dual_ascent`. With one objective this is A2C, to the last bit.
"""

from typing import Any, Literal, NamedTuple, get_args

import equinox as eqx
from jax import Array

from lexrl import convergence, dual_ascent
from lexrl.algorithms import a2c, actor_critic, validation
from lexrl.algorithms.actor_critic import Agent, Batch
from lexrl.convergence import Convergence, Sample, from_critic, from_episodes
from lexrl.dual_ascent import DualAscent
from lexrl.networks import Networks
from lexrl.reprs import short_repr
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.tolerance import Absolute, Tolerances, as_tolerance
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts

ReturnEstimate = Literal["episodes", "critic"]


class State(NamedTuple):
    """The networks, where the objectives stand, and their multipliers."""

    agent: Agent
    convergence: convergence.State
    multipliers: dual_ascent.State


class PaperLA2C(eqx.Module):
    """LA2C as in the paper: dual ascent on separate time-scales."""

    num_envs: int = eqx.field(static=True, default=16)
    """Number of parallel environments."""
    num_steps: int = eqx.field(static=True, default=16)
    """Steps of each environment between updates."""
    gamma: tuple[float, ...] | float = 0.99
    """Discount factor: one number for all objectives, or one each."""
    gae_lambda: float = 0.95
    """Lambda of generalized advantage estimation: 0 relies on the critic, 1 on the returns."""
    learning_rate: Schedule = eqx.field(converter=as_schedule, default=Constant(1e-3), metadata=counts("updates"))
    """Learning rate of the actor: a number, or a schedule over the updates."""
    critic_learning_rate: Schedule = eqx.field(
        converter=named("critic_learning_rate"), default=Constant(1e-3), metadata=counts("updates")
    )
    """Learning rate of the critic: a number, or a schedule over the updates."""
    ent_coef: Schedule = eqx.field(converter=named("ent_coef"), default=Constant(0.0), metadata=counts("updates"))
    """Coefficient of the entropy bonus, relative to the normalized advantage; may be a schedule over the updates."""
    tolerance: Tolerances = eqx.field(converter=as_tolerance, default=Absolute(0.1))
    """Loss of return that is acceptable in favor of less important objectives: one number for all objectives, or one
    each."""
    return_estimate: ReturnEstimate = eqx.field(static=True, default="episodes")
    """Estimate returns from finished episodes, or from the critic where episodes begin."""
    discounted_states: bool = eqx.field(static=True, default=False)
    """Weight the t-th step of an episode by gamma^t, as the discounted state distribution of the theory does."""
    normalize_advantage: bool = eqx.field(static=True, default=True)
    """Normalize the weights to a sum of 1 and the combined advantage to a standard deviation of 1; the theory uses
    neither."""
    convergence: Convergence = Convergence()
    multipliers: DualAscent = DualAscent()
    networks: Networks = Networks(normalize_observations=False)

    __repr__ = short_repr

    def __check_init__(self):
        validation.require_in_unit_interval(gamma=self.gamma)
        validation.require_choice(get_args(ReturnEstimate), return_estimate=self.return_estimate)
        check(self)

    def init(self, spec: Spec, key: Array) -> State:
        m = len(spec.objectives)
        validation.require_per_objective(m, gamma=self.gamma, tolerance=self.tolerance)
        self.multipliers.check(m)
        agent = actor_critic.init_agent(self.networks, spec, key, self.num_envs)
        return State(agent, self.convergence.init(m), self.multipliers.init(m))

    act = actor_critic.act
    probabilities = actor_critic.probabilities

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        agent, batch = actor_critic.lexicographic_advantages(self, state.agent, rollout)
        active = self.convergence.active(state.convergence)
        weights = self.multipliers.weights(state.multipliers, active, agent.num_updates)  # c_i
        weights, advantage, _ = actor_critic.combine(weights, batch.advantage, self.normalize_advantage)
        agent, metrics = a2c.step(self, agent, batch, advantage)
        sample = estimate_returns(self, batch)
        convergence, progress = self.convergence.update(state.convergence, sample, self.tolerance)  # J_j, k_j
        multipliers = self.multipliers.update(state.multipliers, progress)  # lambda_j
        metrics |= self.convergence.metrics(convergence) | self.multipliers.metrics(multipliers, weights)
        return State(agent, convergence, multipliers), metrics


def check(algorithm: Any) -> None:
    """Raise an error about settings of PaperLA2C, or of a variant of it, that cannot work."""
    validation.require_in_unit_interval(gae_lambda=algorithm.gae_lambda)
    validation.require_positive(num_steps=algorithm.num_steps, num_envs=algorithm.num_envs)


def estimate_returns(algorithm: Any, batch: Batch) -> Sample:
    """New evidence of the returns `J_i`, by the setting `return_estimate`."""
    if algorithm.return_estimate == "critic":
        return from_critic(batch.value, batch.episode_stats.first)
    return from_episodes(batch.episode_stats)
