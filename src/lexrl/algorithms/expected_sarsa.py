"""Lexicographic Expected SARSA: `bootstrap_i = sum_a pi(a | s') Q_i(s', a)`, with pi the exploring policy.

With exploration that is not meant to vanish ('prefixes'), pi is the greedy policy.
"""

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from lexrl import lex
from lexrl.algorithms import tabular, validation
from lexrl.algorithms.exploration import Exploration, Prefixes, as_exploration
from lexrl.algorithms.tabular import State, StateValues
from lexrl.guard import Guard, as_guard
from lexrl.reprs import short_repr
from lexrl.schedules import Linear, OfRun, Power, Schedule, named
from lexrl.tolerance import Absolute, Evidence, Tolerances, as_evidence, as_tolerance
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts


class ExpectedSarsa(eqx.Module):
    """Lexicographic Expected SARSA."""

    gamma: tuple[float, ...] | float = 0.99
    """Discount factor: one number for all objectives, or one each."""
    alpha: Schedule = eqx.field(converter=named("alpha"), default=Power(0.8), metadata=counts("visits"))
    """Learning rate, in the visits n to a state and action: 0.01, n^-0.7, 10/n, 1 to 0.01 in 1e5."""
    exploration: Exploration = eqx.field(converter=as_exploration, default=Prefixes())
    """How actions are chosen during training: 'prefixes 1 to 0.3 in 50%' explores within every prefix of the order, by
    the number of updates; 'epsilon 0.05' or 'softmax 0.1', in the visits n to a state."""
    tolerance: Tolerances = eqx.field(converter=as_tolerance, default=Absolute(0.0), metadata=counts("updates"))
    """What an objective may lose for the next one: 0.01, 5% of the best value, '0.01 + 5%'; one, or one each. With a
    guard it bounds what the return loses, else the value of every action."""
    evidence: Evidence | None = eqx.field(converter=as_evidence, default=Evidence())
    """What the estimates cannot tell apart is added to the tolerance: a number of standard errors, or 'none'."""
    guard: Guard | None = eqx.field(converter=as_guard, default=Guard())
    """Compare the returns of the policy with those of its prefixes, and give away less where it loses more than the
    tolerance: a number of standard errors, or 'none'."""
    min_alpha: Schedule = eqx.field(
        converter=named("min_alpha"), default=Linear(0.1, 0.0, OfRun(0.6)), metadata=counts("updates")
    )
    """Lower bound of the learning rate, by the number of updates: early estimates are forgotten, late ones averaged."""
    initial_q: tuple[float, ...] | float = 0.0
    """Initial Q-values: one number for all objectives, or one each; high values encourage exploration."""

    __repr__ = short_repr

    def __check_init__(self):
        validation.require_in_unit_interval(gamma=self.gamma)

    @property
    def num_envs(self) -> int:
        return 1

    @property
    def num_steps(self) -> int:
        return 1

    def init(self, spec: Spec, key: Array) -> State:
        return tabular.init(self, spec)

    act = tabular.act
    probabilities = tabular.probabilities
    update = tabular.update
    sets = tabular.sets
    prefix = tabular.prefix

    def learn(self, state: State, transition: Transition, key: Array) -> tuple[State, Metrics]:
        def bootstrap(ahead: StateValues) -> tuple[Float[Array, " M"], Bool[Array, " A"]]:
            tau = tabular.slack_at(self, state, ahead)
            behaves = not isinstance(self.exploration, Prefixes)
            policy = tabular.explored(self, state, ahead, tau) if behaves else tabular.greedy(self, ahead, tau)
            return jnp.sum(ahead.q * policy, axis=-1), lex.admissible(ahead.q, tau)

        return tabular.learn(self, state, transition, bootstrap)
