"""Limit averages (no discount, no end): successive programs over long-run frequencies of (s, a).

    max r_i . x    over x, y >= 0,   sum_a x(s', a) = sum_{s,a} P(s' | s, a) x(s, a)
                                     sum_a x(s', a) + sum_a y(s', a) - sum_{s,a} P(s' | s, a) y(s, a) = initial(s')

`x` are the frequencies, `y` says how often (s, a) is used before the process is where it stays (Kallenberg 1983). So
policies may have several recurrent classes, and averages may depend on where one starts. Small programs are solved in
rational numbers, large ones by HiGHS. As with a discount, an objective without slack leaves its optimal face: the
columns whose reduced cost is 0.
"""

import dataclasses
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float

from lexrl import doubled
from lexrl import tolerance as tol
from lexrl.doubled import Doubled
from lexrl.errors import InputError
from lexrl.exact import chains, rational
from lexrl.exact.backups import single
from lexrl.exact.columns import Row
from lexrl.exact.evaluation import require_momdp
from lexrl.exact.iteration import finite_slack, tolerances_of
from lexrl.exact.programs import ProgramSolution, threshold_of
from lexrl.lex import Arr
from lexrl.momdp import MOMDP
from lexrl.order import Order, as_order

_MOST_RATIONAL = 48
"""Programs of up to so many columns are solved in rational numbers."""
_PRECISION = 1e-9
"""Relative precision of what HiGHS returns."""
_NOISE = 1e-12
"""What is left of 0 by its arithmetic, with a margin."""
_FAR = 1e-3
"""What costs more than this share of the largest reward is used in no optimum: far above the precision of HiGHS."""
_NEXT_TO_NOTHING = 1e-12
"""Share of the rewards below which a column costs nothing at prices that were rounded."""


_LITTLE = Fraction(1, 2**80)
"""Share of the rewards by which thresholds are loosened to see what more slack would bring."""


class Frequencies(NamedTuple):
    """The equations of `x` and `y`, as one matrix `[2 S, 2 S A]`; probabilities sum to 1 to the last digit where the
    numbers are rational."""

    process: MOMDP
    matrix: Any
    right: Any

    @property
    def exact(self) -> bool:
        """Are the numbers rational?"""
        return isinstance(self.matrix, list)


class AverageLevel(NamedTuple):
    """One program, solved."""

    best: Fraction | float
    bound: Fraction | float
    prices: list[Any]
    x: Float[Arr, "S A"]
    y: Float[Arr, "S A"]
    support: Bool[Arr, " columns"]
    """Columns whose reduced cost is 0."""
    reduced: Float[Arr, " columns"]
    """What each column costs at the prices; infinite for those that are not allowed."""
    shadow_prices: list[Any]
    """What more slack would bring; among the prices, the smallest where rows have several."""
    inside: Bool[Arr, " columns"]
    """Columns that came into question: those that are left out cost a thousand times what others pay."""
    unsure: int = 0
    """How many columns cost more than the noise of the arithmetic, and less than its guaranteed precision."""


def solve_average(momdp: MOMDP, order: Order | str | None = None, *, slack: Any = 0.0) -> ProgramSolution:
    """The lexicographic optimum for long-run averages, with policy tolerance as in `solve_slack`; gamma plays no part.

    Returns are averages for each step, from the initial distribution.
    """
    order = as_order(order, require_momdp(momdp).signals)
    process = momdp.ordered(order)
    if not process.continuing:
        raise InputError(
            f"State {int(np.argmax(process.terminal))} is terminal; limit averages need a task that never ends: use "
            "`solve` with gamma 1, or let terminal states lead back to the start."
        )
    return _successive(process, order, tolerances_of(order, slack))


