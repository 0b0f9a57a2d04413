"""From Gymnasium to the exact solvers: a finite MOMDP from any environment that has one.

The transition table where the environment has one (`P`, as in Gymnasium's toy text) and does what it says, else a
complete exploration.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from gymnasium.envs.toy_text.blackjack import BlackjackEnv
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from lexrl.envs.blackjack import blackjack
from lexrl.envs.exploration import Model, explore, tabulated, untold
from lexrl.envs.factory import as_env
from lexrl.envs.gym import GymEnv, UnlimitedEpisodes
from lexrl.envs.signals import SignalFunction
from lexrl.errors import InputError
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
    progress: Callable[[int], None] = untold,
    **settings: Any,
) -> MOMDP:
    """The finite MOMDP of a Gymnasium or MO-Gymnasium environment with discrete actions and integer observations.

    From its transition table where it has one, ordinary episodes show nothing else, and the reward is its only signal.
    Otherwise every state is visited and every action tried, with all that `np_random` can answer; that what follows
    depends on the observation and the action alone is checked on the way. The last state is where episodes end. Time
    limits play no part.

    Args:
        env: an id as in `"FrozenLake-v1"` or `"deep-sea-treasure-v0"`, an environment, a class or function that makes
            one, or an environment of lexrl's that has a model.
        gamma: one discount for all signals, or one each.
        signals: a function from (obs, action, reward, info) to named numbers, instead of the signals found.
        max_states: give up beyond this many states.
        progress: called with the number of states found so far, for each state that is explored.
        settings: passed to the environment when it is made.
    """
    named = isinstance(env, str | GymEnv) or not isinstance(env, HasModel)
    found: Any = as_gym(env, signals, settings) if named else env
    if isinstance(found, HasModel):
        return found.momdp(tuple(gamma) if isinstance(gamma, Sequence) else gamma)
    if not isinstance(found, GymEnv):
        raise no_model(env if isinstance(env, str) else type(found).__name__)
    return momdp_of(found, model_of(found, max_states, progress), gamma)


def no_model(name: str) -> InputError:
    """What to say of an environment that is neither one of Gymnasium's nor has a model of its own."""
    return InputError(
        f"{name} has no finite model that could be solved; grid-nav and random-momdp have one, and so do environments "
        "of Gymnasium with discrete actions and observations, as in gym:FrozenLake-v1."
    )


def momdp_of(env: GymEnv, model: Model, gamma: Any) -> MOMDP:
    """A model as a MOMDP, with the names of the environment's signals."""
    return from_outcomes(
        model.transitions, model.signals, model.num_actions, gamma, initial=model.initial,
        terminal=[len(model.initial) - 1], signals=env.interface.signals.names,
    )  # fmt: skip


def model_of(env: GymEnv, max_states: int = MAX_STATES, progress: Callable[[int], None] = untold) -> Model:
    """The transitions of an environment, with the observation of each state."""
    if not isinstance(max_states, int) or max_states < 1:
        raise InputError(f"The most states are {max_states!r}; give a whole number from 1 on.")
    made = env.make()
    inner, plain = made.unwrapped, _plain(made) and not env.interface.signals.in_info
    try:
        if plain and isinstance(inner, HasTable):
            model = tabulated(env, inner, inner.P, inner.initial_state_distrib)
            if model is not None:
                return model
        if isinstance(inner, BlackjackEnv):
            if plain and type(inner) is BlackjackEnv:
                return blackjack(sab=bool(inner.sab), natural=bool(inner.natural))
            raise InputError(
                f"{env.name} is not Markov in what it shows: it hides the dealer's second card. There is a model of "
                "Blackjack as Gymnasium has it, with its reward as the only signal, and no wrapper."
            )
    finally:
        made.close()
    return explore(env, max_states, progress)


def _plain(env: Any) -> bool:
    """Has the environment no wrapper that could change what it does?"""
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
