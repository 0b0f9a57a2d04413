"""Gradient projection: PPO whose less important objectives move the policy only where no more important one loses.

    theta <- theta + rate P_i(g_i)        P_i: onto { d : g_j . d >= 0 for every j < i that must be guarded }

with `g_i` the gradient of PPO's surrogate of objective i, the first that wants more. An objective wants more until it
has settled, and whenever it is below its floor by more than its tolerance (`lexrl.dual`); the others wait: gradients
are noisy, and what a less important one does meanwhile to a policy that is nearly certain takes long to undo. Once it
has settled it leaves its slack to the others, and is guarded when they have used most of it. There are no prices that
must find their size. After Tercan & Prabhu's lexicographic projection (2024).
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl import dual, lex, networks
from lexrl.algorithms import actor_critic as ac
from lexrl.algorithms import validation
from lexrl.algorithms.actor_critic import Evidence, Learner, Networks
from lexrl.algorithms.ppo import check_minibatches, surrogate
from lexrl.dual import Dual
from lexrl.networks import Actor
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.tolerance import Absolute, Tolerances, as_tolerance
from lexrl.types import Metrics, Spec, Transition


class State(NamedTuple):
    """The networks, and where each objective stands."""

    learner: Learner
    dual: dual.State


class Projection(eqx.Module):
    """PPO with lexicographically projected gradients."""

    worlds: int = eqx.field(static=True, default=16)
    """Worlds side by side."""
    rollout: int = eqx.field(static=True, default=64)
    """Steps of each world between updates."""
    epochs: int = eqx.field(static=True, default=4)
    """How often each transition is used."""
    minibatches: int = eqx.field(static=True, default=4)
    """Parts a rollout is cut into; each makes a gradient step."""
    gamma: tuple[float, ...] | float = 0.99
    """Discount: one for all objectives, or one each."""
    trace: float = 0.95
    """Lambda of the advantages: 0 trusts the critic, 1 the returns."""
    rate: Schedule = eqx.field(converter=as_schedule, default=Constant(1e-3))
    """The actor's step size, by the number of updates."""
    critic_rate: Schedule = eqx.field(converter=named("critic_rate"), default=Constant(1e-3))
    """The critic's step size."""
    clip: float = 0.2
    """How far the ratio may go from 1."""
    tolerance: Tolerances = eqx.field(converter=as_tolerance, default=Absolute(0.1))
    """What an objective's return may lose for the next one: one, or one each."""
    dual: Dual = Dual()
    """How levels are watched; its prices are not used."""
    networks: Networks = Networks()

    def __check_init__(self):
        validation.require_ranges(self)
        validation.require_choices(self)
        check_minibatches(self.rollout, self.worlds, self.minibatches, self.epochs)
        validation.require_plain_tolerance(self.tolerance)

    def init(self, spec: Spec, key: Array) -> State:
        m = len(spec.objectives)
        validation.require_lengths(self, m)
        self.dual.check(m)
        learner = self.networks.start(spec, key, self.worlds)
        return State(learner, self.dual.start(m, learner.actor))

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        policy = state.learner.actor(obs)
        return policy.mode() if greedy else policy.sample(key)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """The policy's chances of each numbered action; greedy: all on the likeliest."""
        return ac.probabilities(state.learner, obs, greedy)

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        gamma = ac.per_objective(self.gamma, rollout.reward.shape[-1])
        learner, seen = ac.look(self.networks, state.learner, rollout, gamma, self.trace)
        each = seen.advantage
        seen = seen._replace(advantage=(each - each.mean(axis=0)) / (each.std(axis=0) + 1e-8))
        wanting = self.dual.short(state.dual, self.tolerance)
        turn = wanting & (jnp.cumsum(wanting) == 1)
        guarded = self.dual.short(state.dual, most(self.tolerance))

        def step(learner: Learner, rows: Array) -> tuple[Learner, Metrics]:
            part = jax.tree.map(lambda leaf: leaf[rows], seen.rows())
            gradients, entropy = self._gradients(learner.actor, part)
            weights = lex.projection_weights(gram(gradients), turn, guarded)
            direction = jax.tree.map(lambda leaf: -jnp.tensordot(weights, leaf, axes=1), gradients)
            learner = ac.move_actor(self.networks, learner, direction, self.rate(learner.time))
            learner, losses = ac.move_critic(self.networks, learner, part, self.critic_rate(learner.time))
            return learner, {"weight": weights, "entropy": entropy, "critic_loss": losses}

        rows = networks.minibatches(key, each.shape[0], self.epochs, self.minibatches)
        learner, metrics = jax.lax.scan(step, learner, rows)
        metrics = jax.tree.map(lambda leaf: leaf.mean(axis=0), metrics)
        after = self.dual.observe(state.dual, dual.from_episodes(seen.passage), self.tolerance)
        told = dual.metrics(after, metrics["weight"])
        del told["price"]
        return State(learner, after), metrics | told | {"kl": jnp.mean(learner.actor(seen.obs).kl(seen.policy))}

    def _gradients(self, actor: Actor, seen: Evidence) -> tuple[Any, Array]:
        """The gradient of every objective's surrogate, leading axis M; and the policy's entropy."""

        def gain(actor: Actor, advantage: Float[Array, " B"]) -> tuple[Array, Array]:
            policy = actor(seen.obs)
            ratio = jnp.exp(policy.log_prob(seen.action) - seen.log_prob)
            return surrogate("clipped", self.clip, ratio, advantage), jnp.mean(policy.entropy())

        gradients, entropy = jax.vmap(jax.grad(gain, has_aux=True), in_axes=(None, 1))(actor, seen.advantage)
        return gradients, entropy[0]


def most(tolerance: Tolerances) -> Tolerances:
    """Nine tenths of what may be lost."""
    share = Constant(0.9)
    return tuple(one * share for one in tolerance) if isinstance(tolerance, tuple) else tolerance * share


def gram(gradients: Any) -> Float[Array, "M M"]:
    """Inner products of gradients, from trees with leading axis M."""
    rows = jnp.concatenate([leaf.reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(gradients)], axis=1)
    return rows @ rows.T
