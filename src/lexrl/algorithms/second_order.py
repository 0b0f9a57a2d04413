"""The paper's LPPO and LA2C, which also keep converged objectives at a stationary point, by second-order multipliers.

Each Lagrangian `L_i` additionally constrains the converged objectives j < i to `grad K_j = 0`. This adds `nu_j . grad
K_j`, whose gradient is the Hessian of `K_j` times `nu_j`:

    theta <- theta + grad sum_i c_i K_i(theta) + sum_j (sum_{i>j} beta_i) H_j nu_j
    nu_j  <- nu_j - eta grad K_j                                                      shortened to length 1

`nu_j` has the shape of the actor's parameters. Everything else is as in `paper_lppo` and `paper_la2c`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from lexrl import convergence, dual_ascent
from lexrl.algorithms import a2c, actor_critic, paper_la2c, paper_lppo, ppo, validation
from lexrl.algorithms.actor_critic import Agent, Batch
from lexrl.algorithms.ppo import Surrogate
from lexrl.convergence import Convergence
from lexrl.dual_ascent import DualAscent, gradient_weights
from lexrl.networks import Actor, Networks
from lexrl.reprs import short_repr
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.tolerance import Absolute, Tolerances, as_tolerance
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts

Objectives = Callable[[Any], Float[Array, " M"]]
"""`K [M]` as a function of the actor."""


class LPPOState(NamedTuple):
    """As PaperLPPO's, and the second-order multipliers."""

    agent: Agent
    kappa: Float[Array, ""]
    convergence: convergence.State
    multipliers: dual_ascent.State
    nu: Actor
    """One direction for each objective, leading axis M."""


class LPPOSecondOrder(eqx.Module):
    """The paper's LPPO with second-order multipliers."""

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
    surrogate: Surrogate = eqx.field(static=True, default="clip")
    """How the policy is kept close to the old one: by clipping the ratio, or by a KL penalty."""
    clip_range: float = 0.2
    """Clip the probability ratio to 1 plus or minus this."""
    kl_target: float = 0.01
    """Target of the KL divergence per update, to which the penalty is adapted."""
    ent_coef: Schedule = eqx.field(converter=named("ent_coef"), default=Constant(0.0), metadata=counts("updates"))
    """Coefficient of the entropy bonus, relative to the normalized advantage; may be a schedule over the updates."""
    tolerance: Tolerances = eqx.field(converter=as_tolerance, default=Absolute(0.1))
    """Loss of return that is acceptable in favor of less important objectives: one number for all objectives, or one
    each."""
    return_estimate: paper_lppo.ReturnEstimate = eqx.field(static=True, default="episodes")
    """Estimate returns from finished episodes, from the critic where episodes begin, or from episodes plus the change
    that the surrogate predicts for the last gradient steps."""
    discounted_states: bool = eqx.field(static=True, default=False)
    """Weight the t-th step of an episode by gamma^t, as the discounted state distribution of the theory does."""
    normalize_advantage: bool = eqx.field(static=True, default=True)
    """Normalize the weights to a sum of 1 and the combined advantage to a standard deviation of 1; the theory uses
    neither."""
    convergence: Convergence = Convergence()
    multipliers: DualAscent = DualAscent()
    networks: Networks = Networks(normalize_observations=False)

    __repr__ = short_repr

    def __check_init__(self):
        validation.require_in_unit_interval(gamma=self.gamma)
        paper_lppo.check(self, get_args(paper_lppo.ReturnEstimate))

    def init(self, spec: Spec, key: Array) -> LPPOState:
        m = len(spec.objectives)
        validation.require_per_objective(m, gamma=self.gamma, tolerance=self.tolerance)
        self.multipliers.check(m)
        agent = actor_critic.init_agent(self.networks, spec, key, self.num_envs)
        return LPPOState(
            agent, jnp.float32(1.0), self.convergence.init(m), self.multipliers.init(m), init(m, agent.actor)
        )

    act = actor_critic.act
    probabilities = actor_critic.probabilities

    def update(self, state: LPPOState, rollout: Transition, key: Array) -> tuple[LPPOState, Metrics]:
        agent, batch = actor_critic.lexicographic_advantages(self, state.agent, rollout)
        active = self.convergence.active(state.convergence)
        raw = self.multipliers.weights(state.multipliers, active, agent.num_updates)  # c_i
        weights, advantage, scale = actor_critic.combine(raw, batch.advantage, self.normalize_advantage)
        later = later_rates(self.multipliers.beta_at(active, agent.num_updates))
        later = later / raw.sum() if self.normalize_advantage else later

        def term(actor: Actor, part: Batch, gradient: Any) -> Actor:
            return gradient_term(later, state.nu, lambda actor: paper_lppo.surrogates(actor, part) / scale, actor)

        kappa = weights.sum() * state.kappa
        agent, kl, metrics = ppo.epochs(self, agent, batch, advantage, kappa, key, gradient_term=term)
        sample = paper_lppo.estimate_returns(self, agent, batch)
        convergence, progress = self.convergence.update(state.convergence, sample, self.tolerance)  # J_j, k_j
        multipliers = self.multipliers.update(state.multipliers, progress)  # lambda_j
        eta = self.multipliers.eta_at(convergence.converged, progress.num_updates)
        nu = update(
            state.nu, eta, convergence.converged, lambda actor: paper_lppo.surrogates(actor, batch) / scale, agent.actor
        )
        kappa = ppo.adapt_penalty(state.kappa, kl, self.kl_target)
        metrics |= self.convergence.metrics(convergence) | self.multipliers.metrics(multipliers, weights)
        return LPPOState(agent, kappa, convergence, multipliers, nu), metrics


