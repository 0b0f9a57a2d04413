"""Which run is better, in the order of the objectives, and how sure that is."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lexrl.errors import InputError

SURE = 0.95
"""How probable a verdict has to be."""

RESAMPLES = 10_000
"""Then chance moves a probability of 0.95 by 0.002."""

Tolerance = float | int | Sequence[float] | Sequence[int] | np.ndarray
"""One for all objectives, or one for each."""


class Verdict(NamedTuple):
    """How probable it is that the first of two runs is better than, worse than, and equal to the second.

    NaN where a run has fewer than two seeds, since then nothing is known of its spread.
    """

    over: float
    under: float
    equal: float
    by: int | None
    """The number of the objective that decides, from 0; None where none does."""

    @property
    def winner(self) -> int:
        """1: the first, -1: the second, 0: undecided, or equal."""
        return int(self.over >= SURE) - int(self.under >= SURE)


class Standings(NamedTuple):
    """Runs in classes, as their numbers from 0."""

    classes: tuple[tuple[int, ...], ...]
    """From best to worst; inside a class the runs are undecided, and those that win more often come first."""
    over: np.ndarray
    """`[runs, runs]`: how probable it is that the row is better than the column."""
    verdicts: tuple[tuple[Verdict, ...], ...]
    """The row against the column."""


def compare(
    first: np.ndarray,
    second: np.ndarray,
    signs: Sequence[int] | np.ndarray,
    tolerance: Tolerance = 0.0,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Verdict:
    """Whether one run is lexicographically better than another, both as values `[seeds, M]`.

    The seeds of each run are resampled on their own. In each resample the walk goes down the objectives:

        d_i = sign_i (mean_i of first - mean_i of second)

    The first `i` with `|d_i| > tolerance_i` decides, by the sign of `d_i`; where there is none, the two are equal. The
    probabilities are shares of resamples. The verdict is decided where one run wins in 95 % of them, and then `by` is
    the objective that most of these wins are due to.

    With tolerance 0 an objective in which the runs differ by noise alone still decides every resample, once this way,
    once that way: the less important ones are never asked, and the verdict is undecided. That is honest: seeds cannot
    show that two means are the same. They can show that two means are within a tolerance. With one that is wide against
    the noise, the runs are equal in that objective in nearly every resample, and the next objective decides.

    The objectives are means and not interquartile means, for the order is one of expected returns: the one seed in ten
    that runs the robot into the wall counts. As with `n` values the resampled means spread too little, each resample's
    step from the mean is stretched by `sqrt(n / chi)`, `chi` drawn from the chi-squared distribution of `n - 1`
    degrees: for normal values this is just Student's spread. Measured (`benchmarks/intervals.py`) on pairs of runs with
    equal means, where 10 false verdicts in 100 are allowed, 5 either way: with 3, 5, 10, 30 seeds there are 3, 7, 9,
    10 for normal values and 3, 5, 9, 11 for lognormal ones.

    A seed for which not all objectives are known is left out.

    Args:
        signs: per objective 1 to maximise, -1 to minimise.
        tolerance: by how much two runs may differ and still be equal: one number, or one for each objective.
    """
    return rank([first, second], signs, tolerance, resamples, seed).verdicts[0][1]


def rank(
    runs: Sequence[np.ndarray],
    signs: Sequence[int] | np.ndarray,
    tolerance: Tolerance = 0.0,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Standings:
    """Sort runs, each `[seeds, M]`, into classes by comparing each with each as `compare` does.

    The first class has the runs that no other is decidedly better than, the next has those of which that is true once
    the first class is set aside, and so on. So a run is always behind all that it decidedly loses to, whatever the
    seeds left undecided in between; and it stands as far ahead as that allows, for doubt is no reason to rank it lower.
    A tolerance can make a circle, where A beats B, B beats C, and C beats A: then none of them is ahead of the others,
    and they are in one class.

    Each pair is judged on its own at 95 %: among many runs a few such verdicts are due to chance.
    """
    values, direction, slack = _checked(runs, signs, tolerance)
    # Each run has its own stream, so that its resamples do not depend on what it is compared with.
    drawn = [resampled_means(each, resamples, np.random.default_rng([seed, i])) for i, each in enumerate(values)]
    size = [np.abs(each).max(axis=0, initial=0.0) for each in values]
    verdicts = []
    for i, row in enumerate(drawn):
        # Differences in the last digits are the sum's and not the runs'.
        blur = [1e-12 * np.maximum(size[i], other) for other in size]
        verdicts.append(
            tuple(
                Verdict(0.0, 0.0, 1.0, None) if i == j else _walk(direction * (row - column), slack + blur[j])
                for j, column in enumerate(drawn)
            )
        )
    over = np.array([[verdict.over for verdict in row] for row in verdicts])
    beats = np.array([[verdict.winner > 0 for verdict in row] for row in verdicts])
    equal = np.array([[verdict.equal for verdict in row] for row in verdicts])
    wins = np.where(np.isnan(over), 0.5, over + equal / 2).sum(axis=1)
    return Standings(_classes(beats, wins), over, tuple(verdicts))


def _checked(
    runs: Sequence[np.ndarray], signs: Sequence[int] | np.ndarray, tolerance: Tolerance
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Each run's seeds of which all is known, the signs and the tolerances `[M]`."""
    direction = np.asarray(signs, float)
    if direction.ndim != 1 or len(direction) == 0 or not np.isin(direction, (-1, 1)).all():
        raise InputError(f"The signs are {signs}; give 1 or -1 for each objective.")
    if len(runs) == 0:
        raise InputError("There are no runs to compare; give at least one.")
    for i, each in enumerate(runs):
        if np.ndim(each) != 2 or np.shape(each)[1] != len(direction):
            raise InputError(
                f"Run {i + 1} has the shape {np.shape(each)}, and the signs are {signs}; it needs [seeds, M], and a "
                "sign for each of the M objectives."
            )
    slack = np.asarray(tolerance, float)
    if slack.shape not in ((), direction.shape):
        raise InputError(
            f"There are tolerances of shape {slack.shape} for {len(direction)} objectives; give one number, or one for "
            "each."
        )
    if not (slack >= 0).all():
        raise InputError(f"The tolerance is {tolerance}; it has to be 0 or more.")
    values = [np.asarray(each, float) for each in runs]
    known = [each[np.isfinite(each).all(axis=1)] for each in values]
    return known, direction, np.broadcast_to(slack, direction.shape)


