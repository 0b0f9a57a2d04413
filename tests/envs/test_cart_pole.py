"""CartPole against Gymnasium's CartPole-v1, from the same states."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexrl.envs.cart_pole import CartPole
from lexrl.errors import InputError
from lexrl.types import Box, Discrete, EnvSpec

KEY = jax.random.key(0)
LEAN = 12 * np.pi / 180


@pytest.fixture(scope="module")
def theirs():
    env = gymnasium.make("CartPole-v1").unwrapped
    env.reset(seed=0)

    def step(body, action):
        env.state, env.steps_beyond_terminated = np.asarray(body, float), None
        obs, reward, ended, *_ = env.step(action)
        return np.array(env.state), obs, reward, ended

    return step


@pytest.fixture(scope="module")
def ours():
    step = jax.jit(CartPole().step)

    def one(body, action):
        return step(jnp.asarray(body, jnp.float32), jnp.int32(action), KEY)

    return one


def test_spec():
    assert CartPole().spec == EnvSpec(Box((4,)), Discrete(2), ("reward",), 500)
    assert gymnasium.spec("CartPole-v1").max_episode_steps == 500
    assert CartPole(max_episode_steps=7).spec.max_episode_steps == 7
    with pytest.raises(InputError, match="max_episode_steps is 0; it must be 1 or more"):
        CartPole(max_episode_steps=0)


def test_first_states_are_theirs():
    bodies, seen = jax.vmap(CartPole().reset)(jax.random.split(KEY, 4000))
    np.testing.assert_array_equal(bodies, seen)
    assert np.abs(bodies).max() <= 0.05
    np.testing.assert_allclose(np.mean(bodies, axis=0), 0, atol=0.002)
    np.testing.assert_allclose(np.std(bodies, axis=0), 0.05 / np.sqrt(3), rtol=0.05)


def test_single_steps(ours, theirs):
    """From anywhere, with both pushes."""
    generator = np.random.default_rng(0)
    ends = 0
    for body in generator.uniform(-1, 1, (300, 4)) * [3.0, 3.0, 0.3, 3.0]:
        body = body.astype(np.float32)
        for action in (0, 1):
            mine, (state, obs, reward, ended) = ours(body, action), theirs(body, action)
            np.testing.assert_allclose(mine.state, state, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(mine.obs, obs, rtol=1e-5, atol=1e-5)
            assert mine.signals.tolist() == [reward] == [1.0]
            assert float(mine.discount) == (0.0 if ended else 1.0)
            ends += ended
    assert 100 < ends < 500


def test_whole_episodes(ours, theirs):
    """Step by step until the task ends, at the same time."""
    generator = np.random.default_rng(1)
    for _ in range(20):
        body = mine = generator.uniform(-0.05, 0.05, 4).astype(np.float32)
        for _ in range(500):
            action = int(generator.integers(2))
            answer, (body, _, _, ended) = ours(mine, action), theirs(body, action)
            mine = answer.state
            np.testing.assert_allclose(mine, body, rtol=1e-3, atol=1e-4)
            assert (float(answer.discount) == 0) == ended
            if ended:
                break
        assert ended


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize(
    ("body", "ends"),
    [
        ((2.39, 0.0, 0.0, 0.0), False),
        ((2.41, 0.0, 0.0, 0.0), True),
        ((2.39, 1.0, 0.0, 0.0), True),  # it is the new state that counts
        ((2.41, -1.0, 0.0, 0.0), False),
        ((0.0, 0.0, LEAN - 1e-3, 0.0), False),
        ((0.0, 0.0, LEAN + 1e-3, 0.0), True),
        ((0.0, 0.0, LEAN - 1e-3, 0.1), True),
        ((0.0, 9.0, 0.0, 9.0), False),
    ],
)
def test_where_the_task_ends(ours, theirs, body, ends, side):
    body = side * np.array(body)
    for action in (0, 1):
        assert float(ours(body, action).discount) == (0.0 if ends else 1.0)
        assert theirs(body, action)[3] == ends
