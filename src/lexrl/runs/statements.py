"""What a verdict has to decide: one statement for each seed, objective and reference, and what is known about each.

Everything here is maximized: returns are multiplied by the signs of the order. A statement says that the policy of a
seed is at most a tolerance worse than its reference,

    J_i(policy) >= J_i(reference) - tau_i        tau_i = slack_i + 1 % of the range of objective i

in what the algorithm optimized, the discounted return. The slack is what the order grants. The range is that of the
mean returns in training and in the first batch of episodes: smaller differences are not worth deciding, and without a
margin equal policies could never be told from slightly worse ones.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl import verify
from lexrl.loops.evaluation import Evaluation
from lexrl.order import Order
from lexrl.tolerance import of_returns
from lexrl.types import HasReturnBounds, HasTolerance

MARGIN = 0.01
"""Differences below this share of an objective's range do not count."""
MARGIN_OF_SEEDS = 0.05
"""Likewise, between the policies of different seeds: only a seed that is far behind is worth a sentence."""


LIMIT = "the limit"
BEST = "the best that is possible"
OTHERS = "the best of the other seeds"
UNTRAINED = "the policy that its training began with"


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


class Statement(NamedTuple):
    """A policy keeps an objective, measured by a reference or by a limit."""

    seed: int
    """The position of the seed among those of the run."""
    objective: int
    name: str
    """What it is compared with."""
    source: int = 0
    """Which of the policies that were played it is compared with; 0 are those that are judged."""
    other: int = 0
    """The position of the seed whose policy that is."""
    limit: float | None = None
    """The return that is enough, instead of a reference; all objectives are maximized."""
    skip: int = 0
    """Episodes that do not count, because the reference was chosen by them."""
    margin: float = MARGIN
    same: bool = False
    """It is compared with itself: the policy that is handed over is its own reference."""
    best: float | None = None
    """The best return that is possible, instead of a reference: who attains it keeps whatever else is known."""


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


class Known(NamedTuple):
    """A reference, without what it takes to play it."""

    num_objectives: int
    """How many objectives it serves."""
    name: str
    same: tuple[bool, ...] = ()
    """For each seed: it is the policy that is judged itself."""


def make_statements(played: Sequence[Episodes], known: Sequence[Known], order: Order, across: bool) -> list[Statement]:
    """All statements, from the first batch of episodes.

    Args:
        played: the policies that are judged, then the references.
        known: what each reference is.
        across: compare seeds with each other, too.
    """
    seeds, found = range(len(played[0].returns)), []
    limits = order.limits()
    for j in np.flatnonzero(np.isfinite(limits)):
        found += [Statement(s, int(j), LIMIT, limit=float(limits[j])) for s in seeds]
    for j in range(len(order.objectives) - 1):
        if np.isfinite(limits[j]):
            continue
        sources = [k for k, one in enumerate(known, 1) if one.num_objectives == j + 1]
        for k in sources:
            name, same = known[k - 1].name, known[k - 1].same or (False,) * len(seeds)
            found += [Statement(s, j, name, k, s, same=same[s]) for s in seeds if _fair(played, k, s, j)]
        if across and len(seeds) > 1:
            found += _across(played, sources[0] if sources else 0, j)
    return found


def against_untrained(
    played: Sequence[Episodes], untrained: Episodes, order: Order, scale: Scale, source: int
) -> list[Statement]:
    """Seeds that seem to be worse in an objective than the policy that training began with, by the first batch, which
    therefore does not count. Its episodes are `played[source]` from now on."""
    limits, skip, found = order.limits(), untrained.returns.shape[1], []
    for j in np.flatnonzero(~np.isfinite(limits[:-1])).tolist():
        gain = untrained.discounted[..., j].mean(axis=1) - played[0].discounted[..., j].mean(axis=1)
        better = np.flatnonzero(gain > MARGIN * scale.discounted[j]).tolist()
        fair = [s for s in better if _fair([played[0], untrained], 1, s, j)]
        found += [Statement(s, j, UNTRAINED, source, s, None, skip) for s in fair]
    return found


def against_best(played: Sequence[Episodes], order: Order, scale: Scale) -> list[Statement]:
    """Seeds that seem to attain the best return that is possible, by the first batch, which therefore does not
    count."""
    limits, skip, found = order.limits(), played[0].returns.shape[1], []
    for j in range(len(order.names) - 1):
        known = scale.known_of(j, [played[0].discounted[..., j]])
        if known is None or np.isfinite(limits[j]):
            continue
        near = played[0].discounted[..., j].mean(axis=1) >= known.high - MARGIN * scale.discounted[j]
        found += [Statement(int(s), j, BEST, skip=skip, best=known.high) for s in np.flatnonzero(near)]
    return found


def _fair(played: Sequence[Episodes], source: int, seed: int, objective: int) -> bool:
    """Is a reference, in what is more important, as good as the policy that is judged, by two standard errors in the
    first batch? One that is not has bought its return of this objective."""
    mine, theirs = (played[k].discounted[seed, :, :objective] for k in (0, source))
    gaps = theirs - mine
    doubt = 2.0 * gaps.std(axis=0) / np.sqrt(len(gaps)) + 1e-6 * np.abs(mine).max(axis=0)
    return not bool((gaps.mean(axis=0) < -doubt).any())


def _across(played: Sequence[Episodes], source: int, objective: int) -> list[Statement]:
    """Every seed against the best policy of all seeds, be it a seed's reference or what a seed ended with.

    It is chosen by the first batch, which therefore does not count.
    """
    sources = sorted({0, source}, reverse=True)  # of equal ones the first counts: that which was made for it
    first = [played[k].discounted[:, :, : objective + 1] for k in sources]
    means, errors = (np.concatenate([reduce(each, axis=1) for each in first]) for reduce in (np.mean, np.std))
    errors /= np.sqrt(first[0].shape[1])
    best = np.arange(len(means))
    for j in range(objective + 1):
        # Only policies that are among the best in what is more important.
        near = means[best, j] >= means[best, j].max() - (0.0 if j == objective else 2.0 * errors[best, j].max())
        best = best[near]
        if len(best) == 0:  # values that are no numbers
            return []
    chosen, other = divmod(int(best[0]), len(first[0]))
    skip = first[0].shape[1]
    return [
        Statement(s, objective, OTHERS, sources[chosen], other, None, skip, MARGIN_OF_SEEDS)
        for s in range(len(first[0]))
        if s != other
    ]


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


def slack_of(tolerance: Any, returns: np.ndarray, objective: int, reference: float) -> float:
    """What the order grants this objective, at the return of the reference."""
    if tolerance is None:
        return 0.0
    around = np.where(np.isfinite(returns), returns, 0.0)
    around[objective] = reference
    return float(np.asarray(of_returns(tolerance, around, LATE))[objective])


LATE = 1e9
"""Updates: a tolerance that follows a schedule counts as it is at the end."""


def tolerances(algorithms: Sequence[Any]) -> list[Any]:
    """The tolerance of each seed's algorithm; None for one without."""
    return [one.tolerance if isinstance(one, HasTolerance) else None for one in algorithms]
