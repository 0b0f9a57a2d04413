"""highway-env's environments: `highway:ID` on the command line and in Python, as in `highway:intersection-v0`.

Their signals are the parts of the reward, unweighted, that `info["rewards"]` names: `collision_reward` is the signal
`collision`, `arrived_reward` is `arrived`, and so on; and the weighted sum, `reward`. An environment whose info has
none is refused.
"""

import importlib
import math
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import gymnasium

from lexrl import store
from lexrl.envs.gym import GymEnv
from lexrl.errors import InputError

PREFIX = "highway:"
SUFFIX = "_reward"
COUNT = "_count"
"""What the keys that count vehicles or lanes end with."""


def make_highway(
    env_id: str, max_episode_steps: int | None = None, *, config: Mapping[str, Any] | str | None = None
) -> GymEnv:
    """An environment of highway-env's.

    Args:
        env_id: its id, as in `"intersection-v0"`.
        max_episode_steps: length of an episode; by default the duration that the environment's configuration has.
        config: what differs from the environment's own configuration, as a dictionary or as JSON; parts of a dictionary
            in it may be left out.
    """
    _require(env_id)
    changes = _parsed(config)
    make = partial(_make, env_id, changes)
    with_info = make()
    try:
        configured = with_info.unwrapped.config
        _, info = with_info.reset(seed=0)
    finally:
        with_info.close()
    if "rewards" not in info:
        raise InputError(
            f"The info of highway-env's {env_id} has no 'rewards', and so there are no signals; use lexrl.GymEnv with "
            "a signals function."
        )
    return GymEnv(make, max_episode_steps or _length(configured), signals=_read_rewards, num_probe_steps=1)


def _require(env_id: str) -> None:
    """Complain if highway-env is missing, or has no such environment."""
    try:
        importlib.import_module("highway_env")
    except ImportError:
        raise InputError(
            f"{PREFIX}{env_id} needs highway-env, which is not installed; try pip install 'lexrl[highway]'."
        ) from None
    known = [name for name, spec in gymnasium.registry.items() if str(spec.entry_point).startswith("highway_env")]
    if env_id not in known:
        raise InputError(f"highway-env has no environment {env_id!r}; it has {', '.join(sorted(known))}.")


def _parsed(config: Mapping[str, Any] | str | None) -> dict[str, Any]:
    if not isinstance(config, str):
        return dict(config or {})
    try:
        found = store.parse_json(config or "{}")
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"The config {config!r} is not JSON ({error}); give it as in '{{\"duration\": 20}}'."
        ) from None
    if not isinstance(found, dict):
        raise InputError(f"The config {config!r} is no JSON object; give it as in '{{\"duration\": 20}}'.")
    return found


def _make(env_id: str, changes: Mapping[str, Any], **settings: Any) -> Any:
    """A new environment. highway-env itself would accept any key, and replace inner dictionaries as a whole."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is out of date.*", category=DeprecationWarning)
        env = gymnasium.make(env_id, disable_env_checker=True, **settings)
    if changes:
        unwrapped: Any = env.unwrapped
        unwrapped.configure(_merged(unwrapped.config, changes, env_id))
        try:
            env.reset()
        except (TypeError, KeyError, AttributeError, ValueError, IndexError) as error:
            raise InputError(
                f"{PREFIX}{env_id} does not start with the config {changes!r} ({type(error).__name__}: {error})."
            ) from error
    return env


def _merged(default: Mapping[str, Any], changes: Mapping[str, Any], env_id: str) -> dict[str, Any]:
    if unknown := [key for key in changes if key not in default]:
        raise InputError(
            f"The configuration of {PREFIX}{env_id} has no key {unknown[0]!r}; its keys are "
            f"{', '.join(sorted(default))}."
        )
    for key, value in changes.items():
        if key.endswith(COUNT) and not (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
            raise InputError(f"The configuration has the {key} {value!r}; it must be a whole number, 0 or more.")
    return {
        key: {**default[key], **value} if isinstance(value, dict) and isinstance(default[key], dict) else value
        for key, value in changes.items()
    }


def _length(config: Mapping[str, Any]) -> int | None:
    """Steps until the environment's time is over."""
    if "duration" not in config:
        return None
    given = {name: config.get(name, 1) for name in ("duration", "policy_frequency")}
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**31:
            raise InputError(f"The configuration has the {name} {value!r}; it must be a number above 0.")
    return math.ceil(given["duration"] * given["policy_frequency"])


def _read_rewards(obs: Any, action: Any, reward: Any, info: dict[str, Any]) -> dict[str, float]:
    """The parts of the reward by name, and the reward."""
    named = {name.removesuffix(SUFFIX): float(value) for name, value in info["rewards"].items()}
    return {"reward": float(reward)} | named
