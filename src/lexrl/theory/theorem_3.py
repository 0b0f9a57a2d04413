"""Theorem 3 lifts what is known of one objective to several, on time-scales

    beta_i / alpha -> 0        eta_i / beta_i -> 0        beta_i / eta_{i-1} -> 0        tau = o(beta_M)

where alpha is `critic_rate`, beta_i is `rate` times the i-th `dual.beta`, and eta_0 .. eta_M are `dual.eta`.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from lexrl import tolerance as tol
from lexrl.algorithms import LA2C, LPPO
from lexrl.optimizers import optimizer_name
from lexrl.schedules import Constant, Schedule, vanishes_against
from lexrl.theory.case import Case, smooth, smooth_policy
from lexrl.theory.conditions import Condition, Verdict, bounded, none_of, weakest

_FAR = 10**9
"""Where the limit of a rate is read off."""


def theorem_3(case: Case) -> tuple[Condition, ...]:
    """The theorem's own conditions."""
    rates = _rates(case)
    return (
        smooth_policy(case),
        _smooth_critics(case),
        _same_form(case),
        bounded(case.world, case.process),
        _in_unit_interval(rates),
        _robbins_monro(rates),
        _time_scales("beta_i / alpha", [(beta, rates.alpha) for beta in rates.beta]),
        _time_scales("eta_i / beta_i", list(zip(rates.eta[1:], rates.beta, strict=True))),
        _time_scales("beta_i / eta_{i-1}", list(zip(rates.beta, rates.eta[:-1], strict=True))),
        _tolerance(case, rates.beta[-1]),
        _plain_steps(case),
        _plain_prices(case),
        Condition("parameters are kept in a compact set", "unknown", "parameters are not projected"),
    )


def _smooth_critics(case: Case) -> Condition:
    networks = case.algorithm.networks
    return smooth("critics are continuously differentiable", case.critic_hidden_sizes, networks.activation)


def _same_form(case: Case) -> Condition:
    algorithm = case.algorithm
    gain = "Q_i" if algorithm.networks.action_values else "A_i"
    if isinstance(algorithm, LA2C):
        form = f"E[log pi {gain}]"
    elif algorithm.surrogate == "kl_penalty":
        form = f"E[rho {gain}] - kappa KL"
    else:
        form = f"E[rho {gain}], clipped"
    return Condition("the same form of objective for all", "holds", f"K_i = {form}")


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


class _Product(Schedule):
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


def _rates(case: Case) -> Rates:
    dual, rate = case.algorithm.dual, case.algorithm.learning_rate
    betas = dual.beta if isinstance(dual.beta, tuple) else (dual.beta,) * case.m
    etas = dual.eta if isinstance(dual.eta, tuple) else (dual.eta,) * (case.m + 1)
    return Rates(
        Rate("alpha", case.algorithm.critic_learning_rate),
        tuple(Rate(f"beta_{i}", _Product(rate, beta)) for i, beta in enumerate(betas, 1)),
        tuple(Rate(f"eta_{i}", eta) for i, eta in enumerate(etas)),
    )


def _in_unit_interval(rates: Rates) -> Condition:
    text = "every rate lies in [0, 1]"
    outside = [str(rate) for rate in rates.all() if not all(0 <= rate.schedule(n) <= 1 for n in (1, _FAR))]
    if outside:
        return Condition(text, "fails", ", ".join(outside))
    largest = max(rates.all(), key=lambda rate: rate.schedule(1))
    return Condition(text, "holds", f"the largest is {largest}")


def _robbins_monro(rates: Rates) -> Condition:
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


def _time_scales(text: str, pairs: Iterable[tuple[Rate, Rate]]) -> Condition:
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


class _Shrinking(NamedTuple):
    """What is known of a tolerance in time."""

    decay: float
    """It vanishes at least like `n^-decay`."""
    fixed: bool
    """Its size does not depend on the objective's level."""


