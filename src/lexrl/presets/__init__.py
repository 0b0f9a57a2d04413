"""Settings that are known to work, by algorithm and environment: `tuned`, which are ours, and the `paper`'s.

An environment's line in the catalog names the module with its presets: a dict `PRESETS` from `"paper"` or `"tuned"` to
a function that returns them by the names of algorithms. Nothing is built before it is asked for.
"""

import importlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import jax

from lexrl import catalog
from lexrl.errors import InputError
from lexrl.schedules import Linear, OfRun

Name = Literal["tuned", "paper"]
SAFE, REWARD = "min cost > max reward", "max reward"


class Preset(NamedTuple):
    """An algorithm with its settings, the settings of the environment, the order, and how long to train."""

    algorithm: Any
    order: str
    total_timesteps: int
    env_kwargs: Mapping[str, Any] = MappingProxyType({})

    def over(self, total_timesteps: int) -> "Preset":
        """The preset for a run of another length: what is scheduled takes the same share of it."""
        share = total_timesteps / self.total_timesteps

        def scale(part: Any) -> Any:
            return (
                Linear(part.start, part.end, share * part.steps)
                if isinstance(part, Linear) and not isinstance(part.steps, OfRun)
                else part
            )

        algorithm = jax.tree.map(scale, self.algorithm, is_leaf=lambda part: isinstance(part, Linear))
        return self._replace(algorithm=algorithm, total_timesteps=total_timesteps)


Presets = dict[str, Preset]
"""By the name of the algorithm."""


def known(env: str, name: Name = "tuned") -> Presets:
    """All presets of a name for an environment."""
    entry = catalog.ENVS.get(env)
    if entry is None or not entry.presets:
        return {}
    makers: Mapping[str, Callable[[], Presets]] = importlib.import_module(entry.presets).PRESETS
    return makers[name]() if name in makers else {}


def find(algorithm: str, env: str, name: Name = "tuned") -> Preset | None:
    """The preset of an algorithm on an environment, None where there is none."""
    return known(env, name).get(algorithm)


def preset(algorithm: str, env: str, name: Name = "tuned") -> Preset:
    """The preset of an algorithm on an environment, as in `preset("lppo", "cart-safe")`."""
    found = find(algorithm, env, name)
    if found is None:
        listed = [f"{one} on {place}" for place in catalog.ENVS for one in known(place, name)]
        raise InputError(f"There is no preset {name!r} for {algorithm} on {env}; there are: {', '.join(listed)}.")
    return found
