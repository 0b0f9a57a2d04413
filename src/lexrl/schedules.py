"""Rates that change with time: learning rates, exploration, tolerances.

A schedule is a value with float parameters (traced: new numbers never compile again) that maps a count `n >= 1` to a
rate. What the theorems require of rates is answered by `robbins_monro`, `vanishes` and `decay`, from the formula, not
by sampling.

A linear schedule may last for a fraction of the run, `Linear(1.0, 0.05, OfRun(0.2))`. What `n` counts depends on the
setting, and `units.resolve` replaces the fraction by a number of such counts before training.
"""

import abc
import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from lexrl.errors import InputError

Count = Any
"""A Python number or an array of counts, from 1 on."""


class Schedule(eqx.Module):
    """A rate as a function of a count."""

    @abc.abstractmethod
    def __call__(self, n: Count) -> Any:
        """The rate at the n-th use."""

    def largest(self) -> Any:
        """The largest rate: the first one, unless the schedule can rise."""
        return self(1)

    @abc.abstractmethod
    def robbins_monro(self) -> bool:
        """Does the sum diverge while the sum of squares converges?"""

    @abc.abstractmethod
    def vanishes(self) -> bool:
        """Does the rate go to 0?"""

    @abc.abstractmethod
    def decay(self) -> float:
        """The p of `n^-p` that the rate behaves like for large n: 0 if it stays above 0, infinite if it becomes 0."""


class Constant(Schedule):
    """The same rate throughout: the practical choice, outside the theorems where they require a vanishing one."""

    value: float

    def __check_init__(self):
        require_nonnegative("the rate", self.value)

    def __call__(self, n: Count) -> Any:
        return self.value

    def robbins_monro(self) -> bool:
        return False

    def vanishes(self) -> bool:
        return self.value == 0

    def decay(self) -> float:
        return math.inf if self.value == 0 else 0.0

    def __str__(self) -> str:
        return shown(self.value)


class Power(Schedule):
    """`min(1, scale * n^-exponent)`: Robbins-Monro for exponents in (0.5, 1], GLIE exploration for exponent 1."""

    exponent: float
    scale: float = 1.0

    def __check_init__(self):
        require_nonnegative("the exponent of a schedule n^-p", self.exponent)
        require_nonnegative("the scale of a schedule", self.scale)

    def __call__(self, n: Count) -> Any:
        if _plain(n, self.exponent, self.scale):
            return min(1.0, self.scale * n**-self.exponent)
        return jnp.minimum(1.0, self.scale * jnp.asarray(n, jnp.float32) ** -self.exponent)

    def robbins_monro(self) -> bool:
        return 0.5 < self.exponent <= 1 and self.scale > 0

    def vanishes(self) -> bool:
        return self.exponent > 0 or self.scale == 0

    def decay(self) -> float:
        return math.inf if self.scale == 0 else float(self.exponent)

    def __str__(self) -> str:
        return f"{'' if self.scale == 1 else f'{shown(self.scale)} '}n^-{shown(self.exponent)}"


Schedules = Schedule | tuple[Schedule, ...]
"""One for all objectives, or one each."""


class OfRun(eqx.Module):
    """A length as a fraction of the run."""

    fraction: float = 1.0

    def __check_init__(self):
        if isinstance(self.fraction, int | float) and not 0 < self.fraction <= 1:
            raise InputError(
                f"The fraction of the run is {self.fraction:g}; it must be above 0 and at most 1, which is 100%."
            )

    def __str__(self) -> str:
        return percent(self.fraction)


class Linear(Schedule):
    """From `start` to `end` in a straight line over `steps` counts, then constant; by default over the whole run."""

    start: float
    end: float
    steps: float | OfRun = OfRun()

    def __check_init__(self):
        require_nonnegative("the length of a linear schedule", self.steps)

    def __call__(self, n: Count) -> Any:
        if isinstance(self.steps, OfRun):
            raise InputError(
                f"The schedule '{self}' lasts for a fraction of a run, so it has no values before the length of the "
                f"run is known; train with it, or write its length, as in "
                f"'{shown(self.start)} to {shown(self.end)} in 1e5'."
            )
        if _plain(n, self.start, self.end, self.steps):
            return self.start + (self.end - self.start) * (min(1.0, n / self.steps) if self.steps else 1.0)
        return self.start + (self.end - self.start) * jnp.minimum(1.0, jnp.asarray(n, jnp.float32) / self.steps)

    def largest(self) -> Any:
        return max(self.start, self.end) if _plain(self.start, self.end) else jnp.maximum(self.start, self.end)

    def robbins_monro(self) -> bool:
        return False

    def vanishes(self) -> bool:
        return self.end == 0

    def decay(self) -> float:
        return math.inf if self.end == 0 else 0.0

    def __str__(self) -> str:
        ends = f"{shown(self.start)} to {shown(self.end)}"
        if not isinstance(self.steps, OfRun):
            return f"{ends} in {shown(self.steps)}"
        return ends if self.steps.fraction == 1 else f"{ends} in {percent(self.steps.fraction)}"


