"""Randomness by address: what a key draws depends on its address alone, and different addresses share nothing."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.extend.random import threefry_2x32

from lexrl.loops import keys
from lexrl.loops.keys import Purpose

WORD = st.integers(0, 2**32 - 1)


@jax.jit
def bits_at(seed, purpose, env, time):
    """Two words at an address; the purpose may be traced, as an address is nothing but four numbers."""
    a, b = keys._threefry(seed, purpose, env, jnp.uint32(0x6C657872))
    key = jax.random.wrap_key_data(jnp.stack([a, b, jnp.uint32(0)]), impl=keys._IMPLEMENTATION)
    return jax.random.bits(keys.at(key, time), (2,))


@jax.jit
def first_words(many):
    """One word of each key."""
    return jax.vmap(jax.random.bits)(many)


def address(seed=3, purpose=Purpose.STEP, env=1, time=5):
    return keys.at(keys.stream(seed, purpose, env), time)


class TestTheHash:
    @pytest.mark.parametrize(
        ("key", "counter", "answer"),
        [  # known answers published with Random123 for Threefry-2x32, 20 rounds
            ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
            ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
            ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
        ],
    )
    def test_known_answers(self, key, counter, answer):
        got = keys._threefry(*(jnp.uint32(word) for word in (*key, *counter)))
        assert tuple(int(word) for word in got) == answer

    @settings(max_examples=50, deadline=None)
    @given(st.tuples(WORD, WORD, WORD, WORD))
    def test_agrees_with_jax(self, words):
        k0, k1, x0, x1 = np.array(words, np.uint32)
        ours = _jitted_hash(k0, k1, x0, x1)
        theirs = threefry_2x32(jnp.array([k0, k1]), jnp.array([x0, x1]))
        assert [int(word) for word in ours] == theirs.tolist()

    @pytest.mark.parametrize("n", [1, 8, 9])
    def test_bits_are_the_hash_of_time_and_place(self, n):
        """The counter is (time, number of the word); 8 words are written out, more come from one array."""
        a, b, time = (int(word) for word in jax.random.key_data(address(time=77)))
        assert time == 77
        counter = jnp.concatenate([jnp.full(n, 77, jnp.uint32), jnp.arange(n, dtype=jnp.uint32)])
        hashed = threefry_2x32(jnp.array([a, b], jnp.uint32), counter)[:n]
        np.testing.assert_array_equal(jax.random.bits(address(time=77), (n,)), hashed)

    def test_a_stream_is_the_hash_of_seed_purpose_and_env(self):
        key = keys.stream(11, Purpose.RESET, 4)
        hashed = threefry_2x32(jnp.array([11, int(Purpose.RESET)], jnp.uint32), jnp.array([4, 0x6C657872], jnp.uint32))
        np.testing.assert_array_equal(jax.random.key_data(key), [*hashed.tolist(), 0])


_jitted_hash = jax.jit(keys._threefry)


class TestAddresses:
    def test_the_same_address_the_same_bits(self):
        assert jax.random.bits(address()) == jax.random.bits(address())

    def test_what_was_drawn_before_does_not_matter(self):
        stream = keys.stream(3, Purpose.STEP, 1)
        fresh = jax.random.bits(keys.at(stream, 5))
        for time in (0, 9, 2):
            jax.random.bits(keys.at(stream, time), (3,))
        moved = keys.at(keys.at(keys.at(stream, 9), 1), 5)  # a time is written, not added
        assert jax.random.bits(keys.at(stream, 5)) == jax.random.bits(moved) == fresh

    def test_the_first_words_do_not_depend_on_how_many_are_drawn(self):
        np.testing.assert_array_equal(jax.random.bits(address(), (3,)), jax.random.bits(address(), (20,))[:3])

    def test_traced_and_not(self):
        traced = jax.jit(lambda seed, env, time: jax.random.bits(address(seed, Purpose.ACT, env, time)))
        assert traced(3, 1, 5) == jax.random.bits(address(purpose=Purpose.ACT))

    def test_any_kind_of_integer(self):
        for kind in (int, np.int64, np.uint32, jnp.int32, jnp.uint32):
            assert jax.random.bits(address(kind(3), Purpose.STEP, kind(1), kind(5))) == jax.random.bits(address())

    def test_many_envs_at_once(self):
        many = keys.at(keys.streams(3, Purpose.STEP, 4), 5)
        assert many.shape == (4,)
        for env in range(4):
            assert (jax.random.key_data(many[env]) == jax.random.key_data(address(env=env))).all()
        np.testing.assert_array_equal(
            jax.vmap(jax.random.bits)(many), [jax.random.bits(address(env=env)) for env in range(4)]
        )

    def test_a_time_for_each_stream(self):
        many = keys.at(keys.streams(3, Purpose.STEP, 3), jnp.array([5, 6, 7]))
        for env in range(3):
            expected = jax.random.key_data(address(env=env, time=5 + env))
            assert (jax.random.key_data(many[env]) == expected).all()

    def test_neighbours_all_differ(self):
        """Every address in a box of seeds, purposes, environments and times draws 64 bits that no other draws."""
        sizes = (12, len(Purpose), 8, 40)
        grids = np.meshgrid(*(np.arange(size, dtype=np.uint32) for size in sizes), indexing="ij")
        bits = np.asarray(jax.vmap(bits_at)(*(grid.ravel() for grid in grids))).astype(np.uint64)
        assert len(np.unique(bits[:, 0] << np.uint64(32) | bits[:, 1])) == np.prod(sizes)

    def test_the_box_above_draws_what_the_addresses_draw(self):
        for seed, purpose in zip(itertools.cycle((0, 5)), Purpose, strict=False):
            traced = bits_at(jnp.uint32(seed), jnp.uint32(purpose), jnp.uint32(2), 9)
            np.testing.assert_array_equal(traced, jax.random.bits(address(seed, purpose, 2, 9), (2,)))

    def test_the_largest_seed_and_time(self):
        top = 2**32 - 1
        far = [address(seed=np.uint32(top)), address(time=np.uint32(top)), address(seed=np.uint32(0)), address(time=0)]
        assert len({int(jax.random.bits(key)) for key in far}) == 4

    def test_purposes_are_fixed(self):
        """A number that changed would change every run ever made."""
        evaluation = ["EVALUATE_RESET", "EVALUATE_ACT", "EVALUATE_STEP", "PREDICT", "EVALUATE_BEGIN"]
        names = ["INIT", "RESET", "ACT", "STEP", "UPDATE", *evaluation]
        assert [purpose.name for purpose in sorted(Purpose)] == names
        assert [int(purpose) for purpose in sorted(Purpose)] == list(range(10))


class TestOrdinaryKeys:
    """Whatever takes a JAX key takes one of these."""

    def test_uniform_and_normal(self):
        assert 0.45 < jax.random.uniform(address(), (5000,)).mean() < 0.55
        draws = jax.random.normal(address(), (20_000,))
        assert abs(float(draws.mean())) < 0.03
        assert abs(float(draws.std()) - 1) < 0.03
        assert scipy.stats.kstest(np.asarray(draws), "norm").pvalue > 1e-3

    def test_randint_and_bernoulli(self):
        dice = np.bincount(jax.random.randint(address(), (6000,), 0, 6), minlength=6)
        assert scipy.stats.chisquare(dice).pvalue > 1e-3
        assert abs(float(jax.random.bernoulli(address(), 0.3, (10_000,)).mean()) - 0.3) < 0.03

    def test_permutation_and_choice(self):
        shuffled = jax.random.permutation(address(), 100)
        assert sorted(shuffled.tolist()) == list(range(100))
        assert shuffled.tolist() != list(range(100))
        assert len(set(jax.random.choice(address(), 50, (10,), replace=False).tolist())) == 10

    def test_split(self):
        children = jax.random.split(address(), 64)
        assert children.shape == (64,)
        assert jax.random.split(address(), (2, 3)).shape == (2, 3)
        words = {*first_words(children).tolist(), int(jax.random.bits(address()))}
        assert len(words) == 65
        other = jax.random.split(address(time=6), 64)
        assert not set(first_words(other).tolist()) & words

    def test_fold_in(self):
        children = jax.vmap(lambda i: jax.random.fold_in(address(), i))(jnp.arange(64))
        split = jax.random.split(address(), 64)
        words = [*first_words(children).tolist(), *first_words(split).tolist(), int(jax.random.bits(address()))]
        assert len(set(words)) == 129  # folding, splitting and drawing share nothing
        assert int(jax.random.bits(jax.random.fold_in(address(), 3))) == words[3]

    def test_children_are_streams_too(self):
        child = jax.random.split(address(), 2)[0]
        assert jax.random.bits(keys.at(child, 1)) != jax.random.bits(keys.at(child, 2))

    def test_inside_compiled_loops(self):
        def body(total, time):
            return total + jax.random.uniform(keys.at(keys.stream(0, Purpose.ACT), time)), None

        total, _ = jax.lax.scan(body, jnp.float32(0), jnp.arange(20))
        by_hand = sum(float(jax.random.uniform(address(0, Purpose.ACT, 0, time))) for time in range(20))
        np.testing.assert_allclose(total, by_hand, rtol=1e-5)

    @pytest.mark.parametrize("dtype", ["uint8", "uint32"])
    def test_narrow_words(self, dtype):
        words = jax.random.bits(address(), (4000,), dtype)
        assert words.dtype == dtype
        assert scipy.stats.chisquare(np.bincount(np.asarray(words) % 16, minlength=16)).pvalue > 1e-3

    def test_no_numbers_at_all(self):
        assert jax.random.uniform(address(), (0,)).shape == (0,)


def draws(axis, n=20_000):
    """Uniform numbers along one coordinate of the address, the others held fixed; two words for each."""
    count, fixed = jnp.arange(n, dtype=jnp.uint32), jnp.zeros(n, jnp.uint32)
    seeds, envs, times = ((count, fixed, fixed), (fixed, count, fixed), (fixed, fixed, count))[axis]
    return np.asarray(jax.vmap(bits_at)(seeds, jnp.full(n, 3, jnp.uint32), envs, times)) / 2.0**32


@pytest.mark.parametrize("axis", [0, 1, 2], ids=["seed", "env", "time"])
class TestUniformAndIndependent:
    """Smoke tests with fixed addresses: a generator that fails them is broken, one that passes is not proved good."""

    def test_uniform(self, axis):
        for word in draws(axis).T:
            assert scipy.stats.chisquare(np.histogram(word, 50, (0, 1))[0]).pvalue > 1e-3

    def test_neighbours_are_independent(self, axis):
        word = draws(axis)[:, 0]
        for lag in (1, 2, 16):
            table = np.histogram2d(word[:-lag], word[lag:], 10, ((0, 1), (0, 1)))[0]
            assert scipy.stats.chi2_contingency(table).pvalue > 1e-3, lag

    def test_words_of_one_key_are_independent(self, axis):
        table = np.histogram2d(*draws(axis).T, 10, ((0, 1), (0, 1)))[0]
        assert scipy.stats.chi2_contingency(table).pvalue > 1e-3

    def test_every_bit_is_fair(self, axis):
        words = (draws(axis)[:, 0] * 2.0**32).astype(np.uint64)
        ones = np.array([((words >> np.uint64(bit)) & np.uint64(1)).sum() for bit in range(32)])
        assert np.abs(ones - len(words) / 2).max() < 4.5 * np.sqrt(len(words) / 4)


def test_purposes_are_independent():
    n = 10_000
    times = jnp.arange(n, dtype=jnp.uint32)
    words = [
        np.asarray(jax.vmap(bits_at, (None, None, None, 0))(jnp.uint32(0), jnp.uint32(p), jnp.uint32(0), times))[:, 0]
        for p in Purpose
    ]
    for one, other in itertools.combinations(words, 2):
        assert abs(np.corrcoef(one, other)[0, 1]) < 4.5 / np.sqrt(n)
