"""The paper's LPPO and LA2C for objectives that are mean rewards per step (limit averages) instead of discounted sums.

The advantages are differential ones, from the TD errors

    delta_i = r_i - rbar_i + V_i(s') - V_i(s)        rbar_i: a running mean of the rewards

and the mean rewards of each environment's rollout take the place of the returns of episodes. Everything else is as in
`paper_lppo` and `paper_la2c`.
"""

from typing import Any, Literal, get_args

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl import returns
from lexrl.algorithms import a2c, actor_critic, paper_la2c, paper_lppo, ppo, validation
from lexrl.algorithms.actor_critic import Agent, Batch
from lexrl.algorithms.ppo import Surrogate
from lexrl.convergence import Convergence, Sample
from lexrl.dual_ascent import DualAscent
from lexrl.networks import Networks
from lexrl.reprs import short_repr
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.tolerance import Absolute, Tolerances, as_tolerance
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts

ReturnEstimate = Literal["rewards", "surrogate"]


class LPPOAverageReward(eqx.Module):
    """The paper's LPPO for average reward."""

    num_envs: int = eqx.field(static=True, default=16)
    """Number of parallel environments."""
    num_steps: int = eqx.field(static=True, default=64)
    """Steps of each environment between updates."""
    num_epochs: int = eqx.field(static=True, default=4)
    """Number of passes over each rollout."""
    num_minibatches: int = eqx.field(static=True, default=4)
    """Number of minibatches, and so of gradient steps, per epoch."""
    gae_lambda: float = 0.95
    """Lambda of generalized advantage estimation: 0 relies on the critic, 1 on the returns."""
    learning_rate: Schedule = eqx.field(converter=as_schedule, default=Constant(1e-3), metadata=counts("updates"))
    """Learning rate of the actor: a number, or a schedule over the updates."""
    critic_learning_rate: Schedule = eqx.field(
        converter=named("critic_learning_rate"), default=Constant(1e-3), metadata=counts("updates")
    )
    """Learning rate of the critic: a number, or a schedule over the updates."""
    surrogate: Surrogate = eqx.field(static=True, default="clip")
    """How the policy is kept close to the old one: by clipping the ratio, or by a KL penalty."""
    clip_range: float = 0.2
    """Clip the probability ratio to 1 plus or minus this."""
    kl_target: float = 0.01
    """Target of the KL divergence per update, to which the penalty is adapted."""
    ent_coef: Schedule = eqx.field(converter=named("ent_coef"), default=Constant(0.0), metadata=counts("updates"))
    """Coefficient of the entropy bonus, relative to the normalized advantage; may be a schedule over the updates."""
    tolerance: Tolerances = eqx.field(converter=as_tolerance, default=Absolute(0.1))
    """Loss of return that is acceptable in favor of less important objectives: one number for all objectives, or one
    each."""
    return_estimate: ReturnEstimate = eqx.field(static=True, default="rewards")
    """Estimate returns from the rewards of each rollout, or from these plus the change that the surrogate predicts for
    the last gradient steps."""
    normalize_advantage: bool = eqx.field(static=True, default=True)
    """Normalize the weights to a sum of 1 and the combined advantage to a standard deviation of 1; the theory uses
    neither."""
    convergence: Convergence = Convergence()
    multipliers: DualAscent = DualAscent()
    networks: Networks = Networks(normalize_observations=False)

    __repr__ = short_repr

    def __check_init__(self):
        paper_lppo.check(self, get_args(ReturnEstimate))

    def init(self, spec: Spec, key: Array) -> paper_lppo.State:
        m = len(spec.objectives)
        validation.require_per_objective(m, tolerance=self.tolerance)
        self.multipliers.check(m)
        agent = actor_critic.init_agent(self.networks, spec, key, self.num_envs)
        return paper_lppo.State(agent, jnp.float32(1.0), self.convergence.init(m), self.multipliers.init(m))

    act = actor_critic.act
    probabilities = actor_critic.probabilities

    def update(self, state: paper_lppo.State, rollout: Transition, key: Array) -> tuple[paper_lppo.State, Metrics]:
        agent, batch = advantages(self, state.agent, rollout)
        active = self.convergence.active(state.convergence)
        weights = self.multipliers.weights(state.multipliers, active, agent.num_updates)  # c_i
        weights, advantage, _ = actor_critic.combine(weights, batch.advantage, self.normalize_advantage)
        agent, kl, metrics = ppo.epochs(self, agent, batch, advantage, weights.sum() * state.kappa, key)
        sample = from_rewards(rollout.reward)
        if self.return_estimate == "surrogate":  # rbar(theta) - rbar(theta_old) is about E[(rho - 1) A]
            sample = sample._replace(change=predicted_change(agent, batch))
        convergence, progress = self.convergence.update(state.convergence, sample, self.tolerance)  # J_j, k_j
        multipliers = self.multipliers.update(state.multipliers, progress)  # lambda_j
        kappa = ppo.adapt_penalty(state.kappa, kl, self.kl_target)
        metrics |= self.convergence.metrics(convergence) | self.multipliers.metrics(multipliers, weights)
        return paper_lppo.State(agent, kappa, convergence, multipliers), metrics


