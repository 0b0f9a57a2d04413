"""A ring buffer as a value: the last `capacity` transitions, added in blocks and drawn uniformly with replacement.

Adding writes in place and drawing reads single rows, so that neither takes longer for a larger buffer.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from lexrl.types import Discrete, Spec, Transition


class Replay(NamedTuple):
    """Transitions in the order of their arrival; the oldest are overwritten."""

    rows: Transition
    """Leading axis: capacity."""
    added: Array
    """How many were ever added."""


def empty(spec: Spec, capacity: int) -> Replay:
    """An empty buffer."""

    def rows(space: Any) -> Array:
        return jnp.zeros((capacity,), jnp.int32) if isinstance(space, Discrete) else jnp.zeros((capacity, *space.shape))

    seen = rows(spec.observation_space)
    reward = jnp.zeros((capacity, len(spec.objectives)))
    kept = Transition(seen, rows(spec.action_space), reward, jnp.zeros(capacity), seen, jnp.zeros(capacity, bool))
    return Replay(kept, jnp.int32(0))


def add(replay: Replay, rollout: Transition) -> Replay:
    """Add a rollout `[T, N]`; the capacity must be a multiple of its size."""
    block = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), rollout)
    capacity, size = replay.rows.discount.shape[0], block.discount.shape[0]
    at = replay.added % capacity
    rows = jax.tree.map(
        lambda kept, new: jax.lax.dynamic_update_slice_in_dim(kept, new.astype(kept.dtype), at, axis=0),
        replay.rows,
        block,
    )
    return Replay(rows, replay.added + size)


def draw(replay: Replay, key: Array, size: int) -> Transition:
    """`size` transitions, drawn uniformly from the buffer, with replacement."""
    at = places(replay, key, (size,))
    return jax.tree.map(lambda kept: kept[at], replay.rows)


def places(replay: Replay, key: Array, shape: tuple[int, ...]) -> Array:
    """Uniformly drawn rows."""
    full = jnp.minimum(replay.added, replay.rows.discount.shape[0])
    return (jax.random.bits(key, shape, jnp.uint32) % full.astype(jnp.uint32)).astype(jnp.int32)


def emptied(state: Any) -> Any:
    """An agent's state without its replay buffer: everything that acting needs, and small enough to send."""

    def without(part: Any) -> Any:
        return part._replace(rows=jax.tree.map(lambda leaf: leaf[:0], part.rows)) if isinstance(part, Replay) else part

    return jax.tree.map(without, state, is_leaf=lambda part: isinstance(part, Replay))