def resampled_means(values: np.ndarray, resamples: int, random: np.random.Generator) -> np.ndarray:
    """Means `[resamples, M]` of seeds `[n, M]` drawn anew, with Student's spread; NaN where that is not known."""
    n = len(values)
    if n < 2:
        return np.full((resamples, values.shape[1]), np.nan)
    # From the first seed, so that equal values have just that value for a mean.
    mean = values[0] + (values - values[0]).mean(axis=0)
    step = random.multinomial(n, np.full(n, 1 / n), resamples) @ (values - mean) / n
    return mean + step * np.sqrt(n / random.chisquare(n - 1, (resamples, 1)))


def _walk(gaps: np.ndarray, slack: np.ndarray) -> Verdict:
    """The verdict on signed differences `[resamples, M]`."""
    if np.isnan(gaps).any():
        return Verdict(np.nan, np.nan, np.nan, None)
    beyond = np.abs(gaps) > slack
    level = beyond.argmax(axis=1)
    way = np.where(beyond.any(axis=1), np.sign(np.take_along_axis(gaps, level[:, None], axis=1)[:, 0]), 0)
    over, under, equal = (float((way == each).mean()) for each in (1, -1, 0))
    verdict = Verdict(over, under, equal, None)
    if not verdict.winner:
        return verdict
    return verdict._replace(by=int(np.bincount(level[way == verdict.winner]).argmax()))


def _classes(beats: np.ndarray, wins: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """The classes from who decidedly beats whom `[runs, runs]`, each sorted by how often its runs win."""
    reaches = beats.copy()
    for middle in range(len(beats)):
        reaches |= reaches[:, middle, None] & reaches[middle]
    ahead = reaches & ~reaches.T  # in a circle each reaches each
    left = np.ones(len(beats), bool)
    classes = []
    while left.any():
        best = left & ~(ahead & left[:, None]).any(axis=0)
        classes.append(tuple(sorted(np.flatnonzero(best).tolist(), key=lambda run: (-wins[run], run))))
        left &= ~best
    return tuple(classes)
