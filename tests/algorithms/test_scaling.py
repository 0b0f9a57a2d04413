"""Units of returns: powers of two, found while learning, exact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.algorithms import dqn, scaling
from lexrl.perceptrons import mlp
from lexrl.types import Box, Discrete, Spec


def test_the_unit_is_the_next_power_of_two():
    reward = jnp.array([[0.0, -3.0, 0.25, 0.0], [0.0, 1.0, -0.1, 2.0**-30]])
    scale = scaling.begin(scaling.init(None, 4), reward)
    np.testing.assert_array_equal(scale.unit, [0.0, 4.0, 0.5, 2.0**-29])
    np.testing.assert_array_equal(scale.size, [1.0, 4.0, 0.5, 2.0**-29])


def test_a_unit_stays_as_it_began():
    scale = scaling.begin(scaling.init(None, 2), jnp.array([[1.5, 0.0]]))
    np.testing.assert_array_equal(scaling.begin(scale, jnp.array([[9.0, 0.3]])).unit, [2.0, 0.5])
    fixed = scaling.init(jnp.array([3.0, 5.0]), 2)
    np.testing.assert_array_equal(scaling.begin(fixed, jnp.array([[9.0, 0.3]])).unit, [3.0, 5.0])


def test_running_means_of_targets():
    scale = scaling.init(jnp.ones(1), 1)
    scale = scaling.observe(scale, jnp.array([[1.0], [-3.0]]), jnp.int32(1))
    np.testing.assert_allclose([scale.mean_square[0], scale.lowest[0], scale.highest[0]], [5.0, -3.0, 1.0])
    scale = scaling.observe(scale, jnp.array([[2.0], [0.0]]), jnp.int32(2))
    np.testing.assert_allclose([scale.mean_square[0], scale.span[0]], [3.5, 3.0])


@pytest.mark.parametrize("hidden", [(), (7,)])
@pytest.mark.parametrize("use_bias", [True, False])
def test_values_stay_when_the_unit_doubles(hidden, use_bias):
    net = mlp(jax.random.key(0), Box((3,)), (2, 4), hidden, use_bias=use_bias, output_scale=1.0)
    net = jax.tree.map(lambda leaf: leaf + 0.3, net)  # biases and tables that are not 0
    scale = scaling.init(jnp.array([2.0, 8.0]), 2)._replace(mean_square=jnp.array([1.5, 0.9]), highest=jnp.ones(2))
    after, changed, nothing = scaling.double(scale, net, None)
    assert nothing is None
    np.testing.assert_array_equal(after.unit, [4.0, 8.0])
    np.testing.assert_array_equal(after.mean_square, jnp.array([0.375, 0.9]))
    np.testing.assert_array_equal(after.span, scale.span)
    obs = jax.random.normal(jax.random.key(1), (5, 3))
    before, now = scale.size[:, None] * net(obs), after.size[:, None] * changed(obs)
    np.testing.assert_array_equal(before, now)
    assert not np.array_equal(changed.weights[-1], net.weights[-1])


def trained(units):
    """LDQN on a process whose signals are in these units."""
    process = lexrl.MOMDP.random(2, 6, 3, 3, num_successors=3, tie_fraction=0.5, episodic=True)
    rewards = process.outcome_rewards * np.asarray(units)
    env = lexrl.FiniteEnv(
        lexrl.momdp.from_outcomes(process.transitions, rewards, 3, 0.99, terminal=process.terminal),
        max_episode_steps=32,
    )
    algorithm = lexrl.LDQN(
        num_envs=8, num_steps=4, hidden_sizes=(8,), batch_size=16, learning_starts=64, gamma=0.99, learning_rate=0.01,
        tolerance=tuple(0.01 * float(unit) for unit in units),
    )  # fmt: skip
    order = "max signal_1 > min signal_2 > max signal_3"
    return lexrl.train(algorithm, env, order, seeds=2, total_timesteps=8_000, num_log_points=2)


def test_units_change_nothing():
    """Not a bit of the policy or of the networks; with units so different that a constant anywhere would show."""
    one, other = trained((1.0, 1.0, 1.0)), trained((2.0**20, 2.0**-17, 2.0**3))
    np.testing.assert_array_equal(one.probabilities(), other.probabilities())
    for mine, theirs in zip(one.policies, other.policies, strict=True):
        jax.tree.map(np.testing.assert_array_equal, mine.state.agent.net, theirs.state.agent.net)
        np.testing.assert_array_equal(
            mine.state.agent.scale.unit * np.array([2.0**20, 2.0**-17, 2.0**3]), theirs.state.agent.scale.unit
        )
        assert (mine.state.agent.scale.unit > 1).any()  # some unit has doubled
        assert int(mine.state.measured.guard.decided) > 0  # and the guard had its say


def test_a_network_of_the_users_own_keeps_its_values_too():
    spec = Spec(Box((2,)), Discrete(3), ("a", "b"), 9)
    algorithm = lexrl.LDQN(network=own, num_members=2)
    state = dqn.init(algorithm, spec, jax.random.key(0))
    before = dqn.values(state, jnp.ones(2))
    grown = state.scale._replace(mean_square=jnp.array([2.0, 0.5]))
    scale, net, _ = scaling.double(grown, state.net, state.target)
    np.testing.assert_array_equal(scale.gain, [0.5, 1.0])
    after = dqn.values(state._replace(scale=scale._replace(unit=jnp.array([2.0, 1.0])), net=net), jnp.ones(2))
    np.testing.assert_array_equal(before, after)


class Linear(lexrl.networks.eqx.Module):
    weight: jax.Array

    def __call__(self, obs):
        return jnp.reshape(self.weight @ obs, (2, 3))


def own(key, spec):
    return Linear(jax.random.normal(key, (6, 2)))