def _tolerance(case: Case, beta: Rate) -> Condition:
    """`tau_t > 0` keeps the constraints satisfiable, and it must vanish faster than the slowest policy step."""
    text = f"tau > 0 and tau = o(beta_M), for all but the last objective (M = {case.m})"
    given = case.order.tolerances(case.algorithm.tolerance)
    each = given[:-1] if isinstance(given, tuple) else (given,) * (case.m - 1)
    if not each:
        return Condition(text, "holds", "one objective restricts nobody")
    verdicts = [_tolerance_verdict(one, beta) for one in each]
    shown = "; ".join(
        f"tau_{i} = {one}: {why}" for i, (one, (_, why)) in enumerate(zip(each, verdicts, strict=True), 1)
    )
    return Condition(text, weakest(Condition(text, verdict, why) for verdict, why in verdicts), shown)


def _tolerance_verdict(tolerance: tol.Tolerance, beta: Rate) -> tuple[Verdict, str]:
    known = _shrinking(tolerance)
    if known is None:
        return "unknown", "how fast it shrinks is not known"
    if math.isinf(known.decay):
        return "fails", "0 in the end"
    slowest = beta.schedule.decay()
    if not known.decay - slowest > 1e-9:
        against = f"beta_M is like n^-{slowest:g}"
        return "fails", "constant" if known.decay == 0 else f"like n^-{known.decay:g}, but {against}"
    if not known.fixed:
        return "unknown", f"vanishes like n^-{known.decay:g} or faster, but is 0 where the level is"
    return "holds", f"like n^-{known.decay:g}, and beta_M like n^-{slowest:g}"


def _shrinking(tolerance: tol.Tolerance) -> _Shrinking | None:
    match tolerance:
        case tol.Absolute():
            return _Shrinking(0.0 if tolerance.amount > 0 else math.inf, True)
        case tol.Relative():
            return _Shrinking(0.0 if tolerance.share > 0 else math.inf, False)
        case tol.Rounding():
            return _Shrinking(0.0 if tolerance.step > 0 else math.inf, False)
        case tol.Scheduled():
            base = _shrinking(tolerance.base)
            return base and _Shrinking(base.decay + tolerance.schedule.decay(), base.fixed)
        case tol.Sum():
            terms = [_shrinking(term) for term in tolerance.terms]
            known = [term for term in terms if term is not None]
            if len(known) < len(terms):
                return None
            return _Shrinking(
                min(term.decay for term in known), any(term.fixed and term.decay < math.inf for term in known)
            )
    return None


def _plain_steps(case: Case) -> Condition:
    algorithm, networks = case.algorithm, case.algorithm.networks
    clipped = isinstance(algorithm, LPPO) and algorithm.surrogate == "clip" and case.m > 1
    others = {
        f"the optimizer is {optimizer_name(networks.optimizer)}": networks.optimizer != "sgd",
        f"gradients are clipped to norm {networks.max_grad_norm:g}": networks.max_grad_norm > 0,
        "advantages are standardised": algorithm.normalize_advantage,
        f"there is a bonus for entropy, {algorithm.ent_coef}": not algorithm.ent_coef.vanishes(),
        "the clipped objective of a sum is not the sum of clipped ones": clipped,
        "one objective moves the policy at a time (sequential)": algorithm.dual.sequential,
        "terms of second order are added": algorithm.dual.second_order,
    }
    return none_of("steps are plain, along the gradient of sum_i c_i K_i", others, "sgd, nothing added")


def _plain_prices(case: Case) -> Condition:
    text = "prices are plain: lambda_j + eta (k_j - tau - K_j), or 0 if that is negative"
    dual = case.algorithm.dual
    if case.m == 1:
        return Condition(text, "holds", "one objective has no price")
    if dual.normalize_violation:
        return Condition(text, "fails", "distances are measured in standard deviations (scaled)")
    if math.isfinite(dual.max_multiplier):
        return Condition(
            text, "unknown", f"no price rises above {dual.max_multiplier:g}, and a higher one may be needed"
        )
    return Condition(text, "holds", f"eta counts per {dual.stats_window_size:g} episodes, no ceiling")
