"""An environment from a name, or from whatever stands for one: `make_env("cart-safe")`, `as_env(my_gym_env)`.

`resolve` also says how it is made again, by name and settings, so that a file need not hold it.
"""

import dataclasses
import inspect
import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import gymnasium

from lexrl import catalog
from lexrl.envs import highway
from lexrl.envs.gym import GymEnv
from lexrl.envs.per_seed import PerSeed, per_seed
from lexrl.envs.vector import GymVectorEnv
from lexrl.errors import InputError, suggestion
from lexrl.types import Batchable, Env, unwrapped

EnvKwargs = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""Settings of an environment; one for all seeds, or one each."""


class ResolvedEnv(NamedTuple):
    """An environment, and how it is made again."""

    env: Any
    env_id: str
    """Empty: it cannot be made again by name."""
    kwargs: EnvKwargs


def make_env(name: str, **kwargs: Any) -> Any:
    """The environment of a name: one of the catalog's, of Gymnasium's or of highway-env's.

    Args:
        name: as in `"cart-safe"`, `"gym:CartPole-v1"` or just `"CartPole-v1"` (MO-Gymnasium's too), or
            `"highway:intersection-v0"`.
        kwargs: its settings, as in `max_episode_steps=100`.
    """
    if not isinstance(name, str):
        raise InputError(f"An environment's name is a text, as in 'cart-safe', not {type(name).__name__}.")
    if name in catalog.ENVS:
        entry = catalog.ENVS[name]
        known = list(inspect.signature(entry.load()).parameters)
        if unknown := [key for key in kwargs if key not in known]:
            raise InputError(f"{name} has no setting {unknown[0]!r}; its settings are {', '.join(known)}.")
        try:
            return entry.make(**kwargs)
        except InputError:
            raise
        except (ArithmeticError, TypeError, ValueError) as error:
            why = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
            given = reprlib.repr(kwargs)
            raise InputError(f"{name} cannot be made with the settings {given} ({why}).") from error
    if name.startswith(highway.PREFIX):
        return _make_highway(name.removeprefix(highway.PREFIX), kwargs)
    if (env_id := gym_id(name)) is not None:
        return GymEnv(env_id, **kwargs)
    raise InputError(
        f"There is no environment {name!r}; there are {', '.join(catalog.ENVS)}, those of Gymnasium, as in "
        f"gym:CartPole-v1, and those of highway-env, as in highway:intersection-v0.{suggestion(name, catalog.ENVS)}"
    )


def _make_highway(env_id: str, kwargs: dict[str, Any]) -> GymEnv:
    known = list(inspect.signature(highway.make_highway).parameters)[1:]
    if unknown := [key for key in kwargs if key not in known]:
        raise InputError(
            f"{highway.PREFIX}{env_id} has no setting {unknown[0]!r}; its settings are {', '.join(known)}."
        )
    return highway.make_highway(env_id, **kwargs)


def gym_id(name: str) -> str | None:
    """The id in Gymnasium of a name with the prefix `gym:` or with a version, else None."""
    if name.startswith("gym:"):
        return name.removeprefix("gym:")
    return name if re.search(r"-v\d+$", name) else None


def as_env(env: Any, **kwargs: Any) -> Any:
    """An environment that lexrl can train on.

    Args:
        env: an environment of lexrl's, which is returned; a name, as `make_env` takes it; or a Gymnasium environment or
            vector environment, wrapped or not, as an instance, a class, or a function without arguments that makes it.
        kwargs: settings of what is made, as in `max_episode_steps=100`; see `GymEnv`.
    """
    if isinstance(env, str):
        return make_env(env, **kwargs)
    if isinstance(env, gymnasium.vector.VectorEnv):
        return GymVectorEnv(env, **kwargs)
    if isinstance(env, gymnasium.Env):
        return GymEnv(env, **kwargs)
    if not isinstance(env, type) and isinstance(env, PerSeed | Batchable | Env):
        return _without_settings(env, kwargs)
    if callable(env) and not isinstance(env, eqx.Module):
        return _made_by(env, kwargs)
    raise InputError(
        f"A {type(env).__name__} is not an environment; give a name as in 'cart-safe' or 'CartPole-v1', a Gymnasium "
        "environment or a function that makes one, or an object with spec, reset(key) and step(state, action, key)."
    )


def env_name(env: Any) -> str:
    """What an environment is called: its name in the catalog, its id in Gymnasium, or its class."""
    entry = catalog.entry_of(catalog.ENVS, env)
    if entry is not None:
        return entry.name
    if isinstance(env, PerSeed):
        return env_name(env.stacked)
    return env.name if isinstance(env, GymEnv | GymVectorEnv) else type(unwrapped(env)).__name__


def resolve(env: Any, kwargs: EnvKwargs | None = None) -> ResolvedEnv:
    """The environment that a name, a class, a function or an instance stands for."""
    given = {} if kwargs is None else kwargs
    for one in [given] if isinstance(given, Mapping) or not isinstance(given, Sequence) else given:
        if not isinstance(one, Mapping) or not all(isinstance(key, str) for key in one):
            raise InputError(f"The settings of an environment are {one!r}; give them by name, as in {{'size': 5}}.")
    if isinstance(env, str):
        if isinstance(given, Mapping):
            return ResolvedEnv(make_env(env, **given), env, changed(env, given))
        return ResolvedEnv(per_seed([make_env(env, **one) for one in given]), env, changed(env, given))
    if not isinstance(given, Mapping):
        raise InputError("Settings for each seed need an environment that is named; else give lexrl.per_seed([...]).")
    if isinstance(env, type) and issubclass(env, eqx.Module):
        return _remembered(env(**given))
    return _remembered(as_env(env, **given))


def builder(name: str) -> Callable[..., Any]:
    """The class or function that makes the environment of a name."""
    if name in catalog.ENVS:
        return catalog.ENVS[name].load()
    return highway.make_highway if name.startswith(highway.PREFIX) else GymEnv


def settings_of(env: Any) -> dict[str, Any]:
    """The settings of an instance that differ from the defaults of its class, whose fields are its settings."""
    given = {field.name: vars(env)[field.name] for field in dataclasses.fields(env) if field.init}
    return _changed(type(env), given)


def changed(name: str, kwargs: EnvKwargs) -> EnvKwargs:
    """Of the settings of a named environment, those that differ from their defaults."""
    make = builder(name)
    return _changed(make, kwargs) if isinstance(kwargs, Mapping) else [_changed(make, one) for one in kwargs]


def _made_by(factory: Any, kwargs: dict[str, Any]) -> Any:
    """The environment that a class or a function makes."""
    try:
        made = factory()
    except TypeError as error:
        name = factory.__name__ if isinstance(factory, type) else str(factory)
        raise InputError(
            f"{name}() fails ({error}); pass a function without arguments, as in lambda: {name}(...)."
        ) from error
    if isinstance(made, gymnasium.vector.VectorEnv | gymnasium.Env):
        made.close()
        return (GymEnv if isinstance(made, gymnasium.Env) else GymVectorEnv)(factory, **kwargs)
    if isinstance(made, PerSeed | Batchable | Env):
        return _without_settings(made, kwargs)
    raise InputError(f"The function makes a {type(made).__name__}, which is not an environment.")


def _without_settings(env: Any, kwargs: dict[str, Any]) -> Any:
    if kwargs:
        raise InputError(
            f"{type(env).__name__} is made already, so that {', '.join(kwargs)} cannot be set; make it with these "
            "settings."
        )
    return env


def _remembered(env: Any) -> ResolvedEnv:
    """An instance, with its name and settings where the catalog has its class."""
    entry = catalog.entry_of(catalog.ENVS, env)
    if entry is None or entry.load() is not type(env):
        return ResolvedEnv(env, "", {})
    return ResolvedEnv(env, entry.name, settings_of(env))


def _changed(make: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that differ from the defaults: all that need be written down."""
    known = inspect.signature(make).parameters
    return {name: value for name, value in given.items() if name not in known or known[name].default != value}
