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
from lexrl.algorithms.actor_critic import Learner, Networks
from lexrl.algorithms.lagrangian import Multipliers
from lexrl.constraints import Limit, as_limits
from lexrl.returns import Track
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.types import Metrics, Spec, Transition


class State(NamedTuple):
    """The networks, the prices, and how rewards become what they are about."""

    learner: Learner
    multipliers: lagrangian.State
    track: Track
    """Plain sums of the rewards since each episode began."""
    aim: Float[Array, " M"]
    """Picks the objective to be improved."""
    sides: Float[Array, "K M"]
    """Each row picks what a limit is about, signed so that more is better."""


class RCPO(eqx.Module):
    """Reward-constrained policy optimisation: an actor-critic on a penalised reward."""

    limit: tuple[Limit, ...] = eqx.field(converter=as_limits, default=as_limits("cost <= 10"))
    """What an episode's sum of a signal may be on average, as in 'cost <= 10'; several are joined by ','."""
    worlds: int = eqx.field(static=True, default=16)
    """Worlds side by side."""
    rollout: int = eqx.field(static=True, default=16)
    """Steps of each world between updates."""
    gamma: float = 0.99
    """Discount of the penalised reward."""
    trace: float = 0.95
    """Lambda of the advantages: 0 trusts the critic, 1 the returns."""
    rate: Schedule = eqx.field(converter=as_schedule, default=Constant(1e-3))
    """The actor's step size, by the number of updates."""
    critic_rate: Schedule = eqx.field(converter=named("critic_rate"), default=Constant(1e-3))
    """The critic's step size."""
    entropy: Schedule = eqx.field(converter=named("entropy"), default=Constant(0.0))
    """Bonus for entropy, in units of standardised advantage, by the number of updates."""
    multipliers: Multipliers = Multipliers()
    networks: Networks = Networks()

    def __check_init__(self):
        validation.require_ranges(self)
        validation.require_choices(self)
        validation.require_positive(rollout=self.rollout, worlds=self.worlds)

    def init(self, spec: Spec, key: Array) -> State:
        names = [limit.name for limit in self.limit]
        return State(
            learner=self.networks.start(spec._replace(objectives=("penalised",)), key, self.worlds),
            multipliers=self.multipliers.start(len(names)),
            track=returns.new_track(self.worlds, len(spec.objectives)),
            aim=jnp.asarray(constraints.aim("RCPO", names, spec)),
            sides=jnp.asarray(constraints.sides(names, [limit.side for limit in self.limit], spec)),
        )

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        policy = state.learner.actor(obs)
        return policy.mode() if greedy else policy.sample(key)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """The policy's chances of each numbered action; greedy: all on the likeliest."""
        return ac.probabilities(state.learner, obs, greedy)

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        penalised = rollout.reward @ (state.aim + state.multipliers.prices @ state.sides)
        one = rollout._replace(reward=penalised[..., None])
        learner, seen = ac.look(self.networks, state.learner, one, ac.per_objective(self.gamma, 1), self.trace)
        learner, metrics = improve(self, learner, seen, ac.standardised(seen.advantage[:, 0]))
        track, passage = returns.follow(state.track, rollout.reward, rollout.last, jnp.ones_like(state.aim))
        after = self.multipliers.observe(
            state.multipliers, passage.episodes, state.sides @ passage.total, constraints.least(self.limit)
        )
        metrics |= lagrangian.metrics(after, state.sides) | {"critic_loss": metrics["critic_loss"][0]}
        return state._replace(learner=learner, multipliers=after, track=track), metrics