class LA2CAverageReward(eqx.Module):
    """The paper's LA2C for average reward."""

    num_envs: int = eqx.field(static=True, default=16)
    """Number of parallel environments."""
    num_steps: int = eqx.field(static=True, default=16)
    """Steps of each environment between updates."""
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
    normalize_advantage: bool = eqx.field(static=True, default=True)
    """Normalize the weights to a sum of 1 and the combined advantage to a standard deviation of 1; the theory uses
    neither."""
    convergence: Convergence = Convergence()
    multipliers: DualAscent = DualAscent()
    networks: Networks = Networks(normalize_observations=False)

    __repr__ = short_repr

    def __check_init__(self):
        paper_la2c.check(self)

    def init(self, spec: Spec, key: Array) -> paper_la2c.State:
        m = len(spec.objectives)
        validation.require_per_objective(m, tolerance=self.tolerance)
        self.multipliers.check(m)
        agent = actor_critic.init_agent(self.networks, spec, key, self.num_envs)
        return paper_la2c.State(agent, self.convergence.init(m), self.multipliers.init(m))

    act = actor_critic.act
    probabilities = actor_critic.probabilities

    def update(self, state: paper_la2c.State, rollout: Transition, key: Array) -> tuple[paper_la2c.State, Metrics]:
        agent, batch = advantages(self, state.agent, rollout)
        active = self.convergence.active(state.convergence)
        weights = self.multipliers.weights(state.multipliers, active, agent.num_updates)  # c_i
        weights, advantage, _ = actor_critic.combine(weights, batch.advantage, self.normalize_advantage)
        agent, metrics = a2c.step(self, agent, batch, advantage)
        sample = from_rewards(rollout.reward)
        convergence, progress = self.convergence.update(state.convergence, sample, self.tolerance)  # J_j, k_j
        multipliers = self.multipliers.update(state.multipliers, progress)  # lambda_j
        metrics |= self.convergence.metrics(convergence) | self.multipliers.metrics(multipliers, weights)
        return paper_la2c.State(agent, convergence, multipliers), metrics


def advantages(algorithm: Any, agent: Agent, rollout: Transition) -> tuple[Agent, Batch]:
    """Differential advantages of every objective, and the agent with its running statistics updated."""
    networks, min_step = algorithm.networks, 0.01 if algorithm.normalize_advantage else 0.0
    agent = actor_critic.count_update(agent, rollout, min_step)
    policy, one = agent.actor(rollout.obs), jnp.ones_like(agent.mean_reward)
    value = agent.value_scale * actor_critic.predict(networks, agent.critic, rollout.obs)
    next_value = agent.value_scale * actor_critic.predict(networks, agent.critic, rollout.next_obs)
    errors = returns.td_errors(rollout.reward, rollout.discount, value, next_value, one, agent.mean_reward)
    advantage = returns.gae(errors, rollout.last, one, algorithm.gae_lambda)
    return actor_critic.make_batch(agent, rollout, policy, value, advantage, one, min_step)


def from_rewards(reward: Float[Array, "T N M"]) -> Sample:
    """The mean rewards per step: each environment's rollout counts as an episode."""
    each = reward.mean(axis=0)
    return Sample(jnp.float32(each.shape[0]), each.sum(axis=0), (each**2).sum(axis=0))


def predicted_change(agent: Agent, batch: Batch) -> Float[Array, " M"]:
    """`E[(rho - 1) A]`"""
    return paper_lppo.surrogates(agent.actor, batch) - jnp.mean(batch.advantage, axis=0)
