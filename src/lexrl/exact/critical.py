"""The critical-slack curve: how much of objective 2 a slack on objective 1 buys.

    f(e) = max J_2   subject to   J_1 >= J*_1 - e

is concave and piecewise linear. Its slope `y` is the price of the slack, the dual of the program above; at price `y`
the best policies maximize `r_2 + y r_1`, and a corner of the curve is one that needs no randomization. Between two
corners the price is the slope of their chord: either nothing beats the chord at that price, and it is a piece of the
curve, or what beats it is a corner in between. So every corner is found, exactly, with one optimization for each piece,
started from the corner beside it. Returns and slopes are rational numbers: whether something beats a chord does not
depend on the size of the objectives.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from lexrl.errors import InputError
from lexrl.exact.backups import with_exact_rewards
from lexrl.exact.clock import Clock, Progress
from lexrl.exact.columns import Column, Row, column_of, occupancies, priced, worth
from lexrl.exact.evaluation import require_momdp
from lexrl.exact.iteration import first_policy, judge_level
from lexrl.exact.linear import choose
from lexrl.exact.policy_iteration import optimize
from lexrl.exact.programs import common_gamma, normalized
from lexrl.lex import Arr
from lexrl.momdp import MOMDP, as_numbers
from lexrl.order import Order, as_order
from lexrl.tolerance import Absolute

_NOTHING = Fraction(1, 2**80)
"""Below this share of the returns a difference is none."""


class SlackPoint(NamedTuple):
    """One point of the curve."""

    slack: float
    """What is given up of objective 1's best return."""
    returns: Float[Arr, " 2"]
    """`(J_1, J_2)`, both maximized."""
    shadow_price: float
    """What a little more slack would bring objective 2; 0 once that is at its own optimum."""
    policy: Float[Arr, "S A"]


class _Curve:
    """What is known of the curve: corners from left to right, and which chords between neighbors are pieces of it."""

    def __init__(self, process: MOMDP, left: Column, right: Column, clock: Clock):
        self.process, self.corners, self._clock = process, [left, right], clock
        self._pieces: set[tuple[int, int]] = set()

    def slack(self, corner: Column) -> Fraction:
        return self.corners[0].returns[0] - corner.returns[0]

    def price(self, k: int) -> Fraction:
        """The slope of the chord from corner k to the next."""
        left, right = self.corners[k], self.corners[k + 1]
        return (right.returns[1] - left.returns[1]) / (left.returns[0] - right.returns[0])

    def is_piece(self, k: int) -> bool:
        """Is the chord from corner k to the next a piece of the curve? If not, a corner in between is added."""
        left, right = self.corners[k], self.corners[k + 1]
        if (id(left), id(right)) in self._pieces:
            return True
        if self._clock.expired:
            raise InputError(
                f"The critical-slack curve was not finished within {self._clock.seconds:.3g} s; {len(self.corners)} "
                "corners were found. Ask for a few points of it (`points`), which takes less, or give more time."
            )
        self._clock.report(self.process.signals[1], len(self.corners), np.inf)
        between = _beyond(self.process, left, right, self.price(k))
        if between is None:
            self._pieces.add((id(left), id(right)))
            return True
        self.corners.insert(k + 1, between)
        return False


