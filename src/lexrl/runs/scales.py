"""Fresh episodes of policies, and the units of the objectives in which their differences are large or small.

The range of an objective is that of the mean returns in training and in the first episodes: differences below one
percent of it are not worth deciding, and without a margin equal policies could never be told from slightly worse ones.
Of the points of training, the highest and the lowest twentieth do not count: that a seed once went astray is no reason
to call anything small.

Everything here is maximized: returns are multiplied by the signs of the order.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl import verify
from lexrl.loops.evaluation import Evaluation
from lexrl.order import Order
from lexrl.types import HasReturnBounds

OUTLIERS = 20
"""One of so many points of training does not count at either end of the range."""


class Episodes(NamedTuple):
    """Episodes of one policy of each seed, all objectives maximized."""

    returns: np.ndarray
    """`[seeds, n, m]`: undiscounted."""
    discounted: np.ndarray
    lengths: np.ndarray
    """`[seeds, n]`"""

    @classmethod
    def of(cls, played: Evaluation, order: Order) -> "Episodes":
        signs = np.asarray(order.signs, float)[: played.returns.shape[-1]]
        # An infinite return cannot be compared either.
        returns, discounted = (np.where(np.isfinite(x), x * signs, np.nan) for x in (played.returns, played.discounted))
        return cls(returns, discounted, np.asarray(played.lengths))

    def plus(self, more: "Episodes") -> "Episodes":
        return Episodes(*(np.concatenate(parts, axis=1) for parts in zip(self, more, strict=True)))


class Scale(NamedTuple):
    """The units of each objective `[M]`, for undiscounted and for discounted returns."""

    undiscounted: np.ndarray
    """The range of mean returns."""
    discounted: np.ndarray
    span: np.ndarray
    """The range of everything that was seen: means of training, without exception, and episodes of untrained
    policies."""
    discounted_span: np.ndarray
    known: tuple[verify.Range | None, ...] = ()
    """What the environment says that the returns of an episode lie between; None or nothing where it does not."""

    def known_of(self, objective: int, seen: Sequence[np.ndarray]) -> verify.Range | None:
        """What returns of an objective lie between, if that is known and true of all that were seen."""
        found = self.known[objective] if self.known else None
        if found is None:
            return None
        rounding = 1e-4 * max(abs(found.low), abs(found.high))
        inside = all(found.low - rounding <= each.min() and each.max() <= found.high + rounding for each in seen)
        return found if inside else None


def make_scale(
    curves: np.ndarray,
    played: Sequence[Episodes],
    untrained: Episodes,
    gamma: Any,
    known: tuple[verify.Range | None, ...] = (),
) -> Scale:
    """The range of the mean returns in training `[points, seeds, M]` and of the policies that were played.

    The curves are undiscounted; what the range is in discounted returns follows from the length of the episodes.
    Episodes of untrained policies show how far single returns may differ, which trained ones may show too rarely.
    """
    m = curves.shape[-1]
    fresh = []
    for each in (*played, untrained):
        means = np.full((len(each.returns), m), np.nan)
        means[:, : each.returns.shape[-1]] = each.returns.mean(axis=1)
        fresh.append(means)
    points = curves.reshape(-1, m)
    size, largest = (_range(np.concatenate([of_training, *fresh])) for of_training in (_usual(points), points))
    share = np.broadcast_to(verify.horizon_share(gamma, float(played[0].lengths.mean())), m)
    wide = [_range(view.reshape(-1, m)) for view in (untrained.returns, untrained.discounted)]
    return Scale(size, size * share, np.maximum(largest, wide[0]), np.maximum(largest * share, wide[1]), known)


def _range(values: np.ndarray) -> np.ndarray:
    """The range of each column, of what is finite in it."""
    return np.array([np.ptp(column) if len(column) else 0.0 for column in map(_finite, values.T)])


def _usual(points: np.ndarray) -> np.ndarray:
    """The least and the greatest of each column `[2, M]`, without its lowest and its highest twentieth."""

    def ends(column: np.ndarray) -> np.ndarray:
        if len(column) == 0:
            return np.full(2, np.nan)
        cut = len(column) // OUTLIERS
        return np.sort(column)[[cut, -1 - cut]]

    return np.stack([ends(_finite(column)) for column in points.T], axis=1)


def _finite(column: np.ndarray) -> np.ndarray:
    return column[np.isfinite(column)]


def return_ranges(env: Any, order: Order) -> tuple[verify.Range | None, ...]:
    """What the returns of each objective lie between, if the environment knows it; all are maximized."""
    if not isinstance(env, HasReturnBounds):
        return ()
    known = env.return_bounds
    ranges = [verify.Range(*known[one.name]) if one.name in known else None for one in order.objectives]
    return tuple(
        each if each is None or one.sign > 0 else each.turned()
        for one, each in zip(order.objectives, ranges, strict=True)
    )
