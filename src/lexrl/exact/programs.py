"""Policy tolerance, solved exactly: a sequence of linear programs over occupancy measures.

With `x(s, a)` the discounted number of times (s, a) is used, level i is

    J*_i = max r_i . x    over x >= 0,  sum_a x(s', a) - gamma sum_{s,a} P(s' | s, a) x(s, a) = initial(s'),
                          r_j . x >= J*_j - eps_j   for every more important j

Where `eps_j = 0` nothing is relaxed, because a tiny slack at the top moves the bottom: the optimal face of level j is
kept instead, by complementary slackness. On it, actions with a positive reduced cost are not used, and rows with a
price are equalities. HiGHS finds occupancies and prices; reduced costs come from policy iteration on the priced reward
`r_i + sum_j y_j r_j`, to the last digits, and give a bound on `J*_i` that needs no trust in HiGHS (weak duality).
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float, Int

from lexrl import tolerance as tol
from lexrl.errors import InputError
from lexrl.exact import linear
from lexrl.exact.evaluation import evaluate, require_ends
from lexrl.exact.iteration import optimize, reach, single, tie_width, tolerances_of
from lexrl.lex import Arr
from lexrl.momdp import MOMDP
from lexrl.order import Order, as_order

_PRICE_PRECISION = 1e-9
"""Relative precision of the prices HiGHS returns."""


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
    """`J*_i`: the best objective i can have within the slack of the more important ones."""
    slack: Float[np.ndarray, " M"]
    """`eps_i`, in units of the return."""
    prices: Float[np.ndarray, "M M"]
    """`prices[i, j]`: what one more unit of slack on objective j would bring objective i."""
    gaps: Float[np.ndarray, " M"]
    """Primal-dual gap: no policy within the slack is better than `best[i] + gaps[i]`. Below 0: the solver's rounding
    overstepped a slack, by this much at its price."""


class Priced(NamedTuple):
    """The optimum of a single reward on restricted actions, as the dual of a program sees it."""

    best: float
    costs: Float[Arr, "S A"]
    """Reduced costs: what taking the action once costs; 0 for best actions."""
    policy: Int[Arr, " S"]
    tie: float
    """Reduced costs below this are 0."""


class Program(NamedTuple):
    """What tells a discounted program from a limit-average one."""

    process: MOMDP
    flow: Any
    """Sparse `[rows, S * A]`: `flow x = inflow` makes x an occupancy measure."""
    inflow: Float[Arr, " rows"]
    optimize: Callable[[Arr, Arr, Arr], Priced]
    """Best policy for a reward `[S, A]`, on allowed actions `[S, A]`, from a policy `[S]` within them."""
    returns: Callable[[Arr], Arr]
    """`J[M]` of a policy `[S, A]`."""


class Row(NamedTuple):
    """A constraint that a level with slack leaves: `r_j . x >= threshold`, or equality where it has had a price."""

    objective: int
    threshold: float
    tight: bool = False


class Face(NamedTuple):
    """What the more important objectives leave: actions that may still be used, and rows to satisfy."""

    allowed: Bool[Arr, "S A"]
    rows: tuple[Row, ...]


class ProgramLevel(NamedTuple):
    """One program, solved."""

    best: float
    gap: float
    prices: Float[Arr, " rows"]
    occupancy: Float[Arr, "S A"]
    policy: Float[Arr, "S A"]
    greedy: Int[Arr, " S"]
    support: Bool[Arr, "S A"]
    """Actions whose reduced cost is 0."""


def solve_slack(momdp: MOMDP, order: Order | str | None = None, *, slack: Any = 0.0) -> ProgramSolution:
    """The lexicographic optimum with policy tolerance.

    Args:
        momdp: the process; one gamma for all objectives of the order.
        order: the objectives by importance; slacks may be written in it (`±0.5`, or `±5%` of `|J*_j|`).
        slack: how much of each objective's best return may be given up, for those without one in the order: a number,
            `"5%"`, a tolerance, or one for each objective.
    """
    order = as_order(order, momdp.signals)
    process = momdp.ordered(order)
    require_ends(process)
    return successive(discounted(process), order, tolerances_of(order, slack))


def discounted(process: MOMDP) -> Program:
    """Occupancy measures of an ordered process, discounted; terminal states are never left."""
    gamma = common_gamma(process)
    alive = ~process.terminal
    span = reach(process, 0)

    def best(reward: Arr, allowed: Arr, start: Arr) -> Priced:
        one = single(process, reward, gamma)
        level = optimize(one, 0, allowed, start)
        costs = level.values[:, None] - level.q
        return Priced(float(process.initial @ level.values), costs, level.policy, tie_width(level.residual, span))

    flow = (leaving(process) - gamma * process.transitions).T.tocsr()[alive]
    return Program(process, flow, process.initial[alive], best, lambda policy: evaluate(process, policy).returns)


def common_gamma(process: MOMDP) -> float:
    """The one discount that makes all objectives linear in the same occupancy measure."""
    if len(np.unique(process.gamma)) > 1:
        raise InputError(
            f"The discounts are {', '.join(f'{gamma:g}' for gamma in process.gamma)}; policy tolerance needs one gamma "
            "for all objectives: give one, or use action tolerance with `solve`."
        )
    return float(process.gamma[0])


def successive(program: Program, order: Order, tolerances: tol.Tolerances) -> ProgramSolution:
    """Objective by objective: solve the program, then keep its optimal face, or add its slack as a row."""
    process, slack = program.process, tol.slack(tolerances)
    n = process.n_objectives
    epsilon, prices = np.zeros(n), np.zeros((n, n))
    start = np.zeros(process.n_states, int)
    face = Face(np.ones((process.n_states, process.n_actions), bool) & ~process.terminal[:, None], ())
    levels: list[ProgramLevel] = []
    for i in range(n):
        level = _level(program, i, face, start)
        prices[i, [row.objective for row in face.rows]] = level.prices
        epsilon[i] = slack(i, np.array([level.best]), np.ones(1, bool), np.array(level.best))
        face, start = _narrow(process, i, face, level, float(epsilon[i])), level.greedy
        levels.append(level)
    return ProgramSolution(
        order=order,
        objectives=process.signals,
        policy=levels[-1].policy,
        occupancy=levels[-1].occupancy,
        returns=program.returns(levels[-1].policy),
        best=np.array([level.best for level in levels]),
        slack=epsilon,
        prices=prices,
        gaps=np.array([level.gap for level in levels]),
    )


def _level(program: Program, i: int, face: Face, start: Int[np.ndarray, " S"]) -> ProgramLevel:
    """Solve the program of objective i, and look at its answer from the dual side."""
    process = program.process
    occupancy, prices = _solve(program, i, face)
    priced_in = [i, *(row.objective for row in face.rows)]
    reward = np.tensordot(np.append(1.0, prices), process.rewards[priced_in], axes=1)
    dual = program.optimize(reward, face.allowed | process.terminal[:, None], start)
    support = face.allowed & (dual.costs <= dual.tie)
    if face.rows:
        # Prices have the precision of the solver, not that of policy iteration; what the optimum mixes must stay.
        near = dual.costs <= _PRICE_PRECISION * np.max(np.abs(reward), initial=0.0)
        support |= face.allowed & (near | (occupancy > 1e-7 * np.max(occupancy)))
    occupancy = np.where(support, occupancy, 0.0)
    policy = _policy(occupancy, dual.policy)
    best = float(program.returns(policy)[i])
    bound = dual.best - sum(price * row.threshold for price, row in zip(prices, face.rows, strict=True))
    return ProgramLevel(best, float(bound - best), prices, occupancy, policy, dual.policy, support)


def _narrow(process: MOMDP, i: int, face: Face, level: ProgramLevel, epsilon: float) -> Face:
    """What objective i leaves to the next: its slack as a row, or its optimal face."""
    if epsilon > 0:
        return face._replace(rows=(*face.rows, Row(i, level.best - epsilon)))
    sizes = _sizes(process)
    rows = tuple(
        row._replace(tight=row.tight or abs(price) * sizes[row.objective] > _PRICE_PRECISION * sizes[i])
        for row, price in zip(face.rows, level.prices, strict=True)
    )
    return Face(level.support, rows)


def _solve(program: Program, i: int, face: Face) -> tuple[Float[np.ndarray, "S A"], Float[np.ndarray, " rows"]]:
    """The occupancy measure that is best for objective i on the face, and the price of each of its rows."""
    sizes, used = _sizes(program.process), face.allowed.ravel()
    rewards = (program.process.rewards / sizes[:, None, None]).reshape(len(sizes), -1)[:, used]
    thresholds = np.array([row.threshold / sizes[row.objective] for row in face.rows])
    needed = np.array([rewards[row.objective] for row in face.rows]).reshape(-1, used.sum())
    tight = np.array([row.tight for row in face.rows], bool)
    answer = _highs(
        -rewards[i],
        A_ub=-needed[~tight] if (~tight).any() else None,
        b_ub=-thresholds[~tight] if (~tight).any() else None,
        A_eq=sp.vstack([program.flow[:, used], -needed[tight]], format="csr") if tight.any() else program.flow[:, used],
        b_eq=np.append(program.inflow, -thresholds[tight]),
    )
    occupancy = np.zeros(used.size)
    occupancy[used] = np.maximum(answer.x, 0.0)
    prices = np.zeros(len(tight))
    prices[~tight] = -answer.ineqlin.marginals
    prices[tight] = -answer.eqlin.marginals[len(program.inflow) :]
    return occupancy.reshape(face.allowed.shape), prices * sizes[i] / sizes[[row.objective for row in face.rows]]


def _highs(costs: Float[np.ndarray, " N"], **constraints: Any) -> Any:
    """HiGHS at its tightest tolerances: dual simplex, and should that give up, interior point with crossover."""
    from scipy.optimize import linprog  # it takes its time to import

    # Flow equations have nothing to presolve: looking for it takes as long as solving them.
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10, "presolve": False}
    answer = None
    for method in ("highs-ds", "highs-ipm"):
        answer = linprog(costs, bounds=(0, None), method=method, options=options, **constraints)
        if answer.status == 0:
            return answer
    raise ArithmeticError(f"HiGHS could not solve a program that has a solution: {answer.message}")


def _policy(occupancy: Float[np.ndarray, "S A"], greedy: Int[np.ndarray, " S"]) -> Float[np.ndarray, "S A"]:
    """`x(s, a) / sum_a x(s, a)`; the greedy action where the occupancy measure never comes."""
    total = occupancy.sum(axis=1, keepdims=True)
    visited = total > 1e-12 * np.max(total)
    return np.where(visited, occupancy / np.where(visited, total, 1.0), np.eye(occupancy.shape[1])[greedy])


def mixture(
    program: Program, first: Float[np.ndarray, "S A"], second: Float[np.ndarray, "S A"], share: float
) -> Float[np.ndarray, "S A"]:
    """The stationary policy that is worth what `first` is with probability `1 - share` and `second` with `share`: the
    one that has the same mixture of their occupancies."""
    both = [occupancy(program.process, policy) for policy in (first, second)]
    return _policy((1 - share) * both[0] + share * both[1], np.argmax(first, axis=1))


def occupancy(process: MOMDP, policy: Float[np.ndarray, "S A"]) -> Float[np.ndarray, "S A"]:
    """`x(s, a) = d(s) policy(a | s)` with `d = initial + gamma P' d`."""
    chain, _ = process.chain(policy)
    transposed = sp.csr_array(chain.T)
    visits = linear.solve(linear.choose(process), transposed, process.initial[:, None], float(process.gamma[0]))
    return np.where(process.terminal[:, None], 0.0, visits * policy)


def leaving(process: MOMDP) -> Any:
    """`[S * A, S]`: each (s, a) is a way of being in s."""
    pairs = process.n_states * process.n_actions
    states = np.repeat(np.arange(process.n_states), process.n_actions)
    return sp.csr_array((np.ones(pairs), (np.arange(pairs), states)), shape=(pairs, process.n_states))


def _sizes(process: MOMDP) -> Float[np.ndarray, " M"]:
    """The largest reward of each objective: in these units the solver's tolerances mean something."""
    sizes = np.max(np.abs(process.rewards), axis=(1, 2))
    return np.where(sizes > 0, sizes, 1.0)
