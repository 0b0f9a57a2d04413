"""Projected gradients: which objectives move the policy, which are guarded, and what the guarded ones add."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.algorithms import projection
from lexrl.algorithms.actor_critic import Batch
from lexrl.types import Discrete, Spec

TABLE = lexrl.Networks(hidden_sizes=(), use_bias=False)
CLOSE = 5e-6
"""Weights are found to about eight roundings of float32."""
ALGORITHM = lexrl.Projection(num_envs=2, num_steps=4, num_minibatches=1, networks=TABLE)


def course_in(stage, at_limit=(False, False, False)):
    begun = ALGORITHM.init(Spec(Discrete(1), Discrete(3), ("one", "two", "three"), 9), jax.random.key(0)).course
    return begun._replace(stages=begun.stages._replace(stage=jnp.int32(stage), at_limit=jnp.array(at_limit)))


@pytest.mark.parametrize(
    ("stage", "violation", "expected"),
    [
        (0, (0.0, 0.0, 0.0), [1.0, 0.5, 0.25]),
        (1, (0.0, 0.0, 0.0), [0.0, 1.0, 0.5]),
        (2, (-1.0, 0.0, 0.0), [0.0, 0.0, 1.0]),
        (2, (0.0, 0.3, 0.0), [0.0, 1.0, 0.0]),
        (2, (0.1, 0.3, 0.0), [1.0, 0.0, 0.0]),
    ],
)
def test_who_moves_the_policy(stage, violation, expected):
    """The stage's objective and, less, those after it; or the first one that is violated, alone."""
    found = projection.moves(course_in(stage), jnp.float32(0.5), jnp.array(violation))
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("stage", "violation", "at_limit", "expected"),
    [
        (0, (0.0, 0.0, 0.0), (False,) * 3, [False, False, False]),
        (2, (0.0, 0.0, 0.0), (False,) * 3, [True, True, False]),
        (2, (-1.0, -0.9, 0.0), (False,) * 3, [False, True, False]),  # slack that is far from used up
        (2, (0.0, 0.2, 0.0), (False,) * 3, [True, False, False]),  # the second is violated, and moves the policy
        (2, (-0.1, -0.04, 0.0), (True, True, False), [False, True, False]),
    ],
)
def test_who_is_guarded(stage, violation, at_limit, expected):
    found = projection.is_guarded(course_in(stage, at_limit).stages, jnp.array(violation))
    assert found.tolist() == expected


class TestDirection:
    """One state, three actions, all as likely: the gradient of an objective is its advantages, less their mean."""

    ADVANTAGE = np.array([[1.0, -1.0, 0.0], [2.0, 1.0, -3.0]], np.float32).T
    """`[actions, M]`: the first action is good for both, the second bad for objective 1, the third for objective 2."""

    def direction(self, gradient, guarded):
        state = ALGORITHM.init(Spec(Discrete(1), Discrete(3), ("one", "two"), 9), jax.random.key(0))
        actor = jax.tree.map(jnp.zeros_like, state.agent.actor)
        obs, each = jnp.zeros(3, jnp.int32), jnp.asarray(self.ADVANTAGE)
        batch = Batch(
            obs=obs, action=jnp.arange(3), policy=actor(obs), log_prob=actor(obs).log_prob(jnp.arange(3)),
            value=(), advantage=each, target=each, episode_stats=(),
        )  # fmt: skip
        loss = jax.tree.map(lambda leaf: -jnp.asarray(gradient, leaf.dtype).reshape(leaf.shape), actor)
        term = ALGORITHM._term(jnp.array(guarded), actor, batch, loss)
        (table,) = jax.tree.leaves(term)
        return np.asarray(gradient) + np.asarray(table).reshape(3)

    def test_what_helps_all_is_left_alone(self):
        wanted = [1.0, -0.5, -0.5]
        np.testing.assert_allclose(self.direction(wanted, [True, True]), wanted, atol=CLOSE)

    def test_what_hurts_a_guarded_one_is_projected(self):
        """(-1, 1, 0) is against objective 1's gradient, (1, -1, 0) / 3: nothing is left of it."""
        np.testing.assert_allclose(self.direction([-1.0, 1.0, 0.0], [True, False]), [0.0, 0.0, 0.0], atol=CLOSE)
        np.testing.assert_allclose(self.direction([-1.0, 1.0, 0.6], [True, False]), [0.0, 0.0, 0.6], atol=CLOSE)

    def test_who_is_not_guarded_may_lose(self):
        np.testing.assert_allclose(self.direction([-1.0, 1.0, 0.0], [False, False]), [-1.0, 1.0, 0.0], atol=CLOSE)

    def test_two_guarded_ones(self):
        """The projection onto the cone has no negative product with either gradient, and is the nearest such one."""
        wanted, gradients = np.array([-1.0, -0.2, 1.2]), self.ADVANTAGE.T / 3
        found = self.direction(wanted, [True, True])
        assert (gradients @ found >= -CLOSE).all()
        assert (found - wanted) @ found == pytest.approx(0.0, abs=1e-5)
