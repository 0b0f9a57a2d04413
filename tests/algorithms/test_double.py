"""What a Q-network moves towards, against the equations written out in NumPy: with its own choices, and as a double
learner."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.types import Discrete, Spec, Transition

STATES, ACTIONS, M, BATCH = 7, 4, 3, 16
GAMMA, TAU = (0.9, 0.8, 0.7), (0.5, 0.3, 0.0)
SPEC = Spec(Discrete(STATES), Discrete(ACTIONS), ("a", "b", "c"), 100)


def expected(chooser, valuer, rows):
    """`r_i + gamma_i V_i(s')`, state by state and objective by objective."""
    targets = np.empty((len(rows.action), M))
    for row, s in enumerate(rows.next_obs):
        allowed = list(range(ACTIONS))
        for i in range(M):
            best = max(allowed, key=lambda b: chooser[s, i, b])
            targets[row, i] = rows.reward[row, i] + GAMMA[i] * rows.discount[row] * valuer[s, i, best]
            allowed = [b for b in allowed if chooser[s, i, b] >= chooser[s, i, best] - TAU[i]]
    return targets


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_one_step_towards_the_target(double, seed):
    rng = np.random.default_rng(seed)
    learner = lexrl.LDQN(
        num_envs=BATCH,
        num_steps=1,
        batch_size=BATCH,
        gradient_steps=1,
        buffer_size=BATCH,
        learning_starts=BATCH,
        target_update_interval=100 * BATCH,
        gamma=GAMMA,
        tolerance=TAU,
        hidden_sizes=(),
        use_bias=False,
        learning_rate=0.5,
        double_q=double,
        optimizer="sgd",
        max_grad_norm=0.0,
        return_scale=10.0,
    )
    own, older = rng.uniform(-1, 1, (2, STATES, M, ACTIONS)).astype(np.float32)
    flat = (STATES, M * ACTIONS)
    state = learner.init(SPEC, jax.random.key(0))
    state = eqx.tree_at(
        lambda s: (s.net.weights[0], s.target.weights[0]), state, (own.reshape(flat) / 10, older.reshape(flat) / 10)
    )
    row = Transition(
        obs=rng.integers(STATES), action=rng.integers(ACTIONS), reward=rng.uniform(-1, 1, M), discount=1.0,
        next_obs=rng.integers(STATES), last=False,
    )  # fmt: skip
    # A buffer of one transition, many times over: whatever is drawn, it is this one.
    rollout = Transition(*(jnp.asarray(np.stack([leaf] * BATCH)[None]) for leaf in row))
    rollout = rollout._replace(reward=rollout.reward.astype(jnp.float32), discount=rollout.discount.astype(jnp.float32))
    after, _ = learner.update(state, rollout, jax.random.key(seed))

    rows = Transition(*(np.asarray(leaf)[0] for leaf in rollout))
    goal = expected(own if double else older, older, rows)[0]
    wanted = own.copy()
    # Errors are below one scale, where the loss is a plain square.
    wanted[row.obs, :, row.action] += 0.5 * (goal - own[row.obs, :, row.action])
    learned = 10 * np.asarray(after.net.weights[0]).reshape(STATES, M, ACTIONS)
    np.testing.assert_allclose(learned, wanted, atol=1e-5)
    other = expected(older if double else own, older, rows)[0]
    assert not np.allclose(goal, other, atol=1e-3)  # else the test could not tell them apart
