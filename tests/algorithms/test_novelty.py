"""Deep exploration: what is counted, where episodes end, which cell an array falls into, and a chain to be found."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl import replay
from lexrl.algorithms import novelty
from lexrl.types import Box, Discrete, Spec, Transition

SPEC = Spec(Discrete(3), Discrete(2), ("a", "b"), 9)
PLANE = SPEC._replace(observation_space=Box((2,)))
MOST = 20.0


def rollout(obs, action, next_obs, last):
    """Arrays `[T, N, ...]`; nothing is paid."""
    obs, next_obs = (jnp.asarray(x, jnp.int32 if np.ndim(x) == 2 else jnp.float32) for x in (obs, next_obs))
    last = jnp.asarray(last)
    nothing = jnp.zeros(last.shape)
    return Transition(obs, jnp.asarray(action), nothing, nothing, next_obs, last)


def test_by_hand():
    """Two environments take the same action: the second time it pays less, and the rate is lower."""
    state = novelty.follow(novelty.init(SPEC, 2), rollout([[0, 0]], [[1, 1]], [[1, 1]], [[False, False]]))
    once = 1 + 0.95 * MOST
    twice = once + 2**-0.7 * (2**-0.5 + 0.95 * MOST - once)
    np.testing.assert_allclose(state.values[0], [MOST, twice], rtol=1e-6)
    np.testing.assert_array_equal(state.visits, [[0, 2], [0, 0], [0, 0]])
    np.testing.assert_allclose(novelty.probabilities(state, jnp.int32(0)), [1, 0])
    np.testing.assert_allclose(novelty.probabilities(state, jnp.int32(1)), [0.5, 0.5])


def test_an_end_leads_to_the_first_cell():
    """The episode began in cell 0, in the rollout before: its end in cell 1 is worth what cell 0 is worth."""
    state = novelty.follow(novelty.init(SPEC, 1), rollout([[0]], [[0]], [[1]], [[False]]))
    state = state._replace(values=state.values.at[0].set(7.0))
    state = novelty.follow(state, rollout([[1]], [[0]], [[2]], [[True]]))
    np.testing.assert_allclose(state.values[1, 0], 1 + 0.95 * 7, rtol=1e-6)
    state = novelty.follow(state, rollout([[2]], [[0]], [[0]], [[True]]))  # the next one began in cell 2
    np.testing.assert_allclose(state.values[2, 0], 1 + 0.95 * MOST, rtol=1e-6)


def seen(points):
    """The state after looks at points `[n, 2]` that are as wide apart as 1 and 10 in their two entries."""
    rng = np.random.default_rng(0)
    looks = rng.normal([0.0, 5.0], [1.0, 10.0], (novelty.NUM_LOOKS, 1, 2))
    none = np.zeros(looks.shape[:2])
    state = novelty.follow(novelty.init(PLANE, 1), rollout(looks, none.astype(int), looks, none.astype(bool)))
    assert (np.asarray(state.visits) == 0).all(), "nothing is counted before the widths are known"
    points = np.asarray(points, float)[:, None]
    none = np.zeros(points.shape[:2])
    return novelty.follow(state, rollout(points, none.astype(int), points, none.astype(bool)))


@pytest.mark.parametrize(
    ("points", "num_cells"),
    [([[0.0, 5.0], [0.1, 6.0]], 1), ([[0.0, 5.0], [1.0, 5.0]], 2), ([[0.0, 5.0], [0.0, 15.0]], 2)],
)
def test_cells_of_arrays(points, num_cells):
    """Each entry counts in its own standard deviations."""
    visits = np.asarray(seen(points).visits)
    assert visits.sum() == 2
    assert (visits > 0).sum() == num_cells


def test_widths_are_those_of_the_first_observations():
    state = seen([[0.0, 5.0]])
    after = novelty.follow(state, rollout([[[1e6, 1e6]]], [[0]], [[[1e6, 1e6]]], [[False]]))
    np.testing.assert_array_equal(after.spread.variance, state.spread.variance)


def test_a_few_observations_seldom_share_a_cell():
    points = [[x, y] for x in range(-10, 10) for y in range(-100, 100, 10)]
    assert (np.asarray(seen(points).visits) > 0).sum() >= 0.97 * len(points)


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


def test_none_for_the_textbook_algorithm():
    algorithm = lexrl.LDQN(explore_novelty=False)
    assert algorithm.init(SPEC, jax.random.key(0)).novelty is None


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


LENGTH = 12


def lock():
    """A chain in which one of four actions leads on, and the others back to the first state; its end is the goal."""
    right = np.random.default_rng(0).integers(4, size=LENGTH)
    end = LENGTH
    transitions, rewards = np.zeros((LENGTH + 1, 4, LENGTH + 1)), np.zeros((2, LENGTH + 1, 4))
    transitions[:, :, 0] = 1.0
    for state, action in enumerate(right):
        transitions[state, action] = np.arange(LENGTH + 1) == state + 1
    rewards[1, LENGTH - 1, right[-1]] = 1.0
    momdp = lexrl.MOMDP.from_arrays(transitions, rewards, 0.99, terminal=np.array([end]), signals=("cost", "goal"))
    return lexrl.FiniteEnv(momdp, max_episode_steps=50)


@pytest.mark.parametrize("explore_novelty", [True, False])
def test_a_goal_that_random_moves_never_reach(explore_novelty):
    algorithm = lexrl.LDQN(hidden_sizes=(32,), explore_novelty=explore_novelty)
    result = lexrl.train(algorithm, lock(), "min cost > max goal", seeds=3, total_timesteps=30_000, verify_episodes=0)
    found = result.evaluate(1).returns[:, 0, 1]
    np.testing.assert_array_equal(found, np.ones(3) if explore_novelty else np.zeros(3))
