"""Statistics over seeds, with their confidence intervals. Values that are not finite are left out everywhere.

`mean` and `difference` have Student's and Welch's intervals. The interquartile mean, which is robust to a few failed
seeds, has a bootstrap interval, with quantiles corrected for few seeds: see `limits`.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from lexrl.errors import InputError

RESAMPLES = 4000
"""So many that the interval's ends hardly depend on the random numbers."""

AnyArray = np.ndarray | np.float64
"""An array, or one number."""

FEW = 5
"""With fewer values even the whole range of the resamples covers less than 95 %."""


class Interval(NamedTuple):
    """An estimate and its 95 % interval."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        """With the digits that the interval justifies: two of half its width, at most four; integer digits are kept."""
        if not np.isfinite(self.middle):
            return "none"
        if not np.isfinite(self.low):
            return format_value(self.middle)
        largest = max(self, key=abs)
        places = _places(largest, 4)
        if self.high > self.low:
            places = min(places, _places((self.high - self.low) / 2, 2))
        if abs(largest) < 10_000:
            places = max(places, 0)
        middle, low, high = (_rounded(value, places) for value in self)
        return f"{middle} [{low}, {high}]"


def format_value(value: float | int) -> str:
    """A number in a table: four digits, with commas between thousands."""
    if not math.isfinite(value):
        return "–"
    if float(value).is_integer() and abs(value) < 1e12:
        return f"{int(value):,}"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def _places(size: float, digits: int) -> int:
    """Decimal places that show so many digits of a number; negative to round before the point."""
    return digits - 1 - math.floor(math.log10(abs(size))) if size else 0


def _rounded(value: float, places: int) -> str:
    rounded = round(float(value), places) + 0.0  # turns -0 into 0
    return f"{rounded:,.0f}" if rounded.is_integer() else f"{rounded:,.{places}f}"


class Band(NamedTuple):
    """An interval at each point of a curve: arrays `[points]`."""

    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray


def mean(values: np.ndarray) -> Interval:
    """The mean of independent values with Student's interval; a single value has no interval."""
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
    """The difference of two means, first minus second, with Welch's interval."""
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


