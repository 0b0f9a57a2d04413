"""What a Q-network moves towards, against the equations written out in NumPy: with its own choices, as a double
learner, and with several members."""

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


def expected(chooser, valuer, judge, rows):
    """`r_i + gamma_i V_i(s')`, state by state and objective by objective; `judge` says what is admissible."""
    targets = np.empty((len(rows.action), M))
    for row, s in enumerate(rows.next_obs):
        allowed = list(range(ACTIONS))
        for i in range(M):
            best = max(allowed, key=lambda b: chooser[s, i, b])
            targets[row, i] = rows.reward[row, i] + GAMMA[i] * rows.discount[row] * valuer[s, i, best]
            least = max(judge[s, i, b] for b in allowed) - TAU[i]
            allowed = [b for b in allowed if judge[s, i, b] >= least]
    return targets


def one_step(tables, older, row, key, **settings):
    """Tables `[K, S, M, A]` of the members after a gradient step on one transition, many times over: whatever is drawn,
    it is this one."""
    learner = lexrl.LDQN(
        num_members=len(tables),
        num_envs=BATCH,
        num_steps=1,
        batch_size=BATCH,
        gradient_steps=1,
        buffer_size=BATCH,
        learning_starts=BATCH,
        target_update_interval=100 * BATCH,
        polyak=1.0,
        evidence=None,
        gamma=GAMMA,
        tolerance=TAU,
        hidden_sizes=(),
        use_bias=False,
        learning_rate=0.5,
        optimizer="sgd",
        max_grad_norm=0.0,
        return_scale=10.0,
        **settings,
    )
    flat = (len(tables), STATES, M * ACTIONS)
    state = learner.init(SPEC, jax.random.key(0))
    state = eqx.tree_at(
        lambda s: (s.agent.net.weights[0], s.agent.target.weights[0]),
        state,
        (tables.reshape(flat) / 10, older.reshape(flat) / 10),
    )
    rollout = Transition(*(jnp.asarray(np.stack([leaf] * BATCH)[None]) for leaf in row))
    rollout = rollout._replace(reward=rollout.reward.astype(jnp.float32), discount=rollout.discount.astype(jnp.float32))
    after, _ = learner.update(state, rollout, jax.random.key(key))
    learned = 10 * np.asarray(after.agent.net.weights[0]).reshape(tables.shape)
    return learned, Transition(*(np.asarray(leaf)[0] for leaf in rollout))


def draw(rng, members):
    """Tables of the members and of their targets, and a transition."""
    row = Transition(
        obs=rng.integers(STATES), action=rng.integers(ACTIONS), reward=rng.uniform(-1, 1, M), discount=1.0,
        next_obs=rng.integers(STATES), last=False,
    )  # fmt: skip
    return *rng.uniform(-1, 1, (2, members, STATES, M, ACTIONS)).astype(np.float32), row


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_one_step_towards_the_target(double, seed):
    own, older, row = draw(np.random.default_rng(seed), 1)
    learned, rows = one_step(own, older, row, seed, double_q=double)
    own, older, learned = own[0], older[0], learned[0]
    goal = expected(own if double else older, older, older, rows)[0]
    np.testing.assert_allclose(learned, moved(own, goal, row), atol=1e-5)
    other = expected(older if double else own, older, older, rows)[0]
    assert not np.allclose(goal, other, atol=1e-3)  # else the test could not tell them apart


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_members_are_evaluated_by_their_neighbor(seed):
    """Each chooses by itself, the next one's target network says what that is worth, and all of them what may be
    chosen."""
    own, older, row = draw(np.random.default_rng(seed), 3)
    learned, rows = one_step(own, older, row, seed, double_q=True)
    for k in range(3):
        goal = expected(own[k], older[(k + 1) % 3], older.mean(axis=0), rows)[0]
        np.testing.assert_allclose(learned[k], moved(own[k], goal, row), atol=1e-5)
        alone = expected(own[k], older[k], older.mean(axis=0), rows)[0]
        assert not np.allclose(goal, alone, atol=1e-3)


def moved(table, goal, row):
    """A table half way towards the goal. Errors are below one scale, where the loss is a plain square."""
    after = table.copy()
    after[row.obs, :, row.action] += 0.5 * (goal - table[row.obs, :, row.action])
    return after