def as_length(given: Any) -> Any:
    """A number of counts; text may also be a fraction of the run, as in `50%`."""
    if not isinstance(given, str):
        return given
    number = re.fullmatch(rf"\s*({NUMBER})\s*(%?)\s*", given)
    if number is None:
        raise InputError(f"The length {given!r} cannot be read; write a number, or a fraction of the run as in '50%'.")
    return OfRun(float(number[1]) / 100) if number[2] else float(number[1])


def glie(scale: float = 1.0) -> Power:
    """`min(1, scale / n)`: greedy in the limit with infinite exploration."""
    return Power(exponent=1.0, scale=scale)


def vanishes_against(a: Schedule, b: Schedule) -> bool:
    """Does `a(n) / b(n)` go to 0? Not where b becomes 0 itself."""
    return a.decay() - b.decay() > 1e-9  # sums of exponents are rounded


def as_schedule(rate: Any, name: str = "rate") -> Schedule:
    """A number is a constant. Text may be `0.01`, `n^-0.7`, `100/n`, `1 to 0.05 in 1e5` (counts), `1 to 0.05 in 20%`
    (of the run) or `1 to 0.05` (the whole run)."""
    if isinstance(rate, Schedule):
        return rate
    if not isinstance(rate, str):
        require_nonnegative(f"the {name}", rate)
        return Constant(float(rate) if isinstance(rate, int) else rate)
    text = rate.strip()
    number = rf"({NUMBER})"
    if any(math.isinf(float(each)) for each in re.findall(number, text)):
        raise InputError(f"The schedule {rate!r} has an infinite number; write finite ones.")
    if match := re.fullmatch(number, text):
        return Constant(float(match[1]))
    if match := re.fullmatch(rf"(?:{number}\s*\*?\s*)?n\s*\^\s*-\s*{number}", text):
        return Power(exponent=float(match[2]), scale=float(match[1] or 1))
    if match := re.fullmatch(rf"{number}\s*/\s*n", text):
        return glie(float(match[1]))
    if match := re.fullmatch(rf"{number}\s+to\s+{number}(?:\s+in\s+{number}\s*(%?))?", text):
        length = OfRun() if match[3] is None else OfRun(float(match[3]) / 100) if match[4] else float(match[3])
        return Linear(float(match[1]), float(match[2]), length)
    raise InputError(
        f"The schedule {rate!r} cannot be read; write a number, 'n^-0.7', '100/n', '1 to 0.05' (over the whole run), "
        "'1 to 0.05 in 20%' or '1 to 0.05 in 1e5'."
    )


def as_schedules(given: Any, name: str = "rate") -> Any:
    """One schedule for all objectives, or one each."""
    several = isinstance(given, list | tuple)
    return tuple(as_schedule(one, name=name) for one in given) if several else as_schedule(given, name=name)


def named(name: str) -> Callable[[Any], Schedule]:
    """`as_schedule` for a setting, with errors that name it."""
    return partial(as_schedule, name=name)


NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""A number without a sign."""


def shown(value: float) -> str:
    """A number as text: short where that says it all, else with every digit, so that it is read back the same."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


def percent(fraction: float) -> str:
    """A fraction as text that is read back the same."""
    short = f"{100 * fraction:g}"
    return f"{short if float(short) / 100 == fraction else repr(100 * fraction)}%"


def _plain(*numbers: Any) -> bool:
    return all(isinstance(number, int | float) for number in numbers)


def require_nonnegative(what: str, value: Any) -> None:
    """Refuse a negative or NaN number; traced values pass, since they were checked before."""
    if isinstance(value, int | float) and (value < 0 or math.isnan(value)):
        raise InputError(f"{what[0].upper()}{what[1:]} is {value:g}; it must be 0 or more.")