class LA2CState(NamedTuple):
    """As PaperLA2C's, and the second-order multipliers."""

    agent: Agent
    convergence: convergence.State
    multipliers: dual_ascent.State
    nu: Actor
    """One direction for each objective, leading axis M."""


class LA2CSecondOrder(eqx.Module):
    """The paper's LA2C with second-order multipliers."""

    num_envs: int = eqx.field(static=True, default=16)
    """Number of parallel environments."""
    num_steps: int = eqx.field(static=True, default=16)
    """Steps of each environment between updates."""
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
    ent_coef: Schedule = eqx.field(converter=named("ent_coef"), default=Constant(0.0), metadata=counts("updates"))
    """Coefficient of the entropy bonus, relative to the normalized advantage; may be a schedule over the updates."""
    tolerance: Tolerances = eqx.field(converter=as_tolerance, default=Absolute(0.1))
    """Loss of return that is acceptable in favor of less important objectives: one number for all objectives, or one
    each."""
    return_estimate: paper_la2c.ReturnEstimate = eqx.field(static=True, default="episodes")
    """Estimate returns from finished episodes, or from the critic where episodes begin."""
    discounted_states: bool = eqx.field(static=True, default=False)
    """Weight the t-th step of an episode by gamma^t, as the discounted state distribution of the theory does."""
    normalize_advantage: bool = eqx.field(static=True, default=True)
    """Normalize the weights to a sum of 1 and the combined advantage to a standard deviation of 1; the theory uses
    neither."""
    convergence: Convergence = Convergence()
    multipliers: DualAscent = DualAscent()
    networks: Networks = Networks(normalize_observations=False)

    __repr__ = short_repr

    def __check_init__(self):
        validation.require_in_unit_interval(gamma=self.gamma)
        validation.require_choice(get_args(paper_la2c.ReturnEstimate), return_estimate=self.return_estimate)
        paper_la2c.check(self)

    def init(self, spec: Spec, key: Array) -> LA2CState:
        m = len(spec.objectives)
        validation.require_per_objective(m, gamma=self.gamma, tolerance=self.tolerance)
        self.multipliers.check(m)
        agent = actor_critic.init_agent(self.networks, spec, key, self.num_envs)
        return LA2CState(agent, self.convergence.init(m), self.multipliers.init(m), init(m, agent.actor))

    act = actor_critic.act
    probabilities = actor_critic.probabilities

    def update(self, state: LA2CState, rollout: Transition, key: Array) -> tuple[LA2CState, Metrics]:
        agent, batch = actor_critic.lexicographic_advantages(self, state.agent, rollout)
        active = self.convergence.active(state.convergence)
        raw = self.multipliers.weights(state.multipliers, active, agent.num_updates)  # c_i
        weights, advantage, scale = actor_critic.combine(raw, batch.advantage, self.normalize_advantage)
        later = later_rates(self.multipliers.beta_at(active, agent.num_updates))
        later = later / raw.sum() if self.normalize_advantage else later

        def objectives(actor: Actor) -> Float[Array, " M"]:
            return jnp.mean(actor(batch.obs).log_prob(batch.action)[:, None] * batch.advantage / scale, axis=0)

        def term(actor: Actor) -> Actor:
            return gradient_term(later, state.nu, objectives, actor)

        agent, metrics = a2c.step(self, agent, batch, advantage, term)
        sample = paper_la2c.estimate_returns(self, batch)
        convergence, progress = self.convergence.update(state.convergence, sample, self.tolerance)  # J_j, k_j
        multipliers = self.multipliers.update(state.multipliers, progress)  # lambda_j
        eta = self.multipliers.eta_at(convergence.converged, progress.num_updates)
        nu = update(state.nu, eta, convergence.converged, objectives, agent.actor)
        metrics |= self.convergence.metrics(convergence) | self.multipliers.metrics(multipliers, weights)
        return LA2CState(agent, convergence, multipliers, nu), metrics


