"""Action values with their errors, and with twice the digits for the pairs of actions where that matters.

    q(s, a) = r(s, a) + gamma E[v(s')]

Ordinary arithmetic is wrong by a few roundings of the terms *of that sum*, and by what the values behind it are wrong
by; both are known for every (s, a). A difference above that is decided. For the few below, the sum is done again with
twice the digits, from values that were refined to as many.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float, Int

from lexrl import doubled
from lexrl.doubled import Doubled
from lexrl.lex import Arr
from lexrl.momdp import MOMDP

INPUT_PRECISION = 2.0**-48
"""Differences below this share of what is added up are within the rounding of the input: `0.1 + 0.2` against `0.3`."""
_EPS = float(np.finfo(float).eps)


class Values(NamedTuple):
    """Values of states with twice the digits, and a bound on their errors, state by state."""

    value: Doubled
    error: Float[Arr, " S"]


class Backup(NamedTuple):
    """Action values in ordinary arithmetic."""

    q: Float[Arr, "S A"]
    scale: Float[Arr, "S A"]
    """The size of what is added up: `|r| + gamma E|v|`."""
    carried: Float[Arr, "S A"]
    """What the errors of the values add to those of q."""
    error: Float[Arr, "S A"]
    """Bound on the error of q."""


class Pairs(NamedTuple):
    """Some (s, a), as indices `s * A + a`, with their action values to twice the digits."""

    index: Int[Arr, " n"]
    q: Doubled
    error: Float[Arr, " n"]


def look_ahead(process: MOMDP, objective: int, values: Values) -> Backup:
    """Action values of all (s, a), with bounds on their errors."""
    shape, gamma = (process.num_states, process.num_actions), float(process.gamma[objective])
    value = values.value.hi
    terms = np.diff(process.transitions.indptr).reshape(shape)
    q = process.rewards[objective] + gamma * (process.transitions @ value).reshape(shape)
    scale = _reward_size(process, objective) + gamma * (process.transitions @ np.abs(value)).reshape(shape)
    carried = gamma * (process.transitions @ values.error).reshape(shape)
    alive = ~process.terminal[:, None]
    parts = (q, scale, carried, (terms + 4) * _EPS * scale + 1.01 * carried)
    return Backup(*(np.where(alive, part, 0.0) for part in parts))


def exact_pairs(process: MOMDP, objective: int, values: Values, backup: Backup, index: Int[Arr, " n"]) -> Pairs:
    """Action values of some (s, a) to twice the digits."""
    ahead = doubled.mean(process.transitions, values.value, index)
    q = doubled.add(exact_rewards(process, objective, index), doubled.times(ahead, process.gamma[objective]))
    error = 2 * doubled.PRECISION * backup.scale.ravel()[index] + 1.01 * backup.carried.ravel()[index]
    return Pairs(index, q, error)


def exact_rewards(process: MOMDP, objective: int, index: Int[Arr, " n"]) -> Doubled:
    """Expected rewards of some (s, a) to twice the digits."""
    if process.rewards_rest is not None:
        return Doubled(process.rewards[objective].ravel()[index], process.rewards_rest[objective].ravel()[index])
    sums = doubled.mean_of_entries(process.transitions, process.outcome_rewards[:, objective], index)
    ended = process.terminal[index // process.num_actions]
    return Doubled(np.where(ended, 0.0, sums.hi), np.where(ended, 0.0, sums.lo))


def with_exact_rewards(process: MOMDP) -> MOMDP:
    """The same process with its expected rewards to twice the digits at hand: for those who ask for them often."""
    if process.rewards_rest is not None:
        return process
    everywhere = np.arange(process.num_states * process.num_actions)
    each = [exact_rewards(process, i, everywhere) for i in range(process.num_objectives)]
    high, low = (np.stack([one[part] for one in map(tuple, each)]) for part in (0, 1))
    shape = process.rewards.shape
    return dataclasses.replace(process, rewards=high.reshape(shape), rewards_rest=low.reshape(shape))


class Judged(NamedTuple):
    """Which actions reach a threshold, and how near a thing it was."""

    reached: Bool[Arr, "S A"]
    slack: Float[Arr, " S"]
    margin: float
    """The smallest distance to the threshold that was counted as one; infinite where there is none."""
    noise: float
    """The largest distance that was counted as none."""
    rounded: tuple[Int[Arr, " k"], Float[Arr, " k"]]
    """Pairs that count as reaching the threshold though they are below it, by less than the rounding of the input; and
    by how much."""
    undecided: tuple[Int[Arr, " u"], Float[Arr, " u"]]
    """Pairs of which even twice the digits do not tell whether they reach it; they count as if they did."""


def judge(
    process: MOMDP,
    objective: int,
    ahead: Values,
    best: Values,
    backup: Backup,
    allowed: Bool[np.ndarray, "S A"],
    slack: Float[np.ndarray, " S"],
    known: Pairs,
) -> Judged:
    """Which of the allowed actions have `q(s, a) >= best(s) - slack(s)`.

    `backup` are the action values that follow from `ahead`, the values of the successors; `best` is the best of them
    in each state; `known` are pairs whose exact values have been computed already.
    """
    top, alive = best.value.hi, ~process.terminal
    distance = backup.q - (top - slack)[:, None]
    own = _EPS * (np.abs(top) + np.abs(slack)) + best.error
    doubtful = allowed & alive[:, None] & (np.abs(distance) <= 2 * (backup.error + own[:, None]))
    pairs = _with_known(process, objective, ahead, backup, np.flatnonzero(doubtful), known)
    state = pairs.index // process.num_actions
    exact = doubled.add(doubled.subtract(pairs.q, best.value[state]), doubled.exactly(slack[state]))
    error = pairs.error + best.error[state] + 2 * doubled.PRECISION * np.abs(slack[state])
    # Roundings of the input, and of a tolerance that was computed from the best value.
    width = INPUT_PRECISION * (backup.scale.ravel()[pairs.index] + np.abs(slack[state]))
    below = exact.hi < 0
    reached_pairs = ~below | (-exact.hi <= np.maximum(width, error))
    reached = allowed & (distance >= 0)
    reached.ravel()[pairs.index] = reached_pairs
    reached[process.terminal] = allowed[process.terminal]
    # Where values are so small that they underflow, errors do, too: the best action stays in any case.
    left = np.where(allowed, backup.q, -np.inf)
    reached |= ~reached.any(axis=1, keepdims=True) & (left == left.max(axis=1, keepdims=True))
    near = below & reached_pairs
    # Where a single action is left, it is the best one, whatever the error.
    several = reached.sum(axis=1)[state] > 1
    rounded, unknown = near & (-exact.hi > error), (np.abs(exact.hi) <= error) & (error > width) & several
    clear = np.abs(distance[allowed & alive[:, None] & ~doubtful])
    apart = np.concatenate([clear, np.abs(exact.hi)[(below & ~reached_pairs) | (exact.hi > width)]])
    return Judged(
        reached,
        slack,
        float(np.min(apart, initial=np.inf)),
        float(np.max(np.abs(exact.hi)[near | (~below & (exact.hi <= width))], initial=0.0)),
        (pairs.index[rounded], -exact.hi[rounded]),
        (pairs.index[unknown], np.abs(exact.hi[unknown])),
    )


def best_of(
    process: MOMDP, objective: int, ahead: Values, backup: Backup, allowed: Bool[np.ndarray, "S A"]
) -> tuple[Values, Pairs]:
    """The best action value in each state, to twice the digits; and those of the actions that come near it."""
    sure = np.max(np.where(allowed, backup.q - backup.error, -np.inf), axis=1)
    near = np.flatnonzero(allowed & (backup.q + backup.error >= sure[:, None]))
    pairs = exact_pairs(process, objective, ahead, backup, near)
    state = near // process.num_actions
    ranked = np.lexsort((pairs.q.lo, pairs.q.hi, state))
    last = ranked[np.append(np.flatnonzero(np.diff(state[ranked])), len(ranked) - 1)]
    return Values(pairs.q[last], pairs.error[last]), pairs


def single(process: MOMDP, rewards: Doubled, gamma: float, name: str) -> MOMDP:
    """The same process with one objective, which pays `rewards` on the way."""
    return dataclasses.replace(
        process,
        rewards=rewards.hi[None],
        rewards_rest=rewards.lo[None],
        outcome_rewards=np.zeros((process.transitions.nnz, 1)),
        gamma=np.array([gamma]),
        signals=(name,),
    )


def _with_known(process: MOMDP, objective: int, values: Values, backup: Backup, index: Arr, known: Pairs) -> Pairs:
    """Exact values of the pairs asked for, computing only those that are not known."""
    place = np.searchsorted(known.index, index)
    place = np.minimum(place, max(len(known.index) - 1, 0))
    found = (known.index[place] == index) if len(known.index) else np.zeros(len(index), bool)
    if found.all():
        return Pairs(index, known.q[place], known.error[place])
    fresh = exact_pairs(process, objective, values, backup, index[~found])
    high, low, error = (np.empty(len(index)) for _ in range(3))
    for part, ours, theirs in ((high, fresh.q.hi, known.q.hi), (low, fresh.q.lo, known.q.lo)):
        part[~found], part[found] = ours, theirs[place[found]]
    error[~found], error[found] = fresh.error, known.error[place[found]]
    return Pairs(index, Doubled(high, low), error)


def _reward_size(process: MOMDP, objective: int) -> Float[np.ndarray, "S A"]:
    """`E|r|`: what cancels in an expected reward leaves noise of the size of what went in."""
    if process.rewards_rest is not None:
        return np.abs(process.rewards[objective])
    matrix = process.transitions
    paid = np.abs(matrix.data * process.outcome_rewards[:, objective])
    sums = sp.csr_array((paid, matrix.indices, matrix.indptr), shape=matrix.shape).sum(axis=1)
    return np.maximum(np.asarray(sums).reshape(process.rewards.shape[1:]), np.abs(process.rewards[objective]))
