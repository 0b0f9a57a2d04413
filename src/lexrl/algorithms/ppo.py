"""PPO (Schulman et al. 2017): several steps on one rollout, held near the policy that collected it. One objective.

    maximise  E[ min(rho A, clip(rho, 1 - clip, 1 + clip) A) ]        rho = pi(a | s) / pi_old(a | s)
    or        E[ rho A ] - kappa KL(pi || pi_old)                      kappa adapted to a wanted divergence

plus a bonus for entropy; the advantage A is standardised over the rollout.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl import networks
from lexrl.algorithms import actor_critic as ac
from lexrl.algorithms import validation
from lexrl.algorithms.actor_critic import Agent, Batch
from lexrl.errors import InputError
from lexrl.networks import Actor, Networks
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.types import Metrics, Spec, Transition

Surrogate = Literal["clip", "kl_penalty"]


class State(NamedTuple):
    """The networks, and the penalty's coefficient."""

    agent: Agent
    kappa: Float[Array, ""]


class PPO(eqx.Module):
    """Proximal policy optimisation of one objective."""

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
    networks: Networks = Networks()

    def __check_init__(self):
        validation.require_ranges(self)
        validation.require_choices(self)
        check_minibatches(self.num_steps, self.num_envs, self.num_minibatches, self.num_epochs)

    def init(self, spec: Spec, key: Array) -> State:
        validation.require_one_objective("PPO", "LPPO", spec)
        return State(ac.init_agent(self.networks, spec, key, self.num_envs), jnp.float32(1.0))

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
        agent, divergence, metrics = improve(self, agent, state.kappa, seen, advantage, key)
        return State(agent, adapted(state.kappa, divergence, self.kl_target)), metrics


def improve(
    settings: Any,
    agent: Agent,
    kappa: Array,
    seen: Batch,
    advantage: Float[Array, " B"],
    key: Array,
    bend: Callable[[Actor, Batch], Any] | None = None,
) -> tuple[Agent, Array, Metrics]:
    """Several epochs of minibatches on a rollout; also how far the policy went from the one that collected it.

    `settings` is the algorithm itself, `PPO` or `LPPO`. `bend` is added to the direction the actor moves in: the
    second-order term of LPPO.
    """

    bonus = settings.ent_coef(agent.time)

    def actor_loss(actor: Actor, seen: Batch, advantage: Array) -> tuple[Array, Metrics]:
        policy = actor(seen.obs)
        ratio = jnp.exp(policy.log_prob(seen.action) - seen.log_prob)
        gain = surrogate(settings.surrogate, settings.clip_range, ratio, advantage)
        entropy = jnp.mean(policy.entropy())
        penalty = kappa * jnp.mean(policy.kl(seen.policy)) if settings.surrogate == "kl_penalty" else 0.0
        return penalty - gain - bonus * entropy, {"surrogate": gain, "entropy": entropy}

    def step(agent: Agent, rows: Array) -> tuple[Agent, Metrics]:
        part, advantages = jax.tree.map(lambda leaf: leaf[rows], (seen.rows(), advantage))
        gradient, metrics = jax.grad(actor_loss, has_aux=True)(agent.actor, part, advantages)
        if bend is not None:
            gradient = jax.tree.map(jnp.subtract, gradient, bend(agent.actor, part))
        agent = ac.move_actor(settings.networks, agent, gradient, settings.learning_rate(agent.time))
        agent, losses = ac.move_critic(settings.networks, agent, part, settings.critic_learning_rate(agent.time))
        return agent, metrics | {"value_loss": losses}

    rows = networks.minibatches(key, advantage.shape[0], settings.num_epochs, settings.num_minibatches)
    agent, metrics = jax.lax.scan(step, agent, rows)
    divergence = jnp.mean(agent.actor(seen.obs).kl(seen.policy))
    return agent, divergence, jax.tree.map(lambda leaf: leaf.mean(axis=0), metrics) | {"approx_kl": divergence}


def surrogate(kind: Surrogate, clip: Any, ratio: Float[Array, " B"], advantage: Float[Array, " B"]) -> Float[Array, ""]:
    """`E[rho A]`, or its pessimistic bound with the ratio clipped."""
    if kind == "kl_penalty":
        return jnp.mean(ratio * advantage)
    return jnp.mean(jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage))


def adapted(kappa: Array, divergence: Array, wanted: Any) -> Array:
    """The penalty's coefficient after an update: twice as large if the policy went too far, half if not far enough."""
    kappa = jnp.where(divergence > 1.5 * wanted, 2 * kappa, jnp.where(divergence < wanted / 1.5, kappa / 2, kappa))
    return jnp.clip(kappa, 1e-4, 1e4)


def check_minibatches(rollout: int, worlds: int, minibatches: int, epochs: int) -> None:
    """Complain about a rollout that minibatches do not divide, or that is too long to shuffle."""
    validation.require_positive(num_steps=rollout, num_envs=worlds, num_minibatches=minibatches, num_epochs=epochs)
    networks.require_shuffled(rollout * worlds)
    if rollout * worlds % minibatches:
        raise InputError(
            f"{rollout} steps in {worlds} worlds make {rollout * worlds} transitions, which {minibatches} minibatches "
            f"do not divide; change one of them."
        )
