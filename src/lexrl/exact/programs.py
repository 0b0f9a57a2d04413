"""Policy tolerance, solved exactly: a sequence of linear programs over mixtures of policies.

    J*_i = max J_i(pi)    over policies pi with  J_j(pi) >= min(J*_j, limit_j) - eps_j  for every more important j

Where the threshold is `J*_j` itself nothing is relaxed, because a tiny slack at the top moves the bottom: the optimal
face of level j is kept instead, by complementary slackness. On it, actions with a positive reduced cost are not used,
and constraints with a price are equalities. A constraint that is no face is satisfied by mixing policies
(`columns.py`); its price is the dual of the program, and gives a bound on `J*_i` that proves the optimum (weak
duality).
"""

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from lexrl import tolerance as tol
from lexrl.errors import InputError
from lexrl.exact import columns
from lexrl.exact.backups import judge, with_exact_rewards
from lexrl.exact.clock import Clock, Progress
from lexrl.exact.columns import Column, Mixture, Row
from lexrl.exact.evaluation import as_policy, evaluate, require_momdp
from lexrl.exact.iteration import finite_slack, first_policy, tolerances_of
from lexrl.exact.linear import System, choose
from lexrl.exact.policy_iteration import optimize
from lexrl.lex import Arr
from lexrl.momdp import MOMDP
from lexrl.order import Order, as_order


@dataclasses.dataclass(frozen=True)
class ProgramSolution:
    """The lexicographic optimum with policy tolerance; ordered and signed: all objectives are maximized."""

    order: Order
    objectives: tuple[str, ...]
    policy: Float[np.ndarray, "S A"]
    """Possibly randomized. Where it never comes, it takes what is best for the last program at its prices."""
    occupancy: Float[np.ndarray, "S A"]
    returns: Float[np.ndarray, " M"]
    """`J` of `policy`, computed from the policy itself."""
    best: Float[np.ndarray, " M"]
    """`J*_i`: the best objective i can have within the slack and the limits of the more important ones."""
    slack: Float[np.ndarray, " M"]
    """`eps_i`, in units of the return."""
    limits: Float[np.ndarray, " M"]
    """The return that is enough, infinite without a limit."""
    shadow_prices: Float[np.ndarray, "M M"]
    """`shadow_prices[i, j]`: what more slack on objective j would bring objective i, for each unit of it. 0 where
    objective j has neither slack nor a limit that can be satisfied: its optimum is kept instead, without a price."""
    gaps: Float[np.ndarray, " M"]
    """Primal-dual gap: no policy within the slack is better than `best[i] + gaps[i]`; infinite where time ran
    out before anything was known."""
    faults: tuple[str, ...] = ()
    """What is wrong or open, in sentences."""
    average: bool = False
    """Returns are averages for each step, from `solve_average`; else discounted sums."""

    @property
    def thresholds(self) -> Float[np.ndarray, " M"]:
        """`min(J*_i, limit_i) - eps_i`: what the less important objectives must leave."""
        return np.minimum(self.best, self.limits) - self.slack

    @property
    def shortfalls(self) -> Float[np.ndarray, " M"]:
        """How far each limit is from what is possible: 0 where it can be satisfied, or there is none."""
        return np.where(np.isfinite(self.limits), np.maximum(self.limits - self.best, 0.0), 0.0)

    def sentences(self) -> tuple[str, ...]:
        """What is proved, one sentence for each objective, then what is wrong."""
        each = [f"{name}: {self._proved(i)}{self._limit(i)}." for i, name in enumerate(self.objectives)]
        return (*each, *self.faults)

    def _proved(self, i: int) -> str:
        if np.isinf(self.gaps[i]):
            return "how much better a policy could be is not known"
        return (
            "no policy within the constraints of the more important objectives is better by more than "
            f"{max(self.gaps[i], 0.0):.1e}"
        )

    def summary(self) -> dict[str, Any]:
        """What is known of the solution, for a file."""
        gaps = [gap if np.isfinite(gap) else None for gap in self.gaps.tolist()]
        numbers = {"shadow_prices": self.shadow_prices.tolist(), "shortfalls": self.shortfalls.tolist()}
        return {"gaps": gaps} | numbers | {"sentences": self.sentences()}

    def __str__(self) -> str:
        shown = self.order.unsigned(self.returns)
        returns = ", ".join(f"{name} {value:.6g}" for name, value in zip(self.objectives, shown, strict=True))
        return "\n".join((f"{self.order}", f"returns: {returns}", *self.sentences()))

    def _limit(self, i: int) -> str:
        if np.isinf(self.limits[i]):
            return ""
        if 0 < self.shortfalls[i] <= self.gaps[i]:
            return f"; the policy misses the limit by {self.shortfalls[i]:.4g}, and whether one satisfies it is open"
        if self.shortfalls[i] > 0:
            return f"; no policy satisfies the limit, the nearest misses it by {self.shortfalls[i]:.4g}"
        return "; its limit can be satisfied"


