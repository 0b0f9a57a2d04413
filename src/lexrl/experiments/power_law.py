"""How learning time grows with size: when learning curves converge, and the power law through several sizes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lexrl.errors import InputError
from lexrl.report.stats import Interval, limits

REMAINING = 0.1
"""A curve has converged when at most this share of the distance to its end remains."""


class LearningTime(NamedTuple):
    """The learning time of one size: of the mean over environments, and of resamples of them."""

    middle: float
    """NaN if the mean curve does not converge."""
    resampled: np.ndarray
    """`[R]`: with the same environments drawn for all sizes, if these have the same environments."""
    num_envs: int

    def interval(self) -> Interval:
        """The time with its 95 % interval; without an interval if more than 5 % of the resamples have no time."""
        return _interval(self.middle, self.resampled, self.num_envs)


class PowerLaw(NamedTuple):
    """A fitted power law, `time ~ c size^p`."""

    exponent: Interval
    line: tuple[float, ...]
    """The fitted time at each size."""


def convergence_step(steps: np.ndarray, returns: np.ndarray) -> float:
    """The step from which on the returns `[points, M]` stay within a tenth of the distance to where they end.

        remaining(t) = (end - return(t)) . way / |way|^2        way = end - start

    The end is the mean of the last tenth; a return is smoothed over the three points before and after it. Measured
    along the way, noise counts once and not once for each objective. NaN if the returns have not converged before the
    last quarter.
    """
    known = np.isfinite(returns).all(axis=1)
    steps, returns = steps[known], returns[known]
    points = len(steps)
    end = returns[-max(1, points // 10) :].mean(axis=0)
    way = end - returns[0]
    smooth = np.stack([returns[max(0, t - 3) : t + 4].mean(axis=0) for t in range(points)])
    far = np.flatnonzero(np.abs((end - smooth) @ way) > REMAINING * max(way @ way, 1e-12))
    first = 0 if len(far) == 0 else far[-1] + 1
    return float(steps[first]) if first < 3 * points // 4 else np.nan


def learning_time(steps: np.ndarray, returns: np.ndarray, resamples: int = 400) -> LearningTime:
    """When the mean of the returns `[points, envs, M]` over environments converges, also for resampled environments.

    A single environment is too noisy: an episode's return varies more than learning changes it.
    """
    num_envs = returns.shape[1]
    picks = np.random.default_rng(0).integers(num_envs, size=(resamples, num_envs))
    resampled = np.array([convergence_step(steps, returns[:, pick].mean(axis=1)) for pick in picks])
    return LearningTime(convergence_step(steps, returns.mean(axis=1)), resampled, num_envs)


def fit(sizes: np.ndarray, times: Sequence[LearningTime]) -> PowerLaw | None:
    """The power law through the times, by least squares in logarithms; None if fewer than two sizes have a time.

        p = sum (x - mean x) (y - mean y) / sum (x - mean x)^2        x = log size, y = log time

    The interval of p is that of the best straight line; it does not say whether a line fits. Measured coverage
    (`benchmarks/intervals.py`) in per cent, for times that are geometric means over 5, 10, 30 environments and 4 sizes:
    91, 94, 95.
    """
    if np.ndim(sizes) != 1 or len(sizes) != len(times):
        raise InputError(f"There are {len(times)} times for {np.shape(sizes)} sizes; give one time for each size.")
    if not (np.isfinite(sizes) & (np.asarray(sizes) > 0)).all() or any(one.middle <= 0 for one in times):
        raise InputError("A size or a time is zero, negative or not finite; a power law needs positive numbers.")
    known = np.array([np.isfinite(one.middle) for one in times], bool)
    x = np.log(np.asarray(sizes, float)[known])
    if len(np.unique(x)) < 2:
        return None
    y = np.log([one.middle for one in times if np.isfinite(one.middle)])
    each = np.log([one.resampled for one in times if np.isfinite(one.middle)])
    away = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    slope = float(away @ y)
    num_envs = min(one.num_envs for one in times)
    line = np.exp(y.mean() + slope * (np.log(np.asarray(sizes, float)) - x.mean()))
    return PowerLaw(_interval(slope, away @ each, num_envs), tuple(line.tolist()))


def _interval(middle: float, resampled: np.ndarray, num_envs: int) -> Interval:
    known = resampled[np.isfinite(resampled)]
    if not np.isfinite(middle) or num_envs < 2 or len(known) < 0.95 * len(resampled):
        return Interval(middle, np.nan, np.nan)
    low, high = limits(np.float64(middle), known, [num_envs])
    return Interval(middle, float(low), float(high))
