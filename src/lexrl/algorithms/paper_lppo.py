"""LPPO as the paper has it: PB-LRL, its Algorithm 3, with K = PPO's surrogate.

    theta <- theta + grad sum_i c_i K_i(theta)        c_i = beta_i + lambda_i sum_{j>i} beta_j
    K_i = E[ rho A_i ] - kappa KL(pi || pi_old)        rho = pi(a | s) / pi_old(a | s)

The surrogates share the ratio, so their sum is one surrogate of the combined advantage `sum_i c_i A_i`; the clipped
variant clips that one. Only the ratios between the c_i matter (the advantage is normalized, Adam divides a common
factor out), so they are made to sum to 1.
The multipliers lambda follow the returns `J_i`, not the surrogates, which are 0 at theta_old by construction: see
`lexrl.convergence` and `lexrl.dual_ascent`. With one objective this is PPO, to the last bit.
"""

from typing import Any, Literal, NamedTuple, get_args

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl import convergence, dual_ascent
from lexrl.algorithms import actor_critic, ppo, validation
from lexrl.algorithms.actor_critic import Agent, Batch
from lexrl.algorithms.ppo import Surrogate
from lexrl.convergence import Convergence, Sample, from_critic, from_episodes
from lexrl.dual_ascent import DualAscent
from lexrl.networks import Actor, Networks
from lexrl.reprs import short_repr
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.tolerance import Absolute, Tolerances, as_tolerance
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts

ReturnEstimate = Literal["episodes", "critic", "surrogate"]


class State(NamedTuple):
    """The networks, the coefficient of the KL penalty, where the objectives stand, and their multipliers."""

    agent: Agent
    kappa: Float[Array, ""]
    convergence: convergence.State
    multipliers: dual_ascent.State


class PaperLPPO(eqx.Module):
    """LPPO as in the paper: dual ascent on separate time-scales."""

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
        check(self, get_args(ReturnEstimate))

    def init(self, spec: Spec, key: Array) -> State:
        m = len(spec.objectives)
        validation.require_per_objective(m, gamma=self.gamma, tolerance=self.tolerance)
        self.multipliers.check(m)
        agent = actor_critic.init_agent(self.networks, spec, key, self.num_envs)
        return State(agent, jnp.float32(1.0), self.convergence.init(m), self.multipliers.init(m))

    act = actor_critic.act
    probabilities = actor_critic.probabilities

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        agent, batch = actor_critic.lexicographic_advantages(self, state.agent, rollout)
        active = self.convergence.active(state.convergence)
        weights = self.multipliers.weights(state.multipliers, active, agent.num_updates)  # c_i
        weights, advantage, _ = actor_critic.combine(weights, batch.advantage, self.normalize_advantage)
        agent, kl, metrics = ppo.epochs(self, agent, batch, advantage, weights.sum() * state.kappa, key)
        sample = estimate_returns(self, agent, batch)
        convergence, progress = self.convergence.update(state.convergence, sample, self.tolerance)  # J_j, k_j
        multipliers = self.multipliers.update(state.multipliers, progress)  # lambda_j
        kappa = ppo.adapt_penalty(state.kappa, kl, self.kl_target)
        metrics |= self.convergence.metrics(convergence) | self.multipliers.metrics(multipliers, weights)
        return State(agent, kappa, convergence, multipliers), metrics


def check(algorithm: Any, return_estimates: tuple[str, ...]) -> None:
    """Raise an error about settings of PaperLPPO, or of a variant of it, that cannot work."""
    validation.require_in_unit_interval(gae_lambda=algorithm.gae_lambda)
    validation.require_above_zero(clip_range=algorithm.clip_range, kl_target=algorithm.kl_target)
    validation.require_choice(get_args(Surrogate), surrogate=algorithm.surrogate)
    validation.require_choice(return_estimates, return_estimate=algorithm.return_estimate)
    ppo.check_minibatches(algorithm.num_steps, algorithm.num_envs, algorithm.num_minibatches, algorithm.num_epochs)


def surrogates(actor: Actor, batch: Batch) -> Float[Array, " M"]:
    """`E[rho A_i]` of every objective."""
    ratio = jnp.exp(actor(batch.obs).log_prob(batch.action) - batch.log_prob)
    return jnp.mean(ratio[:, None] * batch.advantage, axis=0)


def estimate_returns(algorithm: Any, agent: Agent, batch: Batch) -> Sample:
    """New evidence of the returns `J_i`, by the setting `return_estimate`."""
    if algorithm.return_estimate == "critic":
        return from_critic(batch.value, batch.episode_stats.first)
    sample = from_episodes(batch.episode_stats)
    if algorithm.return_estimate == "episodes":
        return sample
    # J(theta) - J(theta_old) is about the horizon times E[(rho - 1) A].
    num_steps, _, m = batch.value.shape
    horizon = 1 / jnp.maximum(1 - actor_critic.per_objective(algorithm.gamma, m), 1 / num_steps)
    change = surrogates(agent.actor, batch) - jnp.mean(batch.advantage, axis=0)
    return sample._replace(change=horizon * change)
