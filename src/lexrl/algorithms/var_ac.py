"""VaR-AC and CVaR-AC (Chow et al. 2017): an actor-critic under a limit on the *risk* of an episode.

    maximise E[R]   such that   P(C > limit) <= 1 - p                   value at risk: a chance constraint
                    or          nu + E[(C - nu)+] / (1 - p) <= limit    CVaR: the mean of the worst episodes

where C is what an episode costs. Whether the limit was kept is known when the episode is over, and is paid for then: at
the price lambda if it was broken (CVaR: for how far C is above nu, which follows the p-quantile of C). The best policy
must know what was spent so far: the world is to show it (`remembers`; a run wraps its world by itself). The objective
without a limit is improved; the order does not matter.
"""

from typing import Literal, NamedTuple

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
from lexrl.constraints import Chance, Limit, as_chances
from lexrl.networks import Networks
from lexrl.returns import EpisodeStats, EpisodeTracker
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.types import Metrics, Spec, Transition


class State(NamedTuple):
    """The networks, the prices, the quantiles, and how rewards become what the limits are about."""

    agent: Agent
    multipliers: lagrangian.State
    quantile: Float[Array, " K"]
    """`nu_k`, for CVaR."""
    episode_tracker: EpisodeTracker
    """Plain sums since each episode began, of the rows of `sides`."""
    aim: Float[Array, " M"]
    """Picks the objective to be improved."""
    sides: Float[Array, "K M"]
    """Each row picks what a limit is about, signed so that more is worse."""


class VaRAC(eqx.Module):
    """Actor-critic of one objective under a limit that must be kept with a probability."""

    chance_constraints: tuple[Chance, ...] = eqx.field(converter=as_chances, default=as_chances("cost <= 10 with 0.95"))
    """The limit on an episode's sum, and how often it must be kept, as in 'cost <= 10 with 0.95'."""
    risk_measure: Literal["var", "cvar"] = eqx.field(static=True, default="var")
    """The chance itself; or the mean of the episodes beyond it (CVaR), which must then be within the limit."""
    num_envs: int = eqx.field(static=True, default=16)
    """Worlds side by side."""
    num_steps: int = eqx.field(static=True, default=16)
    """Steps of each world between updates."""
    gamma: float = 0.99
    """Discount of the reward with its penalty."""
    gae_lambda: float = 0.95
    """Lambda of the advantages: 0 trusts the critic, 1 the returns."""
    learning_rate: Schedule = eqx.field(converter=as_schedule, default=Constant(1e-3))
    """The actor's step size, by the number of updates."""
    critic_learning_rate: Schedule = eqx.field(converter=named("critic_rate"), default=Constant(1e-3))
    """The critic's step size."""
    ent_coef: Schedule = eqx.field(converter=named("entropy"), default=Constant(0.0))
    """Bonus for entropy, in units of standardised advantage, by the number of updates."""
    lagrangian: PIDLagrangian = PIDLagrangian(ki=Constant(10.0), max_multiplier=1000.0)
    networks: Networks = Networks()

    def __check_init__(self):
        validation.require_ranges(self)
        validation.require_choices(self)
        validation.require_positive(num_steps=self.num_steps, num_envs=self.num_envs)

    @property
    def remembers(self) -> tuple[Limit, ...]:
        """Signals whose sum so far the world is to show, and the limits they have."""
        return tuple(chance.limit for chance in self.chance_constraints)

    def init(self, spec: Spec, key: Array) -> State:
        names = [limit.name for limit in self.remembers]
        sides = constraints.sides(names, [-limit.side for limit in self.remembers], spec)
        return State(
            agent=ac.init_agent(self.networks, spec._replace(objectives=("kl_penalty",)), key, self.num_envs),
            multipliers=self.lagrangian.start(len(names)),
            quantile=-constraints.least(self.remembers),
            episode_tracker=returns.init_tracker(self.num_envs, len(names)),
            aim=jnp.asarray(constraints.aim("VaR-AC", names, spec)),
            sides=jnp.asarray(sides),
        )

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        policy = state.agent.actor(obs)
        return policy.mode() if greedy else policy.sample(key)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """The policy's chances of each numbered action; greedy: all on the likeliest."""
        return ac.probabilities(state.agent, obs, greedy)

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        spent = rollout.reward @ state.sides.T
        episode_tracker, episode_stats = returns.track_episodes(
            state.episode_tracker, spent, rollout.last, jnp.ones_like(state.quantile)
        )
        limit, rare = -constraints.least(self.remembers), self._rare()
        if self.risk_measure == "var":
            risk, level, most = (episode_stats.earned > limit).astype(jnp.float32), jnp.zeros_like(rare), rare
        else:
            risk, level, most = jnp.maximum(episode_stats.earned - state.quantile, 0.0) / rare, state.quantile, limit
        paid = rollout.reward @ state.aim - jnp.where(rollout.last, risk @ state.multipliers.multipliers, 0.0)
        # The episode is what is limited: nothing comes after it, even if only its time was up.
        one = rollout._replace(reward=paid[..., None], discount=jnp.where(rollout.last, 0.0, rollout.discount))
        agent, seen = ac.look(self.networks, state.agent, one, ac.per_objective(self.gamma, 1), self.gae_lambda)
        agent, metrics = improve(self, agent, seen, ac.standardised(seen.advantage[:, 0]))
        total = jnp.where(rollout.last[..., None], level + risk, 0.0).sum(axis=(0, 1))
        after = self.lagrangian.observe(state.multipliers, episode_stats.episodes, -total, -most)
        metrics |= lagrangian.metrics(after, state.sides) | {"value_loss": metrics["value_loss"][0]}
        quantile = self._quantile(state, episode_stats, rollout.last)
        return state._replace(
            agent=agent, multipliers=after, quantile=quantile, episode_tracker=episode_tracker
        ), metrics

    def _quantile(self, state: State, episode_stats: EpisodeStats, last: Array) -> Float[Array, " K"]:
        """`nu` after a step of `1 / window` of its limit's size for each episode, up where C is above it.

        Never above the limit: no policy that keeps it has its nu there, and one that does not would stay, since the
        price is of what is beyond nu.
        """
        limit = -constraints.least(self.remembers)
        above = (episode_stats.earned > state.quantile).astype(jnp.float32) - self._rare()
        step = (1.0 + jnp.abs(limit)) / self.lagrangian.stats_window_size
        moved = state.quantile + step * jnp.where(last[..., None], above, 0.0).sum(axis=(0, 1))
        return jnp.minimum(moved, limit)

    def _rare(self) -> Float[Array, " K"]:
        """How often each limit may be broken."""
        return jnp.stack([1.0 - jnp.asarray(chance.probability, jnp.float32) for chance in self.chance_constraints])
