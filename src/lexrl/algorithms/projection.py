"""Gradient projection: PPO whose less important objectives move the policy only where no more important one loses.

    theta <- theta + learning_rate P_i(g_i)        P_i: onto { d : g_j . d >= 0 for every j < i that must be guarded }

with `g_i` the gradient of PPO's surrogate of objective i, the first that is unsatisfied: it has not converged, or is
below its threshold by more than its tolerance (`lexrl.convergence`). The others wait: gradients are noisy, and what a
less important one meanwhile does to a nearly deterministic policy takes long to undo. A converged objective leaves its
slack to the others, and what it has beyond its limit, and is guarded once they have used most of it. There are no
multipliers whose size must be found. After Tercan & Prabhu's lexicographic projection (2024).
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from lexrl import convergence, nnls
from lexrl.algorithms import actor_critic, validation
from lexrl.algorithms.actor_critic import Agent, Batch
from lexrl.algorithms.ppo import check_minibatches, surrogate
from lexrl.convergence import Convergence, from_episodes
from lexrl.networks import Actor, Networks, minibatches
from lexrl.reprs import short_repr
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.tolerance import Absolute, Tolerances, as_tolerance
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts


class State(NamedTuple):
    """The networks, and where the objectives stand."""

    agent: Agent
    convergence: convergence.State


class Projection(eqx.Module):
    """PPO with lexicographically projected gradients."""

    num_envs: int = eqx.field(static=True, default=16)
    """Number of parallel environments."""
    num_steps: int = eqx.field(static=True, default=64)
    """Steps of each environment between updates."""
    num_epochs: int = eqx.field(static=True, default=4)
    """Number of passes over each rollout."""
    num_minibatches: int = eqx.field(static=True, default=4)
    """Number of minibatches, and so of gradient steps, per epoch."""
    gamma: tuple[float, ...] | float = 0.99
    """Discount factor: one number for all objectives, or one each."""
    gae_lambda: float = 0.95
    """Lambda of generalized advantage estimation: 0 relies on the critic, 1 on the returns."""
    learning_rate: Schedule = eqx.field(converter=as_schedule, default=Constant(1e-3), metadata=counts("updates"))
    """Learning rate of the actor: a number, or a schedule over the updates."""
    critic_learning_rate: Schedule = eqx.field(
        converter=named("critic_learning_rate"), default=Constant(1e-3), metadata=counts("updates")
    )
    """Learning rate of the critic: a number, or a schedule over the updates."""
    clip_range: float = 0.2
    """Clip the probability ratio to 1 plus or minus this."""
    tolerance: Tolerances = eqx.field(converter=as_tolerance, default=Absolute(0.1))
    """Loss of return that is acceptable in favor of less important objectives: one number for all objectives, or one
    each."""
    limits: tuple[float, ...] | float = math.inf
    """Undiscounted return of each objective that is sufficient, as given by the order: `cost <= 10` is -10; infinite
    without a limit."""
    convergence: Convergence = Convergence()
    networks: Networks = Networks()

    __repr__ = short_repr

    def __check_init__(self):
        validation.require_in_unit_interval(gamma=self.gamma, gae_lambda=self.gae_lambda)
        validation.require_above_zero(clip_range=self.clip_range)
        check_minibatches(self.num_steps, self.num_envs, self.num_minibatches, self.num_epochs)

    def init(self, spec: Spec, key: Array) -> State:
        m = len(spec.objectives)
        validation.require_per_objective(m, gamma=self.gamma, tolerance=self.tolerance, limits=self.limits)
        return State(actor_critic.init_agent(self.networks, spec, key, self.num_envs), self.convergence.init(m))

    act = actor_critic.act
    probabilities = actor_critic.probabilities

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        agent, batch = actor_critic.advantages(
            self.networks, state.agent, rollout, self.gamma, self.gae_lambda, limits=self.limits
        )
        each = batch.advantage
        batch = batch._replace(advantage=(each - each.mean(axis=0)) / (each.std(axis=0) + 1e-8))
        unsatisfied = self.convergence.unsatisfied(state.convergence, self.tolerance)
        first = unsatisfied & (jnp.cumsum(unsatisfied) == 1)
        guarded = self.convergence.unsatisfied(state.convergence, most(self.tolerance))

        def step(agent: Agent, rows: Array) -> tuple[Agent, Metrics]:
            part = jax.tree.map(lambda leaf: leaf[rows], batch.rows())
            gradients, entropy = self._gradients(agent.actor, part)
            weights = projection_weights(gram(gradients), first, guarded)
            direction = jax.tree.map(lambda leaf: -jnp.tensordot(weights, leaf, axes=1), gradients)
            rates = self.learning_rate(agent.num_updates), self.critic_learning_rate(agent.num_updates)
            agent = actor_critic.step_actor(self.networks, agent, direction, rates[0])
            agent, losses = actor_critic.step_critic(self.networks, agent, part, rates[1])
            return agent, {"gradient_weight": weights, "entropy": entropy, "value_loss": losses}

        rows = minibatches(key, each.shape[0], self.num_epochs, self.num_minibatches)
        agent, metrics = jax.lax.scan(step, agent, rows)
        metrics = jax.tree.map(lambda leaf: leaf.mean(axis=0), metrics)
        sample, limits = from_episodes(batch.episode_stats), actor_critic.per_objective(self.limits, each.shape[1])
        convergence, _ = self.convergence.update(state.convergence, sample, self.tolerance, limits)
        kl = jnp.mean(agent.actor(batch.obs).kl(batch.policy))
        return State(agent, convergence), metrics | self.convergence.metrics(convergence) | {"approx_kl": kl}

    def _gradients(self, actor: Actor, batch: Batch) -> tuple[Any, Array]:
        """The gradient of every objective's surrogate, leading axis M; and the policy's entropy."""

        def gain(actor: Actor, advantage: Float[Array, " B"]) -> tuple[Array, Array]:
            policy = actor(batch.obs)
            ratio = jnp.exp(policy.log_prob(batch.action) - batch.log_prob)
            return surrogate("clip", self.clip_range, ratio, advantage), jnp.mean(policy.entropy())

        gradients, entropy = jax.vmap(jax.grad(gain, has_aux=True), in_axes=(None, 1))(actor, batch.advantage)
        return gradients, entropy[0]


def most(tolerance: Tolerances) -> Tolerances:
    """Nine tenths of the tolerance."""
    share = Constant(0.9)
    return tuple(one * share for one in tolerance) if isinstance(tolerance, tuple) else tolerance * share


def gram(gradients: Any) -> Float[Array, "M M"]:
    """Inner products of gradients, from trees with leading axis M."""
    rows = jnp.concatenate([leaf.reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(gradients)], axis=1)
    return rows @ rows.T


def projection_weights(
    gram: Float[Array, "M M"], moves: Bool[Array, " M"], guarded: Bool[Array, " M"]
) -> Float[Array, " M"]:
    """The weight of each objective's gradient if a less important one may not decrease a more important one.

    From the inner products `gram[i, j] = g_i . g_j`: each objective that `moves` adds its gradient, projected onto the
    directions `d` with `g_j . d >= 0` for every more important `j` that is `guarded`. The projection is
    `g_i + sum_j mu_j g_j` with `mu >= 0` such that it is as short as possible (Moreau's decomposition of a cone and its
    polar): non-negative least squares. The sum of all projections is `sum_i w_i g_i`; this is `w`.
    """
    indices = jnp.arange(gram.shape[-1])

    def project(i: Array) -> Float[Array, " M"]:
        added = nnls.weights(gram, gram[i], jnp.sqrt(gram[i, i]), guarded & (indices < i))
        return jnp.where(indices == i, 1.0, added)

    return jnp.sum(jnp.where(moves[:, None], jax.vmap(project)(indices), 0.0), axis=0)