def critical_slack(
    momdp: MOMDP,
    order: Order | str | None,
    points: Any = None,
    *,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[SlackPoint, ...]:
    """The curve for the first two objectives of an order: its corners, or the points at the slacks asked for.

    The first corner is the lexicographic optimum; from the last one on, objective 2 has all it can have. Between two
    corners the best policy mixes the occupancies of theirs. Tolerances and limits in the order play no part.

    Args:
        momdp: the process; one gamma for both objectives.
        order: the objectives by importance.
        points: slacks to ask for, instead of all corners.
        time_limit: seconds after which there is an error: a part of the curve would be no bound on the rest.
        progress: called with a `Progress` for each piece that is looked at; its iteration is the number of corners.
    """
    order = as_order(order, require_momdp(momdp).signals)
    if len(order.objectives) < 2:
        raise InputError(f"The order {str(order)!r} has one objective; slack on it buys nothing without a second one.")
    asked, clock = None if points is None else _slacks(points), Clock(time_limit, progress)
    process = momdp.ordered(plain(Order(order.objectives[:2])))
    common_gamma(process)
    ends = [_end(process, *pair) for pair in ((0, 1), (1, 0))]
    process = with_exact_rewards(process)
    left, right = (column_of(process, policy, choose(process)) for policy in ends)
    curve = _Curve(process, left, right, clock)
    if curve.slack(right) <= _NOTHING * (abs(left.returns[0]) + abs(right.returns[0])):
        flat = _at(curve, left, Fraction(0))
        return tuple(flat._replace(slack=slack) for slack in asked or [0.0])
    return _corners(curve) if asked is None else tuple(_point(curve, slack) for slack in asked)


def _slacks(points: Any) -> list[float]:
    """Where the curve is asked for."""
    slacks = as_numbers("slacks", points)
    if slacks.ndim != 1 or not slacks.size or not ((slacks >= 0) & (slacks < np.inf)).all():
        raise InputError(f"The slacks {points} should be a list of numbers from 0 on.")
    return slacks.tolist()


def plain(order: Order) -> Order:
    """The same order, with no tolerance and no limit written in it."""
    return Order(tuple(objective._replace(tolerance=None, limit=None) for objective in order.objectives))


def _corners(curve: _Curve) -> tuple[SlackPoint, ...]:
    """Split chords until each is a piece of the curve, left to right."""
    k = 0
    while k + 1 < len(curve.corners):
        k += curve.is_piece(k)
    curve.corners = _told_apart(curve)
    prices = [curve.price(k) for k in range(len(curve.corners) - 1)]
    # A policy that beats a chord may lie inside a longer piece: no corner there.
    kept = [k for k, price in enumerate(prices) if k == 0 or prices[k - 1] - price > _NOTHING * prices[k - 1]]
    points = [_at(curve, curve.corners[k], prices[k]) for k in kept]
    return (*points, _at(curve, curve.corners[-1], Fraction(0)))


def _told_apart(curve: _Curve) -> list[Column]:
    """The corners that differ as doubles, in slack and in what it buys; the ends are always among them."""

    def apart(left: Column, right: Column) -> bool:
        more = float(curve.slack(right)) > float(curve.slack(left))
        return more and float(right.returns[1]) > float(left.returns[1])

    first, *between, last = curve.corners
    kept = [first]
    for corner in between:
        kept += [corner] if apart(kept[-1], corner) and apart(corner, last) else []
    return [*kept, last]


def _at(curve: _Curve, corner: Column, price: Fraction) -> SlackPoint:
    policy = np.eye(curve.process.num_actions)[corner.policy]
    return SlackPoint(float(curve.slack(corner)), _floats(corner.returns, corner.errors), float(price), policy)


def _point(curve: _Curve, slack: float) -> SlackPoint:
    """Close in on the piece that holds a slack, then mix its two ends."""
    given = Fraction(slack)
    while True:
        k = max(k for k, corner in enumerate(curve.corners) if curve.slack(corner) <= given)
        if k == len(curve.corners) - 1:
            return _at(curve, curve.corners[-1], Fraction(0))._replace(slack=slack)
        if curve.is_piece(k):
            break
    left, right = curve.corners[k], curve.corners[k + 1]
    share = (given - curve.slack(left)) / (left.returns[0] - right.returns[0])
    returns = [(1 - share) * a + share * b for a, b in zip(left.returns, right.returns, strict=True)]
    errors = [max(pair) for pair in zip(left.errors, right.errors, strict=True)]
    mixed = occupancies(curve.process, (left, right), (1 - share, share))
    return SlackPoint(slack, _floats(returns, errors), float(curve.price(k)), normalized(mixed, left.policy))


def _beyond(process: MOMDP, left: Column, right: Column, price: Fraction) -> Column | None:
    """What is better than both ends of a chord at the chord's price, if anything is."""
    row = (Row(0, Fraction(0)),)
    one = priced(process, 1, row, (price,))
    found = optimize(one, 0, process.action_mask, left.policy, choose(process))
    corner = column_of(process, found.policy, choose(process))
    gain = worth(corner, 1, row, (price,)) - worth(left, 1, row, (price,))
    size = max(abs(part) for end in (left, right) for part in (end.returns[1], price * end.returns[0]))
    return corner if gain > _NOTHING * size else None


def _end(process: MOMDP, first: int, second: int) -> Int[np.ndarray, " S"]:
    """A policy at an end of the curve: the lexicographic optimum of one of the two orders."""
    way = choose(process)
    best = optimize(process, first, process.action_mask, first_policy(process), way)
    left = judge_level(process, first, best, process.action_mask, Absolute(0.0)).reached
    return optimize(process, second, left, best.policy, way).policy


def _floats(returns: Sequence[Fraction], errors: Sequence[float]) -> Float[np.ndarray, " 2"]:
    """Returns as doubles; what cancels to nothing is 0, not what its last digits leave."""
    return np.array([float(one) if abs(one) > error else 0.0 for one, error in zip(returns, errors, strict=True)])
