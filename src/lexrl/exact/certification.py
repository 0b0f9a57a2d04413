"""Certificates for any given solution: what is claimed is computed again, from the claim and the MOMDP alone."""

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from lexrl.doubled import Doubled
from lexrl.errors import InputError
from lexrl.exact import average, chains, columns
from lexrl.exact.backups import exact_rewards, judge, single
from lexrl.exact.certificate import Certificate
from lexrl.exact.columns import Row
from lexrl.exact.evaluation import Evaluation, as_policy, evaluate, require_momdp
from lexrl.exact.iteration import (
    Level,
    certificate_of,
    endless,
    first_policy,
    judge_level,
    refuse_limits,
    start_within,
    tolerances_of,
)
from lexrl.exact.linear import choose
from lexrl.exact.policy_iteration import optimize
from lexrl.exact.programs import ProgramSolution, common_gamma, occupancy, threshold_of
from lexrl.exact.proper import states
from lexrl.momdp import MOMDP, as_numbers
from lexrl.order import Order, as_order

_ROUNDING = 2.0**-51
"""Values are doubles: they may be off by their last digit."""
_PROGRAM = 1e-9
"""Relative precision of the returns of a program's policy, which went through a mixture."""
_PRICED = 2.0**-48
"""Relative precision of what follows from prices, which are doubles."""


def certify(momdp: MOMDP, order: Order | str | None, policy: Any, values: Any, *, tolerance: Any = 0.0) -> Certificate:
    """The certificate of a policy and values that are claimed to be the lexicographic optimum with action tolerance.

    Everything is computed again: the values of each objective on the sets that those of the more important ones leave,
    whether an action would be better, and whether the policy stays in the sets. What is not so is in
    `Certificate.faults`.

    Args:
        momdp: the process.
        order: the objectives by importance.
        policy: `[S, A]`, claimed to choose among the actions that all objectives leave.
        values: `[M, S]`, ordered and signed as in `Solution.values`.
        tolerance: as `solve` takes it.
    """
    order = as_order(order, require_momdp(momdp).signals)
    refuse_limits(order)
    process = momdp.ordered(order)
    weights, claimed = as_policy(policy, process), as_numbers("values", values)
    if claimed.shape != (process.num_objectives, process.num_states):
        raise InputError(
            f"The values have shape {claimed.shape}; they need {(process.num_objectives, process.num_states)}: one for "
            "each objective and state."
        )
    tolerances = tolerances_of(order, tolerance)
    allowed, start = process.action_mask, first_policy(process)
    levels, faults = [], []
    for i in range(process.num_objectives):
        optimum = optimize(process, i, allowed, start_within(process, i, allowed, start))
        levels.append(Level(optimum, judge_level(process, i, optimum, allowed, tolerances)))
        faults += _value_faults(process, i, claimed[i], levels[-1])
        allowed, start = levels[-1].judged.reached, optimum.policy
    outside = np.argwhere((weights > 0) & ~allowed & ~process.terminal[:, None])
    if len(outside):
        state, action = outside[0]
        i = next(k for k, level in enumerate(levels) if not level.judged.reached[state, action])
        faults.append(
            f"The policy takes action {action} in state {state}, which {process.signals[i]} does not leave"
            f"{_more(len(outside))}."
        )
    if (never := endless(process, weights)).size:
        faults.append(f"Gamma is 1, but from {states(never)} the policy never reaches a terminal state.")
    return certificate_of(process, levels, tuple(faults))


def _value_faults(process: MOMDP, i: int, claimed: Float[np.ndarray, " S"], level: Level) -> list[str]:
    truth, error = level.optimum.values.value.hi, level.optimum.values.error
    off = ~(np.abs(claimed - truth) <= _ROUNDING * np.abs(truth) + error)
    if not off.any():
        return []
    state = int(np.argmax(off))
    return [
        f"{process.signals[i]}: the value of state {state} is {truth[state]:.17g}, not {claimed[state]:.17g}"
        f"{_more(int(off.sum()))}."
    ]


