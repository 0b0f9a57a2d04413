"""The statistics of a verdict: is one policy at least as good as another, up to a tolerance, and with what confidence?

Two policies play the same episodes, with the same randomness of the environment. What is tested is the mean of the
paired differences `x = G(policy) - G(reference)` of their returns, all of which are to be maximized:

    kept       the lower bound of the mean is at least  -tau
    violated   the upper bound of the mean is below     -tau
    undecided  neither

The bounds are one-sided confidence sequences: each holds at *all* numbers of episodes at once with probability
1 - alpha, so one may look after every batch and stop as soon as something is decided. For a given truth only one of the
two statements can be wrong, hence the probability of a wrong statement is at most alpha.

*Asymptotic.* In general the range of a return is not known. Then the bounds are those of Waudby-Smith, Arbour, Sinha,
Kennedy & Ramdas 2024, "Time-uniform central limit theory and asymptotic confidence sequences", with the one-sided
normal mixture of Howard, Ramdas, McAuliffe & Sekhon 2021: `u(n)` below, times the standard deviation. A mean of returns
that is made of rare events has no normal distribution before the first of them is seen, and its sample variance may be
0. Therefore each bound counts one more episode than were played, in which the difference is as bad for the statement as
any two returns that are known (`span`). With n equal differences the lower bound is then about `-4 span / n`: the rule
of three, with something to spare.

*Betting.* Where all values are known to lie between `a` and `b`, nothing is assumed beyond that (Waudby-Smith & Ramdas
2024, "Estimating means of bounded random variables by betting"). If the mean is at most m, somebody who starts with 1,
stakes a share c of it on every value, and keeps several such purses side by side, has

    K(m) = mean over c of  prod_i (1 - c + c (x_i - a) / (m - a))        c = 1, 1/2, 1/4, ...

which is a nonnegative supermartingale, so that it ever exceeds 1 / alpha with probability alpha at most (Ville). It
falls in m: the lower bound is the m with `K(m) = 1 / alpha`. The upper bound is the lower one of `-x`.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import special

ALPHA = 0.05
"""The probability of any wrong statement in a verdict."""
TUNED_FOR = 500
"""Episodes at which the bounds are nearly as narrow as they can be; they hold at any number."""
MIN_EPISODES = 30
"""Fewer are no evidence."""

BETS = 0.5 ** np.arange(12)
"""Shares of the capital that are staked on a value."""
HALVINGS = 40
"""Steps of the bisection for a betting bound: more digits than a return has."""

KEPT, UNDECIDED, VIOLATED = 1, 0, -1


class Range(NamedTuple):
    """What all values are known to lie between."""

    low: float
    high: float

    def turned(self) -> "Range":
        """Of the negative values."""
        return Range(-self.high, -self.low)


class Bounds(NamedTuple):
    """Means and their one-sided confidence bounds, arrays of the same shape."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def share_alpha(num_statements: int, alpha: float = ALPHA) -> float:
    """The error of one of several statements, so that with probability `1 - alpha` none of them is wrong: the union
    bound, which holds however the statements depend on each other."""
    return alpha / max(num_statements, 1)


def boundary(n: Any, alpha: float, tuned_for: float = TUNED_FOR) -> Any:
    """`u(n)`: the bound is so many standard deviations away from the mean of n values.

        u(n) = sqrt(2 (n r + 1) / (n^2 r) log(1 + sqrt(n r + 1) / (2 alpha)))      r = (a + log(1 + a)) / tuned_for

    with `a = -2 log(2 alpha)`, for alpha below 1/2.
    """
    a = -2.0 * math.log(2.0 * alpha)
    r = (a + math.log1p(a)) / tuned_for
    return np.sqrt(2.0 * (n * r + 1.0) / (n**2 * r) * np.log1p(np.sqrt(n * r + 1.0) / (2.0 * alpha)))


def bounds(values: np.ndarray, alpha: float, span: Any = 0.0) -> Bounds:
    """Bounds of the means of values `[..., n]`; `span` `[...]` is the largest size a value may have."""
    n = values.shape[-1]
    mean = values.mean(axis=-1)
    deviation = ((values - mean[..., None]) ** 2).sum(axis=-1)

    def moved(extra: Any) -> tuple[Any, Any]:
        """Mean and standard deviation with one more value."""
        total = deviation + (extra - mean) ** 2 * n / (n + 1)
        return mean + (extra - mean) / (n + 1), np.sqrt(total / n)

    width = boundary(n + 1, alpha)
    worst, best = (moved(sign * np.maximum(span, np.abs(values).max(axis=-1))) for sign in (-1.0, 1.0))
    return Bounds(mean, worst[0] - width * worst[1], best[0] + width * best[1])


