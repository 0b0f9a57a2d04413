"""Finite worlds sample what they are given: successors, signals, noise, first states, ends; and give it back."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import lexrl
from lexrl import per_seed
from lexrl.envs import finite
from lexrl.loops import keys
from lexrl.loops.keys import Purpose
from lexrl.momdp import MOMDP
from lexrl.types import Discrete

# Three states, two actions. Rows have one, two or three successors; state 2 ends the task.
P = np.array(
    [
        [[0.5, 0.3, 0.2], [0.0, 1.0, 0.0]],
        [[0.0, 0.25, 0.75], [0.9, 0.0, 0.1]],
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]],
    ]
)
# What a step pays tells all about it: R[m, s, a, s'] = 100 m + 10 s + a + s' / 8, exact in single precision.
R = np.fromfunction(lambda m, s, a, t: 100 * m + 10 * s + a + t / 8, (2, 3, 2, 3))
PROCESS = MOMDP.from_arrays(P, R, [0.5, 0.9], terminal=[2], initial=[0.25, 0.75, 0.0], signals=["cost", "gain"])


@partial(jax.jit, static_argnums=0)
def many_keys(n, seed=0):
    return keys.at(keys.streams(seed, Purpose.STEP, n), 0)


@jax.jit
def sampled(world, states, actions, draws):
    """Every (state, action) with every key: leading axes `[pairs, keys]`."""
    over_keys = jax.vmap(lambda world, state, action, key: world.step(state, action, key), (None, None, None, 0))
    return jax.vmap(over_keys, (None, 0, 0, None))(world, states, actions, draws)


def first_states(world, n):
    return jax.jit(jax.vmap(world.reset))(many_keys(n))


N = 6000


def steps(world, n=N, seed=0):
    """Every pair of the world `n` times."""
    num_states, num_actions = world.spec.observation_space.n, world.spec.action_space.n
    pairs = np.arange(num_states * num_actions)
    return jax.tree.map(
        np.asarray, sampled(world, jnp.array(pairs // num_actions), jnp.array(pairs % num_actions), many_keys(n, seed))
    )


def agree_with_rows(world, process, n=N, seed=0):
    answer = steps(world, n, seed)
    exact = process.transitions.toarray()
    seen = np.stack([np.bincount(row, minlength=process.num_states) for row in answer.state]) / n
    alive = np.repeat(~process.terminal, process.num_actions)
    assert (seen[alive][exact[alive] == 0] == 0).all()
    error = np.sqrt(exact * (1 - exact) / n)
    assert (np.abs(seen - exact)[alive] <= 5 * error[alive] + 1e-6).all()
    return answer


def give_back(process, **changes):
    back = lexrl.FiniteEnv(process, **changes).momdp(tuple(process.gamma))
    agree(back, process)


def agree(back, process):
    """The same process; probabilities up to a few roundings."""
    assert back.signals == process.signals
    np.testing.assert_allclose(back.transitions.toarray(), process.transitions.toarray(), rtol=0, atol=2e-15)
    np.testing.assert_array_equal(back.transitions.indices, process.transitions.indices)
    np.testing.assert_array_equal(back.outcome_rewards, process.outcome_rewards)
    np.testing.assert_allclose(back.rewards, process.rewards, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(back.initial, process.initial, rtol=0, atol=2e-15)
    np.testing.assert_array_equal(back.terminal, process.terminal)
    np.testing.assert_array_equal(back.gamma, process.gamma)


class TestSuccessors:
    def test_dense(self):
        agree_with_rows(lexrl.FiniteEnv(PROCESS), PROCESS)

    def test_sparse(self):
        sparse = MOMDP.from_arrays(sp.csr_array(P.reshape(6, 3)), R, 0.9, terminal=[2])
        agree_with_rows(lexrl.FiniteEnv(sparse), sparse, seed=1)

    def test_entries_that_are_zero(self):
        """A sparse matrix may store zeros, at the beginning, in the middle or at the end of a row."""
        rows = np.array([[0.0, 0.4, 0.0, 0.6], [0.7, 0.0, 0.3, 0.0], [0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]])
        stored = sp.csr_array((rows.ravel(), np.tile(np.arange(4), 4), np.arange(0, 17, 4)), shape=(4, 4))
        assert stored.nnz == 16
        process = MOMDP.from_arrays(stored, np.zeros((1, 4, 1)), 0.9)
        world = lexrl.FiniteEnv(process)
        agree_with_rows(world, process)
        np.testing.assert_allclose(world.momdp().transitions.toarray(), rows)

    def test_padded_for_company(self):
        """Next to a world with more successors, slots are added; nothing else changes."""
        worlds = [
            lexrl.FiniteEnv(MOMDP.random(seed, 6, 2, 2, num_successors=n, episodic=True), reward_noise=0.1)
            for seed, n in ((0, 2), (1, 5))
        ]
        assert [world.slots.shape[2] for world in worlds] == [3, 6]
        together = per_seed(worlds)
        for place, world in enumerate(worlds):
            padded = together.one(place)
            assert padded.slots.shape == worlds[1].slots.shape
            jax.tree.map(np.testing.assert_array_equal, steps(padded), steps(world))
            process = world.momdp()
            agree(padded.momdp(), process)
            agree_with_rows(padded, process, seed=place)

    def test_random_worlds(self):
        process = MOMDP.random(4, 12, 3, 2)
        agree_with_rows(lexrl.FiniteEnv(process), process)

    def test_a_thousand_successors(self):
        process = MOMDP.from_arrays(
            np.tile(np.arange(1.0, 1001.0) / 500_500, (1000, 1, 1)), np.zeros((1, 1000, 1)), 0.9
        )
        agree(lexrl.FiniteEnv(process).momdp(0.9), process)


class TestAliasTables:
    """Draws by Walker's alias method: the tables stand for the probabilities, and nothing impossible is ever drawn."""

    TOP = float(np.nextafter(np.float32(1), np.float32(0)))

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.integers(0, 5), min_size=1, max_size=30).filter(any), st.floats(1e-3, 1e3))
    def test_the_tables_stand_for_the_probabilities(self, weights, scale):
        probability = np.array(weights) / np.sum(weights)
        table = finite._alias_table(scale * probability[None])
        np.testing.assert_allclose(finite._probabilities(table)[0], probability, rtol=0, atol=1e-14)
        keep, refers = table[0].T
        assert ((keep >= 0) & (keep <= 1 + 1e-12)).all()
        # What may be drawn: a slot that is sometimes kept, and one that another refers to and sometimes yields to.
        assert (probability[keep > 0] > 0).all()
        assert (probability[refers[keep < 1].astype(int)] > 0).all()

    @settings(max_examples=30, deadline=None)
    @given(seed=st.integers(0, 10**6), rows=st.integers(1, 9), n=st.integers(1, 60), spread=st.floats(0.05, 5))
    def test_many_rows_at_once(self, seed, rows, n, spread):
        probability = np.random.default_rng(seed).dirichlet(np.full(n, spread), rows)
        table = finite._alias_table(probability)
        np.testing.assert_allclose(finite._probabilities(table), probability, rtol=0, atol=1e-13)
        for one, row in zip(table, probability, strict=True):
            np.testing.assert_array_equal(finite._alias_table(row[None])[0], one)

    @pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 33, 100, 1000])
    def test_the_smallest_and_the_largest_draws_stay_inside(self, n):
        """In single precision, where 0.99999994 * 1000 is 1000."""
        edges = jnp.array([0.0, 1e-38, 0.25, 0.5, 0.75, self.TOP], jnp.float32)
        which, keeps = (edge.ravel() for edge in jnp.meshgrid(edges, edges))
        for seed in range(4):
            row = np.random.default_rng(seed).dirichlet(np.ones(n))
            for probability in (row, np.full(n, 1 / n), np.concatenate([[0.0], row, [0.0, 0.0]])):
                slots = np.asarray(
                    drawn(jnp.asarray(finite._alias_table(probability[None])[0], jnp.float32), which, keeps)
                )
                assert (slots >= 0).all()
                assert (slots < len(probability)).all()
                assert (probability[slots] > 0).all()

    def test_even_draws_meet_the_probabilities(self):
        probability = np.array([0.02, 0.5, 0.0, 0.3, 0.18])
        even = (np.arange(1000, dtype=np.float32) + 0.5) / 1000
        which, keeps = (draw.ravel() for draw in np.meshgrid(even, even))
        table = jnp.asarray(finite._alias_table(probability[None])[0], jnp.float32)
        share = np.bincount(drawn(table, which, keeps), minlength=5) / 1e6
        np.testing.assert_allclose(share, probability, atol=1e-3)
        assert share[2] == 0


