"""RCPO (Tessler et al. 2019): an actor-critic on a reward from which violations of limits are subtracted.

    reward'  = r - sum_k lambda_k c_k                                   one critic of it
    lambda_k <- max(0, lambda_k + ki (J_k - limit_k))                   J_k: the mean cost of an episode

on three time scales: the critic, the actor, and the multipliers slowest of all. The objective without a limit is
optimized; the order does not matter.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl import returns
from lexrl.algorithms import a2c, actor_critic, lagrangian, validation
from lexrl.algorithms.actor_critic import Agent
from lexrl.algorithms.lagrangian import EndedEpisodes, PIDLagrangian, UnitFreeLagrangian
from lexrl.constraints import Limit, as_limits
from lexrl.networks import Networks
from lexrl.reprs import short_repr
from lexrl.returns import EpisodeTracker
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts


class State(NamedTuple):
    """The networks, the multipliers, and how rewards are combined."""

    agent: Agent
    lagrangian: Any
    """The multipliers; what is inside is their controller's."""
    episode_tracker: EpisodeTracker
    """Undiscounted sums of the rewards since each episode began."""
    objective_weights: Float[Array, " M"]
    """Selects the objective to be optimized."""
    constraint_weights: Float[Array, "K M"]
    """Each row selects the signal of a limit, signed so that more is better."""


class RCPO(eqx.Module):
    """Reward-constrained policy optimization: an actor-critic on a penalized reward."""

    constraints: tuple[Limit, ...] = eqx.field(converter=as_limits, default=as_limits("cost <= 10"))
    """Limits on the mean episode sum of a signal, as in 'cost <= 10'; several are separated by commas."""
    num_envs: int = eqx.field(static=True, default=16)
    """Number of parallel environments."""
    num_steps: int = eqx.field(static=True, default=16)
    """Steps of each environment between updates."""
    gamma: float = 0.99
    """Discount factor of the penalized reward."""
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
    lagrangian: UnitFreeLagrangian | PIDLagrangian = UnitFreeLagrangian()
    """How the multipliers are updated: independently of units, or by a PID controller in the units of the signals."""
    networks: Networks = Networks()

    __repr__ = short_repr

    def __check_init__(self):
        validation.require_in_unit_interval(gamma=self.gamma, gae_lambda=self.gae_lambda)
        validation.require_positive(num_steps=self.num_steps, num_envs=self.num_envs)

    def init(self, spec: Spec, key: Array) -> State:
        names, sides = [limit.name for limit in self.constraints], [limit.side for limit in self.constraints]
        penalized = spec._replace(objectives=("penalized",))
        return State(
            agent=actor_critic.init_agent(self.networks, penalized, key, self.num_envs),
            lagrangian=self.lagrangian.init(len(names)),
            episode_tracker=returns.init_tracker(self.num_envs, len(spec.objectives)),
            objective_weights=jnp.asarray(lagrangian.objective_weights("RCPO", names, spec)),
            constraint_weights=jnp.asarray(lagrangian.constraint_weights(names, sides, spec)),
        )

    act = actor_critic.act
    probabilities = actor_critic.probabilities

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        weights = self.lagrangian.weights(state.lagrangian)
        rows = jnp.concatenate([state.objective_weights[None], state.constraint_weights])
        penalized = rollout.reward @ (weights @ rows)
        single = rollout._replace(reward=penalized[..., None])
        agent, batch = actor_critic.advantages(self.networks, state.agent, single, self.gamma, self.gae_lambda)
        agent, metrics = a2c.step(self, agent, batch, actor_critic.normalize(batch.advantage[:, 0]))
        episode_tracker, episode_stats = returns.track_episodes(
            state.episode_tracker, rollout.reward, rollout.last, jnp.ones_like(state.objective_weights)
        )
        ended = EndedEpisodes(episode_stats.episodes, rows @ episode_stats.total, rows**2 @ episode_stats.squares)
        multipliers = self.lagrangian.follow(state.lagrangian, ended, lagrangian.lower_bounds(self.constraints))
        metrics |= lagrangian.metrics(multipliers, state.constraint_weights)
        metrics |= {"value_loss": metrics["value_loss"][0]}
        return state._replace(agent=agent, lagrangian=multipliers, episode_tracker=episode_tracker), metrics
