"""What both loops carry, sum up and yield: train states, tallies and chunks."""

from typing import NamedTuple

import numpy as np

from lexrl.errors import InputError
from lexrl.loops.faults import Fault
from lexrl.order import Order
from lexrl.types import METRICS, AnyArray, State

IN_RETURN_UNITS = frozenset(name for name, metric in METRICS.items() if metric.in_return_units)
"""Metrics that stand for returns, and are therefore shown in the user's signs."""


class TrainState(NamedTuple):
    """Everything a member carries from chunk to chunk."""

    agent: State
    env_state: State
    obs: AnyArray
    episode_step: AnyArray
    """`[N]`: steps since the episode began."""
    episode_return: AnyArray
    """`[N, M]`: rewards since the episode began."""
    iteration: AnyArray
    fault: Fault


class EpisodeSums(NamedTuple):
    """Sums over the episodes that ended."""

    count: AnyArray
    returns: AnyArray
    """`[M]`"""
    lengths: AnyArray


class Tally(NamedTuple):
    """Sums over the iterations of a chunk."""

    episodes: EpisodeSums
    num_updates: AnyArray
    metrics: dict[str, AnyArray]


class Chunk(NamedTuple):
    """What happened in a chunk, for every member."""

    steps: int
    """Environment steps of each member so far."""
    train_states: TrainState
    metrics: dict[str, np.ndarray]
    """`[members]` or `[members, M]`; NaN where no episode ended, or where a member has stopped."""
    faults: dict[int, str]
    """Members that have stopped, and why."""


def check_length(total_timesteps: int, num_log_points: int) -> None:
    """Raise an `InputError` if there is nothing to train."""
    if total_timesteps < 1 or num_log_points < 1:
        raise InputError(
            f"total_timesteps is {total_timesteps} and num_log_points is {num_log_points}; both must be 1 or more."
        )


def chunk_ends(total: int, num_chunks: int, done: int = 0) -> list[int]:
    """Where chunks end, in iterations: evenly spaced over the whole run, without those already `done`.

    Of ten chunks or more the first is a tenth as long as the others, so that there is soon something to see.
    """
    early = -(-total // (10 * num_chunks)) if num_chunks >= 10 else 0
    rest, parts = total - early, num_chunks - (early > 0)
    ends = {early + -(-rest * (part + 1) // parts) for part in range(parts)} | {early}
    return sorted(ends - set(range(done + 1)))


def summarize(tally: Tally, order: Order) -> dict[str, np.ndarray]:
    """A chunk's sums as means, in the user's signs; NaN where no episode ended."""
    episodes = tally.episodes
    with np.errstate(invalid="ignore", divide="ignore"):
        means = {
            "episode_return": order.unsigned(episodes.returns / episodes.count[:, None]),
            "episode_length": episodes.lengths / episodes.count,
        }
        for name, total in tally.metrics.items():
            mean = np.asarray(total) / tally.num_updates.reshape(-1, *[1] * (total.ndim - 1))
            means[name] = order.unsigned(mean) if name in IN_RETURN_UNITS and mean.ndim == 2 else mean
    return {"num_episodes": np.asarray(episodes.count), **means}
