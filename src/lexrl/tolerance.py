"""Tolerances as values: how much of an objective may be given up for the next one, as a function of state, time and Q.

The paper's tolerance function `tau(s, i, t, Q)` (supplement, "General form of VB-LRL"). Values compose: add them
(`Absolute(0.01) + Relative(0.05)`), multiply one with a schedule (`Absolute(1.0) * Power(0.3)`), give one for all
objectives or a tuple with one each.

A tolerance that shrinks to 0 faster than the Q-estimates converge breaks convergence: two actions that truly tie then
always differ by more than the tolerance, and the lower objectives never get to choose between them. That is what
`Evidence` is for: what the estimates cannot tell apart is added to what may be given up,

    a in D_i  iff  a in D_{i-1}  and  q_i(b) - q_i(a) <= c_i (tau_i + e_i(a, b)),        b the best of D_{i-1}

with a scale `c_i` that a `lexrl.guard.Guard` lowers where small losses add up to a large one.
"""

import abc
import math
import re
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from lexrl.errors import InputError
from lexrl.lex import Arr, Slack, per_action
from lexrl.schedules import NUMBER, Schedule, percent, require_nonnegative, shown


class Estimates(NamedTuple):
    """How well the values that are compared are known."""

    error: Any
    """`[..., M, A]`: standard error of each value; infinite where nothing is known."""
    span: Any
    """`[M]`: the range of each objective's values, as a unit."""
    scale: Any
    """`[M]`: `c_i`, which multiplies what objective i gives away; 0 for the last objective (`lex.gives_way`)."""


class Moment(NamedTuple):
    """What a tolerance may depend on besides the values at a state."""

    time: Any = 1
    """Updates so far, from 1 on."""
    estimates: Estimates | None = None
    """How well the values are known, where there is an `Evidence` to judge it."""


class Tolerance(eqx.Module):
    """How far below the best an action may be and still be admissible."""

    @abc.abstractmethod
    def __call__(self, values: Arr, allowed: Arr, best: Arr, time: Any) -> Arr:
        """`tau` from one objective's values `[..., A]`, `D_{i-1}` as a mask, the best value `[...]` in it, the time."""

    def __add__(self, other: "Tolerance") -> "Tolerance":
        return Sum((self, other))

    def __mul__(self, schedule: Schedule) -> "Tolerance":
        return Scheduled(self, schedule)


class Absolute(Tolerance):
    """A fixed amount, in the units of the objective's return."""

    amount: float

    def __check_init__(self):
        require_nonnegative("the absolute tolerance", self.amount)

    def __call__(self, values: Arr, allowed: Arr, best: Arr, time: Any) -> Arr:
        return self.amount

    def __str__(self) -> str:
        return shown(self.amount)


class Relative(Tolerance):
    """A fraction of the best value's size, `share * |max_{D_{i-1}} q_i|`; 0 where the best value is 0."""

    share: float

    def __check_init__(self):
        require_nonnegative("the relative tolerance", self.share)

    def __call__(self, values: Arr, allowed: Arr, best: Arr, time: Any) -> Arr:
        return self.share * abs(best)

    def __str__(self) -> str:
        return percent(self.share)


class Rounding(Tolerance):
    """Values are compared after rounding to a multiple of `step` (halves go up): what rounds like the best is equal."""

    step: float

    def __check_init__(self):
        require_nonnegative("the rounding step", self.step)

    def __call__(self, values: Arr, allowed: Arr, best: Arr, time: Any) -> Arr:
        xp = best.__array_namespace__()
        return best - (xp.floor(best / self.step + 0.5) - 0.5) * self.step

    def __str__(self) -> str:
        return f"rounded to {self.step:g}"


class Scheduled(Tolerance):
    """A tolerance times a schedule, in the number of updates."""

    base: Tolerance
    schedule: Schedule

    def __call__(self, values: Arr, allowed: Arr, best: Arr, time: Any) -> Arr:
        return self.base(values, allowed, best, time) * self.schedule(time)

    def __str__(self) -> str:
        return f"({self.base}) x ({self.schedule})"


class Sum(Tolerance):
    """Two or more tolerances added up."""

    terms: tuple[Tolerance, ...]

    def __call__(self, values: Arr, allowed: Arr, best: Arr, time: Any) -> Arr:
        return sum(term(values, allowed, best, time) for term in self.terms)

    def __str__(self) -> str:
        return " + ".join(str(term) for term in self.terms)


