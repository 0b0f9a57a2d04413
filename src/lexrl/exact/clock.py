"""How long a solver may take, and whom it tells how far it is."""

import math
import numbers
import time
from collections.abc import Callable
from typing import NamedTuple

from lexrl.errors import InputError


class Progress(NamedTuple):
    """Where a solver is."""

    objective: str
    iteration: int
    seconds: float
    bound: float
    """The best return of this objective is at most so much above the one found so far; infinite while that is not
    known."""

    def __str__(self) -> str:
        known = "" if math.isinf(self.bound) else f", at most {self.bound:.2g} to gain"
        return f"{self.objective}: iteration {self.iteration}, {self.seconds:.1f} s{known}"


class Clock:
    """Counts the seconds of one solve."""

    def __init__(self, time_limit: float | None = None, progress: Callable[[Progress], None] | None = None):
        if time_limit is not None and not (isinstance(time_limit, numbers.Real) and time_limit > 0):
            raise InputError(f"The time limit is {time_limit!r}; it must be a number of seconds above 0.")
        self._start, self._limit, self._progress = time.monotonic(), time_limit, progress

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start

    @property
    def expired(self) -> bool:
        return self._limit is not None and self.seconds >= self._limit

    def report(self, objective: str, iteration: int, bound: float) -> None:
        """Tell whoever wants to know."""
        if self._progress is not None:
            self._progress(Progress(objective, iteration, self.seconds, bound))
