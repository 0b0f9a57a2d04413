"""Tolerances as values: how much of an objective may be given up for the next one, as a function of state, time and Q.

The paper's tolerance function `tau(s, i, t, Q)` (supplement, "General form of VB-LRL"). Values compose: add them
(`Absolute(0.01) + Relative(0.05)`), multiply one with a schedule (`Absolute(1.0) * Power(0.3)`), give one for all
objectives or a tuple with one each.

A tolerance that shrinks to 0 faster than the Q-estimates converge breaks convergence: two actions that truly tie then
always differ by more than the tolerance, and the lower objectives never get to choose between them. Shrink slowly, or
use `Adaptive`, which shrinks with the estimates' own error.
"""

import abc
import re
from typing import Any, NamedTuple

import equinox as eqx

from lexrl.errors import InputError
from lexrl.lex import Arr, Slack
from lexrl.schedules import NUMBER, Schedule, percent, require_nonnegative, shown


class Moment(NamedTuple):
    """What a tolerance may depend on besides the values at a state."""

    time: Any = 1
    """Updates so far, from 1 on."""
    spread: Any = None
    """`[..., M, A]`: standard error of each Q-estimate, where the algorithm keeps it (`Adaptive` needs it)."""


class Tolerance(eqx.Module):
    """How far below the best an action may be and still be admissible."""

    @abc.abstractmethod
    def __call__(self, values: Arr, allowed: Arr, best: Arr, time: Any, spread: Arr | None) -> Arr:
        """`tau` from one objective's values `[..., A]`, `D_{i-1}` as a mask, the best value `[...]` in it, the time,
        and the standard errors `[..., A]` of the values."""

    def needs_spread(self) -> bool:
        """Must the algorithm keep the standard errors of its estimates?"""
        return False

    def __add__(self, other: "Tolerance") -> "Tolerance":
        return Sum((self, other))

    def __mul__(self, schedule: Schedule) -> "Tolerance":
        return Scheduled(self, schedule)


class Absolute(Tolerance):
    """A fixed amount, in the units of the objective's return."""

    amount: float

    def __check_init__(self):
        require_nonnegative("the absolute tolerance", self.amount)

    def __call__(self, values: Arr, allowed: Arr, best: Arr, time: Any, spread: Arr | None) -> Arr:
        return self.amount

    def __str__(self) -> str:
        return shown(self.amount)


class Relative(Tolerance):
    """A fraction of the best value's size, `share * |max_{D_{i-1}} q_i|`; 0 where the best value is 0."""

    share: float

    def __check_init__(self):
        require_nonnegative("the relative tolerance", self.share)

    def __call__(self, values: Arr, allowed: Arr, best: Arr, time: Any, spread: Arr | None) -> Arr:
        return self.share * abs(best)

    def __str__(self) -> str:
        return percent(self.share)


class Rounding(Tolerance):
    """Values are compared after rounding to a multiple of `step` (halves go up): what rounds like the best is equal."""

    step: float

    def __check_init__(self):
        require_nonnegative("the rounding step", self.step)

    def __call__(self, values: Arr, allowed: Arr, best: Arr, time: Any, spread: Arr | None) -> Arr:
        xp = best.__array_namespace__()
        return best - (xp.floor(best / self.step + 0.5) - 0.5) * self.step

    def __str__(self) -> str:
        return f"rounded to {self.step:g}"


class Adaptive(Tolerance):
    """Shrinks with the Q-estimates' own error, never faster: `minimum + scale * largest standard error in D_{i-1}`.

    The supplement leaves such a scheme as a conjecture. The algorithm keeps `V <- (1 - alpha)^2 V + (alpha delta)^2`,
    which is the sampling variance of an average with these weights; its root shrinks like sqrt(alpha), as the error of
    the estimate does, while the last change of Q shrinks like alpha and would be too fast.
    """

    scale: float = 4.0
    minimum: float = 0.0

    def __check_init__(self):
        require_nonnegative("the scale of an adaptive tolerance", self.scale)
        require_nonnegative("the minimum of an adaptive tolerance", self.minimum)

    def __call__(self, values: Arr, allowed: Arr, best: Arr, time: Any, spread: Arr | None) -> Arr:
        if spread is None:
            raise InputError(
                "An adaptive tolerance needs the standard errors of learned estimates, and the exact solver has none; "
                "give it an absolute or relative tolerance."
            )
        xp = spread.__array_namespace__()
        return self.minimum + self.scale * xp.max(xp.where(allowed, spread, 0.0), axis=-1)

    def needs_spread(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"{self.minimum:g} + {self.scale:g} standard errors"


class Scheduled(Tolerance):
    """A tolerance times a schedule, in the number of updates."""

    base: Tolerance
    schedule: Schedule

    def __call__(self, values: Arr, allowed: Arr, best: Arr, time: Any, spread: Arr | None) -> Arr:
        return self.base(values, allowed, best, time, spread) * self.schedule(time)

    def needs_spread(self) -> bool:
        return self.base.needs_spread()

    def __str__(self) -> str:
        return f"({self.base}) x ({self.schedule})"


class Sum(Tolerance):
    """Two or more tolerances added up."""

    terms: tuple[Tolerance, ...]

    def __call__(self, values: Arr, allowed: Arr, best: Arr, time: Any, spread: Arr | None) -> Arr:
        return sum(term(values, allowed, best, time, spread) for term in self.terms)

    def needs_spread(self) -> bool:
        return any(term.needs_spread() for term in self.terms)

    def __str__(self) -> str:
        return " + ".join(str(term) for term in self.terms)


Tolerances = Tolerance | tuple[Tolerance, ...]
"""One for all objectives, or one for each."""


NOW = Moment()
"""The first update, with nothing known about the estimates' errors."""


def slack(tolerances: Tolerances, moment: Moment = NOW) -> Slack:
    """The tolerance at a moment, in the form `lex.levels` takes."""

    def tau(i: int, values: Arr, allowed: Arr, best: Arr) -> Arr:
        one = tolerances[i] if isinstance(tolerances, tuple) else tolerances
        spread = None if moment.spread is None else moment.spread[..., i, :]
        return one(values, allowed, best, moment.time, spread)

    return tau


def needs_spread(tolerances: Tolerances) -> bool:
    """Must the algorithm keep the standard errors of its estimates for these?"""
    return any(one.needs_spread() for one in (tolerances if isinstance(tolerances, tuple) else (tolerances,)))


def as_tolerance(given: Any) -> Any:
    """A number is absolute; text may be `0.01`, `5%` or `0.01 + 5%`; a sequence gives one each."""
    if isinstance(given, list | tuple):
        return tuple(as_tolerance(one) for one in given)
    if isinstance(given, str):
        return parse(given)
    return given if isinstance(given, Tolerance) else Absolute(float(given) if isinstance(given, int) else given)


def as_optional_tolerance(given: Any) -> Any:
    """The same, where None stands for another tolerance."""
    return None if given is None else as_tolerance(given)


def parse(text: str) -> Tolerance:
    """Read `0.01`, `5%` or a sum of such."""
    terms = [_term(part, text) for part in re.split(r"(?<![eE])\+", text)]
    return terms[0] if len(terms) == 1 else Sum(tuple(terms))


def _term(part: str, whole: str) -> Tolerance:
    match = re.fullmatch(rf"\s*(-?{NUMBER})\s*(%?)\s*", part)
    if match is None:
        raise InputError(f"The tolerance {whole.strip()!r} cannot be read; write a number, '5%' or '0.01 + 5%'.")
    number = float(match[1])
    return Relative(number / 100) if match[2] else Absolute(number)
