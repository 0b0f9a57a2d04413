"""What both loops carry, sum up and yield: train states, tallies, chunks; and where NaN or infinity first came up."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.errors import InputError, require_whole
from lexrl.order import Order
from lexrl.types import METRICS, AnyArray, Metrics, State

IN_RETURN_UNITS = frozenset(name for name, metric in METRICS.items() if metric.in_return_units)
"""Metrics that stand for returns, and are therefore shown in the user's signs."""


class Fault(NamedTuple):
    """The first NaN or infinity of a member; `step` is -1 while there is none."""

    step: AnyArray
    objective: AnyArray
    """Index of the objective, or -1 where the number belongs to none."""
    in_reward: AnyArray
    """It came from the environment; else the algorithm computed it."""


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
    require_whole(0, num_log_points=num_log_points)
    if total_timesteps < 1 or num_log_points < 1:
        raise InputError(
            f"total_timesteps is {total_timesteps} and num_log_points is {num_log_points}; both must be 1 or more."
        )


def chunk_ends(total: int, num_chunks: int, done: int = 0) -> list[int]:
    """Where chunks end, in iterations: evenly spaced over the whole run, without those already `done`.

    Of ten chunks or more the first is a tenth as long as the others, so that there is soon something to see.
    """
    early = -(-total // (10 * num_chunks)) if num_chunks >= 10 else 0
    rest = total - early
    parts = min(num_chunks - (early > 0), max(rest, 1))  # more than one for each iteration makes no difference
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


def no_fault() -> Fault:
    """Nothing has gone wrong yet."""
    return Fault(np.int32(-1), np.int32(-1), np.bool_(False))


def first_fault(fault: Fault, reward: Array, metrics: Metrics, step: Array) -> Fault:
    """The fault so far, else the first one in an iteration: rewards `[T, N, M]` count before metrics."""
    m = reward.shape[-1]
    bad_reward = ~jnp.isfinite(reward).all(axis=(0, 1))
    bad_metric = jnp.zeros(m, bool)
    bad_other = jnp.bool_(False)
    for value in metrics.values():
        if value.shape == (m,):
            bad_metric = bad_metric | ~jnp.isfinite(value)
        else:
            bad_other = bad_other | ~jnp.isfinite(value).all()
    bad = jnp.where(bad_reward.any(), bad_reward, bad_metric)
    found = Fault(step, jnp.where(bad.any(), jnp.argmax(bad), -1).astype(jnp.int32), bad_reward.any())
    is_new = (fault.step < 0) & (bad.any() | bad_other)
    return jax.tree.map(lambda old, new: jnp.where(is_new, new, old), fault, found)


def fault_of_state(fault: Fault, agent: State, step: AnyArray) -> Fault:
    """The fault so far, else a new one if the agent's state, which is about to be kept, is not finite."""
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(agent)]
    finite = [jnp.isfinite(leaf).all() for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)]
    bad = (fault.step < 0) & ~jnp.all(jnp.array(finite, bool))
    found = Fault(step, jnp.int32(-1), jnp.bool_(False))
    return jax.tree.map(lambda old, new: jnp.where(bad, new, old), fault, found)


def sentences(fault: Fault, seeds: Sequence[int] | np.ndarray, order: Order) -> dict[int, str]:
    """A sentence for every member that has stopped."""
    found = {}
    for index in np.flatnonzero(np.asarray(fault.step) >= 0):
        member = int(index)
        objective = int(fault.objective[member])
        name = repr(order.names[objective]) if objective >= 0 else "its loss or state"
        what = "the environment returned" if fault.in_reward[member] else "the algorithm computed"
        found[member] = f"Seed {seeds[member]} stopped at step {fault.step[member]}: {what} NaN or infinity for {name}."
    return found