Tolerances = Tolerance | tuple[Tolerance, ...]
"""One for all objectives, or one for each."""


class Evidence(eqx.Module):
    """What estimates cannot tell apart, for each pair of the best action b and another action a:

        e_i(a, b) = max(standard_errors * sqrt(se_i(a)^2 + se_i(b)^2), resolution * span_i)

    It is in the objective's own units, and shrinks as fast as the estimates become certain.
    """

    standard_errors: float = 4.0
    """A difference counts if it is larger than so many of its standard errors."""
    resolution: float = 0.001
    """A difference smaller than this share of the objective's range never counts."""

    def __check_init__(self):
        require_nonnegative("the number of standard errors", self.standard_errors)
        require_nonnegative("the resolution", self.resolution)

    def __call__(self, values: Arr, allowed: Arr, best: Arr, error: Arr, span: Arr) -> Arr:
        """`e_i` of each action `[..., A]`, from one objective's values and their standard errors."""
        xp = values.__array_namespace__()
        of_best = xp.max(xp.where(allowed & (values == best[..., None]), error, 0.0), axis=-1, keepdims=True)
        return xp.maximum(self.standard_errors * xp.sqrt(error**2 + of_best**2), self.resolution * span)

    def __str__(self) -> str:
        return f"{shown(self.standard_errors)} standard errors, at least {percent(self.resolution)} of the range"


NOW = Moment()
"""The first update, with nothing known about the estimates' errors."""


def slack(tolerances: Tolerances, moment: Moment = NOW, evidence: Evidence | None = None) -> Slack:
    """The tolerance at a moment, with what the estimates cannot tell apart, in the form `lex.levels` takes."""

    def tau(i: int, values: Arr, allowed: Arr, best: Arr) -> Arr:
        one = tolerances[i] if isinstance(tolerances, tuple) else tolerances
        amount, known = one(values, allowed, best, moment.time), moment.estimates
        if evidence is None or known is None:
            return amount
        xp = values.__array_namespace__()
        unclear = evidence(values, allowed, best, known.error[..., i, :], known.span[i])
        total = per_action(amount, values) + unclear
        return xp.where(known.scale[i] > 0, known.scale[i] * total, 0.0)  # 0 x inf is no number

    return tau


def of_returns(tolerances: Tolerances, returns: Arr, num_updates: Any) -> Arr:
    """`tau_j` for returns `[M]` of this size: what each may lose."""
    tau, xp = slack(tolerances, Moment(num_updates)), returns.__array_namespace__()
    each = [tau(i, returns[i], True, returns[i]) for i in range(returns.shape[0])]
    return xp.stack([xp.asarray(one, dtype=returns.dtype) for one in each])


def as_evidence(given: Any) -> Any:
    """A number of standard errors; `none` is no evidence."""
    if isinstance(given, str):
        return None if given.strip() == "none" else Evidence(as_standard_errors(given, "evidence"))
    return Evidence(float(given)) if isinstance(given, int | float) else given


def as_tolerance(given: Any) -> Any:
    """A number is absolute; text may be `0.01`, `5%` or `0.01 + 5%`; a sequence or a NumPy array gives one each."""
    if isinstance(given, np.ndarray) and given.ndim == 1:
        return as_tolerance(given.tolist())
    if isinstance(given, list | tuple):
        return tuple(as_tolerance(one) for one in given)
    if isinstance(given, str):
        return parse(given)
    if given is None:
        raise InputError("The tolerance is None; write a number, '5%' or '0.01 + 5%', or one for each objective.")
    if isinstance(given, Evidence):
        raise InputError(
            "Evidence is no tolerance: it judges the estimates of action values, and value-based algorithms have a "
            "setting of that name; use an absolute or relative tolerance."
        )
    if isinstance(given, Tolerance):
        return given
    amount: Any = float(given) if isinstance(given, int) else given
    return Absolute(amount)


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
    if math.isinf(number):
        raise InputError(f"The tolerance {whole.strip()!r} is infinite; write a finite number.")
    return Relative(number / 100) if match[2] else Absolute(number)


def as_standard_errors(text: str, name: str) -> float:
    """A number of standard errors, from text."""
    if re.fullmatch(rf"\s*{NUMBER}\s*", text) is None:
        raise InputError(f"The {name} {text!r} cannot be read; write a number of standard errors, or 'none'.")
    return float(text)
