"""Theorem 3 lifts what is known of one objective to several, if rates are on separate time-scales (`rates`) and

tau > 0        tau = o(beta_M)
"""

import math
from typing import NamedTuple

from lexrl import tolerance as tol
from lexrl.algorithms.q_critic import LPPOQCritic
from lexrl.algorithms.second_order import LA2CSecondOrder, LPPOSecondOrder
from lexrl.optimizers import optimizer_name
from lexrl.theory.conditions import Condition, Verdict, bounded, none_of, weakest
from lexrl.theory.policies import AnyLA2C, AnyLPPO, Case, smooth, smooth_policy
from lexrl.theory.rates import Rate, in_unit_interval, rates_of, robbins_monro, time_scales


def theorem_3(case: Case) -> tuple[Condition, ...]:
    """The theorem's own conditions."""
    rates = rates_of(case)
    return (
        smooth_policy(case),
        _smooth_critics(case),
        _same_form(case),
        bounded(case.env, case.process),
        in_unit_interval(rates),
        robbins_monro(rates),
        time_scales("beta_i / alpha", [(beta, rates.alpha) for beta in rates.beta]),
        time_scales("eta_i / beta_i", list(zip(rates.eta[1:], rates.beta, strict=True))),
        time_scales("beta_i / eta_{i-1}", list(zip(rates.beta, rates.eta[:-1], strict=True))),
        _tolerance(case, rates.beta[-1]),
        _plain_steps(case),
        _plain_multipliers(case),
        Condition("parameters are kept in a compact set", "unknown", "parameters are not projected"),
    )


def _smooth_critics(case: Case) -> Condition:
    networks = case.algorithm.networks
    return smooth("critics are continuously differentiable", case.critic_hidden_sizes, networks.activation)


def _same_form(case: Case) -> Condition:
    algorithm = case.algorithm
    gain = "Q_i" if isinstance(algorithm, LPPOQCritic) else "A_i"
    if isinstance(algorithm, AnyLA2C):
        form = f"E[log pi {gain}]"
    elif algorithm.surrogate == "kl_penalty":
        form = f"E[rho {gain}] - kappa KL"
    else:
        form = f"E[rho {gain}], clipped"
    return Condition("the same form of objective for all", "holds", f"K_i = {form}")


class _Shrinking(NamedTuple):
    """What is known of a tolerance in time."""

    decay: float
    """It vanishes at least like `n^-decay`."""
    fixed: bool
    """Its size does not depend on the objective's return."""


def _tolerance(case: Case, beta: Rate) -> Condition:
    """`tau_t > 0` keeps the constraints satisfiable, and it must vanish faster than the slowest policy step."""
    text = f"tau > 0 and tau = o(beta_M), for all but the last objective (M = {case.m})"
    given = case.order.tolerances(case.algorithm.tolerance)
    each = given[:-1] if isinstance(given, tuple) else (given,) * (case.m - 1)
    if not each:
        return Condition(text, "holds", "one objective constrains no other")
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
        return "unknown", f"vanishes like n^-{known.decay:g} or faster, but is 0 where the return is"
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
    clipped = isinstance(algorithm, AnyLPPO) and algorithm.surrogate == "clip" and case.m > 1
    others = {
        f"the optimizer is {optimizer_name(networks.optimizer)}": networks.optimizer != "sgd",
        f"gradients are clipped to norm {networks.max_grad_norm:g}": networks.max_grad_norm > 0,
        "advantages are normalized": algorithm.normalize_advantage,
        f"there is an entropy bonus, {algorithm.ent_coef}": not algorithm.ent_coef.vanishes(),
        "the clipped objective of a sum is not the sum of clipped ones": clipped,
        "one objective moves the policy at a time (sequential)": algorithm.convergence.sequential,
        "terms of second order are added": isinstance(algorithm, LA2CSecondOrder | LPPOSecondOrder),
    }
    return none_of("steps are plain, along the gradient of sum_i c_i K_i", others, "sgd, nothing added")


def _plain_multipliers(case: Case) -> Condition:
    text = "multipliers are plain: lambda_j + eta (k_j - tau - K_j), or 0 if that is negative"
    multipliers = case.algorithm.multipliers
    if case.m == 1:
        return Condition(text, "holds", "one objective has no multiplier")
    if multipliers.normalize_violation:
        return Condition(text, "fails", "violations are measured in standard deviations (normalize_violation)")
    if math.isfinite(multipliers.max_multiplier):
        return Condition(
            text, "unknown", f"no multiplier rises above {multipliers.max_multiplier:g}, and a higher one may be needed"
        )
    return Condition(
        text, "holds", f"eta counts per {case.algorithm.convergence.stats_window_size:g} episodes, no upper bound"
    )