def init(num_objectives: int, actor: Any) -> Any:
    """`nu_j = 0`"""
    return jax.tree.map(lambda leaf: jnp.zeros((num_objectives, *leaf.shape)), actor)


def later_rates(beta: Float[Array, " M"]) -> Float[Array, " M"]:
    """`sum_{i>j} beta_i`"""
    return gradient_weights(beta, jnp.ones_like(beta)) - beta


def gradient_term(later: Float[Array, " M"], nu: Any, objectives: Objectives, actor: Any) -> Any:
    """`sum_j (sum_{i>j} beta_i) H_j nu_j`, with `later` the sums of the betas."""
    _, products = slopes(objectives, actor, nu)
    return jax.tree.map(lambda leaf: jnp.tensordot(later, leaf, axes=1), products)


def update(nu: Any, eta: Any, converged: Bool[Array, " M"], objectives: Objectives, actor: Any) -> Any:
    """`nu_j <- nu_j - eta grad K_j` for converged j but the last, at most of length 1; else 0."""
    gradients, _ = slopes(objectives, actor, nu)
    constrains = converged & (jnp.arange(converged.shape[0]) < converged.shape[0] - 1)

    def move(direction: Array, gradient: Array) -> Array:
        return jnp.where(constrains.reshape(-1, *[1] * (direction.ndim - 1)), direction - eta * gradient, 0.0)

    moved = jax.tree.map(move, nu, gradients)
    squares = [jnp.sum(leaf.reshape(leaf.shape[0], -1) ** 2, axis=1) for leaf in jax.tree.leaves(moved)]
    shrink = 1 / jnp.maximum(1.0, jnp.sqrt(jnp.stack(squares).sum(axis=0)))
    return jax.tree.map(lambda leaf: leaf * shrink.reshape(-1, *[1] * (leaf.ndim - 1)), moved)


def slopes(objectives: Objectives, parameters: Any, directions: Any) -> tuple[Any, Any]:
    """The gradient of each `K_j`, and the product of its Hessian with the j-th direction; leading axis j."""
    m = jax.tree.leaves(directions)[0].shape[0]

    def one(pick: Array, direction: Any) -> tuple[Any, Any]:
        return jax.jvp(jax.grad(lambda theta: objectives(theta) @ pick), (parameters,), (direction,))

    return jax.vmap(one)(jnp.eye(m), directions)
