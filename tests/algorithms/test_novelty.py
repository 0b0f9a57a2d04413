"""Deep exploration: what is counted, where episodes end, what is drawn, and a chain to be found."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl import replay
from lexrl.algorithms import novelty
from lexrl.types import Box, Discrete, Spec, Transition

SPEC = Spec(Discrete(3), Discrete(2), ("a", "b"), 9)
MOST = 20.0


def rollout(obs, action, next_obs, last):
    """Arrays `[T, N, ...]`; nothing is paid."""
    last = jnp.asarray(last)
    nothing = jnp.zeros(last.shape)
    return Transition(jnp.asarray(obs), jnp.asarray(action), nothing, nothing, jnp.asarray(next_obs), last)


def test_by_hand():
    """Two environments take the same action: the second time it pays less, and the rate is lower."""
    state = novelty.follow(novelty.init(3, 2, 2), rollout([[0, 0]], [[1, 1]], [[1, 1]], [[False, False]]))
    once = 1 + 0.95 * MOST
    twice = once + 2**-0.7 * (2**-0.5 + 0.95 * MOST - once)
    np.testing.assert_allclose(state.values[0], [MOST, twice], rtol=1e-6)
    np.testing.assert_array_equal(state.visits, [[0, 2], [0, 0], [0, 0]])
    np.testing.assert_allclose(novelty.most_novel(state.values[0]), [1, 0])
    np.testing.assert_allclose(novelty.most_novel(state.values[1]), [0.5, 0.5])


def test_an_end_leads_to_the_first_state():
    """The episode began in state 0, in the rollout before: its end in state 1 is worth what state 0 is worth."""
    state = novelty.follow(novelty.init(3, 2, 1), rollout([[0]], [[0]], [[1]], [[False]]))
    state = state._replace(values=state.values.at[0].set(7.0))
    state = novelty.follow(state, rollout([[1]], [[0]], [[2]], [[True]]))
    np.testing.assert_allclose(state.values[1, 0], 1 + 0.95 * 7, rtol=1e-6)
    state = novelty.follow(state, rollout([[2]], [[0]], [[0]], [[True]]))  # the next one began in state 2
    np.testing.assert_allclose(state.values[2, 0], 1 + 0.95 * MOST, rtol=1e-6)


@pytest.mark.parametrize(("num_objectives", "expected"), [(2, 2), (3, 2), (4, 2), (1, 0)])
def test_half_of_the_environments_that_explore(num_objectives, expected):
    """The last ones; they play what is most novel, and the others do not."""
    algorithm = lexrl.LDQN(num_envs=8, num_steps=4, hidden_sizes=(), use_bias=False, epsilon=0.0)
    spec = SPEC._replace(objectives=tuple("abcd"[:num_objectives]))
    state = algorithm.init(spec, jax.random.key(0))
    if not expected:
        assert state.novelty is None
        return
    known = state.novelty._replace(values=state.novelty.values.at[:, 0].set(1.0))
    state = state._replace(novelty=known)
    keys = jax.random.split(jax.random.key(1), 40)
    act = jax.vmap(jax.vmap(lambda env, key: algorithm.act_in(state, env, jnp.int32(0), key), (None, 0)), (0, None))
    played = np.asarray(act(jnp.arange(8), keys))
    np.testing.assert_array_equal((played == 1).all(axis=1), np.arange(8) >= 8 - expected)


def test_none_for_arrays_and_the_textbook_algorithm():
    assert lexrl.LDQN(explore_novelty=False).init(SPEC, jax.random.key(0)).novelty is None
    arrays = SPEC._replace(observation_space=Box((2,)))
    assert lexrl.LDQN().init(arrays, jax.random.key(0)).novelty is None


def test_what_is_seldom_is_drawn_more_often():
    """Of 100 transitions one took action 1."""
    algorithm = lexrl.LDQN(num_envs=4, num_steps=25, buffer_size=100, learning_starts=100, hidden_sizes=())
    action = np.zeros((25, 4), int)
    action[3, 2] = 1
    one = np.zeros((25, 4))
    block = rollout(one.astype(int), action, one.astype(int), one.astype(bool))
    kept = replay.add(replay.empty(SPEC, 100), block._replace(reward=jnp.zeros((25, 4, 2))))
    known = novelty.follow(algorithm.init(SPEC, jax.random.key(0)).novelty, block)
    drawn = novelty.draw(known, kept, jax.random.key(1), 4000)
    # It is among four candidates in 3.9 % of the cases, and then taken with probability 1 / (1 + 3 / 99).
    expected = (1 - 0.99**4) / (1 + 3 / 99)
    share = float(np.mean(drawn.action == 1))
    assert abs(share - expected) < 0.012, share
    np.testing.assert_array_equal(drawn.obs, 0)


LENGTH = 24


def lock():
    """A chain in which one of four actions leads on, and the others back to the first state; its end is the goal."""
    right = np.random.default_rng(0).integers(4, size=LENGTH)
    end = LENGTH
    transitions, rewards = np.zeros((LENGTH + 1, 4, LENGTH + 1)), np.zeros((2, LENGTH + 1, 4))
    transitions[:, :, 0] = 1.0
    for state, action in enumerate(right):
        transitions[state, action] = np.arange(LENGTH + 1) == state + 1
    rewards[1, LENGTH - 1, right[-1]] = 1.0
    momdp = lexrl.MOMDP.from_arrays(transitions, rewards, 0.99, terminal=[end], signals=("cost", "goal"))
    return lexrl.FiniteEnv(momdp, max_episode_steps=50)


def test_a_goal_that_random_moves_never_reach():
    """Without novelty a network's first guesses lead there with some seeds."""

    def goals(explore_novelty):
        algorithm = lexrl.LDQN(hidden_sizes=(32,), explore_novelty=explore_novelty)
        result = lexrl.train(algorithm, lock(), "min cost > max goal", seeds=6, total_timesteps=30_000)
        return result.evaluate(1).returns[:, 0, 1].sum()

    assert goals(explore_novelty=True) == 6
    assert goals(explore_novelty=False) < 6
