"""Which run is better, in the order of the objectives, and with what probability."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lexrl.errors import InputError

SURE = 0.95
"""The probability from which on it is decided which of two runs is better."""

RESAMPLES = 10_000
"""So many that a probability of 0.95 has a standard error of 0.002."""

Tolerance = float | int | Sequence[float] | Sequence[int] | np.ndarray
"""One for all objectives, or one for each."""


class Odds(NamedTuple):
    """Probabilities that the first of two runs is better than, worse than, and equal to the second.

    NaN if a run has fewer than two seeds, since its variance is then unknown.
    """

    over: float
    under: float
    equal: float
    by: int | None
    """The index of the objective that decides; None if none does."""

    @property
    def winner(self) -> int:
        """1: the first, -1: the second, 0: undecided or equal."""
        return int(self.over >= SURE) - int(self.under >= SURE)


class Standings(NamedTuple):
    """Runs in classes, as their indices."""

    classes: tuple[tuple[int, ...], ...]
    """From best to worst; inside a class the runs are undecided, and those that win more often come first."""
    over: np.ndarray
    """`[runs, runs]`: the probability that the row is better than the column."""
    odds: tuple[tuple[Odds, ...], ...]
    """The row against the column."""


def compare(
    first: np.ndarray,
    second: np.ndarray,
    signs: Sequence[int] | np.ndarray,
    tolerance: Tolerance = 0.0,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Odds:
    """Whether one run is lexicographically better than another, both as values `[seeds, M]`.

    The seeds of each run are resampled independently. Each resample is compared objective by objective:

        d_i = sign_i (mean_i of first - mean_i of second)

    The first `i` with `|d_i| > tolerance_i` decides, by the sign of `d_i`; where there is none, the two are equal. The
    probabilities are shares of resamples. It is decided if one run wins in 95 % of them, and then `by` is the
    objective that decided most of these wins.

    With tolerance 0 an objective in which the runs differ only by noise still decides every resample, sometimes for one
    run and sometimes for the other: the less important objectives are never compared, and nothing is decided.
    Rightly so: seeds can show that two means are within a tolerance, but not that they are equal. With a tolerance that
    is large compared with the noise, the runs are equal in that objective in nearly every resample, and the next one
    decides.

    Means are compared and not interquartile means, because the order is about expected returns: the one seed in ten
    that drives the robot into the wall counts. The means of `n` resampled values vary too little, so each resample's
    deviation from the mean is scaled by `sqrt(n / chi)`, with `chi` from the chi-squared distribution with `n - 1`
    degrees of freedom: for normal values this is Student's t distribution. Measured (`benchmarks/intervals.py`) on
    pairs of runs with equal means, where 10 wrong decisions in 100 are allowed, 5 in either direction: with 3, 5, 10,
    30 seeds there are 3, 7, 9, 10 for normal values and 3, 5, 9, 11 for lognormal ones.

    A seed without a value for every objective is left out.

    Args:
        signs: 1 to maximize an objective, -1 to minimize it.
        tolerance: a difference up to which two runs are equal: one number, or one for each objective.
    """
    return rank([first, second], signs, tolerance, resamples, seed).odds[0][1]


def rank(
    runs: Sequence[np.ndarray],
    signs: Sequence[int] | np.ndarray,
    tolerance: Tolerance = 0.0,
    resamples: int = RESAMPLES,
    seed: int = 0,
    limits: Sequence[float | None] | None = None,
) -> Standings:
    """Sort runs, each `[seeds, M]`, into classes by comparing all pairs as `compare` does.

    The first class has the runs that no other run decidedly beats; the next class has those of which this is true
    without the first class, and so on. So a run is behind every run that decidedly beats it, and as far ahead as that
    allows: doubt does not lower its rank. With a tolerance there can be cycles, where A beats B, B beats C, and C beats
    A: the runs of a cycle are in one class.

    Each pair is compared at 95 %: among many runs a few such decisions are wrong. An objective with a limit counts only
    up to it.
    """
    values, direction, slack = _checked(runs, signs, tolerance)
    enough = np.array(
        [
            np.inf if one is None else one * sign
            for one, sign in zip(limits or [None] * len(direction), direction, strict=True)
        ]
    )
    # Each run has its own random stream, so that its resamples do not depend on what it is compared with.
    drawn = [resampled_means(each, resamples, np.random.default_rng([seed, i])) for i, each in enumerate(values)]
    size = [np.abs(each).max(axis=0, initial=0.0) for each in values]
    odds = []
    for i, row in enumerate(drawn):
        # Differences in the last digits are rounding errors of the sums.
        blur = [1e-12 * np.maximum(size[i], other) for other in size]
        odds.append(
            tuple(
                Odds(0.0, 0.0, 1.0, None)
                if i == j
                else _walk(_difference(direction, enough, row, column), slack + blur[j])
                for j, column in enumerate(drawn)
            )
        )
    over = np.array([[each.over for each in row] for row in odds])
    beats = np.array([[each.winner > 0 for each in row] for row in odds])
    equal = np.array([[each.equal for each in row] for row in odds])
    wins = np.where(np.isnan(over), 0.5, over + equal / 2).sum(axis=1)
    return Standings(_classes(beats, wins), over, tuple(odds))


def _difference(direction: np.ndarray, enough: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """How much better the first means are than the second, where more than enough makes no difference."""
    if np.isinf(enough).all():
        return direction * (first - second)
    return np.minimum(direction * first, enough) - np.minimum(direction * second, enough)


def _checked(
    runs: Sequence[np.ndarray], signs: Sequence[int] | np.ndarray, tolerance: Tolerance
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Each run's seeds with finite values, the signs and the tolerances `[M]`."""
    direction = np.asarray(signs, float)
    if direction.ndim != 1 or len(direction) == 0 or not np.isin(direction, (-1, 1)).all():
        raise InputError(f"The signs are {signs}; give 1 or -1 for each objective.")
    if len(runs) == 0:
        raise InputError("There are no runs to compare; give at least one.")
    for i, each in enumerate(runs):
        if np.ndim(each) != 2 or np.shape(each)[1] != len(direction):
            raise InputError(
                f"Run {i + 1} has the shape {np.shape(each)}, and the signs are {signs}; it must have the shape "
                "[seeds, M], with a sign for each of the M objectives."
            )
    slack = np.asarray(tolerance, float)
    if slack.shape not in ((), direction.shape):
        raise InputError(
            f"There are tolerances of shape {slack.shape} for {len(direction)} objectives; give one number, or one for "
            "each."
        )
    if not (slack >= 0).all():
        raise InputError(f"The tolerance is {tolerance}; it must be 0 or more.")
    values = [np.asarray(each, float) for each in runs]
    known = [each[np.isfinite(each).all(axis=1)] for each in values]
    return known, direction, np.broadcast_to(slack, direction.shape)


