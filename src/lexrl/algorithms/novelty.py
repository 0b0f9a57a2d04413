"""Deep exploration by a table of its own, of a reward that only counts: the more often tried, the less an action pays,

    U(z, a) <- U(z, a) + n^-0.7 (n^-0.5 + 0.95 max_b U(z', b) - U(z, a)),        n = n(z, a)

with the first cell of the episode in place of z' where it ends, so that an early end is no loss. U starts at the most
that can be had, 1 / (1 - 0.95), so that what was never tried is the most attractive: chains of thirty right moves are
found this way, which random moves would never do.

The cell z is the observation itself where that is a number. Where it is an array, each of its entries is rounded to
half a standard deviation of the first thousand observations, and the result is hashed (Tang et al. 2017).
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from lexrl import lex, replay
from lexrl.backend import compute_once
from lexrl.perceptrons import Normalizer
from lexrl.replay import Replay
from lexrl.types import Discrete, Spec, Transition

GAMMA = 0.95
"""Discount of novelty."""
NUM_CELLS = 2**14
"""Of arrays."""
NUM_LOOKS = 1000
"""Observations that the widths of cells are taken from; nothing is counted before."""
CELLS_PER_DEVIATION = 2.0
NUM_DRAWN = 4
"""What is seldom is learned from more often, but no more than this many times as often."""


class Novelty(NamedTuple):
    """What is known about every cell, and the episodes in progress."""

    values: Float[Array, "Z A"]
    visits: Int[Array, "Z A"]
    first: Int[Array, " N"]
    """The cell in which the episode of each environment began."""
    begins: Bool[Array, " N"]
    spread: Normalizer | None
    """Of the first observations; None where they are numbers."""
    num_seen: Int[Array, ""]


def initial_values(num_cells: int, num_actions: int) -> Float[Array, "Z A"]:
    """Nothing was tried."""
    return jnp.full((num_cells, num_actions), 1 / (1 - GAMMA))


def init(spec: Spec, num_envs: int) -> Novelty:
    """Before the first step."""
    assert isinstance(spec.action_space, Discrete)
    space, num_actions = spec.observation_space, spec.action_space.n
    discrete = isinstance(space, Discrete)
    num_cells = space.n if isinstance(space, Discrete) else NUM_CELLS
    size = 0 if isinstance(space, Discrete) else math.prod(space.shape)
    return Novelty(
        values=initial_values(num_cells, num_actions),
        visits=jnp.zeros((num_cells, num_actions), jnp.int32),
        first=jnp.zeros(num_envs, jnp.int32),
        begins=jnp.ones(num_envs, bool),
        spread=None if discrete else Normalizer(jnp.zeros(size), jnp.zeros(size)),
        num_seen=jnp.int32(0),
    )


def probabilities(novelty: Novelty, obs: Array) -> Float[Array, " A"]:
    """Uniform over the most novel actions."""
    return most_novel(novelty.values[_cells(novelty, obs, 0)])


def most_novel(values: Float[Array, " A"]) -> Float[Array, " A"]:
    return lex.uniform(values == values.max())


def follow(novelty: Novelty, rollout: Transition) -> Novelty:
    """After a rollout `[T, N]`."""
    novelty = _look(novelty, rollout.obs)
    known = jnp.bool_(True) if novelty.spread is None else novelty.num_seen > NUM_LOOKS
    cells, successors = _cells(novelty, rollout.obs, 2), _cells(novelty, rollout.next_obs, 2)

    def step(carry: tuple[Array, ...], now: tuple[Array, ...]) -> tuple[tuple[Array, ...], None]:
        values, visits, first, begins = carry
        cell, action, successor, last = now
        first = jnp.where(begins, cell, first)
        each = (cell, action, jnp.where(last, first, successor))
        (values, visits), _ = jax.lax.scan(count, (values, visits), each)
        return (values, visits, first, last), None

    def count(tables: tuple[Array, Array], one: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], None]:
        values, visits = tables
        cell, action, ahead = one
        n = compute_once(visits[cell, action] + known, known | True)
        rate = jnp.where(known, 1.0, 0.0)
        return (learn(values, (cell, action), ahead, n, rate), visits.at[cell, action].set(n)), None

    before = (novelty.values, novelty.visits, novelty.first, novelty.begins)
    after, _ = jax.lax.scan(step, before, (cells, rollout.action, successors, rollout.last))
    values, visits, first, begins = after
    return novelty._replace(values=values, visits=visits, first=first, begins=begins)


def learn(
    values: Float[Array, "Z A"], here: tuple[Array, Array], ahead: Array, visits: Array, rate: Array | float = 1.0
) -> Float[Array, "Z A"]:
    """After an action that was taken `visits` times led to the cell `ahead`."""
    n = jnp.maximum(visits, 1).astype(jnp.float32)
    value = compute_once(values[ahead].max(), visits >= 0)
    return values.at[here].add(rate * n**-0.7 * (n**-0.5 + GAMMA * value - values[here]))


def draw(novelty: Novelty, kept: Replay, key: Array, size: int) -> Transition:
    """Transitions from the buffer, more of those whose action was seldom tried there: from `NUM_DRAWN` that are drawn
    uniformly one is taken, with probability proportional to 1 / n(z, a)."""
    first, second = jax.random.split(key)
    rows = replay.places(kept, first, (NUM_DRAWN, size))
    visits = novelty.visits[_cells(novelty, kept.rows.obs[rows], 2), kept.rows.action[rows]]
    # The first to arrive, at a rate of 1 / n each.
    arrival = jax.random.exponential(second, rows.shape) * jnp.maximum(visits, 1)
    taken = jnp.take_along_axis(rows, arrival.argmin(axis=0)[None], axis=0)[0]
    return jax.tree.map(lambda leaf: leaf[taken], kept.rows)


def _look(novelty: Novelty, obs: Array) -> Novelty:
    """The first observations tell how wide cells are."""
    if novelty.spread is None:
        return novelty
    seen = novelty.num_seen + math.prod(obs.shape[:2])
    share = jnp.where(novelty.num_seen >= NUM_LOOKS, 0.0, 1 - novelty.num_seen / seen)
    return novelty._replace(spread=novelty.spread.update(obs, share), num_seen=seen)


def _cells(novelty: Novelty, obs: Array, num_axes: int) -> Int[Array, "*batch"]:
    """The cell of each observation; the first axes are a batch."""
    if novelty.spread is None:
        return obs
    mean, deviation = novelty.spread.mean, jnp.sqrt(novelty.spread.variance)
    width = jnp.where(deviation > 0, deviation / CELLS_PER_DEVIATION, 1.0)
    flat = obs.reshape(*obs.shape[:num_axes], -1)
    whole = jnp.round((flat - mean) / width).astype(jnp.int32)
    factors = np.random.default_rng(0).integers(2**31, size=mean.shape[0], dtype=np.uint32) * 2 + 1
    mixed = (whole.astype(jnp.uint32) * factors).sum(axis=-1, dtype=jnp.uint32)
    mixed = (mixed ^ (mixed >> 15)) * jnp.uint32(0x2C1B3C6D)
    return ((mixed ^ (mixed >> 12)) % NUM_CELLS).astype(jnp.int32)