@jax.jit
def drawn(table, which, keeps):
    return jax.vmap(lambda *draws: finite._draw(lambda slot: table[slot], table.shape[0], *draws))(which, keeps)


class TestSignals:
    def test_they_belong_to_the_successor(self):
        answer = steps(lexrl.FiniteEnv(PROCESS))
        for pair in range(4):
            state, action = divmod(pair, 2)
            for successor, paid in zip(answer.state[pair], answer.signals[pair], strict=True):
                np.testing.assert_array_equal(paid, R[:, state, action, successor])
        assert set(answer.state[0]) == {0, 1, 2}

    def test_what_is_seen_is_where_one_is(self):
        answer = steps(lexrl.FiniteEnv(PROCESS))
        np.testing.assert_array_equal(answer.obs, answer.state)

    def test_the_end(self):
        answer = steps(lexrl.FiniteEnv(PROCESS))
        np.testing.assert_array_equal(answer.discount, np.where(answer.state == 2, 0.0, 1.0))
        assert 0 < (answer.discount[0] == 0).mean() < 1

    def test_no_end(self):
        assert (steps(lexrl.FiniteEnv(MOMDP.from_arrays(P, R, 0.9))).discount == 1).all()

    @pytest.mark.parametrize("num_objectives", [1, 3])
    def test_noise_is_gaussian(self, num_objectives):
        means = np.arange(num_objectives)[:, None, None] * 10.0
        process = MOMDP.from_arrays(np.ones((1, 1, 1)), means, 0.5)
        n, sigma = 40_000, 0.2
        noise = steps(lexrl.FiniteEnv(process, reward_noise=sigma), n, seed=5).signals[0] - means[:, 0, 0]
        assert noise.shape == (n, num_objectives)
        for column in noise.T:
            assert abs(column.mean()) < 5 * sigma / np.sqrt(n)
            assert abs(column.var() - sigma**2) < 5 * sigma**2 * np.sqrt(2 / n)
            assert abs(scipy.stats.skew(column)) < 5 * np.sqrt(6 / n)
            assert abs(scipy.stats.kurtosis(column)) < 5 * np.sqrt(24 / n)
            assert scipy.stats.kstest(column / sigma, "norm").pvalue > 1e-3
        if num_objectives > 1:
            others = ~np.eye(num_objectives, dtype=bool)
            assert np.abs(np.corrcoef(noise.T)[others]).max() < 5 / np.sqrt(n)
            assert np.abs(np.corrcoef(noise.T**2)[others]).max() < 5 / np.sqrt(n)

    def test_noise_does_not_depend_on_where_one_goes(self):
        process = MOMDP.from_arrays(np.full((2, 1, 2), 0.5), np.zeros((2, 2, 1)), 0.5)
        answer = steps(lexrl.FiniteEnv(process, reward_noise=1.0), 20_000, seed=2)
        for column in answer.signals[0].T:
            assert abs(np.corrcoef(column, answer.state[0])[0, 1]) < 5 / np.sqrt(20_000)

    def test_no_noise(self):
        answer = steps(lexrl.FiniteEnv(MOMDP.from_arrays(np.ones((1, 1, 1)), [[[0.5]]], 0.5)), 40_000)
        assert (answer.signals == 0.5).all()

    def test_noise_leaves_the_way_alone(self):
        quiet, loud = (steps(lexrl.FiniteEnv(PROCESS, reward_noise=noise)) for noise in (0.0, 3.0))
        np.testing.assert_array_equal(quiet.state, loud.state)
        assert not np.array_equal(quiet.signals, loud.signals)


