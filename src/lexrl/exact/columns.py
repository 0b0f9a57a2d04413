"""The best mixture of policies under constraints on its returns, by column generation.

    max J_i(x)    over mixtures x of policies,  J_j(x) >= threshold_j (or =)  for some more important j

A mixture of policies is a mixture of deterministic ones, and few of them: one more than there are constraints. Given
prices `y` for the constraints, the best policy for the reward `r_i + sum_j y_j r_j` is found by policy iteration; it
joins the mixture if it is better than what is mixed at those prices, else the mixture is optimal and the prices prove
it. The program over the mixture is tiny, and is solved in rational numbers.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from lexrl import doubled
from lexrl.doubled import Doubled
from lexrl.exact import rational
from lexrl.exact.backups import exact_rewards, single
from lexrl.exact.clock import Clock
from lexrl.exact.linear import Way, choose
from lexrl.exact.policy_iteration import LevelSolution, chain_system, climb, optimize, refine, rows_of
from lexrl.lex import Arr
from lexrl.momdp import MOMDP

_NOTHING, _LITTLE = Fraction(1, 2**80), Fraction(1, 2**40)
"""A gain below this share of the returns is none: where returns are known to 90 bits, and in ordinary arithmetic."""
UNKNOWN = Fraction(10) ** 300
"""A bound where there is none."""
Prices = tuple[Fraction, ...]
"""One for each row."""


class Row(NamedTuple):
    """A constraint that a more important objective leaves: `J_j >= threshold`, or equality where it has had a price."""

    objective: int
    threshold: Fraction
    tight: bool = False


class Column(NamedTuple):
    """A deterministic policy and its returns, one for each objective."""

    policy: Int[Arr, " S"]
    returns: tuple[Fraction, ...]
    errors: tuple[float, ...] = ()
    """Bounds on the errors of the returns; none where they were found in ordinary arithmetic."""


class _Master(NamedTuple):
    """The best mixture of a pool of policies."""

    weights: tuple[Fraction, ...]
    """One for each policy of the pool."""
    prices: Prices
    value: Fraction
    basis: tuple[int, ...]
    """To begin with when the pool has grown."""


class Mixture(NamedTuple):
    """The optimum of one objective under constraints."""

    columns: tuple[Column, ...]
    """The policies that are mixed."""
    weights: tuple[Fraction, ...]
    prices: Prices
    best: Fraction
    bound: Fraction
    """No mixture within the constraints is better, given the prices."""
    dual: LevelSolution
    """The optimum of the priced reward."""
    process: MOMDP
    """The process with the priced reward."""
    shadow_prices: Prices = ()
    """What more slack would bring. Where a threshold is just what some policy returns, a row has several prices that
    prove the optimum; this is the smallest of them."""
    others: tuple[Column, ...] = ()
    """Policies that were met on the way, with returns in ordinary arithmetic."""


def column_of(process: MOMDP, policy: Int[np.ndarray, " S"], way: Way) -> Column:
    """A policy with its returns to twice the digits; one gamma for all objectives."""
    rows = rows_of(process, policy)
    system = chain_system(process, rows, float(process.gamma[0]), way)
    values = [refine(system, exact_rewards(process, j, rows), None).values for j in range(process.num_objectives)]
    errors = tuple(float(process.initial @ one.error) for one in values)
    return Column(policy, tuple(expected(process, one.value) for one in values), errors)


def expected(process: MOMDP, value: Doubled) -> Fraction:
    """`J` from the initial distribution, which sums to 1 to the last digit."""
    whole = doubled.total(doubled.exactly(process.initial))
    return doubled.as_fraction(doubled.per_weight(doubled.total(doubled.times(value, process.initial)), whole))


def priced(process: MOMDP, i: int, rows: tuple[Row, ...], prices: Prices) -> MOMDP:
    """The process with the reward `r_i + sum_j y_j r_j` as its only one."""
    everywhere = np.arange(process.num_states * process.num_actions)
    reward = exact_rewards(process, i, everywhere)
    for row, price in zip(rows, prices, strict=True):
        if price:
            factor = Doubled(*(np.broadcast_to(part, everywhere.shape) for part in doubled.from_fraction(price)))
            reward = doubled.add(reward, doubled.product(exact_rewards(process, row.objective, everywhere), factor))
    shape = process.rewards.shape[1:]
    kept = process.action_mask & ~process.terminal[:, None]
    reward = Doubled(*(np.where(kept, part.reshape(shape), 0.0) for part in reward))
    return single(process, reward, float(process.gamma[0]), process.signals[i])


def best_mixture(
    process: MOMDP,
    i: int,
    allowed: Bool[np.ndarray, "S A"],
    rows: tuple[Row, ...],
    pool: tuple[Column, ...],
    others: tuple[Column, ...],
    clock: Clock,
) -> Mixture:
    """The best mixture for objective i; `pool` holds policies of which some mixture satisfies the rows, `others` more
    within `allowed` that may be of use."""
    way = choose(process)
    found, others = _candidates(process, i, allowed, rows, pool, others, clock)
    exact = [*pool, *(column_of(process, one.policy, way) for one in found)]
    master = _master(i, rows, exact, None)
    while True:
        one, dual, bound = _at_prices(process, i, allowed, rows, exact, master, clock)
        clock.report(process.signals[i], len(exact), float(bound - master.value))
        new = column_of(process, dual.policy, way)
        if clock.expired or not _gains(new, i, rows, master.prices, exact, _NOTHING):
            break
        exact.append(new)
        master = _master(i, rows, exact, master)
    used = [(column, weight) for column, weight in zip(exact, master.weights, strict=True) if weight > 0]
    columns, weights = zip(*used, strict=True)
    shadow = _shadow_prices(process, i, allowed, rows, exact, master, clock)
    return Mixture(columns, weights, master.prices, master.value, bound, dual, one, shadow, others)


def _at_prices(
    process: MOMDP,
    i: int,
    allowed: Bool[np.ndarray, "S A"],
    rows: tuple[Row, ...],
    pool: Sequence[Column],
    master: _Master,
    clock: Clock,
) -> tuple[MOMDP, LevelSolution, Fraction]:
    """The process with the reward at the prices of a mixture, its optimum, and the bound that follows."""
    one = priced(process, i, rows, master.prices)
    dual = optimize(one, 0, allowed, _heaviest(master, pool).policy, choose(process), clock)
    paid = sum((price * row.threshold for price, row in zip(master.prices, rows, strict=True)), Fraction(0))
    missing = Fraction(dual.bound) if np.isfinite(dual.bound) else UNKNOWN
    return one, dual, expected(process, dual.values.value) + missing - paid


def _shadow_prices(
    process: MOMDP,
    i: int,
    allowed: Bool[np.ndarray, "S A"],
    rows: tuple[Row, ...],
    pool: Sequence[Column],
    before: _Master,
    clock: Clock,
) -> Prices:
    """The prices with a little more slack: those of the mixture, unless a threshold is just what a policy returns."""
    pool, master, looser = list(pool), before, _loosened(rows, pool)
    while not clock.expired:
        master = _master(i, looser, pool, master)
        if master.prices == before.prices:
            break
        _, dual, _ = _at_prices(process, i, allowed, looser, pool, master, clock)
        new = column_of(process, dual.policy, choose(process))
        if not _gains(new, i, looser, master.prices, pool, _NOTHING):
            break
        pool.append(new)
    return master.prices


def _loosened(rows: tuple[Row, ...], pool: Sequence[Column]) -> tuple[Row, ...]:
    """The same constraints with more slack than returns may be wrong by."""

    def loose(row: Row) -> Row:
        size = max(abs(row.threshold), *(abs(column.returns[row.objective]) for column in pool))
        return row._replace(threshold=row.threshold - _NOTHING * size)

    return tuple(row if row.tight else loose(row) for row in rows)


def _candidates(
    process: MOMDP,
    i: int,
    allowed: Bool[np.ndarray, "S A"],
    rows: tuple[Row, ...],
    pool: tuple[Column, ...],
    others: tuple[Column, ...],
    clock: Clock,
) -> tuple[list[Column], tuple[Column, ...]]:
    """Policies that the best mixture uses, found in ordinary arithmetic: it gets there, or nearly. And all that were
    met on the way."""
    way, everything = choose(process), [*pool, *others]
    gamma, master = float(process.gamma[0]), None
    while True:
        master = _master(i, rows, everything, master)
        factors = np.array([1.0, *(float(price) for price in master.prices)])
        reward = np.tensordot(factors, process.rewards[[i, *(row.objective for row in rows)]], axes=1)
        one = single(process, doubled.exactly(reward), gamma, process.signals[i])
        top = climb(one, 0, allowed, _heaviest(master, everything).policy, way, clock)
        chosen = rows_of(process, top.policy)
        returns = [process.initial @ top.system.solve(each.ravel()[chosen]) for each in process.rewards]
        new = Column(top.policy, tuple(Fraction(float(each)) for each in returns))
        if clock.expired or not _gains(new, i, rows, master.prices, everything, _LITTLE):
            break
        everything.append(new)
    ours, weights = everything[len(pool) :], master.weights[len(pool) :]
    return [column for column, weight in zip(ours, weights, strict=True) if weight > 0], tuple(ours)


def _heaviest(master: _Master, pool: Sequence[Column]) -> Column:
    return pool[int(np.argmax([float(weight) for weight in master.weights]))]


def _gains(new: Column, i: int, rows: tuple[Row, ...], prices: Prices, pool: Sequence[Column], share: Fraction) -> bool:
    """Is a policy better than all that are mixed, at the prices, by more than a share of what is added up?"""
    paid = (abs(price * row.threshold) for price, row in zip(prices, rows, strict=True))
    size = max(abs(new.returns[i]), *paid)
    return worth(new, i, rows, prices) - max(worth(old, i, rows, prices) for old in pool) > share * size


def worth(column: Column, i: int, rows: tuple[Row, ...], prices: Prices) -> Fraction:
    """What a policy returns at the prices of the rows."""
    bought = (price * column.returns[row.objective] for price, row in zip(prices, rows, strict=True))
    return column.returns[i] + sum(bought, Fraction(0))


def _master(i: int, rows: tuple[Row, ...], pool: Sequence[Column], before: _Master | None) -> _Master:
    """The best mixture of the policies in the pool: one row for the weights, one for each constraint. `before` is that
    of a pool that this one begins with."""
    loose = [k for k, row in enumerate(rows) if not row.tight]
    # Surpluses first: the places of policies stay when more are added.
    table = [[Fraction(0)] * len(loose) + [Fraction(1)] * len(pool)]
    for k, row in enumerate(rows):
        surplus = [Fraction(-1 if k == other else 0) for other in loose]
        table.append(surplus + [column.returns[row.objective] for column in pool])
    costs = [Fraction(0)] * len(loose) + [column.returns[i] for column in pool]
    right = [Fraction(1), *(row.threshold for row in rows)]
    found = rational.maximize(costs, table, right, () if before is None else before.basis)
    if found is None:
        raise ArithmeticError("No mixture of the policies found so far satisfies the constraints they came from.")
    prices = _above_noise(tuple(-dual for dual in found.duals[1:]), i, rows, pool)
    return _Master(tuple(found.weights[len(loose) :]), prices, found.value, found.basis)


def _above_noise(prices: Prices, i: int, rows: tuple[Row, ...], pool: Sequence[Column]) -> Prices:
    """Prices, and 0 for those that make no larger difference to any policy than its returns may be wrong by: policies
    that tie with each other would have such prices, and a row that has one leaves less to the next objective."""
    known = [column.errors[i] for column in pool if column.errors and np.isfinite(column.errors[i])]
    noise = 4 * Fraction(max(known, default=0.0))

    def real(price: Fraction, row: Row) -> Fraction:
        each = [row.threshold, *(column.returns[row.objective] for column in pool)]
        return price if abs(price) * (max(each) - min(each)) > noise else Fraction(0)

    return tuple(real(price, row) if price else price for price, row in zip(prices, rows, strict=True))


def occupancies(process: MOMDP, columns: tuple[Column, ...], weights: tuple[Fraction, ...]) -> Float[np.ndarray, "S A"]:
    """`x(s, a)`: the discounted number of times the mixture uses (s, a)."""
    states, found = np.arange(process.num_states), np.zeros((process.num_states, process.num_actions))
    for column, weight in zip(columns, weights, strict=True):
        if weight <= _NOTHING:  # no more than what returns are wrong by
            continue
        system = chain_system(process, rows_of(process, column.policy), float(process.gamma[0]), choose(process))
        visits = np.where(process.terminal, 0.0, np.maximum(system.solve_transposed(process.initial), 0.0))
        found[states, column.policy] += float(weight) * np.where(visited(process, column.policy), visits, 0.0)
    return found


def visited(process: MOMDP, policy: Int[np.ndarray, " S"]) -> Bool[np.ndarray, " S"]:
    """States that a policy can come to from the initial distribution."""
    chain = chain_system(process, rows_of(process, policy), 1.0, "sparse").chain
    forward, reached = (chain.T != 0).astype(float), process.initial > 0
    while True:
        wider = reached | (forward @ reached.astype(float) > 0)
        if (wider == reached).all():
            return reached
        reached = wider
