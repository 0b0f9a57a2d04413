"""The critical-slack curve: how much of objective 2 a slack on objective 1 buys.

    f(e) = max J_2   subject to   J_1 >= J*_1 - e

is concave and piecewise linear. Its slope `y` is the price of the slack, the dual of the program above; at price `y`
the best policies maximize `r_2 + y r_1`, and a corner of the curve is one that needs no randomization. Between two
corners the price is the slope of their chord: either nothing beats the chord at that price, and it is a piece of the
curve, or what beats it is a corner in between. So every corner is found, exactly, with one optimization for each piece.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from lexrl.errors import InputError
from lexrl.exact.audit import without_tolerances
from lexrl.exact.iteration import solve
from lexrl.exact.programs import Program, discounted, mixture
from lexrl.lex import Arr
from lexrl.momdp import MOMDP
from lexrl.order import Order, as_order


class SlackPoint(NamedTuple):
    """One point of the curve."""

    slack: float
    """What is given up of objective 1's best return."""
    returns: Float[Arr, " 2"]
    """`(J_1, J_2)`, both maximized."""
    shadow_price: float
    """What a little more slack would bring objective 2; 0 once that is at its own optimum."""
    policy: Float[Arr, "S A"]


class _Corner(NamedTuple):
    returns: Float[Arr, " 2"]
    policy: Int[Arr, " S"]


class _Piece(NamedTuple):
    left: _Corner
    right: _Corner

    @property
    def price(self) -> float:
        fallen, risen = self.left.returns[0] - self.right.returns[0], self.right.returns[1] - self.left.returns[1]
        return float(risen / fallen)


def critical_slack(
    momdp: MOMDP, order: Order | str | None, points: Sequence[float] | None = None
) -> tuple[SlackPoint, ...]:
    """The curve for the first two objectives of an order: its corners, or the points at the slacks asked for.

    The first corner is the lexicographic optimum; from the last one on, objective 2 has all it can have. Between two
    corners the best policy mixes the occupancies of theirs.
    """
    order = as_order(order, momdp.signals)
    if len(order.objectives) < 2:
        raise InputError(f"The order {str(order)!r} has one objective; slack on it buys nothing without a second one.")
    if points is not None and not all(slack >= 0 for slack in points):
        raise InputError(f"The slacks {list(points)} should be numbers from 0 on.")
    order = without_tolerances(Order(order.objectives[:2]))
    program = discounted(momdp.ordered(order))
    left, right = _end(program, momdp, order), _end(program, momdp, Order(order.objectives[::-1]))
    if left.returns[0] - right.returns[0] <= 1e-10 * _size(left, right):
        return tuple(SlackPoint(float(slack), left.returns, 0.0, _plain(program, left)) for slack in points or [0.0])
    whole = _Piece(left, right)
    if points is None:
        return _corners(program, whole)
    return tuple(_point(program, whole, float(slack)) for slack in points)


def _corners(program: Program, whole: _Piece) -> tuple[SlackPoint, ...]:
    """Split chords until each is a piece of the curve, left to right."""
    pieces, open_pieces = [], [whole]
    while open_pieces:
        piece = open_pieces.pop()
        between = _beyond(program, piece)
        if between is None:
            pieces.append(piece)
        else:
            open_pieces += [_Piece(between, piece.right), _Piece(piece.left, between)]
    # A policy that beats a chord may lie inside a longer piece: no corner there.
    starts = [pieces[0]]
    starts += [new for old, new in itertools.pairwise(pieces) if new.price < (1 - 1e-7) * old.price]
    top = whole.left.returns[0]
    points = [
        SlackPoint(float(top - one.left.returns[0]), one.left.returns, one.price, _plain(program, one.left))
        for one in starts
    ]
    end = whole.right
    return (*points, SlackPoint(float(top - end.returns[0]), end.returns, 0.0, _plain(program, end)))


def _point(program: Program, whole: _Piece, slack: float) -> SlackPoint:
    """Close in on the piece that holds a slack, then mix its two ends."""
    top = whole.left.returns[0]
    if slack >= top - whole.right.returns[0]:
        return SlackPoint(slack, whole.right.returns, 0.0, _plain(program, whole.right))
    piece = whole
    while (between := _beyond(program, piece)) is not None:
        piece = _Piece(between, piece.right) if top - between.returns[0] <= slack else _Piece(piece.left, between)
    left, right = piece.left.returns, piece.right.returns
    share = float((slack - (top - left[0])) / (left[0] - right[0]))
    policy = mixture(program, _plain(program, piece.left), _plain(program, piece.right), share)
    return SlackPoint(slack, (1 - share) * left + share * right, piece.price, policy)


def _beyond(program: Program, piece: _Piece) -> _Corner | None:
    """What is better than both ends of a chord at the chord's price, if anything is."""
    first, second = program.process.rewards
    everything = np.ones(first.shape, bool)
    found = program.optimize(second + piece.price * first, everything, piece.left.policy)
    corner = _corner(program, found.policy)
    weights = np.array([piece.price, 1.0])
    gain = weights @ (corner.returns - piece.left.returns)
    return corner if gain > 1e-10 * max(1.0, piece.price) * _size(piece.left, piece.right) else None


def _end(program: Program, momdp: MOMDP, order: Order) -> _Corner:
    """An end of the curve: the lexicographic optimum of one of the two orders."""
    return _corner(program, np.argmax(solve(momdp, order).sets[-1], axis=1))


def _corner(program: Program, policy: Int[np.ndarray, " S"]) -> _Corner:
    return _Corner(program.returns(np.eye(program.process.n_actions)[policy]), policy)


def _plain(program: Program, corner: _Corner) -> Float[np.ndarray, "S A"]:
    return np.eye(program.process.n_actions)[corner.policy]


def _size(left: _Corner, right: _Corner) -> float:
    return float(max(np.max(np.abs(left.returns)), np.max(np.abs(right.returns))))
