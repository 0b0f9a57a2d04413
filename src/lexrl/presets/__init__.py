"""Settings that are known to work, by algorithm and environment: `tuned`, which are ours, and the `paper`'s.

An environment's line in the catalog names the module with its presets: a dict `PRESETS` from `"paper"` or `"tuned"` to
a function, which returns a function for each algorithm's name. Only the preset that is asked for is built.
"""

import importlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from lexrl import catalog
from lexrl.errors import InputError

Name = Literal["tuned", "paper"]
SAFE, REWARD = "min cost > max reward", "max reward"


class Preset(NamedTuple):
    """An algorithm with its settings, the settings of the environment, the order, and how long to train.

    Schedules last for fractions of the run, so that the settings serve for runs of other lengths, too.
    """

    algorithm: Any
    order: str
    total_timesteps: int
    env_kwargs: Mapping[str, Any] = MappingProxyType({})


Presets = Mapping[str, Callable[[], Preset]]
"""By the name of the algorithm."""


def make(algorithm: str, **settings: Any) -> Any:
    """An algorithm by its name in the catalog: a file with presets of many need not import them all."""
    return catalog.ALGORITHMS[algorithm].make(**settings)


def known(env: str, name: Name = "tuned") -> Presets:
    """All presets of a name for an environment, not built yet."""
    entry = catalog.ENVS.get(env)
    if entry is None or not entry.presets:
        return {}
    tables: Mapping[str, Callable[[], Presets]] = importlib.import_module(entry.presets).PRESETS
    return tables[name]() if name in tables else {}


def find(algorithm: str, env: str, name: Name = "tuned") -> Preset | None:
    """The preset of an algorithm on an environment, None where there is none."""
    build = known(env, name).get(algorithm)
    return None if build is None else build()


def preset(algorithm: str, env: str, name: Name = "tuned") -> Preset:
    """The preset of an algorithm on an environment, as in `preset("lppo", "cart-safe")`."""
    found = find(algorithm, env, name)
    described = f"paper-{algorithm}"
    if found is None and described in known(env, name):
        raise InputError(
            f"There is no preset {name!r} for {algorithm} on {env}; what the paper describes is {described}: use that."
        )
    if found is None:
        listed = [f"{one} on {place}" for place in catalog.ENVS for one in known(place, name)]
        raise InputError(f"There is no preset {name!r} for {algorithm} on {env}; there are: {', '.join(listed)}.")
    return found
