"""An environment from a name, or from whatever stands for one: `make_env("cart-safe")`, `as_env(my_gym_env)`."""

import inspect
import re
from typing import Any

import equinox as eqx
import gymnasium

from lexrl import catalog
from lexrl.envs.gym import GymEnv
from lexrl.envs.per_seed import PerSeed
from lexrl.envs.vector import GymVectorEnv
from lexrl.errors import InputError
from lexrl.types import Batchable, Env, unwrapped


def make_env(name: str, **kwargs: Any) -> Any:
    """The environment of a name: one of the catalog's, or one of Gymnasium's.

    Args:
        name: as in `"cart-safe"`, `"gym:CartPole-v1"` or just `"CartPole-v1"`; MO-Gymnasium's too.
        kwargs: its settings, as in `max_episode_steps=100`.
    """
    if name in catalog.ENVS:
        entry = catalog.ENVS[name]
        known = list(inspect.signature(entry.load()).parameters)
        if unknown := [key for key in kwargs if key not in known]:
            raise InputError(f"{name} has no setting {unknown[0]!r}; its settings are {', '.join(known)}.")
        return entry.make(**kwargs)
    if (env_id := gym_id(name)) is not None:
        return GymEnv(env_id, **kwargs)
    raise InputError(
        f"There is no environment {name!r}; there are {', '.join(catalog.ENVS)}, and those of Gymnasium, as in "
        "gym:CartPole-v1."
    )


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