class Face(NamedTuple):
    """What the more important objectives leave: actions that may still be used, rows to satisfy, and policies of which
    a mixture satisfies them."""

    allowed: Bool[Arr, "S A"]
    rows: tuple[Row, ...]
    pool: tuple[Column, ...]
    others: tuple[Column, ...] = ()
    """More policies within `allowed`, with returns in ordinary arithmetic."""


def solve_slack(
    momdp: MOMDP,
    order: Order | str | None = None,
    *,
    slack: Any = 0.0,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> ProgramSolution:
    """The lexicographic optimum with policy tolerance.

    Args:
        momdp: the process; one gamma for all objectives of the order.
        order: the objectives by importance; slacks may be written in it (`±0.5`, or `±5%` of `|J*_j|`), and limits.
        slack: how much of each objective's best return may be given up, for those without one in the order: a number,
            `"5%"`, a tolerance, or one for each objective.
        time_limit: seconds after which the policy found so far is returned, with the gaps that are open.
        progress: called with a `Progress` at every iteration.
    """
    order = as_order(order, require_momdp(momdp).signals)
    process = with_exact_rewards(momdp.ordered(order))
    common_gamma(process)
    return _successive(process, order, tolerances_of(order, slack), Clock(time_limit, progress))


def common_gamma(process: MOMDP) -> float:
    """The one discount that makes all objectives linear in the same occupancy measure."""
    if len(np.unique(process.gamma)) > 1:
        raise InputError(
            f"The discounts are {', '.join(f'{gamma:g}' for gamma in process.gamma)}; policy tolerance needs one gamma "
            "for all objectives: give one, or use action tolerance with `solve`."
        )
    return float(process.gamma[0])


def threshold_of(best: Fraction, epsilon: float, limit: float) -> tuple[Fraction, bool]:
    """`min(best, limit) - epsilon`, and whether that is the best itself."""
    enough = best if limit == np.inf else min(best, Fraction(limit))
    return enough - Fraction(epsilon), enough == best and epsilon == 0


def _successive(process: MOMDP, order: Order, tolerances: tol.Tolerances, clock: Clock) -> ProgramSolution:
    """Objective by objective: solve the program, then keep its optimal face, or add its threshold as a row."""
    slack, limits, n = tol.slack(tolerances), order.limits(), process.num_objectives
    epsilon, prices = np.zeros(n), np.zeros((n, n))
    face, start = Face(process.action_mask, (), ()), first_policy(process)
    levels: list[Mixture] = []
    for i in range(n):
        if clock.expired and levels:  # what was found so far stays
            levels.append(levels[-1]._replace(best=_returns(levels[-1], i), bound=columns.UNKNOWN))
            continue
        level = _at_limit(process, _level(process, i, face, start, clock), float(limits[i]))
        prices[i, [row.objective for row in face.rows]] = [float(price) for price in level.shadow_prices]
        best = np.array(float(level.best))
        epsilon[i] = finite_slack(process, i, slack(i, best[None], np.ones(1, bool), np.minimum(best, limits[i])))
        face, start = _narrow(process, i, face, level, float(epsilon[i]), float(limits[i])), level.dual.policy
        levels.append(level)
    return _solution(process, order, levels, epsilon, prices, clock)


def _solution(
    process: MOMDP, order: Order, levels: list[Mixture], epsilon: Arr, prices: Arr, clock: Clock
) -> ProgramSolution:
    last = levels[-1]
    occupancy = columns.occupancies(process, last.columns, last.weights)
    policy = normalized(occupancy, last.dual.policy)
    gaps = np.array([float(level.bound - level.best) for level in levels])
    gaps = np.where(gaps >= float(columns.UNKNOWN) / 2, np.inf, gaps)
    late = f"Stopped after {clock.seconds:.3g} s: the gaps that are open say how much better each objective might be."
    return ProgramSolution(
        order=order,
        objectives=process.signals,
        policy=policy,
        occupancy=occupancy,
        returns=evaluate(process, policy).returns,
        best=np.array([float(level.best) for level in levels]),
        slack=epsilon,
        limits=order.limits(),
        shadow_prices=prices,
        gaps=gaps,
        faults=(late,)
        if clock.expired and (gaps > 1e-9 * np.abs([float(level.best) for level in levels])).any()
        else (),
    )


def _returns(level: Mixture, i: int) -> Fraction:
    each = zip(level.columns, level.weights, strict=True)
    return sum((weight * column.returns[i] for column, weight in each), Fraction(0))


def _level(process: MOMDP, i: int, face: Face, start: Int[np.ndarray, " S"], clock: Clock) -> Mixture:
    """The program of objective i; without rows it is a matter of policy iteration alone."""
    if face.rows:
        return columns.best_mixture(process, i, face.allowed, face.rows, face.pool, face.others, clock)
    one = columns.priced(process, i, (), ())
    dual = optimize(one, 0, face.allowed, start, choose(process), clock)
    column = columns.column_of(process, dual.policy, choose(process))
    bound = column.returns[i] + (Fraction(dual.bound) if np.isfinite(dual.bound) else columns.UNKNOWN)
    return Mixture((column,), (Fraction(1),), (), column.returns[i], bound, dual, one)


def _at_limit(process: MOMDP, level: Mixture, limit: float) -> Mixture:
    """A best return that differs from the limit by no more than its error is the limit: it can be satisfied."""
    error = float(process.initial @ level.dual.values.error)
    if limit == np.inf or not abs(level.best - Fraction(limit)) <= error:
        return level
    return level._replace(best=Fraction(limit))


def _narrow(process: MOMDP, i: int, face: Face, level: Mixture, epsilon: float, limit: float) -> Face:
    """What objective i leaves to the next: its threshold as a row, or its optimal face."""
    threshold, is_face = threshold_of(level.best, epsilon, limit)
    if not is_face:
        return Face(face.allowed, (*face.rows, Row(i, threshold)), (*face.pool, *level.columns), level.others)
    dual = level.dual
    nothing = np.zeros(process.num_states)
    judged = judge(level.process, 0, dual.values, dual.values, dual.backup, face.allowed, nothing, dual.known)
    allowed, pool = judged.reached.copy(), []
    for column in level.columns:
        # Where it never comes a policy that is mixed may do what is not best; there it does what is.
        inside = columns.visited(process, column.policy)
        policy = np.where(inside, column.policy, dual.policy)
        allowed[np.flatnonzero(inside), policy[inside]] = True
        pool.append(column._replace(policy=policy))
    priced = zip(face.rows, level.prices, strict=True)
    rows = tuple(row._replace(tight=row.tight or price != 0) for row, price in priced)
    return Face(allowed, rows, tuple(pool))


def normalized(occupancy: Float[np.ndarray, "S A"], greedy: Int[np.ndarray, " S"]) -> Float[np.ndarray, "S A"]:
    """`x(s, a) / sum_a x(s, a)`; the greedy action where the occupancy measure never comes."""
    total = occupancy.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        shares = occupancy / total
    visited = (total > 0) & np.isfinite(shares).all(axis=1, keepdims=True)
    return np.where(visited, shares, np.eye(occupancy.shape[1])[greedy])


def occupancy(process: MOMDP, policy: Float[np.ndarray, "S A"]) -> Float[np.ndarray, "S A"]:
    """`x(s, a) = d(s) policy(a | s)` with `d = initial + gamma P' d`."""
    weights = as_policy(policy, process)
    chain, _ = process.chain(weights)
    visits = System(choose(process), chain, float(process.gamma[0])).solve_transposed(process.initial)
    return np.where(process.terminal[:, None], 0.0, visits[:, None] * weights)
