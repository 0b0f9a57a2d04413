"""The paper's LPPO with Q-critics: `Q_i(s, a)` takes the place of the advantage, as in its corollary for LPPO.

    K_i = E[ rho Q_i(s, a) ] - kappa KL(pi || pi_old)        V_i(s) = sum_a pi(a | s) Q_i(s, a)

Actions must be discrete. Everything else is as in `paper_lppo`.
"""

from typing import Any, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl import returns
from lexrl.algorithms import actor_critic, paper_lppo, ppo, validation
from lexrl.algorithms.actor_critic import Agent, Batch
from lexrl.algorithms.paper_lppo import ReturnEstimate, State
from lexrl.algorithms.ppo import Surrogate
from lexrl.convergence import Convergence
from lexrl.distributions import Categorical, Distribution
from lexrl.dual_ascent import DualAscent
from lexrl.errors import InputError
from lexrl.networks import Network, Networks
from lexrl.reprs import short_repr
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.tolerance import Absolute, Tolerances, as_tolerance
from lexrl.types import Discrete, Metrics, Spec, Transition
from lexrl.units import counts


class LPPOQCritic(eqx.Module):
    """The paper's LPPO with action-value critics."""

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
    return_estimate: ReturnEstimate = eqx.field(static=True, default="episodes")
    """Estimate returns from finished episodes, from the critic where episodes begin, or from episodes plus the change
    that the surrogate predicts for the last gradient steps."""
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
        paper_lppo.check(self, get_args(ReturnEstimate))

    def init(self, spec: Spec, key: Array) -> State:
        if not isinstance(spec.action_space, Discrete):
            raise InputError(
                f"Q-critics need discrete actions, but this environment has {spec.action_space}; use LPPO instead."
            )
        m = len(spec.objectives)
        validation.require_per_objective(m, gamma=self.gamma, tolerance=self.tolerance)
        self.multipliers.check(m)
        agent = actor_critic.init_agent(self.networks, spec, key, self.num_envs, per_action=True)
        return State(agent, jnp.float32(1.0), self.convergence.init(m), self.multipliers.init(m))

    act = actor_critic.act
    probabilities = actor_critic.probabilities

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        agent, batch = advantages(self, state.agent, rollout)
        active = self.convergence.active(state.convergence)
        weights = self.multipliers.weights(state.multipliers, active, agent.num_updates)  # c_i
        weights, advantage, _ = actor_critic.combine(weights, batch.advantage, self.normalize_advantage)
        kappa = weights.sum() * state.kappa
        agent, kl, metrics = ppo.epochs(self, agent, batch, advantage, kappa, key, prediction=predict_chosen)
        sample = paper_lppo.estimate_returns(self, agent, batch)
        convergence, progress = self.convergence.update(state.convergence, sample, self.tolerance)  # J_j, k_j
        multipliers = self.multipliers.update(state.multipliers, progress)  # lambda_j
        kappa = ppo.adapt_penalty(state.kappa, kl, self.kl_target)
        metrics |= self.convergence.metrics(convergence) | self.multipliers.metrics(multipliers, weights)
        return State(agent, kappa, convergence, multipliers), metrics


def advantages(algorithm: Any, agent: Agent, rollout: Transition) -> tuple[Agent, Batch]:
    """`Q_i` of the actions taken in the place of advantages, and targets for them from TD(lambda)."""
    networks, min_step = algorithm.networks, 0.01 if algorithm.normalize_advantage else 0.0
    gamma = actor_critic.per_objective(algorithm.gamma, rollout.reward.shape[-1])
    agent = actor_critic.count_update(agent, rollout, min_step)
    policy = agent.actor(rollout.obs)
    q = actor_critic.predict(networks, agent.critic, rollout.obs)
    next_q = actor_critic.predict(networks, agent.critic, rollout.next_obs)
    value = agent.value_scale * expected(q, policy)
    next_value = agent.value_scale * expected(next_q, agent.actor(rollout.next_obs))
    errors = returns.td_errors(rollout.reward, rollout.discount, value, next_value, gamma)
    advantage = returns.gae(errors, rollout.last, gamma, algorithm.gae_lambda)
    chosen = agent.value_scale * returns.of_action(q, rollout.action)
    agent, batch = actor_critic.make_batch(agent, rollout, policy, value, advantage, gamma, min_step)
    batch = batch._replace(advantage=chosen.reshape(batch.advantage.shape))
    return agent, actor_critic.discount_states(batch) if algorithm.discounted_states else batch


def expected(q: Float[Array, "*batch M A"], policy: Distribution) -> Float[Array, "*batch M"]:
    """`sum_a pi(a | s) Q_i(s, a)`"""
    assert isinstance(policy, Categorical)
    return jnp.sum(q * jax.nn.softmax(policy.logits)[..., None, :], axis=-1)


def predict_chosen(networks: Networks, critic: Network, batch: Batch) -> Float[Array, "B M"]:
    """`Q_i` of the actions of a batch, divided by the scale."""
    return returns.of_action(actor_critic.predict(networks, critic, batch.obs), batch.action)
