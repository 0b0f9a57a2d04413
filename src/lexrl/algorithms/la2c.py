"""LA2C: A2C for objectives in order of importance (PB-LRL, Algorithm 3 of the paper, with K = A2C's objective).

    theta <- theta + grad sum_i c_i K_i(theta)        c_i = beta_i + lambda_i sum_{j>i} beta_j
    K_i = E[ log pi(a | s) A_i ]

The sum is the policy gradient of one combined advantage `sum_i c_i A_i`. Only the ratios between the c_i matter (the
advantage is standardised, Adam divides a common factor out), so they are made to sum to 1. The prices lambda follow the
objectives' levels `J_i`: `log pi A` has the gradient of J_i, but not its value; see `lexrl.dual`. With one objective
this is A2C, to the last bit.
"""

from typing import Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl import dual
from lexrl.algorithms import actor_critic as ac
from lexrl.algorithms import validation
from lexrl.algorithms.a2c import improve
from lexrl.algorithms.actor_critic import Agent, Batch
from lexrl.dual import Dual, Sample
from lexrl.networks import Actor, Networks
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.tolerance import Absolute, Tolerances, as_tolerance
from lexrl.types import Metrics, Spec, Transition


class State(NamedTuple):
    """The networks, and the prices."""

    agent: Agent
    dual: dual.State


class LA2C(eqx.Module):
    """Lexicographic advantage actor-critic."""

    num_envs: int = eqx.field(static=True, default=16)
    """Worlds side by side."""
    num_steps: int = eqx.field(static=True, default=16)
    """Steps of each world between updates."""
    gamma: tuple[float, ...] | float = 0.99
    """Discount: one for all objectives, or one each."""
    gae_lambda: float = 0.95
    """Lambda of the advantages: 0 trusts the critic, 1 the returns."""
    learning_rate: Schedule = eqx.field(converter=as_schedule, default=Constant(1e-3))
    """The actor's step size, by the number of updates."""
    critic_learning_rate: Schedule = eqx.field(converter=named("critic_rate"), default=Constant(1e-3))
    """The critic's step size."""
    ent_coef: Schedule = eqx.field(converter=named("entropy"), default=Constant(0.0))
    """Bonus for entropy, in units of standardised advantage, by the number of updates."""
    tolerance: Tolerances = eqx.field(converter=as_tolerance, default=Absolute(0.1))
    """What an objective's return may lose for the next one: one, or one each."""
    return_estimate: Literal["episodes", "critic"] = eqx.field(static=True, default="episodes")
    """Estimate an objective's level by the returns of episodes, or by the critic where episodes begin."""
    average: bool = eqx.field(static=True, default=False)
    """Objectives are mean rewards per step instead of discounted sums; gamma is then 1."""
    discounted_states: bool = eqx.field(static=True, default=False)
    """Count the t-th step of an episode gamma^t, as the theory's discounted state distribution does."""
    normalize_advantage: bool = eqx.field(static=True, default=True)
    """Make weights sum to 1 and the combined advantage standard; else both are used as they are, as in the theory."""
    dual: Dual = Dual()
    networks: Networks = Networks()

    def __check_init__(self):
        validation.require_ranges(self)
        validation.require_choices(self)
        validation.require_positive(num_steps=self.num_steps, num_envs=self.num_envs)
        validation.require_plain_tolerance(self.tolerance)
        validation.require_levels(self)

    def init(self, spec: Spec, key: Array) -> State:
        m = len(spec.objectives)
        validation.require_lengths(self, m)
        self.dual.check(m)
        agent = ac.init_agent(self.networks, spec, key, self.num_envs)
        return State(agent, self.dual.start(m, agent.actor))

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        policy = state.agent.actor(obs)
        return policy.mode() if greedy else policy.sample(key)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """The policy's chances of each numbered action; greedy: all on the likeliest."""
        return ac.probabilities(state.agent, obs, greedy)

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        gamma = ac.per_objective(self.gamma, rollout.reward.shape[-1])
        agent, seen = ac.look(
            self.networks, state.agent, rollout, gamma, self.gae_lambda,
            average=self.average, discounted_states=self.discounted_states, steady=self.normalize_advantage,
        )  # fmt: skip
        weights, advantage, size = ac.combined(self.dual.weights(state.dual), seen.advantage, self.normalize_advantage)

        def gains(actor: Actor) -> Float[Array, " M"]:
            return jnp.mean(actor(seen.obs).log_prob(seen.action)[:, None] * seen.advantage / size, axis=0)

        def bend(actor: Actor) -> Actor:
            return self.dual.bend(state.dual, gains, actor, standardised=self.normalize_advantage)

        agent, metrics = improve(self, agent, seen, advantage, bend if self.dual.second_order else None)
        after = self.dual.observe(state.dual, self._levels(seen, rollout), self.tolerance)
        if self.dual.second_order:
            after = self.dual.pull(after, gains, agent.actor)
        return State(agent, after), metrics | dual.metrics(after, weights)

    def _levels(self, seen: Batch, rollout: Transition) -> Sample:
        if self.return_estimate == "critic":
            return dual.from_critic(seen.value, seen.episode_stats.first)
        return dual.from_rewards(rollout.reward) if self.average else dual.from_episodes(seen.episode_stats)
