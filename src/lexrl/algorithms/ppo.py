"""PPO (Schulman et al. 2017) for one objective: several epochs on a rollout, close to the policy that collected it.

    maximize  E[ min(rho A, clip(rho, 1 - clip_range, 1 + clip_range) A) ]        rho = pi(a | s) / pi_old(a | s)
    or        E[ rho A ] - kappa KL(pi || pi_old)                                  kappa adapted to `kl_target`

plus an entropy bonus; the advantage A is normalized over the rollout.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl.algorithms import actor_critic, validation
from lexrl.algorithms.actor_critic import AS_SET, Agent, Batch, Pace, Prediction
from lexrl.errors import InputError, require_whole
from lexrl.networks import Actor, Networks, minibatches, require_shuffled
from lexrl.reprs import short_repr
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts

Surrogate = Literal["clip", "kl_penalty"]


class State(NamedTuple):
    """The networks, and the coefficient of the KL penalty."""

    agent: Agent
    kappa: Float[Array, ""]


class PPO(eqx.Module):
    """Proximal policy optimization for one objective."""

    num_envs: int = eqx.field(static=True, default=16)
    """Number of parallel environments."""
    num_steps: int = eqx.field(static=True, default=64)
    """Steps of each environment between updates."""
    num_epochs: int = eqx.field(static=True, default=4)
    """Number of passes over each rollout."""
    num_minibatches: int = eqx.field(static=True, default=4)
    """Number of minibatches, and so of gradient steps, per epoch."""
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
    surrogate: Surrogate = eqx.field(static=True, default="clip")
    """How the policy is kept close to the old one: by clipping the ratio, or by a KL penalty."""
    clip_range: float = 0.2
    """Clip the probability ratio to 1 plus or minus this."""
    kl_target: float = 0.01
    """Target of the KL divergence per update, to which the penalty is adapted."""
    ent_coef: Schedule = eqx.field(converter=named("ent_coef"), default=Constant(0.0), metadata=counts("updates"))
    """Coefficient of the entropy bonus, relative to the normalized advantage; may be a schedule over the updates."""
    networks: Networks = Networks()

    __repr__ = short_repr

    def __check_init__(self):
        validation.require_in_unit_interval(gamma=self.gamma, gae_lambda=self.gae_lambda)
        validation.require_above_zero(clip_range=self.clip_range, kl_target=self.kl_target)
        validation.require_choice(get_args(Surrogate), surrogate=self.surrogate)
        check_minibatches(self.num_steps, self.num_envs, self.num_minibatches, self.num_epochs)

    def init(self, spec: Spec, key: Array) -> State:
        validation.require_one_objective("PPO", "LPPO", spec)
        return State(actor_critic.init_agent(self.networks, spec, key, self.num_envs), jnp.float32(1.0))

    act = actor_critic.act
    probabilities = actor_critic.probabilities

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        agent, batch = actor_critic.advantages(self.networks, state.agent, rollout, self.gamma, self.gae_lambda)
        advantage = actor_critic.normalize(batch.advantage[:, 0])
        agent, kl, metrics = epochs(self, agent, batch, advantage, state.kappa, key)
        return State(agent, adapt_penalty(state.kappa, kl, self.kl_target)), metrics


def epochs(
    algorithm: Any,
    agent: Agent,
    batch: Batch,
    advantage: Float[Array, " B"],
    kappa: Array,
    key: Array,
    *,
    gradient_term: Callable[[Actor, Batch, Any], Any] | None = None,
    prediction: Prediction = actor_critic.predict_values,
    pace: Pace = AS_SET,
) -> tuple[Agent, Array, Metrics]:
    """Epochs of minibatches with the settings of `algorithm`; also the KL divergence from the old policy.

    `gradient_term`, of the actor, a minibatch and the gradient of the loss, is added to the direction in which the
    actor moves; `prediction` is what the critic is trained on.
    """
    networks, ent_coef = algorithm.networks, algorithm.ent_coef(agent.num_updates) + pace.ent_coef

    def actor_loss(actor: Actor, batch: Batch, advantage: Array) -> tuple[Array, Metrics]:
        policy = batch.policy_of(actor)
        ratio = jnp.exp(policy.log_prob(batch.action) - batch.log_prob)
        gain = surrogate(algorithm.surrogate, algorithm.clip_range, ratio, advantage)
        entropy = jnp.mean(policy.entropy())
        penalty = kappa * jnp.mean(policy.kl(batch.policy)) if algorithm.surrogate == "kl_penalty" else 0.0
        return penalty - gain - ent_coef * entropy, {"surrogate": gain, "entropy": entropy}

    def step(agent: Agent, rows: Array) -> tuple[Agent, Metrics]:
        part, advantages = jax.tree.map(lambda leaf: leaf[rows], (batch.rows(), advantage))
        gradient, metrics = jax.grad(actor_loss, has_aux=True)(agent.actor, part, advantages)
        if gradient_term is not None:
            gradient = jax.tree.map(jnp.subtract, gradient, gradient_term(agent.actor, part, gradient))
        learning_rate = algorithm.learning_rate(agent.num_updates) * pace.rate
        agent = actor_critic.step_actor(networks, agent, gradient, learning_rate)
        critic_learning_rate = algorithm.critic_learning_rate(agent.num_updates) * pace.critic_rate
        agent, losses = actor_critic.step_critic(networks, agent, part, critic_learning_rate, prediction)
        return agent, metrics | {"value_loss": losses}

    rows = minibatches(key, advantage.shape[0], algorithm.num_epochs, algorithm.num_minibatches)
    agent, metrics = jax.lax.scan(step, agent, rows)
    kl = jnp.mean(batch.policy_of(agent.actor).kl(batch.policy))
    return agent, kl, jax.tree.map(lambda leaf: leaf.mean(axis=0), metrics) | {"approx_kl": kl}


def surrogate(
    kind: Surrogate, clip_range: Any, ratio: Float[Array, " B"], advantage: Float[Array, " B"]
) -> Float[Array, ""]:
    """`E[rho A]`, or its pessimistic bound with the ratio clipped."""
    if kind == "kl_penalty":
        return jnp.mean(ratio * advantage)
    clipped = jnp.clip(ratio, 1 - clip_range, 1 + clip_range)
    return jnp.mean(jnp.minimum(ratio * advantage, clipped * advantage))


def adapt_penalty(kappa: Array, kl: Array, kl_target: Any) -> Array:
    """Double the coefficient of the penalty if the policy moved too far, halve it if not far enough."""
    kappa = jnp.where(kl > 1.5 * kl_target, 2 * kappa, jnp.where(kl < kl_target / 1.5, kappa / 2, kappa))
    return jnp.clip(kappa, 1e-4, 1e4)


def check_minibatches(num_steps: int, num_envs: int, num_minibatches: int, num_epochs: int) -> None:
    """Raise an error if minibatches do not divide a rollout, or a rollout is too long to shuffle."""
    validation.require_positive(
        num_steps=num_steps, num_envs=num_envs, num_minibatches=num_minibatches, num_epochs=num_epochs
    )
    require_whole(1, **{"num_epochs x num_minibatches": num_epochs * num_minibatches})
    size = num_steps * num_envs
    require_shuffled(size)
    if size % num_minibatches:
        raise InputError(
            f"{num_steps} steps of {num_envs} environments make {size} transitions, which {num_minibatches} "
            "minibatches do not divide; change one of them."
        )