def iqm(values: np.ndarray, axis: int = -1) -> AnyArray:
    """The interquartile mean: of `n` sorted values the mean of the middle half,

        sum_i w_i x_i      w_i = length of [i, i + 1] inside [n / 4, 3 n / 4] / (n / 2)      i = 0 .. n - 1

    so that a value on the edge of a quarter counts in part. Without values it is NaN.
    """
    rows = np.moveaxis(np.asarray(values, float), axis, -1)
    if rows.shape[-1] == 0:
        return np.full(rows.shape[:-1], np.nan)[()]
    known = np.isfinite(rows)
    rows, n = np.sort(np.where(known, rows, np.nan), axis=-1), known.sum(axis=-1, keepdims=True)
    # Relative to the median, so that equal values give exactly that value, and an outlier costs no precision.
    origin = np.take_along_axis(rows, n // 2, axis=-1)
    weights = _weights(n, rows.shape[-1])
    middle = origin[..., 0] + np.where(weights > 0, weights * (rows - origin), 0.0).sum(axis=-1)
    return np.where(n[..., 0] > 0, middle, np.nan)[()]


def bootstrap(
    strata: Sequence[np.ndarray],
    statistic: Callable[[np.ndarray], AnyArray] = iqm,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """A statistic of all values together, with its interval from resampling within each stratum.

    The interval does not depend on the order of the values. There is none if a stratum has a single value, since its
    variance is then unknown.

    Args:
        strata: one array of independent values for each task: its seeds.
        statistic: from values `[..., n]` in any order to `[...]`.
    """
    if len(strata) == 0:
        raise InputError("There are no strata to resample; give at least one array of values.")
    for place, each in enumerate(strata):
        if np.ndim(each) != 1:
            raise InputError(
                f"Stratum {place + 1} has the shape {np.shape(each)}; give a list of strata, each a row of values."
            )
    known = [np.sort(np.asarray(each, float)[np.isfinite(each)]) for each in strata]
    known = [each for each in known if len(each)]
    if not known:
        return Interval(np.nan, np.nan, np.nan)
    middle = float(statistic(np.concatenate(known)))
    sizes = [len(each) for each in known]
    if min(sizes) == 1:
        return Interval(middle, np.nan, np.nan)
    random = np.random.default_rng(seed)
    drawn = [each[random.integers(0, len(each), (resamples, len(each)))] for each in known]
    low, high = limits(np.float64(middle), np.asarray(statistic(np.concatenate(drawn, axis=-1))), sizes)
    return Interval(middle, float(low), float(high))


def band(values: np.ndarray, resamples: int = RESAMPLES, seed: int = 0) -> Band:
    """The interquartile mean over seeds at each point of a curve `[points, seeds]`, with its interval as `bootstrap`
    has it. The interval is for each point separately: the curve as a whole leaves its band more often.
    """
    if np.ndim(values) != 2 or np.shape(values)[1] == 0:
        raise InputError(f"The values have the shape {np.shape(values)}; a band needs [points, seeds].")
    values = np.asarray(values, float)
    rows = np.sort(np.where(np.isfinite(values), values, np.nan), axis=-1)
    counts = np.isfinite(rows).sum(axis=-1)
    middle = np.array(iqm(rows))
    low, high = np.full_like(middle, np.nan), np.full_like(middle, np.nan)
    for n in np.unique(counts[counts > 1]).tolist():
        here = counts == n
        drawn = np.sort(np.random.default_rng(seed).integers(0, n, (resamples, n)), axis=-1)
        # Sorted indices into sorted values are a sorted resample, so that the weight of each value in it is known, and
        # one matrix product serves all points.
        flat = (drawn + n * np.arange(resamples)[:, None]).ravel()
        share = np.bincount(flat, np.tile(_weights(n, n), resamples), resamples * n).reshape(resamples, n)
        origin = rows[here, n // 2, None]
        low[here], high[here] = limits(middle[here], origin + (rows[here, :n] - origin) @ share.T, [n])
    return Band(middle, low, high)


def limits(middle: AnyArray, resampled: np.ndarray, sizes: Sequence[int]) -> tuple[AnyArray, AnyArray]:
    """The 95 % interval of a statistic `[...]` from its resamples `[..., R]`, drawn within strata of these sizes.

    The plain interval, the resamples' quantiles 2.5 % and 97.5 %, is too narrow: with `n` values in `k` strata the
    standard deviation of the resamples is too small by `sqrt((n - k) / n)`, and itself only an estimate. So it extends

        r = t(n - k) sqrt(n / (n - k))

    standard errors instead of 1.96, with Student's 97.5 % point `t`: the quantiles are those at `Phi(-r)` and `Phi(r)`.
    If a stratum has fewer than 5 values the resamples do not extend so far, and the plain interval is scaled around the
    statistic by `r / 1.96`.

    Measured (`benchmarks/intervals.py`) for the interquartile mean, in per cent, with the plain interval's coverage in
    brackets:

        values                               3          5          10         30
        normal                            94 (75)    96 (92)    97 (94)    95 (94)
        lognormal                         93 (75)    95 (92)    98 (93)    96 (94)
        N(0, 0.1) or N(1, 0.1), 7 to 3    87 (68)    88 (84)    96 (92)    95 (95)
        0 or 1, 7 to 3                    65 (64)    83 (80)    97 (84)    92 (91)

    The last line is bad where a few seeds are often all the same, which shows no variance. In 5 strata of 3, 5, 10
    values: normal 96, 95, 95, lognormal 96, 95, 95, mixture 91, 94, 94.
    """
    n, freedom = sum(sizes), sum(sizes) - len(sizes)
    reach = special.stdtrit(freedom, 0.975) * np.sqrt(n / freedom)
    plain = special.ndtri(0.975)
    few = min(sizes) < FEW
    tail, stretch = (special.ndtr(-plain), reach / plain) if few else (special.ndtr(-reach), 1.0)
    low, high = middle + stretch * (np.quantile(resampled, [tail, 1 - tail], axis=-1) - middle)
    return np.minimum(low, middle), np.maximum(high, middle)


def _weights(n: np.ndarray | int, size: int) -> np.ndarray:
    """The weight of each of the first `n` of sorted values `[..., size]` in their interquartile mean."""
    place = np.arange(size)
    inside = np.minimum(place + 1, 0.75 * n) - np.maximum(place, 0.25 * n)
    return np.clip(inside, 0.0, 1.0) / np.maximum(0.5 * n, 0.5)
