"""Gymnasium's spaces as algorithms know them: integers 0 .. n-1, or boxes of floats."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from lexrl.envs.signals import Event, Signals
from lexrl.errors import InputError
from lexrl.types import BatchedStep, Box, Discrete, EnvSpec

MAX_DISCRETE = 10_000_000
"""A table with more rows than this would not fit in memory."""


class Observations(NamedTuple):
    """How an environment's observations are converted."""

    space: Discrete | Box
    convert: Callable[[Any], Any]

    def stack(self, each: Sequence[Any]) -> np.ndarray:
        """The observations of several environments as one array of int32 or float32."""
        dtype = np.int32 if isinstance(self.space, Discrete) else np.float32
        return np.array([self.convert(obs) for obs in each], dtype)


class Actions(NamedTuple):
    """How actions, several at once, are converted to what an environment takes."""

    space: Discrete | Box
    convert: Callable[[np.ndarray], np.ndarray]


class Interface(NamedTuple):
    """What an algorithm meets of a Gymnasium environment, be it a single one or a vector of them."""

    observations: Observations
    actions: Actions
    signals: Signals

    def spec(self, max_episode_steps: int) -> EnvSpec:
        return EnvSpec(self.observations.space, self.actions.space, self.signals.names, max_episode_steps)

    def batched_step(self, events: Sequence[Event], terminated: Any, truncated: Any) -> BatchedStep:
        """One step of several environments, as the host loop takes it."""
        obs = self.observations.stack([event.obs for event in events])
        signals = np.array([self.signals.read(event) for event in events], np.float32)
        return BatchedStep(obs, signals, 1 - np.asarray(terminated, np.float32), np.array(truncated, bool))


def convert_observations(space: Any, *, discrete: bool) -> Observations:
    """Integers stay integers, shifted to begin at 0; boxes stay boxes; what can be flattened becomes a box."""
    if discrete:
        return _as_one_integer(space)
    if isinstance(space, spaces.Discrete):
        return Observations(Discrete(int(space.n)), _shift(int(space.start)))
    if isinstance(space, spaces.Box):
        return Observations(_box(space), _identity)
    if isinstance(space, spaces.Space) and space.is_np_flattenable:
        return Observations(_box(spaces.flatten_space(space)), lambda obs: spaces.flatten(space, obs))
    raise InputError(
        f"The observations are {_text(space)}, which cannot be flattened; wrap the environment so that it returns a "
        "box or an integer (gymnasium.wrappers.TransformObservation)."
    )


def convert_actions(space: Any) -> Actions:
    """Discrete actions, or a box, into whose bounds actions are clipped."""
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        return Actions(Discrete(int(space.n)), lambda chosen: chosen.astype(np.int64) + start)
    if isinstance(space, spaces.Box):
        return Actions(_box(space), lambda chosen: np.clip(chosen, space.low, space.high).astype(space.dtype))
    raise InputError(
        f"The actions are {_text(space)}; lexrl supports Discrete and Box: wrap the environment so that one integer "
        "stands for each combination (gymnasium.wrappers.TransformAction)."
    )


def _as_one_integer(space: Any) -> Observations:
    """Every observation becomes one integer, by its digits in mixed radix."""
    leaves = _leaves(space)
    lows = np.concatenate([low.ravel() for low, _ in leaves])
    sizes = tuple(int(size) for _, each in leaves for size in each.ravel())
    count = math.prod(sizes)
    if count > MAX_DISCRETE:
        raise InputError(
            f"The observations {_text(space)} have {count:.2g} values, more than the {MAX_DISCRETE:,} that a table can "
            "hold; use an algorithm with networks, without discrete_observations=True."
        )

    def convert(obs: Any) -> Any:
        return np.ravel_multi_index(tuple(digits(space, obs) - lows), sizes)

    return Observations(Discrete(count), convert)


def _leaves(space: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """The lowest values of each part of a space of integers, and how many values there are."""
    if isinstance(space, spaces.Discrete):
        return [(np.array(space.start), np.array(space.n))]
    if isinstance(space, spaces.MultiDiscrete):
        return [(space.start, space.nvec)]
    if isinstance(space, spaces.MultiBinary):
        return [(np.zeros(space.shape, int), np.full(space.shape, 2))]
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.integer):
        low, high = space.low.astype(np.int64), space.high.astype(np.int64)
        return [(low, high - low + 1)]
    if isinstance(space, spaces.Tuple | spaces.Dict):
        return [leaf for part in _parts(space) for leaf in _leaves(part)]
    raise InputError(
        f"The observations are {_text(space)}, which are not integers; use an algorithm with networks, without "
        "discrete_observations=True, or wrap the environment so that it returns integers."
    )


def digits(space: Any, obs: Any) -> np.ndarray:
    """An observation of integers as one row of them."""
    return np.concatenate([np.asarray(part, np.int64).ravel() for part in parts(space, obs)])


def parts(space: Any, obs: Any) -> list[Any]:
    """What an observation consists of, in the order of its space."""
    if isinstance(space, spaces.Tuple | spaces.Dict):
        each = obs if isinstance(space, spaces.Tuple) else [obs[name] for name in space]
        return [leaf for part, one in zip(_parts(space), each, strict=True) for leaf in parts(part, one)]
    return [obs]


def _parts(space: Any) -> list[Any]:
    return list(space.spaces) if isinstance(space, spaces.Tuple) else [space[name] for name in space]


def _box(space: Any) -> Box:
    low, high = float(np.min(space.low)), float(np.max(space.high))
    return Box(space.shape, low if math.isfinite(low) else -math.inf, high if math.isfinite(high) else math.inf)


def _identity(obs: Any) -> Any:
    return obs


def _shift(start: int) -> Callable[[Any], Any]:
    return _identity if start == 0 else lambda obs: obs - start


def _text(space: Any) -> str:
    return " ".join(str(space).split())
