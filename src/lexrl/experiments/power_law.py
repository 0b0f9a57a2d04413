"""How time grows with size."""

from typing import NamedTuple

import numpy as np

from lexrl.errors import InputError
from lexrl.report.stats import Interval, limits


class Times(NamedTuple):
    """The time of one size: of all its worlds together, and of resamples of them."""

    middle: float
    """NaN: there is none, for learning did not come to an end."""
    resampled: np.ndarray
    """`[R]`: with the same worlds drawn in all sizes, where they are the same worlds."""
    num_envs: int

    def interval(self) -> Interval:
        """The time with its 95 % interval; none where more than one resample in twenty has no time."""
        return _interval(self.middle, self.resampled, self.num_envs)


class Law(NamedTuple):
    """A fitted power law, `time ~ c size^p`."""

    exponent: Interval
    line: tuple[float, ...]
    """The law's time at each size."""


def fit(sizes: np.ndarray, times: "list[Times]") -> Law | None:
    """The power law through the times, by least squares in logarithms; None if fewer than two sizes have one.

        p = sum (x - mean x) (y - mean y) / sum (x - mean x)^2        x = log size, y = log time

    The interval of p is for the straight line that fits best; it does not say whether a line fits. Measured coverage
    (`benchmarks/intervals.py`) in per cent, for times that are geometric means over 5, 10, 30 worlds and 4 sizes: 91,
    94, 95.
    """
    if np.ndim(sizes) != 1 or len(sizes) != len(times):
        raise InputError(f"There are {len(times)} times for {np.shape(sizes)} sizes; each size needs one.")
    if not (np.isfinite(sizes) & (np.asarray(sizes) > 0)).all() or any(one.middle <= 0 for one in times):
        raise InputError("Some size or time is 0, negative or no number; a power law needs positive ones.")
    known = np.array([np.isfinite(one.middle) for one in times], bool)
    x = np.log(np.asarray(sizes, float)[known])
    if len(np.unique(x)) < 2:
        return None
    y = np.log([one.middle for one in times if np.isfinite(one.middle)])
    each = np.log([one.resampled for one in times if np.isfinite(one.middle)])
    away = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    slope = float(away @ y)
    worlds = min(one.num_envs for one in times)
    line = np.exp(y.mean() + slope * (np.log(np.asarray(sizes, float)) - x.mean()))
    return Law(_interval(slope, away @ each, worlds), tuple(line.tolist()))


def _interval(middle: float, resampled: np.ndarray, worlds: int) -> Interval:
    known = resampled[np.isfinite(resampled)]
    if not np.isfinite(middle) or worlds < 2 or len(known) < 0.95 * len(resampled):
        return Interval(middle, np.nan, np.nan)
    low, high = limits(np.float64(middle), known, [worlds])
    return Interval(middle, float(low), float(high))
