"""Deep exploration by a table of its own, of a reward that only counts: the more often tried, the less an action pays,

    U(s, a) <- U(s, a) + n^-0.7 (n^-0.5 + 0.95 max_b U(s', b) - U(s, a)),        n = n(s, a)

with the first state of the episode in place of s' where it ends, so that an early end is no loss. U starts at the most
that can be had, 1 / (1 - 0.95), so that what was never tried is the most attractive: chains of thirty right moves are
found this way, which random moves would never do.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lexrl import lex, replay
from lexrl.backend import compute_once
from lexrl.replay import Replay
from lexrl.types import Transition

GAMMA = 0.95
"""Discount of novelty."""
NUM_DRAWN = 4
"""What is seldom is learned from more often, but no more than this many times as often."""


class Novelty(NamedTuple):
    """What is known about every state, and the episodes in progress."""

    values: Float[Array, "S A"]
    visits: Int[Array, "S A"]
    first: Int[Array, " N"]
    """The state in which the episode of each environment began."""
    begins: Bool[Array, " N"]


def initial_values(num_states: int, num_actions: int) -> Float[Array, "S A"]:
    """Nothing was tried."""
    return jnp.full((num_states, num_actions), 1 / (1 - GAMMA))


def init(num_states: int, num_actions: int, num_envs: int) -> Novelty:
    """Before the first step."""
    return Novelty(
        values=initial_values(num_states, num_actions),
        visits=jnp.zeros((num_states, num_actions), jnp.int32),
        first=jnp.zeros(num_envs, jnp.int32),
        begins=jnp.ones(num_envs, bool),
    )


def most_novel(values: Float[Array, " A"]) -> Float[Array, " A"]:
    """Probabilities that are uniform over the best of a state's actions."""
    return lex.uniform(values == values.max())


def follow(novelty: Novelty, rollout: Transition) -> Novelty:
    """After a rollout `[T, N]`, one transition after the other."""

    def step(before: Novelty, now: Transition) -> tuple[Novelty, None]:
        first = jnp.where(before.begins, now.obs, before.first)
        ahead = jnp.where(now.last, first, now.next_obs)
        tables = before.values, before.visits
        (values, visits), _ = jax.lax.scan(count, tables, (now.obs, now.action, ahead))
        return Novelty(values, visits, first, now.last), None

    def count(tables: tuple[Array, Array], one: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], None]:
        values, visits = tables
        state, action, ahead = one
        n = compute_once(visits[state, action] + 1, state >= 0)
        return (learn(values, (state, action), ahead, n), visits.at[state, action].set(n)), None

    return jax.lax.scan(step, novelty, rollout)[0]


def learn(
    values: Float[Array, "S A"], here: tuple[Array, Array], ahead: Array, visits: Int[Array, ""]
) -> Float[Array, "S A"]:
    """After an action that was taken `visits` times led to the state `ahead`."""
    n = jnp.maximum(visits, 1).astype(jnp.float32)
    value = compute_once(values[ahead].max(), visits >= 0)
    return values.at[here].add(n**-0.7 * (n**-0.5 + GAMMA * value - values[here]))


def draw(novelty: Novelty, kept: Replay, key: Array, size: int) -> Transition:
    """Transitions from the buffer, more of those whose action was seldom tried there: from `NUM_DRAWN` that are drawn
    uniformly one is taken, with probability proportional to 1 / n(s, a)."""
    first, second = jax.random.split(key)
    rows = replay.places(kept, first, (NUM_DRAWN, size))
    visits = novelty.visits[kept.rows.obs[rows], kept.rows.action[rows]]
    # The first to arrive, at a rate of 1 / n each.
    arrival = jax.random.exponential(second, rows.shape) * jnp.maximum(visits, 1)
    taken = jnp.take_along_axis(rows, arrival.argmin(axis=0)[None], axis=0)[0]
    return jax.tree.map(lambda leaf: leaf[taken], kept.rows)