class TestFirstStates:
    def test_they_follow_the_initial_distribution(self):
        world = lexrl.FiniteEnv(PROCESS)
        first, obs = first_states(world, 4000)
        np.testing.assert_array_equal(first, obs)
        share = np.bincount(first, minlength=3) / 4000
        assert share[2] == 0
        assert abs(share[0] - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 4000)

    def test_uniform_over_many(self):
        process = MOMDP.random(0, 40, 2, 1, num_successors=2, episodic=True)
        first, _ = first_states(lexrl.FiniteEnv(process), 8000)
        counts = np.bincount(first, minlength=40)
        assert counts[39] == 0  # where the task ends none begins
        assert scipy.stats.chisquare(counts[:39]).pvalue > 1e-3

    def test_a_certain_one(self):
        process = MOMDP.from_arrays(P, R, 0.9, initial=[0, 1, 0])
        first, _ = first_states(lexrl.FiniteEnv(process), 100)
        assert (np.asarray(first) == 1).all()


class TestTheProcessBack:
    def test_by_hand(self):
        give_back(PROCESS)

    @settings(max_examples=30, deadline=None)
    @given(
        seed=st.integers(0, 10**6),
        sizes=st.tuples(st.integers(1, 12), st.integers(1, 4), st.integers(1, 4)),
        successors=st.sampled_from([None, 1, 3]),
        episodic=st.booleans(),
        noise=st.sampled_from([0.0, 0.5]),
    )
    def test_random_ones(self, seed, sizes, successors, episodic, noise):
        states, actions, objectives = sizes
        if episodic and states == 1:
            states = 2
        gamma = np.random.default_rng(seed).random(objectives)
        process = MOMDP.random(
            seed,
            states,
            actions,
            objectives,
            gamma=gamma,
            num_successors=successors,
            tie_fraction=0.3,
            episodic=episodic,
        )
        give_back(process, reward_noise=noise)

    def test_what_is_worth_the_same(self):
        process = MOMDP.random(9, 20, 3, 2, gamma=0.95, tie_fraction=0.5)
        order = "max signal_1 > min signal_2"
        one, other = lexrl.solve(process, order), lexrl.solve(lexrl.FiniteEnv(process).momdp(0.95), order)
        np.testing.assert_array_equal(one.sets, other.sets)
        np.testing.assert_allclose(one.returns, other.returns, rtol=1e-12)

    def test_rows_of_terminal_states_may_be_empty(self):
        rows = sp.csr_array(np.array([[0.0, 1.0], [0.0, 0.0]]))
        process = MOMDP.from_arrays(rows, np.ones((1, 2, 1)), 0.9, terminal=[1])
        back = lexrl.FiniteEnv(process).momdp(0.9)
        np.testing.assert_array_equal(back.transitions.toarray()[0], [0, 1])
        np.testing.assert_array_equal(back.rewards, process.rewards)
        assert steps(lexrl.FiniteEnv(process), 20).state[0].tolist() == [1] * 20


