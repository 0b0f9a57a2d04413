"""VaR-AC and CVaR-AC (Chow et al. 2017): an actor-critic under a limit on the *risk* of an episode.

    maximize E[R]   such that   P(C > limit) <= 1 - p                   value at risk: a chance constraint
                    or          nu + E[(C - nu)+] / (1 - p) <= limit    CVaR: the mean of the worst episodes

where C is the cost of an episode. Whether the limit was kept is known when the episode is over, so the penalty comes
then: lambda if the limit was violated (CVaR: lambda times how far C is above nu, which follows the p-quantile of C).
The best policy depends on the cost so far, so observations must contain it (`remembers`; a run wraps its environment
automatically). The objective without a limit is optimized; the order does not matter.
"""

from typing import Literal, NamedTuple, get_args

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl import returns
from lexrl.algorithms import a2c, actor_critic, lagrangian, validation
from lexrl.algorithms.actor_critic import Agent
from lexrl.algorithms.lagrangian import PIDLagrangian
from lexrl.constraints import ChanceConstraint, Limit, as_chance_constraints
from lexrl.networks import Networks
from lexrl.reprs import short_repr
from lexrl.returns import EpisodeStats, EpisodeTracker
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts

RiskMeasure = Literal["var", "cvar"]


class State(NamedTuple):
    """The networks, the multipliers, the quantiles, and how rewards are combined."""

    agent: Agent
    lagrangian: lagrangian.State
    quantile: Float[Array, " K"]
    """`nu_k`, for CVaR."""
    episode_tracker: EpisodeTracker
    """Undiscounted sums since each episode began, of the rows of `constraint_weights`."""
    objective_weights: Float[Array, " M"]
    """Selects the objective to be optimized."""
    constraint_weights: Float[Array, "K M"]
    """Each row selects the signal of a limit, signed so that more is worse."""


class VaRAC(eqx.Module):
    """Actor-critic of one objective under a limit that must be kept with a probability."""

    chance_constraints: tuple[ChanceConstraint, ...] = eqx.field(
        converter=as_chance_constraints, default=as_chance_constraints("cost <= 10 with 0.95")
    )
    """A limit on the episode sum of a signal and the probability with which it must hold, as in 'cost <= 10 with
    0.95'."""
    risk_measure: RiskMeasure = eqx.field(static=True, default="var")
    """Constrain the probability of exceeding the limit (VaR), or the mean of the worst episodes (CVaR)."""
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
    lagrangian: PIDLagrangian = PIDLagrangian(ki=Constant(10.0), max_multiplier=1000.0)
    networks: Networks = Networks()

    __repr__ = short_repr

    def __check_init__(self):
        validation.require_in_unit_interval(gamma=self.gamma, gae_lambda=self.gae_lambda)
        validation.require_choice(get_args(RiskMeasure), risk_measure=self.risk_measure)
        validation.require_positive(num_steps=self.num_steps, num_envs=self.num_envs)

    @property
    def remembers(self) -> tuple[Limit, ...]:
        """The limits of signals whose sum so far must be part of the observation."""
        return tuple(constraint.limit for constraint in self.chance_constraints)

    def init(self, spec: Spec, key: Array) -> State:
        names, sides = [limit.name for limit in self.remembers], [-limit.side for limit in self.remembers]
        penalized = spec._replace(objectives=("penalized",))
        return State(
            agent=actor_critic.init_agent(self.networks, penalized, key, self.num_envs),
            lagrangian=self.lagrangian.init(len(names)),
            quantile=self._upper_bounds(),
            episode_tracker=returns.init_tracker(self.num_envs, len(names)),
            objective_weights=jnp.asarray(lagrangian.objective_weights("VaR-AC", names, spec)),
            constraint_weights=jnp.asarray(lagrangian.constraint_weights(names, sides, spec)),
        )

    act = actor_critic.act
    probabilities = actor_critic.probabilities

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        cost = rollout.reward @ state.constraint_weights.T
        episode_tracker, episode_stats = returns.track_episodes(
            state.episode_tracker, cost, rollout.last, jnp.ones_like(state.quantile)
        )
        limit, rare = self._upper_bounds(), self._violation_probability()
        if self.risk_measure == "var":
            risk, offset, most = (episode_stats.earned > limit).astype(jnp.float32), jnp.zeros_like(rare), rare
        else:
            risk, offset, most = jnp.maximum(episode_stats.earned - state.quantile, 0.0) / rare, state.quantile, limit
        penalty = jnp.where(rollout.last, risk @ state.lagrangian.value, 0.0)
        reward = (rollout.reward @ state.objective_weights - penalty)[..., None]
        # The limit is on whole episodes: nothing comes after one, even if it was truncated.
        single = rollout._replace(reward=reward, discount=jnp.where(rollout.last, 0.0, rollout.discount))
        agent, batch = actor_critic.advantages(self.networks, state.agent, single, self.gamma, self.gae_lambda)
        agent, metrics = a2c.step(self, agent, batch, actor_critic.normalize(batch.advantage[:, 0]))
        total = jnp.where(rollout.last[..., None], offset + risk, 0.0).sum(axis=(0, 1))
        multipliers = self.lagrangian.update(state.lagrangian, episode_stats.episodes, -total, -most)
        metrics |= lagrangian.metrics(multipliers, state.constraint_weights)
        metrics |= {"value_loss": metrics["value_loss"][0]}
        quantile = self._move_quantile(state, episode_stats, rollout.last)
        return (
            state._replace(agent=agent, lagrangian=multipliers, quantile=quantile, episode_tracker=episode_tracker),
            metrics,
        )

    def _move_quantile(self, state: State, episode_stats: EpisodeStats, last: Array) -> Float[Array, " K"]:
        """`nu` after a step of `1 / window` of its limit's size for each episode, up where C is above it.

        Never above the limit: no policy that keeps the limit has its quantile there, and one that violates it would
        not change, since the penalty is on what is beyond nu.
        """
        limit = self._upper_bounds()
        above = (episode_stats.earned > state.quantile).astype(jnp.float32) - self._violation_probability()
        step = (1.0 + jnp.abs(limit)) / self.lagrangian.stats_window_size
        moved = state.quantile + step * jnp.where(last[..., None], above, 0.0).sum(axis=(0, 1))
        return jnp.minimum(moved, limit)

    def _upper_bounds(self) -> Float[Array, " K"]:
        """The bound of each limit, signed so that more is worse."""
        return -lagrangian.lower_bounds(self.remembers)

    def _violation_probability(self) -> Float[Array, " K"]:
        """`1 - p`: how often each limit may be violated."""
        each = [jnp.asarray(constraint.probability, jnp.float32) for constraint in self.chance_constraints]
        return jnp.stack([1.0 - probability for probability in each])