def log_capital(values: np.ndarray, mean: Any, lowest: float) -> Any:
    """`log K(m)` of values `[..., n]` above `lowest`, and hypotheses `m` `[...]`; infinite if m is below all values."""
    room = np.asarray(mean, float) - lowest
    with np.errstate(divide="ignore", invalid="ignore"):
        above = (values - lowest) / room[..., None] - 1.0
        each = np.stack([np.log1p(share * above).sum(axis=-1) for share in BETS])
        return np.where(room > 0, np.logaddexp.reduce(each, axis=0) - math.log(len(BETS)), np.inf)


def betting_bounds(values: np.ndarray, alpha: float, known: Range) -> Bounds:
    """Bounds of the means of values `[..., n]` that are known to lie between two numbers; they hold for every n."""
    mean = values.mean(axis=-1)
    return Bounds(mean, _betting_low(values, alpha, known), -_betting_low(-values, alpha, known.turned()))


def _betting_low(values: np.ndarray, alpha: float, known: Range) -> np.ndarray:
    low, high = np.full(values.shape[:-1], float(known.low)), values.mean(axis=-1)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        refuted = log_capital(values, middle, known.low) >= math.log(1.0 / alpha)
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return np.where(np.isnan(high), np.nan, low)


def judge_bounded(differences: np.ndarray, tolerance: float, alpha: float, known: Range) -> np.ndarray:
    """`judge` for differences `[..., n]` that are known to lie between two numbers."""
    if differences.shape[-1] < MIN_EPISODES:
        return np.zeros(differences.shape[:-1], int)
    hypothesis, needed = np.full(differences.shape[:-1], -tolerance), math.log(1.0 / alpha)
    kept = log_capital(differences, hypothesis, known.low) >= needed
    violated = log_capital(-differences, -hypothesis, -known.high) >= needed
    usable = np.isfinite(differences).all(axis=-1)
    return np.where(kept & usable, KEPT, np.where(violated & usable, VIOLATED, UNDECIDED))


def fewest_episodes(tolerance: float, alpha: float, known: Range, difference: float = 0.0) -> float:
    """How many episodes a bettor needs to say "kept" if each of them shows this difference."""
    risk = -tolerance - known.low
    if risk <= 0:
        return MIN_EPISODES
    gain = math.log1p(max(difference + tolerance, 0.0) / risk)
    return math.log(len(BETS) / alpha) / gain if gain > 0 else math.inf


def decide(found: Bounds, tolerance: Any) -> np.ndarray:
    """KEPT, VIOLATED or UNDECIDED for each of the means; UNDECIDED where something is not a number."""
    kept, violated = found.low >= -np.asarray(tolerance), found.high < -np.asarray(tolerance)
    return np.where(kept, KEPT, np.where(violated, VIOLATED, UNDECIDED))


def judge(differences: np.ndarray, tolerance: Any, alpha: float, span: Any = 0.0) -> np.ndarray:
    """Decisions about differences `[..., n]`; with fewer than 30 episodes, or values that are no numbers, none."""
    if differences.shape[-1] < MIN_EPISODES:
        return np.zeros(differences.shape[:-1], int)
    with np.errstate(invalid="ignore"):
        return decide(bounds(differences, alpha, span), tolerance)


def first_decision(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """What was decided once stays decided."""
    return np.where(before == UNDECIDED, now, before)


def episodes_needed(found: Bounds, tolerance: float, n: int) -> int | None:
    """Roughly how many episodes would decide what n did not; None where the mean is too close to the tolerance."""
    gap, width = abs(float(found.mean) + tolerance), float(found.high - found.low) / 2
    if not (math.isfinite(gap) and math.isfinite(width)) or gap <= 0.02 * width:
        return None
    return math.ceil(n * max(1.0, 1.3 * (width / gap) ** 2))


def event_bound(num_events: int, n: int, alpha: float = ALPHA) -> float:
    """Clopper and Pearson's upper bound of the probability of an event that n episodes showed `num_events` times."""
    return 1.0 if num_events >= n else float(special.betaincinv(num_events + 1, n - num_events, 1.0 - alpha))


def clean_episodes(probability: float, alpha: float = ALPHA) -> int:
    """Episodes without an event that would show that its probability is below this."""
    return math.ceil(math.log(alpha) / math.log1p(-probability))


def horizon_share(gamma: Any, length: float) -> Any:
    """What a discounted return is of an undiscounted one, if rewards are spread evenly over `length` steps."""
    gamma = np.asarray(gamma, float)
    length = max(float(length), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gamma < 1.0, (1.0 - gamma**length) / ((1.0 - gamma) * length), 1.0)
