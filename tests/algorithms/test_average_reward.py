"""Objectives that are mean rewards per step, with numbers worked out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.algorithms import average_reward
from lexrl.types import Discrete, Spec, Transition

TABLES = lexrl.Networks(hidden_sizes=(), use_bias=False)
SPEC = Spec(Discrete(3), Discrete(2), ("a",), 9)


def test_from_rewards():
    reward = jnp.array([[[1.0], [2.0]], [[3.0], [6.0]]])  # means of the two environments: 2 and 4
    got = average_reward.from_rewards(reward)
    assert (got.num_episodes, got.total.tolist(), got.squares.tolist()) == (2, [6.0], [20.0])


def test_advantages_are_differential():
    """Values are 0 at first; the mean reward of 2 is subtracted from each reward, and nothing is discounted."""
    algorithm = lexrl.LA2CAverageReward(num_envs=1, num_steps=3, gae_lambda=1.0, networks=TABLES)
    state = algorithm.init(SPEC, jax.random.key(0))
    obs = jnp.array([[0], [1], [2]])
    rollout = Transition(
        obs=obs, action=jnp.zeros((3, 1), jnp.int32), reward=jnp.array([[[1.0]], [[5.0]], [[0.0]]]),
        discount=jnp.ones((3, 1)), next_obs=obs, last=jnp.zeros((3, 1), bool),
    )  # fmt: skip
    agent, batch = average_reward.advantages(algorithm, state.agent, rollout)
    np.testing.assert_allclose(agent.mean_reward, [2.0])
    np.testing.assert_allclose(batch.advantage[:, 0], [-1 + 3 - 2, 3 - 2, -2], atol=1e-6)


@pytest.mark.parametrize("given", ["critic", "episodes"])
def test_neither_the_critic_nor_episodes_estimate_mean_rewards(given):
    with pytest.raises((lexrl.InputError, TypeError), match="return_estimate"):  # or the type checker of the tests
        lexrl.LPPOAverageReward(return_estimate=given)
