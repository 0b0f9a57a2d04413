"""Gymnasium's spaces as a learner knows them: numbers 0 .. n-1, or boxes of floats."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from lexrl.errors import InputError
from lexrl.types import Box, Discrete

MOST_NUMBERS = 10_000_000
"""A table with more rows than this would not fit."""


class View(NamedTuple):
    """What a learner is shown of an environment's observations."""

    space: Discrete | Box
    show: Callable[[Any], Any]

    def together(self, each: Sequence[Any]) -> np.ndarray:
        """Several environments' observations as one array, in the numbers that learners compute with."""
        kind = np.int32 if isinstance(self.space, Discrete) else np.float32
        return np.array([self.show(obs) for obs in each], kind)


class Moves(NamedTuple):
    """A learner's actions as an environment takes them; several at once."""

    space: Discrete | Box
    taken: Callable[[np.ndarray], np.ndarray]


def observations(space: Any, *, discrete_observations: bool) -> View:
    """Numbers stay numbers, shifted to begin at 0; boxes stay boxes; all that can be flattened becomes a box."""
    if discrete_observations:
        return _numbers(space)
    if isinstance(space, spaces.Discrete):
        return View(Discrete(int(space.n)), _shifted(int(space.start)))
    if isinstance(space, spaces.Box):
        return View(_box(space), _as_it_is)
    if isinstance(space, spaces.Space) and space.is_np_flattenable:
        return View(_box(spaces.flatten_space(space)), lambda obs: spaces.flatten(space, obs))
    raise InputError(
        f"The observations are {_text(space)}, which cannot be flattened; wrap the environment to show a box or a "
        "number (gymnasium.wrappers.TransformObservation), and give gym_world a function that makes it."
    )


def actions(space: Any) -> Moves:
    """Numbered actions, or a box, into whose bounds actions are clipped."""
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        return Moves(Discrete(int(space.n)), lambda chosen: chosen.astype(np.int64) + start)
    if isinstance(space, spaces.Box):
        return Moves(_box(space), lambda chosen: np.clip(chosen, space.low, space.high).astype(space.dtype))
    raise InputError(
        f"The actions are {_text(space)}; lexrl takes numbered actions and boxes: wrap the environment so that one "
        "number stands for each combination (gymnasium.wrappers.TransformAction), and give gym_world a function that "
        "makes it."
    )


def _numbers(space: Any) -> View:
    """Every observation gets a number, by its digits."""
    parts = _leaves(space)
    lows = np.concatenate([low.ravel() for low, _ in parts])
    sizes = tuple(int(size) for _, each in parts for size in each.ravel())
    count = math.prod(sizes)
    if count > MOST_NUMBERS:
        raise InputError(
            f"The observations {_text(space)} would need {count:.2g} numbers, more than {MOST_NUMBERS:,}; use a "
            "learner with a network, without numbered=True."
        )

    def number(obs: Any) -> Any:
        return np.ravel_multi_index(tuple(_digits(space, obs) - lows), sizes)

    return View(Discrete(count), number)


def _leaves(space: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each part of a space of whole numbers, the lowest ones and how many there are."""
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
        f"The observations are {_text(space)}, which are not whole numbers and cannot be numbered; use a learner with "
        "a network, without numbered=True, or wrap the environment to show whole numbers."
    )


def _digits(space: Any, obs: Any) -> np.ndarray:
    if isinstance(space, spaces.Tuple | spaces.Dict):
        each = obs if isinstance(space, spaces.Tuple) else [obs[name] for name in space]
        return np.concatenate([_digits(part, one) for part, one in zip(_parts(space), each, strict=True)])
    return np.asarray(obs, np.int64).ravel()


def _parts(space: Any) -> list[Any]:
    return list(space.spaces) if isinstance(space, spaces.Tuple) else [space[name] for name in space]


def _box(space: Any) -> Box:
    low, high = float(np.min(space.low)), float(np.max(space.high))
    return Box(space.shape, low if math.isfinite(low) else -math.inf, high if math.isfinite(high) else math.inf)


def _as_it_is(obs: Any) -> Any:
    return obs


def _shifted(start: int) -> Callable[[Any], Any]:
    return _as_it_is if start == 0 else lambda obs: obs - start


def _text(space: Any) -> str:
    return " ".join(str(space).split())
