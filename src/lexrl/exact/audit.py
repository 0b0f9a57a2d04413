"""Questions to a finite MOMDP: how far apart are its actions, what do tolerances, orders and slack cost or buy?"""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from lexrl import lex
from lexrl import tolerance as tol
from lexrl.errors import InputError
from lexrl.exact.backups import INPUT_PRECISION
from lexrl.exact.critical import plain
from lexrl.exact.evaluation import evaluate, require_momdp
from lexrl.exact.iteration import Solution, solve, tolerances_of
from lexrl.exact.programs import solve_slack
from lexrl.lex import Arr
from lexrl.momdp import MOMDP
from lexrl.order import Order, as_order

_MOST_ORDERS = 720
"""All orders of six objectives."""


class ActionGaps(NamedTuple):
    """How far apart action values are; what is closer than rounding can tell counts as 0."""

    deciding: Float[Arr, " M"]
    """`min_s (v_i(s) - max q_i(s, a))` over the `a` of `D_{i-1}(s)` that `D_i(s)` leaves out: the gap that matters. A
    tolerance below it changes nothing. Infinite where nothing is left out."""
    literal: Float[Arr, " M"]
    """`min_{s, a != b} |q_i(s, a) - q_i(s, b)|` over all actions, as the paper's condition 5 has it: 0 where any two
    tie, whether it matters or not."""


def action_gaps(solution: Solution) -> ActionGaps:
    """The smallest action gap of each objective; ask it of a solution with tolerance 0."""
    if not isinstance(solution, Solution):
        raise InputError(f"A {type(solution).__name__} has no action gaps; ask for those of what `solve` returns.")
    q, sets = solution.q[:, ~solution.terminal], solution.sets[:, ~solution.terminal]
    short = solution.values[:, ~solution.terminal, None] - q
    deciding = np.min(short, axis=(1, 2), where=sets[:-1] & ~sets[1:], initial=np.inf)
    ranked = np.sort(np.where(sets[0], q, np.inf), axis=2)
    with np.errstate(invalid="ignore"):  # the difference of two actions that there are not
        steps = np.diff(ranked, axis=2)
    rounding = INPUT_PRECISION * np.abs(ranked[..., :-1])
    steps = np.where(np.isnan(steps), np.inf, np.where(steps <= rounding, 0.0, steps))
    return ActionGaps(deciding, np.min(steps, axis=(1, 2), initial=np.inf))


class ToleranceRow(NamedTuple):
    """What one tolerance does."""

    tolerance: Any
    returns: Float[Arr, " M"]
    """`J` of the uniform choice among admissible actions, all objectives maximized."""
    loss: Float[Arr, " M"]
    """`J*_i - J_i` against tolerance 0; below 0 for an objective that a more important one's tolerance helps."""
    sizes: Int[Arr, " A"]
    """How many non-terminal states keep 1, 2, .. A actions in the end."""
    below_gap: bool
    """Every set is what it is with tolerance 0; for an absolute tolerance: it is below the deciding gap."""


def tolerance_table(momdp: MOMDP, order: Order | str | None, tolerances: Any) -> tuple[ToleranceRow, ...]:
    """One row for each tolerance, given as `solve` takes it; tolerances written in the order stand aside."""
    order = plain(as_order(order, require_momdp(momdp).signals))
    if not isinstance(tolerances, Sequence) or isinstance(tolerances, str):
        raise InputError(f"The tolerances are {tolerances!r}; the table needs a list of them, one for each row.")
    exact = solve(momdp, order)
    return tuple(_tolerance_row(exact, solve(momdp, order, tolerance=one), one) for one in tolerances)


def _tolerance_row(exact: Solution, solution: Solution, tolerance: Any) -> ToleranceRow:
    kept = solution.sets[-1, ~solution.terminal].sum(axis=1)
    return ToleranceRow(
        tolerance=tolerance,
        returns=solution.returns,
        loss=exact.returns - solution.returns,
        sizes=np.bincount(kept, minlength=solution.sets.shape[2] + 1)[1:],
        below_gap=bool((solution.sets == exact.sets).all()),
    )


class OrderRow(NamedTuple):
    """What one order of the objectives leads to, in the user's objectives: as first given, with the user's signs."""

    order: Order
    returns: Float[Arr, " M"]
    price: Float[Arr, " M"]
    """How much each objective falls short of what it gets when it comes first; never below 0 without tolerances."""


def all_orders(momdp: MOMDP, order: Order | str | None, *, tolerance: Any = 0.0) -> tuple[OrderRow, ...]:
    """The price of priority: the returns under every order of the same objectives; each keeps its own tolerance."""
    order = as_order(order, require_momdp(momdp).signals)
    n = len(order.objectives)
    if math.factorial(n) > _MOST_ORDERS:
        raise InputError(
            f"{n} objectives have {math.factorial(n)} orders; at most {_MOST_ORDERS} are solved: name fewer objectives."
        )
    each = tolerances_of(order, tolerance)
    each = each if isinstance(each, tuple) else (each,) * n
    places = list(itertools.permutations(range(n)))
    orders = [Order(tuple(order.objectives[i] for i in place)) for place in places]
    solved = [solve(momdp, orders[k], tolerance=tuple(each[i] for i in places[k])) for k in range(len(places))]
    # Back to the places of the order as given.
    returns = np.stack([one.returns[np.argsort(place)] for one, place in zip(solved, places, strict=True)])
    first = np.array([place[0] for place in places])
    best = np.array([np.max(returns[first == i, i]) for i in range(n)])
    return tuple(
        OrderRow(one, order.unsigned(achieved), best - achieved) for one, achieved in zip(orders, returns, strict=True)
    )


def gap(momdp: MOMDP, policy: Any, order: Order | str | None = None, tolerance: Any = 0.0) -> lex.Gap:
    """How far a policy is from the lexicographic optimum, objective by objective.

    The optimum of objective i is the best return *within what the tolerances of the previous ones allow* (policy
    tolerance). Where discounts differ that is known for tolerance 0 only.
    """
    order = as_order(order, require_momdp(momdp).signals)
    process = momdp.ordered(order)
    tolerances = tolerances_of(order, tolerance)
    achieved = evaluate(process, policy)
    if len(np.unique(process.gamma)) == 1:
        optimum = solve_slack(momdp, order, slack=tolerances)
        noise = _noise(process, policy)
        return lex.gap(achieved.returns, optimum.best, optimum.slack + noise, order.limits())
    if order.limited or not _zero(tolerances):
        raise InputError(
            f"The discounts are {', '.join(f'{gamma:g}' for gamma in process.gamma)} and there is a tolerance or a "
            "limit; a gap within them needs one gamma for all objectives: give one, or tolerance 0."
        )
    return lex.gap(achieved.returns, solve(momdp, plain(order)).returns, _noise(process, policy))


def _noise(process: MOMDP, policy: Any) -> Float[np.ndarray, " M"]:
    """What roundings may do to the returns of a policy: a share of the return that has every reward positive."""
    return 1e-10 * evaluate(dataclasses.replace(process, rewards=np.abs(process.rewards)), policy).returns


def _zero(tolerances: tol.Tolerances) -> bool:
    each = tolerances if isinstance(tolerances, tuple) else (tolerances,)
    one = np.ones(1)
    return all(np.all(np.asarray(tau(one, one > 0, np.array(1.0), 1)) == 0) for tau in each)
