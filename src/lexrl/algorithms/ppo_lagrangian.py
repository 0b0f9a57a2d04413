"""PPO with a Lagrangian: the usual constrained PPO, with separate critics of the limited signals.

    maximize  E[ min(rho A, clip(rho) A) ]        A = (A_r + sum_k lambda_k A_k) / (1 + sum_k lambda_k)

where `A_k` is the advantage of limit k's signal, signed so that more is better. The multipliers follow the mean sums of
episodes (`lexrl.algorithms.lagrangian`), as plain dual ascent or as a PID controller. The objective without a limit is
optimized; the order does not matter.
"""

from typing import Any, NamedTuple, get_args

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl import returns
from lexrl.algorithms import actor_critic, lagrangian, ppo, validation
from lexrl.algorithms.actor_critic import Agent
from lexrl.algorithms.lagrangian import EndedEpisodes, PIDLagrangian, UnitFreeLagrangian
from lexrl.algorithms.ppo import Surrogate
from lexrl.constraints import Limit, as_limits
from lexrl.networks import Networks
from lexrl.reprs import short_repr
from lexrl.returns import EpisodeTracker
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts


class State(NamedTuple):
    """The networks, the coefficient of the KL penalty, the multipliers, and how rewards are combined."""

    agent: Agent
    kappa: Float[Array, ""]
    lagrangian: Any
    """The multipliers; what is inside is their controller's."""
    episode_tracker: EpisodeTracker
    """Undiscounted sums since each episode began, of the rows of `reward_weights`."""
    reward_weights: Float[Array, "1+K M"]
    """The first row selects the objective to be optimized, the others the limited signals, signed so that more is
    better."""


class PPOLagrangian(eqx.Module):
    """PPO for one objective with constraints on the others."""

    constraints: tuple[Limit, ...] = eqx.field(converter=as_limits, default=as_limits("cost <= 10"))
    """Limits on the mean episode sum of a signal, as in 'cost <= 10'; several are separated by commas."""
    num_envs: int = eqx.field(static=True, default=16)
    """Number of parallel environments."""
    num_steps: int = eqx.field(static=True, default=64)
    """Steps of each environment between updates."""
    num_epochs: int = eqx.field(static=True, default=4)
    """Number of passes over each rollout."""
    num_minibatches: int = eqx.field(static=True, default=4)
    """Number of minibatches, and so of gradient steps, per epoch."""
    gamma: float = 0.99
    """Discount factor."""
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
    lagrangian: UnitFreeLagrangian | PIDLagrangian = UnitFreeLagrangian()
    """How the multipliers are updated: independently of units, or by a PID controller in the units of the signals."""
    networks: Networks = Networks()

    __repr__ = short_repr

    def __check_init__(self):
        validation.require_in_unit_interval(gamma=self.gamma, gae_lambda=self.gae_lambda)
        validation.require_above_zero(clip_range=self.clip_range, kl_target=self.kl_target)
        validation.require_choice(get_args(Surrogate), surrogate=self.surrogate)
        ppo.check_minibatches(self.num_steps, self.num_envs, self.num_minibatches, self.num_epochs)

    def init(self, spec: Spec, key: Array) -> State:
        names, sides = [limit.name for limit in self.constraints], [limit.side for limit in self.constraints]
        objective = lagrangian.objective_weights("PPO-Lagrangian", names, spec)
        reward_weights = jnp.concatenate([objective[None], lagrangian.constraint_weights(names, sides, spec)])
        sums = spec._replace(objectives=tuple(f"sum {k}" for k in range(len(reward_weights))))
        return State(
            agent=actor_critic.init_agent(self.networks, sums, key, self.num_envs),
            kappa=jnp.float32(1.0),
            lagrangian=self.lagrangian.init(len(names)),
            episode_tracker=returns.init_tracker(self.num_envs, len(reward_weights)),
            reward_weights=reward_weights,
        )

    act = actor_critic.act
    probabilities = actor_critic.probabilities

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        rollout = rollout._replace(reward=rollout.reward @ state.reward_weights.T)
        agent, batch = actor_critic.advantages(self.networks, state.agent, rollout, self.gamma, self.gae_lambda)
        weights = self.lagrangian.weights(state.lagrangian)
        _, advantage, _ = actor_critic.combine(weights, batch.advantage, normalize_advantage=True)
        agent, kl, metrics = ppo.epochs(self, agent, batch, advantage, state.kappa, key)
        episode_tracker, episode_stats = returns.track_episodes(
            state.episode_tracker, rollout.reward, rollout.last, jnp.ones_like(weights)
        )
        ended = EndedEpisodes(episode_stats.episodes, episode_stats.total, episode_stats.squares)
        multipliers = self.lagrangian.follow(state.lagrangian, ended, lagrangian.lower_bounds(self.constraints))
        metrics |= lagrangian.metrics(multipliers, state.reward_weights[1:])
        metrics |= {"value_loss": metrics["value_loss"].sum()}
        kappa = ppo.adapt_penalty(state.kappa, kl, self.kl_target)
        return (
            state._replace(agent=agent, kappa=kappa, lagrangian=multipliers, episode_tracker=episode_tracker),
            metrics,
        )
