"""Which combinations of values a sweep tries: all of a grid, some at random, or those that optuna proposes."""

import importlib.util
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from lexrl.engine import values
from lexrl.engine.proposals import Optuna
from lexrl.engine.values import Over, Range
from lexrl.errors import InputError, require_whole

Kind = Literal["grid", "random", "optuna"]


@runtime_checkable
class Search(Protocol):
    """Proposes combinations of values."""

    def batches(self) -> Iterator[list[dict[str, Any]]]:
        """Combinations to try next; `tell` is called with their results before the next batch is asked for."""
        ...

    def tell(self, order: Sequence[int], returns: np.ndarray) -> None:
        """The combinations so far, the best first, and what they reached `[settings, M]`; NaN where one failed."""
        ...


class Listed:
    """All combinations at once."""

    def __init__(self, chosen: list[dict[str, Any]]):
        self.chosen = chosen

    def batches(self) -> Iterator[list[dict[str, Any]]]:
        yield self.chosen

    def tell(self, order: Sequence[int], returns: np.ndarray) -> None:
        """Nothing depends on it."""


def make(kind: str, over: Over, trials: int, folder: pathlib.Path, signs: Sequence[int]) -> Search:
    """A search of a kind, for so many combinations."""
    if kind == "grid":
        return Listed(values.grid(over))
    values.require(over)
    require_whole(1, values.MAX_VALUES, trials=trials)
    if kind == "random":
        return Listed([draw(over, i) for i in range(trials)])
    if kind != "optuna":
        raise InputError(f"There is no search {kind!r}; there are 'grid', 'random' and 'optuna'.")
    if importlib.util.find_spec("optuna") is None:
        raise InputError("The search 'optuna' needs optuna, which is not installed: pip install 'lexrl[optuna]'.")
    return Optuna(over, trials, folder, signs)


def draw(over: Over, number: int) -> dict[str, Any]:
    """A random combination, decided by its number alone."""
    random = np.random.default_rng([20, number])
    return {
        name: given.at(random.random()) if isinstance(given, Range) else given[int(random.integers(len(given)))]
        for name, given in over.items()
    }
