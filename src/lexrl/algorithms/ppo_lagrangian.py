"""PPO with a Lagrangian: the usual constrained PPO, with critics of its own for what is limited.

    maximise  E[ min(rho A, clip(rho) A) ]        A = (A_r + sum_k lambda_k A_k) / (1 + sum_k lambda_k)

where `A_k` is the advantage of limit k's signal, signed so that more is better. The prices follow the mean sums of
episodes (`lexrl.algorithms.lagrangian`), as plain dual ascent or as a PID controller. The objective without a limit is
improved; the order does not matter.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl import constraints, returns
from lexrl.algorithms import actor_critic as ac
from lexrl.algorithms import lagrangian, validation
from lexrl.algorithms.actor_critic import Agent
from lexrl.algorithms.lagrangian import PIDLagrangian
from lexrl.algorithms.ppo import Surrogate, adapted, check_minibatches, improve
from lexrl.constraints import Limit, as_limits
from lexrl.networks import Networks
from lexrl.returns import EpisodeTracker
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.types import Metrics, Spec, Transition


class State(NamedTuple):
    """The networks, the penalty's coefficient, the prices, and how rewards become what they are about."""

    agent: Agent
    kappa: Float[Array, ""]
    multipliers: lagrangian.State
    episode_tracker: EpisodeTracker
    """Plain sums since each episode began, of the rows of `picks`."""
    picks: Float[Array, "1+K M"]
    """The first row picks the objective to be improved, the others what is limited, signed so that more is better."""


class PPOLagrangian(eqx.Module):
    """PPO of one objective under limits on the others."""

    constraints: tuple[Limit, ...] = eqx.field(converter=as_limits, default=as_limits("cost <= 10"))
    """What an episode's sum of a signal may be on average, as in 'cost <= 10'; several are joined by ','."""
    num_envs: int = eqx.field(static=True, default=16)
    """Worlds side by side."""
    num_steps: int = eqx.field(static=True, default=64)
    """Steps of each world between updates."""
    num_epochs: int = eqx.field(static=True, default=4)
    """How often each transition is used."""
    num_minibatches: int = eqx.field(static=True, default=4)
    """Parts a rollout is cut into; each makes a gradient step."""
    gamma: float = 0.99
    """Discount."""
    gae_lambda: float = 0.95
    """Lambda of the advantages: 0 trusts the critic, 1 the returns."""
    learning_rate: Schedule = eqx.field(converter=as_schedule, default=Constant(1e-3))
    """The actor's step size, by the number of updates."""
    critic_learning_rate: Schedule = eqx.field(converter=named("critic_rate"), default=Constant(1e-3))
    """The critic's step size."""
    surrogate: Surrogate = eqx.field(static=True, default="clip")
    """Keep near the old policy by clipping the ratio, or by a KL penalty."""
    clip_range: float = 0.2
    """How far the ratio may go from 1."""
    kl_target: float = 0.01
    """The KL divergence the penalty aims at."""
    ent_coef: Schedule = eqx.field(converter=named("entropy"), default=Constant(0.0))
    """Bonus for entropy, in units of standardised advantage, by the number of updates."""
    lagrangian: PIDLagrangian = PIDLagrangian()
    networks: Networks = Networks()

    def __check_init__(self):
        validation.require_ranges(self)
        validation.require_choices(self)
        check_minibatches(self.num_steps, self.num_envs, self.num_minibatches, self.num_epochs)

    def init(self, spec: Spec, key: Array) -> State:
        names = [limit.name for limit in self.constraints]
        picks = jnp.concatenate(
            [
                constraints.aim("PPO-Lagrangian", names, spec)[None],
                constraints.sides(names, [limit.side for limit in self.constraints], spec),
            ]
        )
        sums = tuple(f"sum {k}" for k in range(len(picks)))
        return State(
            agent=ac.init_agent(self.networks, spec._replace(objectives=sums), key, self.num_envs),
            kappa=jnp.float32(1.0),
            multipliers=self.lagrangian.start(len(names)),
            episode_tracker=returns.init_tracker(self.num_envs, len(picks)),
            picks=picks,
        )

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        policy = state.agent.actor(obs)
        return policy.mode() if greedy else policy.sample(key)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """The policy's chances of each numbered action; greedy: all on the likeliest."""
        return ac.probabilities(state.agent, obs, greedy)

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        picked = rollout._replace(reward=rollout.reward @ state.picks.T)
        gamma = ac.per_objective(self.gamma, len(self.constraints) + 1)
        agent, seen = ac.look(self.networks, state.agent, picked, gamma, self.gae_lambda)
        weights = jnp.concatenate([jnp.ones(1), state.multipliers.multipliers])
        _, advantage, _ = ac.combined(weights, seen.advantage, normalize_advantage=True)
        agent, divergence, metrics = improve(self, agent, state.kappa, seen, advantage, key)
        episode_tracker, episode_stats = returns.track_episodes(
            state.episode_tracker, picked.reward, rollout.last, jnp.ones_like(gamma)
        )
        after = self.lagrangian.observe(
            state.multipliers, episode_stats.episodes, episode_stats.total[1:], constraints.least(self.constraints)
        )
        metrics |= lagrangian.metrics(after, state.picks[1:]) | {"value_loss": metrics["value_loss"].sum()}
        kappa = adapted(state.kappa, divergence, self.kl_target)
        return state._replace(agent=agent, kappa=kappa, multipliers=after, episode_tracker=episode_tracker), metrics
