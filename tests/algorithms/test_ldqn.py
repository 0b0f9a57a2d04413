"""Values that no rewards could sum up to."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.types import Discrete, Spec, Transition

SPEC = Spec(Discrete(1), Discrete(3), ("a", "b"), 9)
COSTS = [[0.0, 1.0], [-1.0, 1.0], [0.0, 1.0], [0.0, 1.0]]
"""Rewards that are costs for a."""


def learned(first, rewards, gamma=0.9, **settings):
    """A table of one state in which all actions have this value for a, after 20 rollouts with rewards `[N, M]`."""
    algorithm = lexrl.LDQN(
        num_envs=4, num_steps=1, buffer_size=1024, learning_starts=4, gradient_steps=5, learning_rate=0.05, polyak=1.0,
        epsilon=1.0, hidden_sizes=(), use_bias=False, return_scale=1.0, gamma=gamma, guard=None, **settings,
    )  # fmt: skip
    state = algorithm.init(SPEC, jax.random.key(0))
    table = jnp.broadcast_to(jnp.array([first] * 3 + [0.0] * 3), (2, 1, 6))
    net = eqx.tree_at(lambda net: net.weights, state.agent.net, (table,))
    state = state._replace(agent=state.agent._replace(net=net, target=net))
    one = jnp.ones((1, 4))
    actions = jnp.array([[0, 1, 2, 2]])
    rollout = Transition(one.astype(int) * 0, actions, jnp.asarray(rewards)[None], one, one.astype(int) * 0, one == 0)
    for key in jax.random.split(jax.random.key(1), 20):
        state, _ = eqx.filter_jit(algorithm.update)(state, rollout, key)
    return algorithm, state


def test_what_costs_has_no_value_above_0():
    """Nothing is ever earned for a. Without a discount an estimate above 0 would stay there for ever."""
    algorithm, state = learned(0.5, COSTS, gamma=1.0)
    assert float(algorithm.values(state, jnp.int32(0))[0].max()) <= 0
    np.testing.assert_array_equal(state.rewards, [[-1, 0], [0, 1]])


def test_the_textbook_algorithm_takes_values_as_they_are():
    algorithm, state = learned(0.5, COSTS, gamma=1.0, evidence=None)
    assert float(algorithm.values(state, jnp.int32(0))[0].max()) > 0.4


@pytest.mark.parametrize(("gamma", "expected"), [(0.9, [10, 0]), (1.0, [50, 0])])
def test_bounds(gamma, expected):
    """Rewards from -1 to 1 sum up to at most 1 / (1 - gamma), and those that are all 0 to 0."""
    algorithm = lexrl.LDQN(gamma=gamma)
    state = algorithm.init(SPEC, jax.random.key(0))._replace(rewards=jnp.array([[-1.0, 0.0], [1.0, 0.0]]))
    np.testing.assert_allclose(algorithm._possible(state, jnp.array([50.0, 50.0])), expected, rtol=1e-6)
    np.testing.assert_allclose(algorithm._possible(state, jnp.array([-50.0, -50.0])), -np.array(expected), rtol=1e-6)
