"""Successive halving without a score: runs are short at first, and only what is decidedly worse is not trained longer.

Every round trains anew and twice as long, with schedules of that length: a run that is stopped in its first stage says
nothing about the second objective. The combinations are then ranked lexicographically, by resampled seeds
(`report.ranking`). Half of them may be dropped after a round, and of that half only those that a better one beats with
95 % confidence: seeds that do not tell drop nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lexrl.errors import InputError, require_whole
from lexrl.order import Order
from lexrl.report import ranking
from lexrl.tolerance import Absolute

MAX_ROUNDS = 16


class Dropped(NamedTuple):
    """Why a combination is not trained longer."""

    by: int
    """Which one is better."""
    probability: float
    objective: int


def lengths(total_timesteps: int, rounds: int) -> list[int]:
    """Environment steps in each round; all of them in the last."""
    require_whole(1, MAX_ROUNDS, rounds=rounds)
    found = [total_timesteps // 2**i for i in reversed(range(rounds))]
    if found[0] < 1:
        raise InputError(f"{total_timesteps:,} steps cannot be halved {rounds - 1} times; give fewer rounds.")
    return found


def standings(returns: np.ndarray, order: Order) -> ranking.Standings:
    """Combinations `[n, seeds, M]` in the order of the objectives."""
    limits = [objective.limit for objective in order.objectives]
    return ranking.rank(list(returns), order.signs, tolerances(order), limits=limits)


def tolerances(order: Order) -> list[float]:
    """The absolute tolerances of an order, in units of its returns; 0 for the others."""
    return [float(one.tolerance.amount) if isinstance(one.tolerance, Absolute) else 0.0 for one in order.objectives]


def ranked(returns: np.ndarray, order: Order) -> list[int]:
    """Positions, the best first; those that failed last."""
    known = np.flatnonzero(np.isfinite(returns).all(axis=(1, 2)))
    if len(known) == 0:
        return list(range(len(returns)))
    best = [int(known[i]) for members in standings(returns[known], order).classes for i in members]
    return best + [i for i in range(len(returns)) if i not in set(best)]


def drop(returns: np.ndarray, order: Order) -> dict[int, Dropped]:
    """Which combinations `[n, seeds, M]` are not worth more steps; those that failed are not among them."""
    known = np.flatnonzero(np.isfinite(returns).all(axis=(1, 2)))
    if len(known) < 2:
        return {}
    found = standings(returns[known], order)
    places = [i for members in found.classes for i in members]
    kept = places[: -(-len(places) // 2)]
    dropped = {}
    for i in places[len(kept) :]:
        odds, by = _decided(found, i, kept)
        if odds is not None and odds.by is not None:
            dropped[int(known[i])] = Dropped(int(known[by]), odds.over, odds.by)
    return dropped


def _decided(found: ranking.Standings, i: int, kept: Sequence[int]) -> tuple[ranking.Odds | None, int]:
    """The clearest odds of a kept one against another, where it is decided; None if there is none."""
    by = max(kept, key=lambda j: found.odds[j][i].over)
    odds = found.odds[by][i]
    return (odds if odds.winner > 0 else None), by
