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
from lexrl.algorithms.actor_critic import Evidence, Learner, Networks
from lexrl.networks import Actor
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.types import Metrics, Spec, Transition


class State(NamedTuple):
    """The networks."""

    learner: Learner


class A2C(eqx.Module):
    """Advantage actor-critic of one objective."""

    worlds: int = eqx.field(static=True, default=16)
    """Worlds side by side."""
    rollout: int = eqx.field(static=True, default=16)
    """Steps of each world between updates."""
    gamma: float = 0.99
    """Discount."""
    trace: float = 0.95
    """Lambda of the advantages: 0 trusts the critic, 1 the returns."""
    rate: Schedule = eqx.field(converter=as_schedule, default=Constant(1e-3))
    """The actor's step size, by the number of updates."""
    critic_rate: Schedule = eqx.field(converter=named("critic_rate"), default=Constant(1e-3))
    """The critic's step size."""
    entropy: Schedule = eqx.field(converter=named("entropy"), default=Constant(0.0))
    """Bonus for entropy, in units of standardised advantage, by the number of updates."""
    networks: Networks = Networks()

    def __check_init__(self):
        validation.require_ranges(self)
        validation.require_choices(self)
        validation.require_positive(rollout=self.rollout, worlds=self.worlds)

    def init(self, spec: Spec, key: Array) -> State:
        validation.require_one_objective("A2C", "LA2C", spec)
        return State(self.networks.start(spec, key, self.worlds))

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        policy = state.learner.actor(obs)
        return policy.mode() if greedy else policy.sample(key)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """The policy's chances of each numbered action; greedy: all on the likeliest."""
        return ac.probabilities(state.learner, obs, greedy)

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        gamma = ac.per_objective(self.gamma, 1)
        learner, seen = ac.look(self.networks, state.learner, rollout, gamma, self.trace)
        advantage = ac.standardised(seen.advantage[:, 0])
        learner, metrics = improve(self, learner, seen, advantage)
        return State(learner), metrics


def improve(
    settings: Any,
    learner: Learner,
    seen: Evidence,
    advantage: Float[Array, " B"],
    bend: Callable[[Actor], Any] | None = None,
) -> tuple[Learner, Metrics]:
    """One step of the actor and one of the critic.

    `settings` is the algorithm itself, `A2C` or `LA2C`. `bend` is added to the actor's direction: LA2C's second order.
    """

    bonus = settings.entropy(learner.time)

    def loss(actor: Actor) -> tuple[Array, Metrics]:
        policy = actor(seen.obs)
        gain = jnp.mean(policy.log_prob(seen.action) * advantage)
        entropy = jnp.mean(policy.entropy())
        return -gain - bonus * entropy, {"surrogate": gain, "entropy": entropy}

    gradient, metrics = jax.grad(loss, has_aux=True)(learner.actor)
    if bend is not None:
        gradient = jax.tree.map(jnp.subtract, gradient, bend(learner.actor))
    learner = ac.move_actor(settings.networks, learner, gradient, settings.rate(learner.time))
    learner, losses = ac.move_critic(settings.networks, learner, seen, settings.critic_rate(learner.time))
    divergence = jnp.mean(learner.actor(seen.obs).kl(seen.policy))
    return learner, metrics | {"critic_loss": losses, "kl": divergence}