def _successive(process: MOMDP, order: Order, tolerances: tol.Tolerances) -> ProgramSolution:
    slack, limits, n = tol.slack(tolerances), order.limits(), process.num_objectives
    epsilon, prices = np.zeros(n), np.zeros((n, n))
    flow = frequencies(process)
    allowed, rows, levels = columns_of(process), (), []
    inside = allowed
    for i in range(n):
        level = _level(flow, i, allowed, rows, inside & allowed)
        prices[i, [row.objective for row in rows]] = [float(price) for price in level.shadow_prices]
        best = np.array(float(level.best))
        epsilon[i] = finite_slack(process, i, slack(i, best[None], np.ones(1, bool), np.minimum(best, limits[i])))
        threshold, is_face = threshold_of(Fraction(level.best), float(epsilon[i]), float(limits[i]))
        if is_face:
            allowed = level.support
            each = zip(rows, level.prices, strict=True)
            rows = tuple(row._replace(tight=row.tight or price != 0) for row, price in each)
        else:
            rows = (*rows, Row(i, threshold))
        inside = level.inside
        levels.append(level)
    return _solution(process, order, levels, epsilon, prices)


def columns_of(process: MOMDP) -> Bool[np.ndarray, " columns"]:
    """The columns of x and of y that there are: those of states that can be reached at all."""
    pairs, reached = process.transitions.astype(bool).astype(float).T, process.initial > 0
    while True:
        used = (process.action_mask & reached[:, None]).ravel()
        wider = reached | (pairs @ used.astype(float) > 0)
        if (wider == reached).all():
            return np.tile(used, 2)
        reached = wider


