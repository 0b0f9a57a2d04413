"""What learning curves show: objectives that were still improving, and those that were learned and forgotten."""

import numpy as np

from lexrl.runs.result import Result
from lexrl.runs.scales import Episodes, Scale

NOTABLE = 0.05
"""Share of an objective's range: smaller differences in training are not mentioned."""
APART = 0.25
"""Share of the range by which training and fresh episodes differ enough to be said."""
FEWEST_POINTS = 6
"""Of a curve that may show a trend."""


def improving(result: Result, scale: Scale) -> np.ndarray:
    """`[seeds, M]`: objectives that still rose when training ended."""
    curve = result.metrics["episode_return"] * np.asarray(result.run.order.signs)
    return np.array(
        [[_rises(curve[:, s, j], size) for j, size in enumerate(scale.undiscounted)] for s in range(len(result))]
    )


def unfinished(result: Result, scale: Scale) -> np.ndarray:
    """`[seeds, M]`: objectives that still rose when their own stage ended, but for the last one."""
    curve, stage = result.metrics["episode_return"] * np.asarray(result.run.order.signs), result.metrics.get("stage")
    found = np.zeros(curve.shape[1:], bool)
    if stage is None:
        return found
    stage = stage.reshape(*curve.shape[:2], -1).max(axis=-1)
    for s in range(len(result)):
        for j, size in enumerate(scale.undiscounted[:-1].tolist()):
            found[s, j] = _rises(curve[stage[:, s] == j + 1, s, j], size)
    return found


def too_few_points(result: Result) -> np.ndarray:
    """`[seeds]`: curves that are too short to show any trend."""
    return np.isfinite(result.metrics["episode_return"]).sum(axis=0).min(axis=-1) < FEWEST_POINTS


def _rises(curve: np.ndarray, size: float) -> bool:
    """Is the last fifth of a curve better than what was before it, notably and beyond its noise?"""
    curve = curve[np.isfinite(curve)]
    n = len(curve)
    if n < FEWEST_POINTS or not size > 0:
        return False
    late, before = curve[-max(n // 5, 2) :], curve[n // 2 : max(n // 2 + 2, round(0.7 * n))]
    noise = np.diff(curve).std() / np.sqrt(2)  # differences of neighbors show no trend
    error = noise * np.sqrt(1 / len(late) + 1 / len(before))
    return bool(late.mean() - before.mean() > max(NOTABLE * size, 2.0 * error))


def forgotten(result: Result, played: Episodes, scale: Scale, granted: np.ndarray) -> np.ndarray:
    """`[seeds, M]`: objectives but the last, and those with a limit, that were much better for a tenth of training, by
    more than the slack that is granted."""
    curve = result.metrics["episode_return"] * np.asarray(result.run.order.signs)
    width = max(len(curve) // 10, 3)
    if len(curve) < width:
        return np.zeros(curve.shape[1:], bool)
    with np.errstate(invalid="ignore"):
        best = np.lib.stride_tricks.sliding_window_view(curve, width, axis=0).mean(axis=-1)
        best = np.where(np.isfinite(best), best, -np.inf).max(axis=0)
        found = best - played.returns.mean(axis=1) > APART * scale.undiscounted + granted
    found[:, -1] = False
    return found & (scale.undiscounted > 0) & ~np.isfinite(result.run.order.limits())


def disagreeing(result: Result, played: Episodes, scale: Scale, granted: np.ndarray) -> np.ndarray:
    """`[seeds, M]`: the first objective where it is much worse than at the end of training, which explores or samples.

    The others are not compared: exploring may well be better in them, at its expense.
    """
    curve = result.metrics["episode_return"] * np.asarray(result.run.order.signs)
    with np.errstate(invalid="ignore"):
        worse = curve[-1] - played.returns.mean(axis=1) > APART * scale.undiscounted + granted
    worse[:, 1:] = False
    return worse & (scale.undiscounted > 0)
