"""More environments like the one that is given, for training on several side by side.

An environment that is passed as it is gets copied with `copy.deepcopy`, wrappers and all, so that what was set on it
after it was made holds for the copies too. Where that fails (a window or a process inside), it is made again from its
`spec`, if Gymnasium made it. The environment itself is never stepped or closed.
"""

import contextlib
import copy
import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from lexrl.errors import InputError


def copier(env: Any, remake: Callable[..., Any]) -> Callable[[], Any]:
    """A function that returns a new environment like this one; `remake` makes one from a spec."""
    original, reason = _try_copy(env)
    if original is not None:
        return partial(_copied, original)
    spec = env.spec
    with contextlib.suppress(gymnasium.error.Error, ValueError, TypeError):
        if spec is not None:
            remake(spec).close()
            return partial(remake, spec)
    raise InputError(
        f"{env} cannot be copied ({reason}); pass a function that makes it, as in lexrl.train(..., lambda: MyEnv())."
    )


def _try_copy(env: Any) -> tuple[Any, str]:
    """An independent copy, or None and the reason why there is none."""
    try:
        found = copy.deepcopy(env)
    except Exception as error:  # whatever an environment holds may refuse to be copied
        return None, f"{type(error).__name__}: {error}"
    return (None, "its copies share one state") if found.unwrapped is env.unwrapped else (found, "")


def _copied(original: Any, **settings: Any) -> Any:
    if settings not in ({}, {"render_mode": original.render_mode}):
        raise TypeError("it is an instance, and its copies have its own settings, so make the instance with this one")
    return copy.deepcopy(original)


def time_limit(env: Any) -> int | None:
    """An environment's own time limit, if it has one; its spec does not know a TimeLimit that was put on by hand."""
    if isinstance(env, SyncVectorEnv):
        return time_limit(env.envs[0])
    inner = env
    while isinstance(inner, gymnasium.Wrapper):
        if isinstance(inner, TimeLimit):
            return inner._max_episode_steps
        inner = inner.env
    return None if env.spec is None else env.spec.max_episode_steps


def registered(env_id: str) -> Any:
    """Gymnasium's spec of an id; MO-Gymnasium's ids are known once it has been imported."""
    with contextlib.suppress(gymnasium.error.Error):
        return gymnasium.spec(env_id)
    try:
        importlib.import_module("mo_gymnasium")
    except ImportError:
        raise InputError(
            f"Gymnasium cannot make {env_id!r}, which is not registered; if it is one of MO-Gymnasium's, install that: "
            "pip install 'lexrl[mo]'."
        ) from None
    try:
        return gymnasium.spec(env_id)
    except gymnasium.error.Error as error:
        raise InputError(f"Gymnasium cannot make {env_id!r}: {error}") from error
