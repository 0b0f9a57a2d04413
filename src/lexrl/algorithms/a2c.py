"""A2C (Mnih et al. 2016, made synchronous): one policy-gradient step per rollout. One objective.

    theta <- theta + learning_rate grad E[ log pi(a | s) A ]

plus an entropy bonus; the advantage A is normalized over the rollout.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl.algorithms import actor_critic, validation
from lexrl.algorithms.actor_critic import AS_SET, Agent, Batch, Pace
from lexrl.networks import Actor, Networks
from lexrl.reprs import short_repr
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts


class State(NamedTuple):
    """The networks."""

    agent: Agent


class A2C(eqx.Module):
    """Advantage actor-critic for one objective."""

    num_envs: int = eqx.field(static=True, default=16)
    """Number of parallel environments."""
    num_steps: int = eqx.field(static=True, default=16)
    """Steps of each environment between updates."""
    gamma: float = 0.99
    """Discount factor."""
    gae_lambda: float = 0.97
    """Lambda of generalized advantage estimation: 0 relies on the critic, 1 on the returns."""
    learning_rate: Schedule = eqx.field(converter=as_schedule, default=Constant(1e-3), metadata=counts("updates"))
    """Learning rate of the actor: a number, or a schedule over the updates."""
    critic_learning_rate: Schedule = eqx.field(
        converter=named("critic_learning_rate"), default=Constant(1e-3), metadata=counts("updates")
    )
    """Learning rate of the critic: a number, or a schedule over the updates."""
    ent_coef: Schedule = eqx.field(converter=named("ent_coef"), default=Constant(0.0), metadata=counts("updates"))
    """Coefficient of the entropy bonus, relative to the normalized advantage; may be a schedule over the updates."""
    networks: Networks = Networks()

    __repr__ = short_repr

    def __check_init__(self):
        validation.require_in_unit_interval(gamma=self.gamma, gae_lambda=self.gae_lambda)
        validation.require_positive(num_steps=self.num_steps, num_envs=self.num_envs)

    def init(self, spec: Spec, key: Array) -> State:
        validation.require_one_objective("A2C", "LA2C", spec)
        return State(actor_critic.init_agent(self.networks, spec, key, self.num_envs))

    act = actor_critic.act
    probabilities = actor_critic.probabilities

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        agent, batch = actor_critic.advantages(self.networks, state.agent, rollout, self.gamma, self.gae_lambda)
        agent, metrics = step(self, agent, batch, actor_critic.normalize(batch.advantage[:, 0]))
        return State(agent), metrics


def step(
    algorithm: Any,
    agent: Agent,
    batch: Batch,
    advantage: Float[Array, " B"],
    gradient_term: Callable[[Actor], Any] | None = None,
    pace: Pace = AS_SET,
) -> tuple[Agent, Metrics]:
    """One gradient step of the actor and one of the critic, with the settings of `algorithm`.

    `gradient_term` is added to the direction in which the actor moves.
    """
    ent_coef = algorithm.ent_coef(agent.num_updates) + pace.ent_coef

    def loss(actor: Actor) -> tuple[Array, Metrics]:
        policy = batch.policy_of(actor)
        gain = jnp.mean(policy.log_prob(batch.action) * advantage)
        entropy = jnp.mean(policy.entropy())
        return -gain - ent_coef * entropy, {"surrogate": gain, "entropy": entropy}

    gradient, metrics = jax.grad(loss, has_aux=True)(agent.actor)
    if gradient_term is not None:
        gradient = jax.tree.map(jnp.subtract, gradient, gradient_term(agent.actor))
    networks = algorithm.networks
    learning_rate = algorithm.learning_rate(agent.num_updates) * pace.rate
    agent = actor_critic.step_actor(networks, agent, gradient, learning_rate)
    critic_learning_rate = algorithm.critic_learning_rate(agent.num_updates) * pace.critic_rate
    agent, losses = actor_critic.step_critic(networks, agent, batch, critic_learning_rate)
    kl = jnp.mean(batch.policy_of(agent.actor).kl(batch.policy))
    return agent, metrics | {"value_loss": losses, "approx_kl": kl}
