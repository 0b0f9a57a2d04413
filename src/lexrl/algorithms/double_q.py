"""Lexicographic Double Q-learning: tables A and B, of which a coin picks the one that learns; say A:

    bootstrap_i = Q^B_i(s', argmax over D^A_{i-1}(s') of Q^A_i(s', .))

Actions are chosen by the mean of A and B.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
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


class DoubleQLearning(eqx.Module):
    """Lexicographic Double Q-learning."""

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
        return tabular.init(self, spec, tables=(2,), update_tolerance=self.update_tolerance)

    act = tabular.act
    update = tabular.update

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """The exploration's probability of each action; greedy: uniform over `D_M`."""
        tau = tabular.slack_at(self.tolerance, state, obs)
        return tabular.policy(self.exploration, mean(state.q[:, obs]), tau, state.visits[:, obs].sum(), greedy)

    def sets(self, state: State) -> Bool[Array, "S L A"]:
        """The learned admissible sets `D_0 .. D_M` of every state, L = M + 1 of them."""
        return lex.levels(mean(state.q), tabular.slack_at(self.tolerance, state, ...)).sets

    def learn(self, state: State, transition: Transition, key: Array) -> tuple[State, Metrics]:
        table = jnp.int32(jax.random.uniform(key) < 0.5)
        tau = tabular.slack_at(self._update_tolerance, state, transition.next_obs)

        def bootstrap(q: Float[Array, "M A"]) -> tuple[Float[Array, " M"], Bool[Array, " A"]]:
            sets, best = lex.double_levels(q, state.q[1 - table, transition.next_obs], tau)
            return best, sets[-1]

        return tabular.learn(self, state, transition, bootstrap, table=(table,))

    @property
    def _update_tolerance(self) -> Tolerances:
        return self.tolerance if self.update_tolerance is None else self.update_tolerance


def mean(q: Float[Array, "2 *rest"]) -> Float[Array, "*rest"]:
    """Of the two tables."""
    return 0.5 * (q[0] + q[1])
