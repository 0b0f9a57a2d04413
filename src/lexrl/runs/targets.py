"""The environment of a run: by name and settings, so that a file need not hold it, or as an instance."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx

from lexrl import catalog
from lexrl.envs import GymEnv
from lexrl.envs.factory import as_env, make_env
from lexrl.envs.per_seed import per_seed
from lexrl.errors import InputError

EnvKwargs = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""Settings of an environment; one for all seeds, or one each."""


class Target(NamedTuple):
    """An environment, and how it is made again."""

    env: Any
    env_id: str
    """Empty: it cannot be made again by name."""
    kwargs: EnvKwargs


def resolve(env: Any, kwargs: EnvKwargs | None = None) -> Target:
    """The environment that a name, a class, a function or an instance stands for."""
    given = {} if kwargs is None else kwargs
    if isinstance(env, str):
        if isinstance(given, Mapping):
            return Target(make_env(env, **given), env, changed(env, given))
        return Target(per_seed([make_env(env, **one) for one in given]), env, changed(env, given))
    if not isinstance(given, Mapping):
        raise InputError("Settings for each seed need an environment that is named; else give lexrl.per_seed([...]).")
    if isinstance(env, type) and issubclass(env, eqx.Module):
        return _remembered(env(**given))
    return _remembered(as_env(env, **given))


def builder(name: str) -> Callable[..., Any]:
    """What makes the environment of a name."""
    return catalog.ENVS[name].load() if name in catalog.ENVS else GymEnv


def settings_of(env: Any) -> dict[str, Any]:
    """The settings of an instance that differ from the defaults of its class, whose fields are its settings."""
    given = {field.name: vars(env)[field.name] for field in dataclasses.fields(env) if field.init}
    return _changed(type(env), given)


def changed(name: str, kwargs: EnvKwargs) -> EnvKwargs:
    """The settings of an environment's name that differ from their defaults."""
    make = builder(name)
    return _changed(make, kwargs) if isinstance(kwargs, Mapping) else [_changed(make, one) for one in kwargs]


def _remembered(env: Any) -> Target:
    """An instance, with its name and settings where the catalog has its class."""
    entry = catalog.entry_of(catalog.ENVS, env)
    if entry is None or entry.load() is not type(env):
        return Target(env, "", {})
    return Target(env, entry.name, settings_of(env))


def _changed(make: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that differ from the defaults: all that need be written down."""
    known = inspect.signature(make).parameters
    return {name: value for name, value in given.items() if name not in known or known[name].default != value}
