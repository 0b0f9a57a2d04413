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
from lexrl.algorithms.actor_critic import Agent, Batch
from lexrl.algorithms.ppo import check_minibatches, surrogate
from lexrl.dual import Dual
from lexrl.networks import Actor, Networks
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.tolerance import Absolute, Tolerances, as_tolerance
from lexrl.types import Metrics, Spec, Transition


class State(NamedTuple):
    """The networks, and where each objective stands."""

    agent: Agent
    dual: dual.State


class Projection(eqx.Module):
    """PPO with lexicographically projected gradients."""

    num_envs: int = eqx.field(static=True, default=16)
    """Worlds side by side."""
    num_steps: int = eqx.field(static=True, default=64)
    """Steps of each world between updates."""
    num_epochs: int = eqx.field(static=True, default=4)
    """How often each transition is used."""
    num_minibatches: int = eqx.field(static=True, default=4)
    """Parts a rollout is cut into; each makes a gradient step."""
    gamma: tuple[float, ...] | float = 0.99
    """Discount: one for all objectives, or one each."""
    gae_lambda: float = 0.95
    """Lambda of the advantages: 0 trusts the critic, 1 the returns."""
    learning_rate: Schedule = eqx.field(converter=as_schedule, default=Constant(1e-3))
    """The actor's step size, by the number of updates."""
    critic_learning_rate: Schedule = eqx.field(converter=named("critic_rate"), default=Constant(1e-3))
    """The critic's step size."""
    clip_range: float = 0.2
    """How far the ratio may go from 1."""
    tolerance: Tolerances = eqx.field(converter=as_tolerance, default=Absolute(0.1))
    """What an objective's return may lose for the next one: one, or one each."""
    dual: Dual = Dual()
    """How levels are watched; its prices are not used."""
    networks: Networks = Networks()

    def __check_init__(self):
        validation.require_ranges(self)
        validation.require_choices(self)
        check_minibatches(self.num_steps, self.num_envs, self.num_minibatches, self.num_epochs)
        validation.require_plain_tolerance(self.tolerance)

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
        agent, seen = ac.look(self.networks, state.agent, rollout, gamma, self.gae_lambda)
        each = seen.advantage
        seen = seen._replace(advantage=(each - each.mean(axis=0)) / (each.std(axis=0) + 1e-8))
        wanting = self.dual.short(state.dual, self.tolerance)
        turn = wanting & (jnp.cumsum(wanting) == 1)
        guarded = self.dual.short(state.dual, most(self.tolerance))

        def step(agent: Agent, rows: Array) -> tuple[Agent, Metrics]:
            part = jax.tree.map(lambda leaf: leaf[rows], seen.rows())
            gradients, entropy = self._gradients(agent.actor, part)
            weights = lex.projection_weights(gram(gradients), turn, guarded)
            direction = jax.tree.map(lambda leaf: -jnp.tensordot(weights, leaf, axes=1), gradients)
            agent = ac.move_actor(self.networks, agent, direction, self.learning_rate(agent.time))
            agent, losses = ac.move_critic(self.networks, agent, part, self.critic_learning_rate(agent.time))
            return agent, {"gradient_weight": weights, "entropy": entropy, "value_loss": losses}

        rows = networks.minibatches(key, each.shape[0], self.num_epochs, self.num_minibatches)
        agent, metrics = jax.lax.scan(step, agent, rows)
        metrics = jax.tree.map(lambda leaf: leaf.mean(axis=0), metrics)
        after = self.dual.observe(state.dual, dual.from_episodes(seen.episode_stats), self.tolerance)
        told = dual.metrics(after, metrics["gradient_weight"])
        del told["multiplier"]
        return State(agent, after), metrics | told | {"approx_kl": jnp.mean(agent.actor(seen.obs).kl(seen.policy))}

    def _gradients(self, actor: Actor, seen: Batch) -> tuple[Any, Array]:
        """The gradient of every objective's surrogate, leading axis M; and the policy's entropy."""

        def gain(actor: Actor, advantage: Float[Array, " B"]) -> tuple[Array, Array]:
            policy = actor(seen.obs)
            ratio = jnp.exp(policy.log_prob(seen.action) - seen.log_prob)
            return surrogate("clip", self.clip_range, ratio, advantage), jnp.mean(policy.entropy())

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
