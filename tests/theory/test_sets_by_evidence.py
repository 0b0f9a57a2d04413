"""How often the exact admissible sets are inside the learned ones, and that they are equal in the end.

Two steps with noise on every reward. Objective a is indifferent between two of three actions in every state, and what
the first step loses it for is only paid in the second, so that errors of successors matter; b decides between the two.
"""

import equinox as eqx
import jax
import numpy as np
import pytest

import lexrl
from lexrl import exact

SEEDS = 200


def process():
    """State 0 leads to 1, 2, 2 (by action); 1 and 2 end the task."""
    rows = np.zeros((4, 3, 4))
    rows[0, [0, 1, 2], [1, 2, 2]] = 1
    rows[1:, :, 3] = 1
    a = np.zeros((4, 3))
    a[1], a[2] = [1.0, 1.0, 0.5], [0.5, 1.0, 1.0]
    a[0] = [0.0, 0.0, -0.5]
    b = np.zeros((4, 3))
    b[0], b[1], b[2] = [0.0, 0.4, 2.0], [0.4, 0.0, 2.0], [2.0, 0.4, 0.0]
    return lexrl.MOMDP.from_arrays(rows, [a, b], 0.9, terminal=[3], signals=("a", "b"))


def learned_sets(algorithm, total_timesteps):
    momdp = process()
    env = lexrl.FiniteEnv(momdp, max_episode_steps=2)
    env = eqx.tree_at(lambda env: env.reward_noise, env, np.full(2, 0.5))
    result = lexrl.train(
        algorithm, env, "max a > max b", seeds=SEEDS, total_timesteps=total_timesteps, num_log_points=2
    )
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *[policy.state for policy in result.policies])
    return np.asarray(jax.vmap(result.policies[0].algorithm.sets)(states))[:, :3]


@pytest.mark.parametrize("rule", [lexrl.QLearning, lexrl.DoubleQLearning])
def test_coverage(rule):
    algorithm = rule(gamma=0.9, guard=None)
    solved = exact.solve(process(), "max a > max b").sets[1, :3]
    assert solved.sum(axis=-1).tolist() == [2, 2, 2]
    early, late = (learned_sets(algorithm, steps) for steps in (600, 60_000))
    for name, sets in (("early", early), ("late", late)):
        inside = (sets[:, :, 1] | ~solved).all(axis=-1)
        assert inside.mean() >= 0.99, (name, inside.mean())
    equal = (late[:, :, 1] == solved).all(axis=(1, 2))
    assert equal.mean() >= 0.97, equal.mean()
    assert (early[:, :, 1] == solved).all(axis=(1, 2)).mean() < 0.97, "600 steps cannot tell everything"
