"""Environments that measure: who plays where, and what the guard is told."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.algorithms import measuring
from lexrl.guard import Guard
from lexrl.tolerance import Absolute
from lexrl.types import Discrete, Spec, Transition

GUARD = Guard(3.0, margin=0.01, num_episodes=2.0, interval=1.0, growth_ends=1e9)
GAMMA = jnp.array([0.5, 1.0])


@pytest.mark.parametrize(
    ("num_envs", "m", "expected"), [(16, 2, 8), (16, 3, 6), (16, 4, 8), (8, 4, 4), (6, 4, 0), (1, 2, 0), (16, 1, 0)]
)
def test_half_of_the_environments(num_envs, m, expected):
    assert measuring.num_measuring(num_envs, m) == expected


def test_every_policy_is_played_as_often():
    served = np.asarray(measuring.num_served(np.arange(6), 3))
    np.testing.assert_array_equal(served, [3, 2, 1, 3, 2, 1])


def rollout(reward, last):
    """Rewards `[T, N, M]`; nothing else is looked at."""
    reward, last = jnp.asarray(reward, jnp.float32), jnp.asarray(last)
    nothing = jnp.zeros(last.shape)
    return Transition(nothing, nothing, reward, nothing, nothing, last)


def follow(measured, rewards, lasts, tolerance=0.0, valid=True):
    return measuring.follow(
        GUARD, measured, rollout(rewards, lasts), GAMMA, Absolute(tolerance), valid=jnp.bool_(valid)
    )


def test_returns_over_rollouts():
    """Discounted and undiscounted, from the beginning of each episode, across the ends of rollouts."""
    measured = measuring.init(GUARD, 2, 2)
    ones = np.ones((3, 4, 2))  # four environments, two of which measure
    lasts = np.zeros((3, 4), bool)
    lasts[1, 1] = lasts[:, 3] = True
    measured = follow(measured, ones, lasts)
    np.testing.assert_allclose(measured.earned[0], [[1.75, 3], [3, 3]])
    np.testing.assert_allclose(measured.earned[1], [[1, 1], [1, 1]])
    np.testing.assert_array_equal(measured.guard.measured.num_episodes, [[1, 0], [0, 0]])  # the prefix of one objective
    np.testing.assert_allclose(measured.guard.measured.mean[0, :, 0], [1.5, 2.0])
    assert int(measured.num_episodes) == 4
    measured = follow(measured, ones, lasts)
    np.testing.assert_allclose(measured.earned[0, 0, 0], 2 - 0.5**5)


def lossy(measured, loss, rounds=3, **more):
    """Episodes of one step: the full policy is paid less of objective 1 than the first objective alone."""
    for _ in range(rounds):
        rewards = np.array([[[1.0 - loss, 5.0], [1.0, 0.0]]])
        measured = follow(measured, rewards, np.ones((1, 2), bool), **more)
    return measured


def test_a_loss_halves_the_scale():
    np.testing.assert_array_equal(lossy(measuring.init(GUARD, 2, 2), 0.5).guard.scale, [0.5, 0.0])


def test_a_loss_within_the_tolerance_does_not():
    np.testing.assert_array_equal(lossy(measuring.init(GUARD, 2, 2), 0.5, tolerance=0.6).guard.scale, [1.0, 0.0])


def test_nothing_counts_before_learning():
    measured = lossy(measuring.init(GUARD, 2, 2), 0.5, valid=False)
    np.testing.assert_array_equal(measured.guard.scale, [1.0, 0.0])
    assert (np.asarray(measured.guard.measured.num_episodes) == 0).all()


SPEC = Spec(Discrete(1), Discrete(3), ("a", "b"), 9)


def planted():
    """A table of one state in which action 0 is best for a, 1 ties with it but for a hair, and 2 is best for b."""
    algorithm = lexrl.LDQN(num_envs=8, num_steps=4, hidden_sizes=(), use_bias=False, epsilon=0.6, return_scale=1.0)
    state = algorithm.init(SPEC, jax.random.key(0))
    values = jnp.broadcast_to(jnp.array([[1.0, 0.999, 0.0, 0.0, 1.0, 2.0]]), (2, 1, 6))
    net = lexrl.networks.eqx.tree_at(lambda net: net.weights, state.agent.net, (values,))
    scale = state.agent.scale._replace(highest=jnp.ones(2))
    return algorithm, state._replace(agent=state.agent._replace(net=net, scale=scale))


def test_who_plays_where():
    """Of eight environments four measure: the full policy in the first and third, objective 1 alone in the others. Two
    of the rest explore, and the last two look for novelty, of which nothing is known yet."""
    algorithm, state = planted()
    keys = jax.random.split(jax.random.key(1), 400)
    act = jax.jit(
        jax.vmap(jax.vmap(lambda env, key: algorithm.act_in(state, env, jnp.int32(0), key), (None, 0)), (0, None))
    )
    played = np.asarray(act(jnp.arange(8), keys))
    for env, action in enumerate((1, 0, 1, 0)):
        assert (played[env] == action).all()
    shares = np.stack([(played[4:] == action).mean(axis=1) for action in range(3)], axis=1)
    # 0.4 the full policy; 0.3 any action; 0.3 any of the two that tie for a.
    expected = [[0.25, 0.65, 0.1]] * 2 + [[1 / 3, 1 / 3, 1 / 3]] * 2
    np.testing.assert_allclose(shares, expected, atol=0.09)


def test_prefixes():
    algorithm, state = planted()
    full, first = algorithm.prefix(state, 2), algorithm.prefix(state, 1)
    np.testing.assert_array_equal(algorithm.probabilities(full, jnp.int32(0), greedy=True), [0, 1, 0])
    np.testing.assert_array_equal(algorithm.probabilities(first, jnp.int32(0), greedy=True), [1, 0, 0])


def test_a_lower_scale_gives_less_away():
    algorithm, state = planted()
    guard = state.measured.guard._replace(scale=jnp.array([0.01, 0.0]))
    strict = state._replace(measured=state.measured._replace(guard=guard))
    np.testing.assert_array_equal(algorithm.probabilities(strict, jnp.int32(0), greedy=True), [1, 0, 0])


def test_members_that_disagree_decide_less():
    """Both think that action 0 is best for a on average; but each has another opinion of by how much."""
    algorithm, state = planted()
    tables = jnp.array([[[1.0, 0.6, 0.0, 0.0, 1.0, 2.0]], [[1.0, 1.0, 0.0, 0.0, 1.0, 2.0]]])
    net = lexrl.networks.eqx.tree_at(lambda net: net.weights, state.agent.net, (tables,))
    unsure = state._replace(agent=state.agent._replace(net=net))
    np.testing.assert_array_equal(algorithm.probabilities(unsure, jnp.int32(0), greedy=True), [0, 1, 0])
    agreed = lexrl.networks.eqx.tree_at(lambda net: net.weights, net, (jnp.broadcast_to(tables.mean(0), tables.shape),))
    sure = state._replace(agent=state.agent._replace(net=agreed))
    np.testing.assert_array_equal(algorithm.probabilities(sure, jnp.int32(0), greedy=True), [1, 0, 0])