def resampled_means(values: np.ndarray, resamples: int, random: np.random.Generator) -> np.ndarray:
    """Means `[resamples, M]` of resampled seeds `[n, M]`, with Student's variance; NaN with fewer than two seeds."""
    n = len(values)
    if n < 2:
        return np.full((resamples, values.shape[1]), np.nan)
    # Relative to the first seed, so that the mean of equal values is exactly that value.
    mean = values[0] + (values - values[0]).mean(axis=0)
    step = random.multinomial(n, np.full(n, 1 / n), resamples) @ (values - mean) / n
    return mean + step * np.sqrt(n / random.chisquare(n - 1, (resamples, 1)))


def bootstrap_means(values: np.ndarray, resamples: int, random: np.random.Generator) -> np.ndarray:
    """Means `[resamples, M]` of resampled seeds `[n, M]`, none of them beyond what a seed reached.

    To choose among many: Student's variance reaches far beyond three seeds, and the noisiest would win most often.
    """
    n = len(values)
    return random.multinomial(n, np.full(n, 1 / n), resamples) @ values / n


def _walk(gaps: np.ndarray, slack: np.ndarray) -> Odds:
    """Who wins, by signed differences `[resamples, M]`."""
    if np.isnan(gaps).any():
        return Odds(np.nan, np.nan, np.nan, None)
    beyond = np.abs(gaps) > slack
    decider = beyond.argmax(axis=1)
    way = np.where(beyond.any(axis=1), np.sign(np.take_along_axis(gaps, decider[:, None], axis=1)[:, 0]), 0)
    over, under, equal = (float((way == each).mean()) for each in (1, -1, 0))
    found = Odds(over, under, equal, None)
    if not found.winner:
        return found
    return found._replace(by=int(np.bincount(decider[way == found.winner]).argmax()))


def _classes(beats: np.ndarray, wins: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """The classes from which run decidedly beats which `[runs, runs]`, each sorted by how often its runs win."""
    reaches = beats.copy()
    for middle in range(len(beats)):
        reaches |= reaches[:, middle, None] & reaches[middle]
    ahead = reaches & ~reaches.T  # in a cycle every run reaches every other
    left = np.ones(len(beats), bool)
    classes = []
    while left.any():
        best = left & ~(ahead & left[:, None]).any(axis=0)
        classes.append(tuple(sorted(np.flatnonzero(best).tolist(), key=lambda run: (-wins[run], run))))
        left &= ~best
    return tuple(classes)