def largest_rewards(process: MOMDP, allowed: Bool[np.ndarray, " columns"]) -> Float[np.ndarray, " M"]:
    """The size of each objective's rewards, where there is a column for them: what no policy meets makes no unit."""
    used = allowed[: allowed.size // 2].reshape(process.rewards.shape[1:])
    return np.max(np.abs(process.rewards), axis=(1, 2), where=used, initial=0.0)


def _solution(process: MOMDP, order: Order, levels: list[AverageLevel], epsilon: Arr, prices: Arr) -> ProgramSolution:
    policy = _policy(process, levels[-1])
    returns = chains.average_returns(process, policy)
    best = np.array([float(level.best) for level in levels])
    mixed = np.array([np.sum(reward * levels[-1].x) for reward in process.rewards])
    if isinstance(levels[-1].best, Fraction):
        widths = _PRECISION * np.einsum("msa,sa->m", np.abs(process.rewards), levels[-1].x)
    else:
        widths = 1e-7 * largest_rewards(process, levels[-1].inside)
    missed = np.flatnonzero(np.abs(returns - mixed) > widths)
    faults = [
        f"{name}: {level.unsure} actions cost so little that ordinary arithmetic does not tell whether they cost "
        "anything; they count as tied."
        for name, level in zip(process.signals, levels, strict=True)
        if level.unsure
    ]
    if len(missed):
        faults.append(
            "The optimum needs memory (in some states it stays with one probability and goes on with another, once): "
            f"the policy has none, and is off by {returns[missed[0]] - mixed[missed[0]]:.3g} in "
            f"{process.signals[missed[0]]}."
        )
    return ProgramSolution(
        order=order,
        objectives=process.signals,
        policy=policy,
        occupancy=levels[-1].x,
        returns=returns,
        best=best,
        slack=epsilon,
        limits=order.limits(),
        shadow_prices=prices,
        gaps=np.array([float(level.bound - level.best) for level in levels]),
        faults=tuple(faults),
        average=True,
    )


def _policy(process: MOMDP, level: AverageLevel) -> Float[np.ndarray, "S A"]:
    """Where it stays, the frequencies; on the way there, `y`; where it never comes, any action of the face."""
    shape = level.x.shape
    anything = np.where(level.support[: level.x.size].reshape(shape), 1.0, 0.0)
    going = np.where(level.support[level.x.size :].reshape(shape), 1.0, 0.0)
    policy = np.where(process.action_mask, 1.0, 0.0)
    for weights in (going, anything, level.y, level.x):
        total = weights.sum(axis=1, keepdims=True)
        policy = np.where(total > 0, weights / np.where(total > 0, total, 1.0), policy)
    return policy / policy.sum(axis=1, keepdims=True)


def frequencies(process: MOMDP) -> Frequencies:
    """Rational for small processes, sparse for large ones."""
    n, pairs = process.num_states, process.num_states * process.num_actions
    leaving = sp.csr_array((np.ones(pairs), (np.arange(pairs), np.arange(pairs) // process.num_actions)), (pairs, n))
    if 2 * pairs > _MOST_RATIONAL:
        change = (leaving - process.transitions).T
        matrix = sp.block_array([[change, None], [leaving.T, change]], format="csr")
        return Frequencies(process, matrix, np.append(np.zeros(n), process.initial))
    out, rows = leaving.toarray(), [_unit(row) for row in process.transitions.toarray()]
    change = [[Fraction(out[k, j]) - rows[k][j] for k in range(pairs)] for j in range(n)]
    zero = [Fraction(0)] * pairs
    matrix = [[*row, *zero] for row in change]
    matrix += [[*(Fraction(out[k, j]) for k in range(pairs)), *change[j]] for j in range(n)]
    return Frequencies(process, matrix, [Fraction(0)] * n + _unit(process.initial))


def _unit(probabilities: Float[np.ndarray, " S"]) -> list[Fraction]:
    """Probabilities that sum to 1, exactly; all 0 where there are none."""
    each = [Fraction(float(one)) for one in probabilities]
    whole = sum(each)
    return [one / whole for one in each] if whole else each


def _level(
    flow: Frequencies,
    i: int,
    allowed: Bool[np.ndarray, " columns"],
    rows: tuple[Row, ...],
    inside: Bool[np.ndarray, " columns"],
) -> AverageLevel:
    """The best of objective i; `inside` are columns to begin with, of which some mixture satisfies the rows."""
    if flow.exact:
        return _rational_level(flow, i, allowed, rows)
    return _numerical_level(flow, i, allowed, rows, inside)


def best_at(
    flow: Frequencies,
    i: int,
    allowed: Bool[np.ndarray, " columns"],
    rows: tuple[Row, ...],
    prices: tuple[Fraction, ...],
) -> AverageLevel:
    """The best of `r_i + sum_j y_j r_j` with the columns that are allowed: a bound on what the rows leave to objective
    i. Prices are rounded numbers, so that at them its support has every column that costs next to nothing."""
    if not any(prices):
        return _level(flow, i, allowed, (), allowed)
    process, factors = flow.process, (Fraction(1), *prices)
    exact = [_exact_rewards(process, j)[: process.rewards[j].size] for j in (i, *(row.objective for row in rows))]
    sums = [sum((y * r for y, r in zip(factors, each, strict=True)), Fraction(0)) for each in zip(*exact, strict=True)]
    parts = [doubled.from_fraction(one) for one in sums]
    high, low = (np.array(part).reshape(process.rewards[i].shape) for part in zip(*map(tuple, parts), strict=True))
    one = single(process, Doubled(high, low), 1.0, process.signals[i])
    level = _level(flow._replace(process=one), 0, allowed, (), allowed)
    little = _NEXT_TO_NOTHING * largest_rewards(one, level.inside)[0]
    return level._replace(support=allowed & (level.reduced <= little))


def least(flow: Frequencies, allowed: Bool[np.ndarray, " columns"], j: int) -> Fraction:
    """The least that an objective can have with the columns that are allowed; for rational programs."""
    process = flow.process
    rest = None if process.rewards_rest is None else -process.rewards_rest
    negative = dataclasses.replace(
        process, rewards=-process.rewards, outcome_rewards=-process.outcome_rewards, rewards_rest=rest
    )
    return -Fraction(_level(flow._replace(process=negative), j, allowed, (), allowed).best)


def _rational_level(
    flow: Frequencies, i: int, allowed: Bool[np.ndarray, " columns"], rows: tuple[Row, ...]
) -> AverageLevel:
    process, columns = flow.process, np.flatnonzero(allowed)
    rewards = [_exact_rewards(process, j) for j in range(process.num_objectives)]
    loose = [k for k, row in enumerate(rows) if not row.tight]
    table = [[*(line[c] for c in columns), *([Fraction(0)] * len(loose))] for line in flow.matrix]
    for k, row in enumerate(rows):
        surplus = [Fraction(-1 if k == other else 0) for other in loose]
        table.append([*(rewards[row.objective][c] for c in columns), *surplus])
    costs = [rewards[i][c] for c in columns]
    costs += [Fraction(0)] * len(loose)
    found = _solved(costs, table, [*flow.right, *(row.threshold for row in rows)])
    looser = _solved(costs, table, [*flow.right, *_looser(rewards, rows)], found.basis) if loose else found
    reduced = np.full(len(allowed), np.inf)
    for place, column in enumerate(columns):
        used = sum((dual * line[place] for dual, line in zip(found.duals, table, strict=True)), Fraction(0))
        reduced[column] = float(used - costs[place])
    weights = np.zeros(len(allowed))
    weights[columns] = [float(weight) for weight in found.weights[: len(columns)]]
    x, y = weights.reshape(2, process.num_states, process.num_actions)
    prices, shadow = ([-dual for dual in one.duals[len(flow.right) :]] for one in (found, looser))
    return AverageLevel(found.value, found.value, prices, x, y, reduced == 0, reduced, shadow, allowed)


def _solved(costs: list[Fraction], table: Any, right: list[Fraction], start: tuple[int, ...] = ()) -> rational.Optimum:
    found = rational.maximize(costs, table, right, start)
    if found is None:
        raise ArithmeticError("A program over frequencies that has a solution was found to have none.")
    return found


def _looser(rewards: list[list[Fraction]], rows: tuple[Row, ...]) -> list[Fraction]:
    """Thresholds with a little more slack, so that prices say what more of it would bring."""
    sizes = (max(map(abs, rewards[row.objective])) for row in rows)
    return [row.threshold - (0 if row.tight else size * _LITTLE) for row, size in zip(rows, sizes, strict=True)]


def _exact_rewards(process: MOMDP, objective: int) -> list[Fraction]:
    """`r` for the columns of x, 0 for those of y."""
    rewards = process.rewards[objective].ravel()
    if process.rewards_rest is None:
        each = [_mean(process, objective, row) for row in range(len(rewards))]
    else:
        rest = process.rewards_rest[objective].ravel()
        each = [Fraction(float(hi)) + Fraction(float(lo)) for hi, lo in zip(rewards, rest, strict=True)]
    return each + [Fraction(0)] * len(each)


def _mean(process: MOMDP, objective: int, row: int) -> Fraction:
    """What a (s, a) is expected to pay where that depends on the successor."""
    stored = slice(*process.transitions.indptr[row : row + 2])
    paid = [Fraction(float(one)) for one in process.outcome_rewards[stored, objective]]
    return sum((p * r for p, r in zip(_unit(process.transitions.data[stored]), paid, strict=True)), Fraction(0))


def _numerical_level(
    flow: Frequencies,
    i: int,
    allowed: Bool[np.ndarray, " columns"],
    rows: tuple[Row, ...],
    inside: Bool[np.ndarray, " columns"],
) -> AverageLevel:
    """Solved again without the columns that cost a thousand times what others pay, if any do, and in units of those
    that are left: one large penalty would else make the precision that of all. At the prices that are found without
    them, columns that were left out must cost something; those that do not are taken in again."""
    places, shrinking = [i, *(row.objective for row in rows)], True
    while True:
        sizes = largest_rewards(flow.process, inside)
        level = _in_units(flow, i, allowed, inside, rows, np.where(sizes > 0, sizes, 1.0))
        near = inside & (level.reduced <= _FAR * sizes[i])
        shrinking &= bool((largest_rewards(flow.process, near) < _FAR * sizes)[places].any())
        if not shrinking and not (level.support & ~inside).any():
            return level
        inside = near if shrinking else inside | level.support


def _in_units(
    flow: Frequencies,
    i: int,
    allowed: Bool[np.ndarray, " columns"],
    inside: Bool[np.ndarray, " columns"],
    rows: tuple[Row, ...],
    sizes: Float[np.ndarray, " M"],
) -> AverageLevel:
    """The best with the columns `inside`, and what each column that is allowed costs at its prices."""
    process, kept = flow.process, inside[allowed]
    flat = (process.rewards / sizes[:, None, None]).reshape(len(sizes), -1)
    rewards = np.concatenate([flat, np.zeros_like(flat)], axis=1)[:, allowed]
    needed = np.array([rewards[row.objective] for row in rows]).reshape(-1, int(allowed.sum()))
    thresholds = np.array([float(row.threshold) / sizes[row.objective] for row in rows])
    tight = np.array([row.tight for row in rows], bool)
    equal = sp.csr_array(sp.vstack([flow.matrix[:, allowed], sp.csr_array(needed[tight])]))
    answer = _highs(
        -rewards[i, kept],
        A_ub=-needed[~tight][:, kept] if (~tight).any() else None,
        b_ub=-thresholds[~tight] if (~tight).any() else None,
        A_eq=equal[:, kept],
        b_eq=np.append(flow.right, thresholds[tight]),
    )
    duals = np.zeros(len(rows))
    duals[~tight] = -answer.ineqlin.marginals
    duals[tight] = answer.eqlin.marginals[len(flow.right) :]
    # HiGHS minimizes: a reduced cost is what a column costs at the prices, and 0 for what an optimum may use.
    reduced = -rewards[i] - equal.T @ answer.eqlin.marginals - needed[~tight].T @ -answer.ineqlin.marginals
    used = np.zeros(len(reduced))
    used[kept] = answer.x
    support, weights, costs = np.zeros_like(allowed), np.zeros(len(allowed)), np.full(len(allowed), np.inf)
    costs[allowed] = reduced * sizes[i]
    added = np.abs(rewards[i]) + abs(equal).T @ np.abs(answer.eqlin.marginals)
    added += np.abs(needed[~tight]).T @ np.abs(answer.ineqlin.marginals)
    noise = _NOISE * np.minimum(added, 1.0)
    unsure = int(((np.abs(reduced) > noise) & (np.abs(reduced) <= _PRECISION)).sum())
    support[allowed] = (reduced <= _PRECISION) | (used > _PRECISION)
    weights[allowed] = np.where(support[allowed] & (used > _NOISE * np.max(used)), used, 0.0)
    x, y = weights.reshape(2, process.num_states, process.num_actions)
    best = float(np.sum(process.rewards[i] * x))
    bound = float(answer.eqlin.marginals @ np.append(flow.right, thresholds[tight]))
    bound += float(answer.ineqlin.marginals @ -thresholds[~tight])
    places = [row.objective for row in rows]
    prices = np.where(np.abs(duals) > _PRECISION, duals, 0.0) * sizes[i] / sizes[places]
    return AverageLevel(best, -bound * sizes[i], list(prices), x, y, support, costs, list(prices), inside, unsure)


def _highs(costs: Float[np.ndarray, " N"], **constraints: Any) -> Any:
    """HiGHS at its tightest tolerances: dual simplex, and should that give up, interior point with crossover."""
    from scipy.optimize import linprog  # it takes its time to import

    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    answer = None
    for method in ("highs-ds", "highs-ipm"):
        answer = linprog(costs, bounds=(0, None), method=method, options=options, **constraints)
        if answer.status == 0:
            return answer
    raise InputError(
        f"The limit averages of this MOMDP are a program of {len(costs)} columns that HiGHS could not solve "
        f"({answer.message}), as may happen where probabilities or rewards differ by many orders of magnitude: use "
        "`solve` with a gamma near 1."
    )
