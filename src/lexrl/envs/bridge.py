"""From Gymnasium to the exact solvers: a finite MOMDP from any environment that has one.

The transition table where the environment has one (`P`, as in Gymnasium's toy text), else a complete exploration.
"""

import warnings
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp
from gymnasium.envs.toy_text.blackjack import BlackjackEnv
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from lexrl.envs.blackjack import blackjack
from lexrl.envs.exploration import Model, explore
from lexrl.envs.factory import as_env
from lexrl.envs.gym import GymEnv, UnlimitedEpisodes
from lexrl.envs.signals import Event, SignalFunction
from lexrl.momdp import MOMDP, from_outcomes
from lexrl.types import HasModel

MAX_STATES = 1_000_000


@runtime_checkable
class HasTable(Protocol):
    """An environment with a table: `P[s][a]` is a list of (probability, successor, reward, terminated)."""

    P: Any
    initial_state_distrib: Any


def momdp_from_env(
    env: Any,
    gamma: float | int | Sequence[float] = 0.99,
    *,
    signals: SignalFunction | None = None,
    max_states: int = MAX_STATES,
    **settings: Any,
) -> MOMDP:
    """The finite MOMDP of a Gymnasium or MO-Gymnasium environment with discrete actions and integer observations.

    From its transition table where it has one. Otherwise every state is visited and every action tried, with all that
    `np_random` can answer; that what follows depends on the observation and the action alone is checked on the way. The
    last state is where episodes end. Time limits play no part.

    Args:
        env: an id as in `"FrozenLake-v1"` or `"deep-sea-treasure-v0"`, an environment, a class or function that makes
            one, or an environment of lexrl's that has a model.
        gamma: one discount for all signals, or one each.
        signals: a function from (obs, action, reward, info) to named numbers, instead of the signals found.
        max_states: give up beyond this many states.
        settings: passed to the environment when it is made.
    """
    named = isinstance(env, str | GymEnv) or not isinstance(env, HasModel)
    found: Any = as_gym(env, signals, settings) if named else env
    if isinstance(found, HasModel):
        return found.momdp(tuple(gamma) if isinstance(gamma, Sequence) else gamma)
    return momdp_of(found, model_of(found, max_states), gamma)


def momdp_of(env: GymEnv, model: Model, gamma: Any) -> MOMDP:
    """A model as a MOMDP, with the names of the environment's signals."""
    return from_outcomes(
        model.transitions, model.signals, model.num_actions, gamma, initial=model.initial,
        terminal=[len(model.initial) - 1], signals=env.interface.signals.names,
    )  # fmt: skip


def model_of(env: GymEnv, max_states: int = MAX_STATES) -> Model:
    """The transitions of an environment, with the observation of each state."""
    made = env.make()
    inner = made.unwrapped
    try:
        if isinstance(inner, HasTable) and _plain(made):
            return _from_table(env, inner)
        if isinstance(inner, BlackjackEnv) and env.interface.signals.names == ("reward",):
            return blackjack(sab=bool(inner.sab), natural=bool(inner.natural))
    finally:
        made.close()
    return explore(env, max_states)


def _plain(env: Any) -> bool:
    """Has the environment no wrapper that could change what its table says?"""
    while isinstance(env, OrderEnforcing | PassiveEnvChecker | TimeLimit):
        env = env.env
    return env is env.unwrapped


def as_gym(env: Any, signals: SignalFunction | None, settings: dict[str, Any]) -> Any:
    """An environment of Gymnasium; how long its episodes are plays no part."""
    if isinstance(env, GymEnv):
        return env
    given = settings | ({} if signals is None else {"signals": signals})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnlimitedEpisodes)
        return as_env(env, **given)


def _from_table(env: GymEnv, inner: HasTable) -> Model:
    """Transitions that terminate lead to the state where episodes end."""
    n, num_actions = len(inner.P), len(inner.P[0])
    rows, columns, weights, signals = [], [], [], []
    for state in range(n):
        for action in range(num_actions):
            for probability, successor, reward, terminated in inner.P[state][action]:
                event = Event(successor, action, reward, {"prob": probability})
                rows.append(state * num_actions + action)
                columns.append(n if terminated else successor)
                weights.append(float(probability))
                signals.append([float(value) for value in env.interface.signals.read(event)])
    paid = np.array(signals)
    keys, where = np.unique(np.array(rows) * (n + 1) + np.array(columns), return_inverse=True)
    whole = np.bincount(where, weights)
    # Entries of the same successor are one, with the mean of what they pay.
    spread = np.where(whole > 0, whole, 1.0)
    mean = np.stack([np.bincount(where, np.array(weights) * column) / spread for column in paid.T], axis=1)
    matrix_rows, matrix_columns = keys // (n + 1), keys % (n + 1)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(matrix_rows, minlength=(n + 1) * num_actions))])
    matrix = sp.csr_array((whole, matrix_columns, indptr), shape=((n + 1) * num_actions, n + 1))
    initial = np.append(np.asarray(inner.initial_state_distrib, float), 0.0)
    return Model(matrix, mean, initial, num_actions, tuple((state,) for state in range(n)))
