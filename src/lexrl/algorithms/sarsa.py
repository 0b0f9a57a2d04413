"""Lexicographic SARSA: `bootstrap_i = Q_i(s', a')`, with a' the action that was taken next."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from lexrl import lex
from lexrl.algorithms import tabular, validation
from lexrl.algorithms.tabular import EpsilonGreedy, Exploration, as_exploration
from lexrl.reprs import short_repr
from lexrl.schedules import Constant, Schedule, named
from lexrl.tolerance import Absolute, Tolerances, as_tolerance
from lexrl.types import Metrics, Spec, Transition
from lexrl.units import counts


class State(NamedTuple):
    """The table, and the last transition, whose next action is not known yet."""

    table: tabular.State
    pending: Transition


class Sarsa(eqx.Module):
    """Lexicographic SARSA."""

    gamma: tuple[float, ...] | float = 0.99
    """Discount: one for all objectives, or one each."""
    alpha: Schedule = eqx.field(converter=named("alpha"), default=Constant(0.01), metadata=counts("visits"))
    """Learning rate, in the visits n to a state and action: 0.01, n^-0.7, 10/n, 1 to 0.01 in 1e5."""
    exploration: Exploration = eqx.field(converter=as_exploration, default=EpsilonGreedy())
    """How actions are chosen during training: 'epsilon 0.05' or 'softmax 0.1', in the visits n to a state."""
    tolerance: Tolerances = eqx.field(converter=as_tolerance, default=Absolute(0.01), metadata=counts("updates"))
    """What an objective may lose for the next one: 0.01, 5% of the best value, '0.01 + 5%'; one, or one each. Careful
    with one that shrinks to 0: if it does so faster than Q converges, lower objectives are never optimized."""
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
        zero = jnp.int32(0)
        nothing = Transition(zero, zero, jnp.zeros(len(spec.objectives)), jnp.float32(0), zero, jnp.bool_(False))
        return State(tabular.init(self, spec), nothing)

    act = tabular.act
    update = tabular.update

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """The exploration's probability of each action; greedy: uniform over `D_M`."""
        return tabular.probabilities(self, state.table, obs, greedy=greedy)

    def sets(self, state: State) -> Bool[Array, "S L A"]:
        """The learned admissible sets `D_0 .. D_M` of every state, L = M + 1 of them."""
        return tabular.sets(self, state.table)

    def learn(self, state: State, transition: Transition, key: Array) -> tuple[State, Metrics]:
        """Learn from the transition before this one, whose next action is now known.

        Where its episode was cut off no action was taken in s': one is drawn instead.
        """
        pending = state.pending
        drawn = self.act(state, pending.next_obs, key)
        next_action = jnp.where(pending.last, drawn, transition.action)
        tau = tabular.slack_at(self.tolerance, state.table, pending.next_obs)

        def bootstrap(q: Float[Array, "M A"]) -> tuple[Float[Array, " M"], Bool[Array, " A"]]:
            return q[:, next_action], lex.admissible(q, tau)

        valid = state.table.num_updates > 0
        table, metrics = tabular.learn(self, state.table, pending, bootstrap, valid=valid)
        return State(table, transition), metrics
