import itertools

import numpy as np
import pytest
from brute_force import chain_of, order_of
from hypothesis import given, settings
from hypothesis import strategies as st

from lexrl.errors import InputError
from lexrl.exact import evaluate, evaluate_horizon, solve_horizon
from lexrl.momdp import MOMDP

SEEDS = st.integers(0, 10**6)


def random_policy(rng, world):
    return rng.dirichlet(np.ones(world.num_actions), world.num_states)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.booleans())
def test_values_are_the_limit_of_sums(seed, episodic):
    gamma = (1.0, 0.7) if episodic else (0.9, 0.7)
    world = MOMDP.random(seed, 6, 3, 2, gamma=gamma, episodic=episodic)
    policy = random_policy(np.random.default_rng(seed), world)
    result = evaluate(world, policy, "min signal_2 > max signal_1")
    chain, rewards = world.chain(policy)
    chain = chain.toarray()
    for row, signal, sign in ((0, 1, -1.0), (1, 0, 1.0)):
        total, power = np.zeros(world.num_states), np.eye(world.num_states)
        for _ in range(2000):
            total += power @ rewards[signal]
            power = world.gamma[signal] * power @ chain
        np.testing.assert_allclose(result.values[row], sign * total, atol=1e-9)
        np.testing.assert_allclose(result.returns[row], sign * world.initial @ total, atol=1e-9)
    np.testing.assert_allclose(np.einsum("sa,msa->ms", policy, result.q), result.values, atol=1e-9)


def test_without_an_order_signals_are_taken_as_they_stand():
    world = MOMDP.random(0, 5, 2, 3)
    policy = np.full((5, 2), 0.5)
    plain, signed = evaluate(world, policy), evaluate(world, policy, "min signal_3 > max signal_1")
    np.testing.assert_allclose(signed.returns, [-plain.returns[2], plain.returns[0]])


def test_without_discount_a_policy_must_end():
    stay_or_go = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    world = MOMDP.from_arrays(stay_or_go, np.ones((1, 2, 2)), 1.0, terminal=[1])
    np.testing.assert_allclose(evaluate(world, [[0.5, 0.5], [0.5, 0.5]]).values[0], [2.0, 0.0])
    with pytest.raises(InputError, match="never reaches a terminal state"):
        evaluate(world, [[1.0, 0.0], [1.0, 0.0]])


def test_single_precision_policies_are_welcome():
    world = MOMDP.random(0, 50, 7, 1)
    policy = random_policy(np.random.default_rng(0), world)
    np.testing.assert_allclose(
        evaluate(world, policy.astype(np.float32)).values, evaluate(world, policy).values, rtol=1e-4
    )


def backward(world, horizon, tau):
    """Backward induction in plain Python: sets as sets."""
    ahead = np.zeros((world.num_objectives, world.num_states))
    dense = world.transitions.toarray().reshape(world.num_states, world.num_actions, world.num_states)
    kept = []
    for _ in range(horizon):
        now, choice = np.zeros_like(ahead), []
        for s in range(world.num_states):
            left = set(range(world.num_actions))
            for i in range(world.num_objectives):
                going_on = dense[s] @ np.where(world.terminal, 0.0, ahead[i])
                q = np.where(world.terminal[s], 0.0, world.rewards[i, s] + world.gamma[i] * going_on)
                now[i, s] = max(q[a] for a in left)
                left = {a for a in left if q[a] >= now[i, s] - tau[i] - 1e-12}
            choice.append(left)
        ahead = now
        kept.append(choice)
    return ahead, kept[::-1]


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 6), st.booleans(), st.sampled_from([(0.0, 0.0, 0.0), (0.3, 0.1, 0.0)]))
def test_finite_horizon_equals_plain_recursion(seed, horizon, episodic, tau):
    world = MOMDP.random(seed, 5, 3, 3, gamma=(1.0, 0.9, 1.0), tie_fraction=0.5, episodic=episodic)
    solution = solve_horizon(world, order_of(world), horizon, tolerance=tau)
    values, kept = backward(world, horizon, tau)
    np.testing.assert_allclose(solution.values[0], values, atol=1e-12)
    for t, s in itertools.product(range(horizon), range(world.num_states)):
        assert set(np.flatnonzero(solution.sets[t, -1, s])) == kept[t][s]


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_the_finite_horizon_policy_is_worth_what_the_solution_says(seed):
    world = MOMDP.random(seed, 5, 3, 3, gamma=1.0, tie_fraction=0.7)
    solution = solve_horizon(world, order_of(world), 4)
    result = evaluate_horizon(world, solution.policy)
    np.testing.assert_allclose(result.values, solution.values, atol=1e-12)
    np.testing.assert_allclose(solution.returns, solution.values[0] @ world.initial, atol=1e-12)


def test_a_time_dependent_policy_by_matrix_powers():
    world = MOMDP.random(1, 4, 2, 1, gamma=0.8)
    first, second = np.array([0, 1, 0, 1]), np.array([1, 1, 0, 0])
    chain = chain_of(world, first[None])[0]
    states = np.arange(4)
    expected = world.rewards[0][states, first] + 0.8 * chain @ world.rewards[0][states, second]
    result = evaluate_horizon(world, np.eye(2)[np.stack([first, second])])
    np.testing.assert_allclose(result.values[0, 0], expected)


def test_bad_horizons():
    world = MOMDP.random(1, 4, 2, 1)
    with pytest.raises(InputError, match="at least 1 step"):
        solve_horizon(world, None, 0)
    with pytest.raises(InputError, match="shape"):
        evaluate_horizon(world, np.ones((3, 4, 3)) / 3)
    with pytest.raises(InputError, match="no steps"):
        evaluate_horizon(world, np.ones((0, 4, 2)))


def test_long_horizons_cost_no_digits():
    """Thirds do not sum to 1 as doubles, which a million steps would add up."""
    gamma = 1 - 2.0**-20
    moves = np.full((3, 3, 3), 1 / 3)
    world = MOMDP.from_arrays(moves, np.ones((1, 3, 3)), gamma)
    assert evaluate(world, np.full((3, 3), 1 / 3)).returns[0] == pytest.approx(2.0**20, rel=1e-15)
