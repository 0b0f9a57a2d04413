"""What fresh episodes choose from when LDQN is done."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.algorithms import candidates
from lexrl.guard import Guard
from lexrl.order import as_order
from lexrl.tolerance import Evidence
from lexrl.types import HasCandidates


@pytest.mark.parametrize(
    ("m", "factors"),
    [
        (1, []),
        (2, [[1], [0.25], [0]]),
        (3, [[1, 1], [1, 0.25], [1, 0], [0.25, 0.25], [0, 0]]),
        (4, [[1, 1, 1], [1, 1, 0.25], [1, 1, 0], [1, 0.25, 0.25], [1, 0, 0], [0.25, 0.25, 0.25], [0, 0, 0]]),
    ],
)
def test_less_and_less_is_given_away(m, factors):
    assert candidates.number(m) == len(factors)
    for index, expected in enumerate(factors):
        state = Guard().init(m)
        state = state._replace(scale=0.5 * state.scale)
        found = candidates.rescaled(state, jnp.int32(index)).scale
        np.testing.assert_array_equal(found, [*(0.5 * np.array(expected)), 0.0])
        assert candidates.describe(m, index) == {"guard_scale_factors": expected}


def test_who_has_candidates():
    assert isinstance(lexrl.LDQN(), HasCandidates)
    assert [lexrl.LDQN().num_candidates(m) for m in (1, 2, 3)] == [0, 3, 5]
    assert [lexrl.LDQN(guard=None).num_candidates(m) for m in (1, 2, 3)] == [0, 0, 0]


def test_where_nothing_is_measured_nothing_is_chosen():
    assert lexrl.LDQN(num_envs=1).num_candidates(2) == 0


def test_candidates_share_all_values():
    algorithm = lexrl.LDQN(buffer_size=64, learning_starts=0)
    state = algorithm.init(_spec_of(2), jax.random.key(0))
    other = algorithm.candidate(state, jnp.int32(2))
    np.testing.assert_array_equal(other.measured.guard.scale, [0.0, 0.0])
    assert other.agent is state.agent


def _spec_of(m):
    rewards = np.zeros((m, 1, 2))
    momdp = lexrl.MOMDP.from_arrays(np.ones((1, 2, 1)), rewards, gamma=0.9, signals=tuple("abcd"[:m]))
    env = lexrl.FiniteEnv(momdp, max_episode_steps=3)
    return as_order(" > ".join(f"max {name}" for name in momdp.signals), momdp.signals).spec(env.spec)


SETTINGS = {"evidence": Evidence(0.0, resolution=10.0), "guard": Guard(interval=1e9, growth_ends=1e9)}
"""Everything is given away, and the guard never decides."""


LDQN = lexrl.LDQN(gamma=0.9, hidden_sizes=(), use_bias=False, buffer_size=1024, learning_starts=64, **SETTINGS)


@pytest.mark.parametrize(("slack", "expected"), [("", [1, 0]), ("±20", [0, 1])])
def test_what_the_guard_missed_is_not_handed_over(slack, expected):
    """One state; the first action pays objective 1, the second one pays objective 2."""
    rewards = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    momdp = lexrl.MOMDP.from_arrays(np.ones((1, 2, 1)), rewards, gamma=0.9, signals=("a", "b"))
    env = lexrl.FiniteEnv(momdp, max_episode_steps=5)
    result = lexrl.train(LDQN, env, f"max a{slack} > max b", seeds=2, total_timesteps=4096, num_log_points=2)
    np.testing.assert_array_equal(result.probabilities(), [[expected]] * 2)
    assert [one["guard_scale_factors"] for one in result.selection] == [[1.0] if slack else [0.0]] * 2
