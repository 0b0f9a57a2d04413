"""What episodes say about a statement: the differences that are tested, and the tolerance that is granted."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl import verify
from lexrl.runs.scales import Episodes, Scale
from lexrl.runs.statements import Statement
from lexrl.tolerance import of_returns
from lexrl.types import HasTolerance

LATE = 1e9
"""Updates: a tolerance that follows a schedule counts as it is at the end."""


class Measured(NamedTuple):
    """What is known about a statement."""

    differences: np.ndarray
    """`[n]`: how much better the policy was, in what was optimized."""
    tolerance: float
    slack: float
    span: float
    """The largest size that a difference is known to have."""
    known: verify.Range | None
    """What the environment says that all differences lie between."""
    likely: float
    """The difference of a policy that keeps what it should."""
    value: np.ndarray
    """`[n]`: undiscounted returns of the policy, and of the reference."""
    reference: np.ndarray

    def by_betting(self, alpha: float, episodes: int) -> bool:
        """Are the bounds those of a bettor? Where the range is known, and narrow enough to decide with half of the
        episodes that may be played."""
        if self.known is None:
            return False
        return 2 * verify.fewest_episodes(self.tolerance, alpha, self.known, self.likely) <= episodes

    def decide(self, alpha: float, episodes: int) -> int:
        """Test the statement, which may have at most so many episodes."""
        if self.by_betting(alpha, episodes) and self.known is not None:
            return int(verify.judge_bounded(self.differences, self.tolerance, alpha, self.known))
        return int(verify.judge(self.differences, self.tolerance, alpha, self.span))

    def bounds(self, alpha: float, episodes: int) -> verify.Bounds:
        if len(self.differences) == 0:
            return verify.Bounds(*(np.array(np.nan) for _ in range(3)))
        if self.by_betting(alpha, episodes) and self.known is not None:
            return verify.betting_bounds(self.differences, alpha, self.known)
        with np.errstate(invalid="ignore"):
            return verify.bounds(self.differences, alpha, self.span)


def measure(statement: Statement, played: Sequence[Episodes], scale: Scale, tolerance: Any) -> Measured:
    """What the episodes so far say; `tolerance` is the algorithm's of this seed, None if it has none."""
    s, j, skip = statement.seed, statement.objective, statement.skip
    mine = played[0]
    value = mine.returns[s, skip:, j]
    if statement.limit is not None:
        # A limit is tested as it is written: per episode, without a margin.
        judged, against = value, np.full(value.shape, statement.limit)
        reference, widest, views = against, scale.span[j], [mine.returns[..., j]]
        margin, likely, known = 0.0, 0.0, scale.known_of(j, views)
        if known is not None:
            known = verify.Range(known.low - statement.limit, known.high - statement.limit)
            likely = known.high
    else:
        theirs = played[statement.source]
        judged, against = mine.discounted[s, skip:, j], theirs.discounted[statement.other, skip:, j]
        reference, widest = theirs.returns[statement.other, skip:, j], scale.discounted_span[j]
        if statement.best is not None:
            reference = against = np.full(judged.shape, statement.best)
        views = [each.discounted[..., j] for each in played if each.discounted.shape[-1] > j]
        margin, likely, known = statement.margin * scale.discounted[j], 0.0, scale.known_of(j, views)
        if known is not None:
            known = verify.Range(known.low - known.high, known.high - known.low)
    slack = slack_of(tolerance, mine.discounted[s].mean(axis=0), j, against.mean() if len(against) else 0.0)
    # Single precision: sums of rewards are known to about seven digits.
    tau = slack + margin + 1e-6 * float(np.abs(against).max(initial=0.0))
    span = max(float(widest), max(float(np.ptp(view)) for view in views))
    return Measured(judged - against, tau, slack, span, known, likely, value, reference)


def slack_of(tolerance: Any, returns: np.ndarray, objective: int, reference: float) -> float:
    """What the order grants this objective, at the return of the reference."""
    if tolerance is None:
        return 0.0
    around = np.where(np.isfinite(returns), returns, 0.0)
    around[objective] = reference
    return float(np.asarray(of_returns(tolerance, around, LATE))[objective])


def tolerances(algorithms: Sequence[Any]) -> list[Any]:
    """The tolerance of each seed's algorithm; None for one without."""
    return [one.tolerance if isinstance(one, HasTolerance) else None for one in algorithms]
