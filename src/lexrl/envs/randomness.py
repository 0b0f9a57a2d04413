"""Randomness that is asked for, and answered in every way: what a step can lead to, and with which probability.

An environment draws from `np_random`. In its place it gets a generator that answers from a script and stops where the
script ends; then the script goes on with every possible answer. A draw from the unit interval has infinitely many, but
a step that compares it with numbers has few outcomes: where they change is found by bisection, to the last digit.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from lexrl.errors import InputError

_GRID = 64
"""Parts of the unit interval that are looked at for a change of the outcome."""
_MOST_CHANGES = 10_000
"""Of what follows, along the interval of a draw. An environment that never repeats itself would have no end of them."""
_MOST_ANSWERS = 10_000
"""Of one draw: each of them is followed."""
_NOT_REPEATED = (
    "The environment is not Markov in what it shows, or not random by its own np_random: the same random number leads "
    "to different outcomes."
)


class Outcome(NamedTuple):
    """What happened, and how likely that was."""

    probability: float
    result: Any


class _Asked(Exception):
    """A draw that the script has no answer for; `weights` of its answers, or None for the unit interval."""

    def __init__(self, weights: tuple[float, ...] | None):
        super().__init__()
        self.weights = weights


@dataclasses.dataclass
class Scripted:
    """A generator like NumPy's that answers from a script."""

    answers: tuple[float, ...]
    place: int = 0

    def random(self, size: Any = None, dtype: Any = float) -> float:
        if np.dtype(dtype) != np.float64:
            raise InputError(f"The environment draws numbers of type {np.dtype(dtype)}; only float64 can be followed.")
        return self._next(None, size)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> float:
        return low + (high - low) * self._next(None, size)

    def integers(self, low: Any, high: Any = None, size: Any = None, dtype: Any = None, endpoint: bool = False) -> int:
        first, last = (0, int(low)) if high is None else (int(low), int(high))
        count = last - first + endpoint
        _require_few(count)
        return first + int(self._next((1.0 / count,) * count, size))

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None) -> Any:
        _require_few(int(a) if np.ndim(a) == 0 else len(a))
        options = np.arange(a) if np.ndim(a) == 0 else np.asarray(a)
        weights = np.full(len(options), 1.0 / len(options)) if p is None else np.asarray(p, float)
        return options[int(self._next(tuple(weights.tolist()), size))]

    def _next(self, weights: tuple[float, ...] | None, size: Any) -> float:
        if size is not None:
            raise InputError("The environment draws several random numbers at a time; only single draws are followed.")
        if self.place == len(self.answers):
            raise _Asked(weights)
        self.place += 1
        return self.answers[self.place - 1]

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise InputError(
            f"The environment draws from np_random.{name}, which cannot be followed; random, uniform, integers and "
            "choice can be."
        )


def _require_few(answers: int) -> None:
    if not 0 < answers <= _MOST_ANSWERS:
        raise InputError(
            f"The environment draws one of {answers:,} values, of which each has to be followed; from 1 to "
            f"{_MOST_ANSWERS:,} can be."
        )


def outcomes(run: Callable[[Scripted], Any], script: tuple[float, ...] = ()) -> list[Outcome]:
    """Everything that a function of a generator can return; results are compared with `==`."""
    try:
        return [Outcome(1.0, run(Scripted(script)))]
    except _Asked as asked:
        weights = asked.weights
    if weights is None:
        return _merged(_along_the_interval(run, script))
    branches = ((weight, outcomes(run, (*script, float(k)))) for k, weight in enumerate(weights) if weight > 0)
    return _merged(Outcome(weight * one.probability, one.result) for weight, each in branches for one in each)


def _along_the_interval(run: Callable[[Scripted], Any], script: tuple[float, ...]) -> Iterator[Outcome]:
    """The outcomes of a draw from [0, 1), each for the part of the interval that leads to it."""
    grid = [*(k / _GRID for k in range(_GRID)), float(np.nextafter(1.0, 0.0))]
    found = [outcomes(run, (*script, draw)) for draw in grid]
    if outcomes(run, (*script, grid[0])) != found[0]:
        raise InputError(_NOT_REPEATED)
    start, changes = 0.0, 0
    for k, (before, after) in enumerate(itertools.pairwise(found)):
        low, here = grid[k], before
        while here != after:
            changes += 1
            if changes > _MOST_CHANGES:
                raise InputError(_NOT_REPEATED)
            low = _change(run, script, low, grid[k + 1])
            yield from (Outcome((low - start) * one.probability, one.result) for one in here)
            start, here = low, outcomes(run, (*script, low))
    yield from (Outcome((1.0 - start) * one.probability, one.result) for one in found[-1])


def _change(run: Callable[[Scripted], Any], script: tuple[float, ...], low: float, high: float) -> float:
    """The smallest draw that leads elsewhere than `low` does; `high` leads elsewhere."""
    same = outcomes(run, (*script, low))
    while np.nextafter(low, high) < high:
        middle = (low + high) / 2
        if outcomes(run, (*script, middle)) == same:
            low = middle
        else:
            high = middle
    return high


def _merged(each: Iterator[Outcome]) -> list[Outcome]:
    """Equal results as one."""
    found: dict[Any, float] = {}
    for one in each:
        found[one.result] = found.get(one.result, 0.0) + one.probability
    return [Outcome(probability, result) for result, probability in found.items()]


def total(each: Sequence[Outcome]) -> float:
    """The sum of the probabilities, which is 1 but for rounding."""
    return sum(one.probability for one in each)
