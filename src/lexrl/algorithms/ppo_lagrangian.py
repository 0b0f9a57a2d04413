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
from lexrl.algorithms.actor_critic import Learner, Networks
from lexrl.algorithms.lagrangian import Multipliers
from lexrl.algorithms.ppo import Surrogate, adapted, check_minibatches, improve
from lexrl.constraints import Limit, as_limits
from lexrl.returns import Track
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.types import Metrics, Spec, Transition


class State(NamedTuple):
    """The networks, the penalty's coefficient, the prices, and how rewards become what they are about."""

    learner: Learner
    kappa: Float[Array, ""]
    multipliers: lagrangian.State
    track: Track
    """Plain sums since each episode began, of the rows of `picks`."""
    picks: Float[Array, "1+K M"]
    """The first row picks the objective to be improved, the others what is limited, signed so that more is better."""


class PPOLagrangian(eqx.Module):
    """PPO of one objective under limits on the others."""

    limit: tuple[Limit, ...] = eqx.field(converter=as_limits, default=as_limits("cost <= 10"))
    """What an episode's sum of a signal may be on average, as in 'cost <= 10'; several are joined by ','."""
    worlds: int = eqx.field(static=True, default=16)
    """Worlds side by side."""
    rollout: int = eqx.field(static=True, default=64)
    """Steps of each world between updates."""
    epochs: int = eqx.field(static=True, default=4)
    """How often each transition is used."""
    minibatches: int = eqx.field(static=True, default=4)
    """Parts a rollout is cut into; each makes a gradient step."""
    gamma: float = 0.99
    """Discount."""
    trace: float = 0.95
    """Lambda of the advantages: 0 trusts the critic, 1 the returns."""
    rate: Schedule = eqx.field(converter=as_schedule, default=Constant(1e-3))
    """The actor's step size, by the number of updates."""
    critic_rate: Schedule = eqx.field(converter=named("critic_rate"), default=Constant(1e-3))
    """The critic's step size."""
    surrogate: Surrogate = eqx.field(static=True, default="clipped")
    """Keep near the old policy by clipping the ratio, or by a KL penalty."""
    clip: float = 0.2
    """How far the ratio may go from 1."""
    divergence: float = 0.01
    """The KL divergence the penalty aims at."""
    entropy: Schedule = eqx.field(converter=named("entropy"), default=Constant(0.0))
    """Bonus for entropy, in units of standardised advantage, by the number of updates."""
    multipliers: Multipliers = Multipliers()
    networks: Networks = Networks()

    def __check_init__(self):
        validation.require_ranges(self)
        validation.require_choices(self)
        check_minibatches(self.rollout, self.worlds, self.minibatches, self.epochs)

    def init(self, spec: Spec, key: Array) -> State:
        names = [limit.name for limit in self.limit]
        picks = jnp.concatenate(
            [
                constraints.aim("PPO-Lagrangian", names, spec)[None],
                constraints.sides(names, [limit.side for limit in self.limit], spec),
            ]
        )
        sums = tuple(f"sum {k}" for k in range(len(picks)))
        return State(
            learner=self.networks.start(spec._replace(objectives=sums), key, self.worlds),
            kappa=jnp.float32(1.0),
            multipliers=self.multipliers.start(len(names)),
            track=returns.new_track(self.worlds, len(picks)),
            picks=picks,
        )

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        policy = state.learner.actor(obs)
        return policy.mode() if greedy else policy.sample(key)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """The policy's chances of each numbered action; greedy: all on the likeliest."""
        return ac.probabilities(state.learner, obs, greedy)

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        picked = rollout._replace(reward=rollout.reward @ state.picks.T)
        gamma = ac.per_objective(self.gamma, len(self.limit) + 1)
        learner, seen = ac.look(self.networks, state.learner, picked, gamma, self.trace)
        weights = jnp.concatenate([jnp.ones(1), state.multipliers.prices])
        _, advantage, _ = ac.combined(weights, seen.advantage, standardise=True)
        learner, divergence, metrics = improve(self, learner, state.kappa, seen, advantage, key)
        track, passage = returns.follow(state.track, picked.reward, rollout.last, jnp.ones_like(gamma))
        after = self.multipliers.observe(
            state.multipliers, passage.episodes, passage.total[1:], constraints.least(self.limit)
        )
        metrics |= lagrangian.metrics(after, state.picks[1:]) | {"critic_loss": metrics["critic_loss"].sum()}
        kappa = adapted(state.kappa, divergence, self.divergence)
        return state._replace(learner=learner, kappa=kappa, multipliers=after, track=track), metrics