def _more(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""


def certify_program(momdp: MOMDP, solution: ProgramSolution) -> ProgramSolution:
    """A solution with policy tolerance, with its returns and gaps computed again from its policy and its prices, and
    with what is wrong as its `faults`.

    Weak duality bounds what any policy can reach by the prices; the policy itself shows what can be reached.
    """
    if not isinstance(solution, ProgramSolution):
        raise InputError(
            f"A {type(solution).__name__} is not what `solve_slack` and `solve_average` return; solutions with action "
            "tolerance are for `certify`."
        )
    process = require_momdp(momdp).ordered(solution.order)
    if solution.average:
        return _certify_average(process, solution)
    common_gamma(process)
    policy = as_policy(solution.policy, process)
    returns, visits = evaluate(process, policy).returns, occupancy(process, policy)
    own = _positive(process, policy)
    faults = _return_faults(process, solution, returns, own.returns)
    if not np.allclose(visits, solution.occupancy, rtol=1e-6, atol=_PROGRAM * np.max(visits)):
        faults.append("The occupancy is not that of the policy.")
    allowed, rows, start = process.action_mask, (), first_policy(process)
    gaps = np.zeros(process.num_objectives)
    for i in range(process.num_objectives):
        prices = tuple(Fraction(float(solution.shadow_prices[i, row.objective])) for row in rows)
        faults += _price_faults(process, solution, i, rows)
        priced = list(zip(rows, prices, strict=True))
        one = columns.priced(process, i, rows, prices)
        dual = optimize(one, 0, allowed, start, choose(process))
        bought = sum((price * row.threshold for row, price in priced), Fraction(0))
        best = columns.expected(process, dual.values.value) - bought
        gaps[i] = float(best - Fraction(float(solution.best[i])))
        sizes = [own, _positive(process, np.eye(process.num_actions)[dual.policy])] if any(prices) else []
        error = _PRICED * _added_up(solution, i, _most(sizes), rows, prices) if sizes else _unpriced(solution, i)
        noise = float(process.initial @ dual.values.error)
        if not abs(gaps[i]) <= error + noise:
            faults.append(_gap_fault(process, solution, i, gaps[i]))
        width = _width(process, i, rows, prices, sizes)
        left = judge(one, 0, dual.values, dual.values, dual.backup, allowed, width, dual.known).reached
        faults += _high_prices(process, solution, i, priced, partial(_least, process, left, dual.policy))
        threshold, is_face = _threshold(solution, i, None if any(prices) else best, noise)
        if is_face or i == process.num_objectives - 1:
            allowed = left
            rows = tuple(row._replace(tight=row.tight or price != 0) for row, price in priced)
        else:
            rows = (*rows, Row(i, threshold))
        start = dual.policy
    faults += _policy_faults(process, policy, allowed)
    return dataclasses.replace(solution, returns=returns, gaps=gaps, faults=tuple(faults))


def _certify_average(process: MOMDP, solution: ProgramSolution) -> ProgramSolution:
    """The same for averages: frequencies in place of occupancies."""
    policy, frequency = as_policy(solution.policy, process), np.asarray(solution.occupancy, float)
    returns = chains.average_returns(process, policy)
    sizes = chains.average_returns(dataclasses.replace(process, rewards=np.abs(process.rewards)), policy)
    faults = _return_faults(process, solution, returns, sizes)
    flow = process.transitions.T @ frequency.ravel() - frequency.sum(axis=1)
    mixed = np.einsum("msa,sa->m", process.rewards, frequency)
    if not (np.abs(flow) <= _PROGRAM).all() or not (np.abs(mixed - returns) <= _PROGRAM * sizes).all():
        faults.append("The occupancy is not that of the policy.")
    equations, allowed, rows = average.frequencies(process), average.columns_of(process), ()
    gaps = np.zeros(process.num_objectives)
    for i in range(process.num_objectives):
        prices = tuple(Fraction(float(solution.shadow_prices[i, row.objective])) for row in rows)
        faults += _price_faults(process, solution, i, rows)
        level = average.best_at(equations, i, allowed, rows, prices)
        bought = sum((price * row.threshold for price, row in zip(prices, rows, strict=True)), Fraction(0))
        gaps[i] = float(Fraction(level.best) - bought - Fraction(float(solution.best[i])))
        error = _PRICED * _added_up(solution, i, sizes, rows, prices) if any(prices) else _unpriced(solution, i)
        if not abs(gaps[i]) <= (
            error if equations.exact else _PROGRAM * average.largest_rewards(process, level.inside)[i]
        ):
            faults.append(_gap_fault(process, solution, i, gaps[i]))
        if equations.exact:
            priced = list(zip(rows, prices, strict=True))
            faults += _high_prices(process, solution, i, priced, partial(average.least, equations, level.support))
        known = equations.exact and not any(prices)
        threshold, is_face = _threshold(solution, i, Fraction(level.best) if known else None, 0.0)
        if is_face:
            allowed = level.support
            rows = tuple(row._replace(tight=row.tight or price != 0) for row, price in zip(rows, prices, strict=True))
        else:
            rows = (*rows, Row(i, threshold))
    return dataclasses.replace(solution, returns=returns, gaps=gaps, faults=tuple(faults))


def _gap_fault(process: MOMDP, solution: ProgramSolution, i: int, gap: float) -> str:
    return (
        f"{process.signals[i]}: at these prices the best return is {solution.best[i] + gap:.15g}, not "
        f"{solution.best[i]:.15g}."
    )


def _threshold(solution: ProgramSolution, i: int, found: Fraction | None, error: float) -> tuple[Fraction, bool]:
    """What objective i leaves to the next ones, and whether that is its optimal face; `found` is its best return to
    more digits than a double has, where that is known."""
    best, limit = float(solution.best[i]), float(solution.limits[i])
    threshold, is_face = threshold_of(Fraction(best), float(solution.slack[i]), limit)
    if best != limit:
        return threshold, is_face
    # A best return may exceed its limit by less than a double can tell; that it is priced says that it does.
    exceeds = solution.shadow_prices[i + 1 :, i].any() if found is None else found - Fraction(limit) > error
    return threshold, is_face and not exceeds


def _unpriced(solution: ProgramSolution, i: int) -> float:
    """A best return without prices is right but for its last digit."""
    return 4 * _ROUNDING * abs(float(solution.best[i]))


def _positive(process: MOMDP, policy: Float[np.ndarray, "S A"]) -> Evaluation:
    """The size of what a policy's returns are made of, which may cancel on the way: all rewards count as positive."""
    return evaluate(dataclasses.replace(process, rewards=np.abs(process.rewards)), policy)


def _width(
    process: MOMDP, i: int, rows: tuple[Row, ...], prices: tuple[Fraction, ...], sizes: list[Evaluation]
) -> Float[np.ndarray, " S"]:
    """How far from the best an action may seem to be because prices are rounded: a share of what is added up, by the
    policy or by what is best at the prices; none without prices."""
    if not sizes:
        return np.zeros(process.num_states)
    q = np.max([np.max(one.q, axis=2) for one in sizes], axis=0)
    bought = (float(abs(price)) * q[row.objective] for price, row in zip(prices, rows, strict=True))
    return _PRICED * (q[i] + sum(bought))


def _most(sizes: list[Evaluation]) -> Float[np.ndarray, " M"]:
    return np.max([one.returns for one in sizes], axis=0)


def _added_up(
    solution: ProgramSolution,
    i: int,
    sizes: Float[np.ndarray, " M"],
    rows: tuple[Row, ...],
    prices: tuple[Fraction, ...],
) -> float:
    """The size of what the bound of objective i is made of; `sizes` are those of what the policies return."""
    priced = zip(prices, rows, strict=True)
    bought = (float(abs(p)) * (sizes[row.objective] + abs(float(row.threshold))) for p, row in priced)
    return float(sizes[i] + abs(solution.best[i]) + sum(bought))


def _return_faults(
    process: MOMDP, solution: ProgramSolution, returns: Any, sizes: Float[np.ndarray, " M"]
) -> list[str]:
    found = []
    needed = solution.thresholds.copy()
    needed[-1] = solution.best[-1]
    for i, name in enumerate(process.signals):
        width = _PROGRAM * sizes[i]
        if not abs(returns[i] - solution.returns[i]) <= width:
            found.append(f"{name}: the policy returns {returns[i]:.15g}, not {solution.returns[i]:.15g}.")
        if not returns[i] >= needed[i] - width:
            found.append(
                f"{name}: the policy returns {returns[i]:.15g}, less than the {needed[i]:.15g} that is needed."
            )
    return found


def _price_faults(process: MOMDP, solution: ProgramSolution, i: int, rows: tuple[Row, ...]) -> list[str]:
    """Only what constrains an objective has a price, and no inequality a negative one."""
    free = np.ones(process.num_objectives, bool)
    free[[row.objective for row in rows]] = False
    negative = [row.objective for row in rows if not row.tight and not solution.shadow_prices[i, row.objective] >= 0]
    wrong = [*np.flatnonzero(free & (solution.shadow_prices[i] != 0)), *negative]
    return [
        f"{process.signals[i]}: {process.signals[j]} has the shadow price {solution.shadow_prices[i, j]:.9g}, which it "
        "cannot have."
        for j in wrong
    ]


def _least(process: MOMDP, left: Bool[np.ndarray, "S A"], start: Int[np.ndarray, " S"], j: int) -> Fraction:
    """The least that objective j returns under policies within sets of actions."""
    everywhere = np.arange(process.num_states * process.num_actions)
    high, low = (part.reshape(process.rewards[j].shape) for part in exact_rewards(process, j, everywhere))
    cost = single(process, Doubled(-high, -low), float(process.gamma[j]), process.signals[j])
    return -columns.expected(cost, optimize(cost, 0, left, start, choose(process)).values.value)


def _high_prices(
    process: MOMDP,
    solution: ProgramSolution,
    i: int,
    priced: list[tuple[Row, Fraction]],
    least: Callable[[int], Fraction],
) -> list[str]:
    """A price says what more slack would bring: at it, some policy that uses more slack is as good. `least` is the
    least that an objective returns under policies that are best at the prices."""
    return [
        f"{process.signals[i]}: more slack on {process.signals[row.objective]} brings less than its shadow price "
        f"{float(price):.9g}."
        for row, price in priced
        if price > 0 and not row.tight and least(row.objective) >= row.threshold + _unsure(solution, row.objective)
    ]


def _unsure(solution: ProgramSolution, j: int) -> Fraction:
    """What a threshold may be off by: nothing where it is a limit, a double's last digit where it is an optimum."""
    best, limit = solution.best[j], solution.limits[j]
    is_limit = limit < best or (limit == best and solution.slack[j] == 0)
    return Fraction(0.0 if is_limit else _unpriced(solution, j))


def _policy_faults(process: MOMDP, policy: Float[np.ndarray, "S A"], allowed: Bool[np.ndarray, "S A"]) -> list[str]:
    outside = np.argwhere((policy > 0) & ~allowed & ~process.terminal[:, None])
    if not len(outside):
        return []
    return [
        f"The policy takes action {outside[0, 1]} in state {outside[0, 0]}, which is not best at these prices"
        f"{_more(len(outside))}."
    ]
