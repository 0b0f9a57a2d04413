"""The learning rates of Theorem 3, on time-scales

    beta_i / alpha -> 0        eta_i / beta_i -> 0        beta_i / eta_{i-1} -> 0

where alpha is `critic_learning_rate`, beta_i is `learning_rate` times the i-th `multipliers.beta`, and eta_0 .. eta_M
are `multipliers.eta`.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from lexrl.schedules import Constant, Schedule, vanishes_against
from lexrl.theory.conditions import Condition
from lexrl.theory.policies import Case

_FAR = 10**9
"""Where the limit of a rate is read off."""


class Rate(NamedTuple):
    """A rate and its name."""

    name: str
    schedule: Schedule

    def __str__(self) -> str:
        return f"{self.name} = {self.schedule}"


class Rates(NamedTuple):
    """All rates of Theorem 3."""

    alpha: Rate
    beta: tuple[Rate, ...]
    eta: tuple[Rate, ...]

    def all(self) -> tuple[Rate, ...]:
        return (self.alpha, *self.beta, *self.eta)


class Product(Schedule):
    """Two schedules multiplied: their exponents add up."""

    a: Schedule
    b: Schedule

    def __call__(self, n: Any) -> Any:
        return self.a(n) * self.b(n)

    def robbins_monro(self) -> bool:
        return _sums(self) is None

    def vanishes(self) -> bool:
        return self.decay() > 0

    def decay(self) -> float:
        return self.a.decay() + self.b.decay()

    def __str__(self) -> str:
        if self.b == Constant(1.0):
            return str(self.a)
        return f"({self.a}) x ({self.b})"


def rates_of(case: Case) -> Rates:
    """The rates of an algorithm."""
    multipliers, rate = case.algorithm.multipliers, case.algorithm.learning_rate
    betas = multipliers.beta if isinstance(multipliers.beta, tuple) else (multipliers.beta,) * case.m
    etas = multipliers.eta if isinstance(multipliers.eta, tuple) else (multipliers.eta,) * (case.m + 1)
    return Rates(
        Rate("alpha", case.algorithm.critic_learning_rate),
        tuple(Rate(f"beta_{i}", Product(rate, beta)) for i, beta in enumerate(betas, 1)),
        tuple(Rate(f"eta_{i}", eta) for i, eta in enumerate(etas)),
    )


def in_unit_interval(rates: Rates) -> Condition:
    """Are all rates at most 1?"""
    text = "every rate lies in [0, 1]"
    outside = [str(rate) for rate in rates.all() if not all(0 <= rate.schedule(n) <= 1 for n in (1, _FAR))]
    if outside:
        return Condition(text, "fails", ", ".join(outside))
    largest = max(rates.all(), key=lambda rate: rate.schedule(1))
    return Condition(text, "holds", f"the largest is {largest}")


def robbins_monro(rates: Rates) -> Condition:
    """Do rates fall fast enough, and not too fast?"""
    text = "every rate: its sum diverges, its sum of squares converges"
    faults: dict[str, list[str]] = {}
    for rate in rates.all():
        if fault := _sums(rate.schedule):
            faults.setdefault(fault, []).append(str(rate))
    if not faults:
        return Condition(text, "holds", ", ".join(map(str, rates.all())))
    shown = "; ".join(f"{fault}: {', '.join(which)}" for fault, which in faults.items())
    usual = " (constant rates are the practical default, and the theorem does not cover them)"
    return Condition(text, "fails", shown + (usual if "constant" in faults else ""))


def _sums(rate: Schedule) -> str | None:
    """What is wrong with a rate's sums, if something is."""
    p = rate.decay()
    if p == 0:
        return "constant"
    if p <= 0.5 + 1e-9:
        return "squares do not converge"
    if math.isinf(p):
        return "0 in the end"
    return "the sum converges" if p > 1 + 1e-9 else None


def time_scales(text: str, pairs: Iterable[tuple[Rate, Rate]]) -> Condition:
    """Each first rate must vanish against the second."""
    shown, holds = [], True
    for slow, fast in pairs:
        holds &= vanishes_against(slow.schedule, fast.schedule)
        shown.append(f"{slow.name} / {fast.name} {_ratio(slow.schedule.decay(), fast.schedule.decay())}")
    return Condition(f"{text} -> 0", "holds" if holds else "fails", "; ".join(shown))


def _ratio(slow: float, fast: float) -> str:
    if math.isinf(fast):
        return "divides by a rate that is 0 in the end"
    if math.isinf(slow):
        return "is 0 in the end"
    exponent = round(fast - slow, 9)
    return f"is like n^{exponent:g}" if exponent else "does not vanish"
