"""Numbers over seeds, with how sure they are."""

from typing import NamedTuple

import numpy as np
from scipy import special


class Interval(NamedTuple):
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        if not np.isfinite(self.mean):
            return "none"
        if not np.isfinite(self.low):
            return f"{self.mean:.4g}"
        return f"{self.mean:.4g} [{self.low:.3g}, {self.high:.3g}]"


def mean(values: np.ndarray) -> Interval:
    """The mean of independent values with Student's interval; NaNs are left out, and one value alone has none."""
    known = np.asarray(values, float)
    known = known[np.isfinite(known)]
    n = len(known)
    if n == 0:
        return Interval(np.nan, np.nan, np.nan)
    middle = float(known.mean())
    if n == 1:
        return Interval(middle, np.nan, np.nan)
    half = float(special.stdtrit(n - 1, 0.975) * known.std(ddof=1) / np.sqrt(n))
    return Interval(middle, middle - half, middle + half)


def difference(first: np.ndarray, second: np.ndarray) -> Interval:
    """The difference of two means, first less second, with Welch's interval."""
    a, b = (np.asarray(each, float)[np.isfinite(each)] for each in (first, second))
    if min(len(a), len(b)) < 2:
        gap = float(a.mean() - b.mean()) if len(a) and len(b) else np.nan
        return Interval(gap, np.nan, np.nan)
    parts = np.array([a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)])
    gap, total = float(a.mean() - b.mean()), parts.sum()
    if total == 0:
        return Interval(gap, gap, gap)
    freedom = total**2 / (parts**2 / (np.array([len(a), len(b)]) - 1)).sum()
    half = float(special.stdtrit(freedom, 0.975) * np.sqrt(total))
    return Interval(gap, gap - half, gap + half)