class TestTheWorld:
    def test_the_spec(self):
        spec = lexrl.FiniteEnv(PROCESS, max_episode_steps=7).spec
        assert (spec.observation_space, spec.action_space) == (Discrete(3), Discrete(2))
        assert (spec.signals, spec.max_episode_steps) == (("cost", "gain"), 7)

    @pytest.mark.parametrize("max_episode_steps", [0, -3])
    def test_no_steps(self, max_episode_steps):
        with pytest.raises(lexrl.InputError, match=f"max_episode_steps is {max_episode_steps}; it must be 1 or more"):
            lexrl.FiniteEnv(PROCESS, max_episode_steps=max_episode_steps)

    @pytest.mark.parametrize("noise", [-0.1, float("nan")])
    def test_noise_that_is_none(self, noise):
        with pytest.raises(lexrl.InputError, match="a standard deviation must be 0 or more"):
            lexrl.FiniteEnv(PROCESS, reward_noise=noise)

    def test_random_world(self):
        world = lexrl.random_env(3, num_states=9, num_actions=2, num_signals=3, num_successors=4, tie_fraction=0.5)
        spec = world.spec
        assert (spec.observation_space, spec.action_space, spec.max_episode_steps) == (Discrete(9), Discrete(2), 100)
        assert spec.signals == ("signal_1", "signal_2", "signal_3")
        assert world.reward_noise == 0.2
        agree(world.momdp(0.9), MOMDP.random(3, 9, 2, 3, num_successors=4, tie_fraction=0.5))
        assert not world.terminal.any()
        assert np.abs(world.slots[..., 3:]).max() <= 1
        again, other = (lexrl.random_env(seed, num_states=9, num_actions=2, num_successors=4) for seed in (3, 4))
        assert not np.array_equal(again.slots, other.slots)

    def test_random_world_has_the_sizes_of_the_paper(self):
        spec = lexrl.random_env().spec
        assert (spec.observation_space, spec.action_space, len(spec.signals)) == (Discrete(256), Discrete(4), 2)


class TestCompany:
    @pytest.mark.parametrize(
        "other", [{"num_states": 5}, {"num_actions": 2}, {"num_signals": 3}, {"max_episode_steps": 7}]
    )
    def test_worlds_of_different_kinds(self, other):
        size = {"num_states": 6, "num_actions": 3, "num_signals": 2, "num_successors": 2, "max_episode_steps": 9}
        with pytest.raises(lexrl.InputError, match="environments of one kind"):
            per_seed([lexrl.random_env(**size), lexrl.random_env(**(size | other))])

    def test_no_worlds(self):
        with pytest.raises(lexrl.InputError):
            per_seed([])

    def test_worlds_of_different_classes(self):
        grid = lexrl.GridNav.generate(3)
        with pytest.raises(lexrl.InputError, match="environments of one kind"):
            per_seed([grid, lexrl.FiniteEnv(grid.momdp(), max_episode_steps=grid.max_episode_steps)])
