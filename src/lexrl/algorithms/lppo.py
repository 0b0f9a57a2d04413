"""LPPO: PPO for objectives in order of importance, one stage for each.

    maximize  E[ min(rho A, clip(rho, 1 - clip_range, 1 + clip_range) A) ]        A = sum_j w_j A_j / u_j

In stage s the advantage of objective s counts, and those of more important ones as much as their multipliers say, each
in its own unit: see `lexrl.multipliers` for the weights, `lexrl.stages` for what every objective must keep, and
`lexrl.algorithms.staged` for the policies that are kept on the way. With one objective this is PPO, to the last bit.

It differs from the paper's Algorithm 3 (`PaperLPPO`) in that objectives take turns instead of moving on separate time
scales, which need far more steps and rates chosen for the environment; that thresholds are confidence bounds instead of
running means; and that the policy handed over is chosen by fresh episodes.
"""

import math
from typing import NamedTuple, get_args

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl.algorithms import actor_critic, ppo, staged, validation
from lexrl.algorithms.actor_critic import Agent
from lexrl.algorithms.ppo import Surrogate
from lexrl.algorithms.staged import Course
from lexrl.multipliers import Multipliers
from lexrl.networks import Networks
from lexrl.reprs import short_repr
from lexrl.schedules import Constant, Schedule, as_schedule, named
from lexrl.stages import Stages
from lexrl.tolerance import Absolute, Tolerances, as_tolerance
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts


class State(NamedTuple):
    """The networks, the coefficient of the KL penalty, and where several objectives stand."""

    agent: Agent
    kappa: Float[Array, ""]
    course: Course | None


class LPPO(eqx.Module):
    """Lexicographic proximal policy optimization."""

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
    tolerance: Tolerances = eqx.field(converter=as_tolerance, default=Absolute(0.0))
    """Loss of return that is acceptable in favor of less important objectives: one number for all objectives, or one
    each."""
    mixture: bool = eqx.field(static=True, default=True)
    """Use the slack with a mixture of policies, one of which is drawn for each episode; otherwise the best single
    policy is kept."""
    limits: tuple[float, ...] | float = math.inf
    """Undiscounted return of each objective that is sufficient, as given by the order: `cost <= 10` is -10; infinite
    without a limit."""
    stages: Stages = Stages()
    multipliers: Multipliers = Multipliers()
    networks: Networks = Networks()

    __repr__ = short_repr

    def __check_init__(self):
        validation.require_in_unit_interval(gamma=self.gamma, gae_lambda=self.gae_lambda)
        validation.require_above_zero(clip_range=self.clip_range, kl_target=self.kl_target)
        validation.require_choice(get_args(Surrogate), surrogate=self.surrogate)
        ppo.check_minibatches(self.num_steps, self.num_envs, self.num_minibatches, self.num_epochs)

    def init(self, spec: Spec, key: Array) -> State:
        validation.require_per_objective(
            len(spec.objectives), gamma=self.gamma, tolerance=self.tolerance, limits=self.limits
        )
        agent = actor_critic.init_agent(self.networks, spec, key, self.num_envs)
        return State(agent, jnp.float32(1.0), staged.init(self, spec, agent, self.multipliers))

    act = staged.act
    probabilities = staged.probabilities
    num_candidates = staged.num_candidates
    candidate = staged.candidate
    first_returns = staged.first_returns
    num_columns = staged.num_columns
    mix = staged.mix
    begin = staged.begin
    weights = staged.mixture_weights
    component = staged.candidate
    describe_candidate = staged.describe_candidate
    is_sampled = staged.is_sampled

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        agent, batch = actor_critic.advantages(
            self.networks, state.agent, rollout, self.gamma, self.gae_lambda,
            allowed=staged.allowed(state.course, rollout.obs),
        )  # fmt: skip
        course, advantage, pace, weights = staged.combine(self, state.course, batch, agent.num_updates)
        agent, kl, metrics = ppo.epochs(self, agent, batch, advantage, state.kappa, key, pace=pace)
        course, agent, stage_metrics = staged.advance(self, course, agent, rollout, weights)
        return State(agent, ppo.adapt_penalty(state.kappa, kl, self.kl_target), course), metrics | stage_metrics
