"""Values that no rewards could sum up to."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl import units
from lexrl.types import Discrete, Spec, Transition

SPEC = Spec(Discrete(1), Discrete(3), ("a", "b"), 9)


def learned(values, rewards, gamma=0.9, **settings):
    """A table of one state with these values `[M, A]`, after a rollout with these rewards `[N, M]`."""
    table_of = {"hidden_sizes": (), "use_bias": False, "return_scale": 1.0, "num_envs": 4, "num_steps": 1}
    algorithm = units.resolve(lexrl.LDQN(gamma=gamma, buffer_size=1024, **table_of, **settings), 100)
    state = algorithm.init(SPEC, jax.random.key(0))
    table = jnp.broadcast_to(jnp.asarray(values, jnp.float32).reshape(1, 1, -1), (2, 1, 6))
    net = eqx.tree_at(lambda net: net.weights, state.agent.net, (table,))
    state = state._replace(agent=state.agent._replace(net=net))
    nowhere, one = jnp.zeros((1, 4), jnp.int32), jnp.ones((1, 4))
    rollout = Transition(nowhere, nowhere, jnp.asarray(rewards)[None], one, nowhere, one == 0)
    return algorithm, algorithm.update(state, rollout, jax.random.key(1))[0]


COSTS = [[0.0, 1.0], [-1.0, 1.0], [0.0, 1.0], [0.0, 1.0]]
"""Rewards that are costs for a."""


@pytest.mark.parametrize(("scale", "played"), [(1.0, [0, 0, 1]), (2.0**20, [0, 0, 1])])
def test_costs_are_not_negative(scale, played):
    """For a, no action can be worth more than 0: the first only seems so, and b chooses among all three."""
    values = scale * np.array([[0.5, 0.0, 0.0], [0.0, 1.0, 2.0]])
    algorithm, state = learned(values, scale * np.array(COSTS))
    np.testing.assert_array_equal(algorithm.probabilities(state, jnp.int32(0), greedy=True), played)


def test_what_is_possible_decides():
    algorithm, state = learned([[-0.5, -1.0, -2.0], [0.0, 1.0, 2.0]], np.array(COSTS))
    np.testing.assert_array_equal(algorithm.probabilities(state, jnp.int32(0), greedy=True), [1, 0, 0])


@pytest.mark.parametrize(("gamma", "expected"), [(0.9, [[10, 10, -10]]), (1.0, [[50, 11, -50]])])
def test_bounds(gamma, expected):
    """Rewards from -1 to 1 sum up to at most 1 / (1 - gamma)."""
    algorithm, state = learned(np.zeros((2, 3)), np.array([[-1.0, 0], [1, 0], [0, 0], [0, 0]]), gamma)
    values = algorithm._possible(state, jnp.array([[50.0, 11.0, -50.0], [3.0, 0.0, -3.0]]))
    np.testing.assert_allclose(values, [*expected, [0, 0, 0]], rtol=1e-6)


def test_the_textbook_algorithm_takes_values_as_they_are():
    algorithm, state = learned([[0.5, 0.0, 0.0], [0.0, 1.0, 2.0]], np.array(COSTS), evidence=None, guard=None)
    np.testing.assert_array_equal(algorithm.probabilities(state, jnp.int32(0), greedy=True), [1, 0, 0])
