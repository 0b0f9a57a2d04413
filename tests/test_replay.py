"""The ring buffer, against a Python deque."""

from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from lexrl import replay
from lexrl.types import Box, Discrete, Spec, Transition

T, N, CAPACITY = 2, 3, 24
BLOCK = T * N
SPEC = Spec(Box((2,)), Discrete(5), ("first", "second"), 100)
KEY = jax.random.key(0)

add = jax.jit(replay.add)
draw = jax.jit(replay.draw, static_argnums=2)


def block(start):
    """A rollout whose transitions are numbered from `start`; every entry tells the number."""
    number = start + np.arange(BLOCK, dtype=np.float32).reshape(T, N)
    return Transition(
        obs=jnp.asarray(np.stack([number, -number], axis=-1)),
        action=jnp.asarray(number.astype(np.int32) % 5),
        reward=jnp.asarray(np.stack([2 * number, 3 * number], axis=-1)),
        discount=jnp.asarray(1 / number),
        next_obs=jnp.asarray(np.stack([number + 0.5, number], axis=-1)),
        last=jnp.asarray(number % 2 == 0),
    )


def filled(blocks):
    """The buffer after so many blocks, and the numbers it should hold."""
    kept, numbers = replay.empty(SPEC, CAPACITY), deque(maxlen=CAPACITY)
    for i in range(blocks):
        kept = add(kept, block(1 + i * BLOCK))
        numbers.extend(range(1 + i * BLOCK, 1 + (i + 1) * BLOCK))
    return kept, numbers


def consistent(seen):
    """Every column tells the same number; which ones."""
    number = np.asarray(seen.obs)[..., 0]
    np.testing.assert_array_equal(np.asarray(seen.obs)[..., 1], -number)
    np.testing.assert_array_equal(seen.action, number.astype(int) % 5)
    np.testing.assert_array_equal(seen.reward, np.stack([2 * number, 3 * number], axis=-1))
    np.testing.assert_array_equal(seen.discount, np.float32(1) / number)
    np.testing.assert_array_equal(seen.next_obs, np.stack([number + 0.5, number], axis=-1))
    np.testing.assert_array_equal(seen.last, number % 2 == 0)
    return number.astype(int).tolist()


class TestRing:
    @pytest.mark.parametrize("blocks", [1, 2, 4, 5, 7, 8, 9, 23])
    def test_holds_the_latest(self, blocks):
        kept, numbers = filled(blocks)
        assert kept.added == blocks * BLOCK
        rows = jax.tree.map(lambda leaf: leaf[: len(numbers)], kept.rows)
        assert sorted(consistent(rows)) == sorted(numbers)

    def test_the_oldest_block_makes_room(self):
        kept, _ = filled(5)  # four fill it; the fifth, numbers 25 to 30, is written over 1 to 6
        assert consistent(kept.rows) == [*range(25, 31), *range(7, 25)]

    def test_empty(self):
        kept = replay.empty(SPEC, CAPACITY)
        assert kept.added == 0
        shapes = jax.tree.map(jnp.shape, kept.rows)
        assert shapes == Transition((24, 2), (24,), (24, 2), (24,), (24, 2), (24,))
        assert kept.rows.action.dtype == jnp.int32
        assert kept.rows.last.dtype == bool

    def test_numbered_observations_and_continuous_actions(self):
        rows = replay.empty(Spec(Discrete(9), Box((3,)), ("reward",), 5), 4).rows
        assert rows.obs.dtype == rows.next_obs.dtype == jnp.int32
        assert rows.obs.shape == (4,)
        assert rows.action.shape == (4, 3)


class TestDraw:
    @pytest.mark.parametrize("blocks", [1, 3, 4, 5, 11])
    def test_only_what_is_kept_and_all_of_it_alike(self, blocks):
        kept, numbers = filled(blocks)
        taken = consistent(draw(kept, KEY, 4800))
        assert set(taken) == set(numbers)
        counts = np.bincount(taken)[sorted(numbers)]
        assert stats.chisquare(counts).pvalue > 1e-3

    def test_draws_are_independent(self):
        """With replacement: the next one is any, whatever came before."""
        kept, _ = filled(4)
        taken = np.array(consistent(draw(kept, KEY, 4800)))
        pairs = np.histogram2d(taken[::2], taken[1::2], bins=4)[0]
        assert stats.chisquare(pairs.ravel()).pvalue > 1e-3
        assert np.mean(taken[1:] == taken[:-1]) > 0.02  # 1 in 24 comes twice in a row

    def test_keys(self):
        kept, _ = filled(6)
        one, again, other = (consistent(draw(kept, jax.random.key(seed), 16)) for seed in (1, 1, 2))
        assert one == again != other
