"""Lexicographic Q-learning: `bootstrap_i = max over D_{i-1}(s') of Q_i(s', .)`, D by the update's tolerance.

With tolerance 0 it is the algorithm of Gabor, Kalmar and Szepesvari (1998).
"""

import equinox as eqx
from jax import Array
from jaxtyping import Bool, Float

from lexrl import lex
from lexrl.algorithms import tabular, validation
from lexrl.algorithms.tabular import EpsilonGreedy, Exploration, State, as_exploration
from lexrl.reprs import short_repr
from lexrl.schedules import Constant, Schedule, named
from lexrl.tolerance import Absolute, Tolerances, as_optional_tolerance, as_tolerance
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts


class QLearning(eqx.Module):
    """Lexicographic Q-learning."""

    gamma: tuple[float, ...] | float = 0.99
    """Discount: one for all objectives, or one each."""
    alpha: Schedule = eqx.field(converter=named("alpha"), default=Constant(0.01), metadata=counts("visits"))
    """Learning rate, in the visits n to a state and action: 0.01, n^-0.7, 10/n, 1 to 0.01 in 1e5."""
    exploration: Exploration = eqx.field(converter=as_exploration, default=EpsilonGreedy())
    """How actions are chosen during training: 'epsilon 0.05' or 'softmax 0.1', in the visits n to a state."""
    tolerance: Tolerances = eqx.field(converter=as_tolerance, default=Absolute(0.01), metadata=counts("updates"))
    """What an objective may lose for the next one: 0.01, 5% of the best value, '0.01 + 5%'; one, or one each. Careful
    with one that shrinks to 0: if it does so faster than Q converges, lower objectives are never optimized."""
    update_tolerance: Tolerances | None = eqx.field(
        converter=as_optional_tolerance, default=None, metadata=counts("updates")
    )
    """Another tolerance for the update (tau_Q) than for choosing actions (tau_B); theory requires it no larger."""
    initial_q: tuple[float, ...] | float = 0.0
    """Initial Q-values: one for all objectives, or one each; high ones encourage exploration."""

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
        return tabular.init(self, spec, update_tolerance=self.update_tolerance)

    act = tabular.act
    probabilities = tabular.probabilities
    update = tabular.update
    sets = tabular.sets

    def learn(self, state: State, transition: Transition, key: Array) -> tuple[State, Metrics]:
        tau = tabular.slack_at(self._update_tolerance, state, transition.next_obs)

        def bootstrap(q: Float[Array, "M A"]) -> tuple[Float[Array, " M"], Bool[Array, " A"]]:
            sets, best = lex.levels(q, tau)
            return best, sets[-1]

        return tabular.learn(self, state, transition, bootstrap)

    @property
    def _update_tolerance(self) -> Tolerances:
        return self.tolerance if self.update_tolerance is None else self.update_tolerance
