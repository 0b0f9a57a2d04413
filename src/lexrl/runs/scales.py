"""Fresh episodes of policies, and the units of the objectives in which their differences are large or small.

The range of an objective is that of the mean returns in training and in the first episodes: differences below one
percent of it are not worth deciding, and without a margin equal policies could never be told from slightly worse ones.
Everything here is maximized: returns are multiplied by the signs of the order.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl import verify
from lexrl.loops.evaluation import Evaluation
from lexrl.order import Order
from lexrl.types import HasReturnBounds


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
        return cls(played.returns * signs, played.discounted * signs, np.asarray(played.lengths))

    def plus(self, more: "Episodes") -> "Episodes":
        return Episodes(*(np.concatenate(parts, axis=1) for parts in zip(self, more, strict=True)))


class Scale(NamedTuple):
    """The units of each objective `[M]`, for undiscounted and for discounted returns."""

    undiscounted: np.ndarray
    """The range of mean returns."""
    discounted: np.ndarray
    span: np.ndarray
    """The range of the returns of single episodes, of untrained policies as well."""
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
    rows = [curves.reshape(-1, m)]
    for each in (*played, untrained):
        means = np.full((len(each.returns), m), np.nan)
        means[:, : each.returns.shape[-1]] = each.returns.mean(axis=1)
        rows.append(means)
    size = _range(np.concatenate(rows))
    share = np.broadcast_to(verify.horizon_share(gamma, float(played[0].lengths.mean())), m)
    wide = [_range(view.reshape(-1, m)) for view in (untrained.returns, untrained.discounted)]
    return Scale(size, size * share, np.maximum(size, wide[0]), np.maximum(size * share, wide[1]), known)


def _range(values: np.ndarray) -> np.ndarray:
    """The range of each column, of what is finite in it."""
    known = [column[np.isfinite(column)] for column in values.T]
    return np.array([np.ptp(column) if len(column) else 0.0 for column in known])


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
