"""What a verdict has to decide: one statement for each seed, objective and reference.

A statement says that the policy of a seed is at most a tolerance worse than its reference,

    J_i(policy) >= J_i(reference) - tau_i        tau_i = slack_i + 1 % of the range of objective i

in what the algorithm optimized, the discounted return. The slack is what the order grants. Everything here is
maximized.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lexrl.order import Order
from lexrl.runs.scales import Episodes, Scale

MARGIN = 0.01
"""Differences below this share of an objective's range do not count."""
MARGIN_OF_SEEDS = 0.05
"""Likewise, between the policies of different seeds: only a seed that is far behind is worth a sentence."""

LIMIT = "the limit"
BEST = "the best that is possible"
OTHERS = "the best of the other seeds"
UNTRAINED = "the policy that its training began with"


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
    skip, found = untrained.returns.shape[1], []
    for j in _unlimited(order):
        better = _seem_better([played[0], untrained], 1, j, scale)
        found += [Statement(s, j, UNTRAINED, source, s, None, skip) for s in better]
    return found


def against_later(played: Sequence[Episodes], known: Sequence[Known], order: Order, scale: Scale) -> list[Statement]:
    """Seeds that seem to be worse in an objective than a reference for objectives after it, too, by the first batch,
    which therefore does not count."""
    skip = played[0].returns.shape[1]
    return [
        Statement(s, j, one.name, k, s, None, skip)
        for j in _unlimited(order)
        for k, one in enumerate(known, 1)
        if one.num_objectives > j + 1
        for s in _seem_better(played, k, j, scale)
    ]


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


def _unlimited(order: Order) -> list[int]:
    """The objectives but the last for which no limit says what is enough."""
    return np.flatnonzero(~np.isfinite(order.limits()[:-1])).tolist()


def _seem_better(played: Sequence[Episodes], source: int, objective: int, scale: Scale) -> list[int]:
    """The positions of seeds that seem to be worse than `played[source]`, which has not bought what it has."""
    mine, theirs = (played[k].discounted[..., objective].mean(axis=1) for k in (0, source))
    better = np.flatnonzero(theirs - mine > MARGIN * scale.discounted[objective]).tolist()
    return [s for s in better if _fair(played, source, s, objective)]


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
    best = np.flatnonzero(np.isfinite(means).all(axis=1))
    if len(best) == 0:
        return []
    for j in range(objective + 1):
        # Only policies that are among the best in what is more important.
        near = means[best, j] >= means[best, j].max() - (0.0 if j == objective else 2.0 * errors[best, j].max())
        best = best[near]
    chosen, other = divmod(int(best[0]), len(first[0]))
    skip = first[0].shape[1]
    return [
        Statement(s, objective, OTHERS, sources[chosen], other, None, skip, MARGIN_OF_SEEDS)
        for s in range(len(first[0]))
        if s != other
    ]
