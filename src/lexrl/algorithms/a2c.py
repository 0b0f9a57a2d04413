"""A2C (Mnih et al. 2016, made synchronous): one policy-gradient step per rollout. One objective.

    theta <- theta + rate grad E[ log pi(a | s) A ]

plus a bonus for entropy; the advantage A is standardised over the rollout.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl.algorithms import actor_critic as ac
from lexrl.algorithms import validation
from lexrl.algorithms.actor_critic import Agent, Batch
from lexrl.networks import Actor, Networks
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.types import Metrics, Spec, Transition


class State(NamedTuple):
    """The networks."""

    agent: Agent


class A2C(eqx.Module):
    """Advantage actor-critic of one objective."""

    num_envs: int = eqx.field(static=True, default=16)
    """Worlds side by side."""
    num_steps: int = eqx.field(static=True, default=16)
    """Steps of each world between updates."""
    gamma: float = 0.99
    """Discount."""
    gae_lambda: float = 0.95
    """Lambda of the advantages: 0 trusts the critic, 1 the returns."""
    learning_rate: Schedule = eqx.field(converter=as_schedule, default=Constant(1e-3))
    """The actor's step size, by the number of updates."""
    critic_learning_rate: Schedule = eqx.field(converter=named("critic_rate"), default=Constant(1e-3))
    """The critic's step size."""
    ent_coef: Schedule = eqx.field(converter=named("entropy"), default=Constant(0.0))
    """Bonus for entropy, in units of standardised advantage, by the number of updates."""
    networks: Networks = Networks()

    def __check_init__(self):
        validation.require_ranges(self)
        validation.require_choices(self)
        validation.require_positive(num_steps=self.num_steps, num_envs=self.num_envs)

    def init(self, spec: Spec, key: Array) -> State:
        validation.require_one_objective("A2C", "LA2C", spec)
        return State(ac.init_agent(self.networks, spec, key, self.num_envs))

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        policy = state.agent.actor(obs)
        return policy.mode() if greedy else policy.sample(key)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """The policy's chances of each numbered action; greedy: all on the likeliest."""
        return ac.probabilities(state.agent, obs, greedy)

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        gamma = ac.per_objective(self.gamma, 1)
        agent, seen = ac.look(self.networks, state.agent, rollout, gamma, self.gae_lambda)
        advantage = ac.standardised(seen.advantage[:, 0])
        agent, metrics = improve(self, agent, seen, advantage)
        return State(agent), metrics


def improve(
    settings: Any,
    agent: Agent,
    seen: Batch,
    advantage: Float[Array, " B"],
    bend: Callable[[Actor], Any] | None = None,
) -> tuple[Agent, Metrics]:
    """One step of the actor and one of the critic.

    `settings` is the algorithm itself, `A2C` or `LA2C`. `bend` is added to the actor's direction: LA2C's second order.
    """

    bonus = settings.ent_coef(agent.time)

    def loss(actor: Actor) -> tuple[Array, Metrics]:
        policy = actor(seen.obs)
        gain = jnp.mean(policy.log_prob(seen.action) * advantage)
        entropy = jnp.mean(policy.entropy())
        return -gain - bonus * entropy, {"surrogate": gain, "entropy": entropy}

    gradient, metrics = jax.grad(loss, has_aux=True)(agent.actor)
    if bend is not None:
        gradient = jax.tree.map(jnp.subtract, gradient, bend(agent.actor))
    agent = ac.move_actor(settings.networks, agent, gradient, settings.learning_rate(agent.time))
    agent, losses = ac.move_critic(settings.networks, agent, seen, settings.critic_learning_rate(agent.time))
    divergence = jnp.mean(agent.actor(seen.obs).kl(seen.policy))
    return agent, metrics | {"value_loss": losses, "approx_kl": divergence}
