"""RCPO (Tessler et al. 2019): an actor-critic on a reward less the price of what is limited.

    reward'  = r - sum_k lambda_k c_k                                   one critic of it
    lambda_k <- max(0, lambda_k + eta (J_k - limit_k))                  J_k: the mean cost of an episode

on three time-scales: the critic, the actor, and the prices slowest of all. The objective without a limit is improved;
the order does not matter.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl import constraints, returns
from lexrl.algorithms import actor_critic as ac
from lexrl.algorithms import lagrangian, validation
from lexrl.algorithms.a2c import improve
from lexrl.algorithms.actor_critic import Agent
from lexrl.algorithms.lagrangian import PIDLagrangian
from lexrl.constraints import Limit, as_limits
from lexrl.networks import Networks
from lexrl.returns import EpisodeTracker
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.types import Metrics, Spec, Transition


class State(NamedTuple):
    """The networks, the prices, and how rewards become what they are about."""

    agent: Agent
    multipliers: lagrangian.State
    episode_tracker: EpisodeTracker
    """Plain sums of the rewards since each episode began."""
    aim: Float[Array, " M"]
    """Picks the objective to be improved."""
    sides: Float[Array, "K M"]
    """Each row picks what a limit is about, signed so that more is better."""


class RCPO(eqx.Module):
    """Reward-constrained policy optimisation: an actor-critic on a penalised reward."""

    constraints: tuple[Limit, ...] = eqx.field(converter=as_limits, default=as_limits("cost <= 10"))
    """What an episode's sum of a signal may be on average, as in 'cost <= 10'; several are joined by ','."""
    num_envs: int = eqx.field(static=True, default=16)
    """Worlds side by side."""
    num_steps: int = eqx.field(static=True, default=16)
    """Steps of each world between updates."""
    gamma: float = 0.99
    """Discount of the penalised reward."""
    gae_lambda: float = 0.95
    """Lambda of the advantages: 0 trusts the critic, 1 the returns."""
    learning_rate: Schedule = eqx.field(converter=as_schedule, default=Constant(1e-3))
    """The actor's step size, by the number of updates."""
    critic_learning_rate: Schedule = eqx.field(converter=named("critic_rate"), default=Constant(1e-3))
    """The critic's step size."""
    ent_coef: Schedule = eqx.field(converter=named("entropy"), default=Constant(0.0))
    """Bonus for entropy, in units of standardised advantage, by the number of updates."""
    lagrangian: PIDLagrangian = PIDLagrangian()
    networks: Networks = Networks()

    def __check_init__(self):
        validation.require_ranges(self)
        validation.require_choices(self)
        validation.require_positive(num_steps=self.num_steps, num_envs=self.num_envs)

    def init(self, spec: Spec, key: Array) -> State:
        names = [limit.name for limit in self.constraints]
        return State(
            agent=ac.init_agent(self.networks, spec._replace(objectives=("kl_penalty",)), key, self.num_envs),
            multipliers=self.lagrangian.start(len(names)),
            episode_tracker=returns.init_tracker(self.num_envs, len(spec.objectives)),
            aim=jnp.asarray(constraints.aim("RCPO", names, spec)),
            sides=jnp.asarray(constraints.sides(names, [limit.side for limit in self.constraints], spec)),
        )

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        policy = state.agent.actor(obs)
        return policy.mode() if greedy else policy.sample(key)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """The policy's chances of each numbered action; greedy: all on the likeliest."""
        return ac.probabilities(state.agent, obs, greedy)

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        penalised = rollout.reward @ (state.aim + state.multipliers.multipliers @ state.sides)
        one = rollout._replace(reward=penalised[..., None])
        agent, seen = ac.look(self.networks, state.agent, one, ac.per_objective(self.gamma, 1), self.gae_lambda)
        agent, metrics = improve(self, agent, seen, ac.standardised(seen.advantage[:, 0]))
        episode_tracker, episode_stats = returns.track_episodes(
            state.episode_tracker, rollout.reward, rollout.last, jnp.ones_like(state.aim)
        )
        after = self.lagrangian.observe(
            state.multipliers,
            episode_stats.episodes,
            state.sides @ episode_stats.total,
            constraints.least(self.constraints),
        )
        metrics |= lagrangian.metrics(after, state.sides) | {"value_loss": metrics["value_loss"][0]}
        return state._replace(agent=agent, multipliers=after, episode_tracker=episode_tracker), metrics
