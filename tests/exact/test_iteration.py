import numpy as np
import pytest
import quantecon
import scipy.sparse as sp
from brute_force import best_values, grid, integer_world, order_of, staircase
from hypothesis import given, settings
from hypothesis import strategies as st

import lexrl
from lexrl.envs.grid_nav import GridNav
from lexrl.errors import InputError
from lexrl.exact import bounds, evaluate, linear, solve
from lexrl.momdp import MOMDP
from lexrl.tolerance import Absolute, Relative, Rounding

SEEDS = st.integers(0, 10**6)


def agrees(world):
    solution = solve(world, order_of(world))
    truth = best_values(world)
    np.testing.assert_allclose(solution.values, truth, atol=1e-9)
    np.testing.assert_allclose(solution.returns, truth @ world.initial, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 4), st.sampled_from([0.0, 0.5, 1.0]))
def test_equals_enumeration_when_continuing(seed, objectives, ties):
    agrees(MOMDP.random(seed, 4, 3, objectives, gamma=0.9, tie_fraction=ties))


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 4), st.sampled_from([0.0, 0.5, 1.0]))
def test_equals_enumeration_when_episodic_without_discount(seed, objectives, ties):
    agrees(MOMDP.random(seed, 5, 3, objectives, gamma=1.0, tie_fraction=ties, episodic=True))


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 4), st.sampled_from([0.3, 0.9, 0.99]))
def test_equals_enumeration_where_different_ways_tie(seed, objectives, gamma):
    agrees(integer_world(seed, objectives, gamma=gamma))


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 4))
def test_equals_enumeration_on_stairs_where_sums_tie(seed, objectives):
    agrees(staircase(seed, objectives))


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_each_objective_may_have_its_own_discount(seed):
    agrees(MOMDP.random(seed, 4, 3, 3, gamma=(0.5, 0.95, 0.0), tie_fraction=0.7))
    agrees(MOMDP.random(seed, 5, 3, 3, gamma=(1.0, 0.9, 1.0), tie_fraction=0.7, episodic=True))


def test_ties_that_rounding_tears_apart_are_kept():
    # 0.1 + 0.2 and 0.3 differ in the last digit; the second objective must still get to choose.
    transitions = np.zeros((4, 2, 4))
    transitions[0, 0, 1] = transitions[0, 1, 2] = transitions[1:, :, 3] = 1.0
    rewards = np.zeros((2, 4, 2))
    rewards[0, 0], rewards[0, 1], rewards[0, 2] = [0.1, 0.0], 0.2, 0.3
    rewards[1, 0, 0] = 1.0
    solution = solve(MOMDP.from_arrays(transitions, rewards, 1.0, terminal=[3]), "max signal_1 > max signal_2")
    assert solution.q[0, 0, 0] != solution.q[0, 0, 1]
    assert solution.sets[1, 0].all()
    np.testing.assert_array_equal(solution.policy[0], [1.0, 0.0])
    assert 0 < solution.certificate.noise[0] < 1e-15
    assert solution.certificate.num_rounded.tolist() == [1, 0]
    assert solution.certificate.num_undecided.tolist() == [0, 0]
    (pair,) = solution.certificate.rounded
    assert (pair.objective, pair.state, pair.action) == ("signal_1", 0, 1)
    assert 0 < pair.gap == solution.certificate.noise[0]
    assert "differ by no more than the rounding of the input" in str(solution.certificate)


@pytest.mark.parametrize("seed", range(5))
def test_one_objective_equals_quantecon(seed):
    world = MOMDP.random(seed, 40, 4, 1, gamma=0.95)
    dense = world.transitions.toarray().reshape(40, 4, 40)
    theirs = quantecon.markov.DiscreteDP(world.rewards[0], dense, 0.95).solve(method="policy_iteration")
    np.testing.assert_allclose(solve(world).values[0], theirs.v, atol=1e-11)


@pytest.mark.parametrize("method", ["dense", "sparse", "iterative", "value"])
@pytest.mark.parametrize(
    "world", [grid(12), MOMDP.random(0, 150, 3, 2, gamma=0.9, tie_fraction=0.5)], ids=["grid", "random"]
)
def test_every_method_gives_the_same_answer(world, method):
    order = "min cost > max reward" if "cost" in world.signals else order_of(world)
    reference, other = solve(world, order), solve(world, order, method=method)
    errors = reference.certificate.errors + other.certificate.errors
    assert (np.abs(reference.values - other.values) <= errors[:, None]).all()
    np.testing.assert_array_equal(reference.sets, other.sets)


def test_values_are_refined_where_they_are_small():
    """Far from the goal a reward of 100 is worth 1e-57: what is noise beside the large values decides nothing there."""
    world = GridNav.generate(size=120).momdp(gamma=0.99)
    one, other = (solve(world, "min cost > max reward", method=method) for method in ("iterative", "sparse"))
    np.testing.assert_array_equal(one.sets, other.sets)
    np.testing.assert_allclose(one.values, other.values, rtol=1e-14, atol=0)
    assert not one.certificate.num_rounded.any()


@pytest.mark.parametrize("way", ["dense", "sparse", "iterative"])
@pytest.mark.parametrize("size", [1.0, 1e-30, 1e-200])
def test_a_bound_is_one_whatever_its_size(way, size):
    """A walk that drifts away from where there is something to bound: 1e-3 as much with every step."""
    n = 40
    chain = sp.diags_array([np.full(n - 1, 0.001), np.full(n - 1, 0.9)], offsets=[-1, 1], format="csr")
    right = size * np.eye(n)[0]
    truth = np.linalg.solve(np.eye(n) - 0.99 * chain.toarray(), right / size) * size
    bound = bounds.bound(linear.System(way, chain, 0.99), right)
    assert (bound >= truth).all()
    assert (bound[:3] <= 10 * truth[:3]).all()


def test_linear_systems_are_solved_as_their_shape_asks():
    assert linear.choose(grid(40)) == "sparse"
    assert linear.choose(MOMDP.random(0, 200, 2, 1)) == "dense"
    assert linear.choose(MOMDP.random(0, 2000, 2, 1, num_successors=5)) == "iterative"


def test_large_sparse_worlds_need_no_dense_matrix():
    world = MOMDP.random(0, 3000, 3, 2, gamma=0.95, num_successors=5, tie_fraction=0.5)
    solution = solve(world, order_of(world))
    assert (solution.certificate.errors < 1e-11).all()
    assert (solution.certificate.margins > solution.certificate.errors).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_certificate_bounds_the_error_of_a_solution_stopped_early(seed):
    world = MOMDP.random(seed, 40, 5, 2, gamma=0.9)
    truth = solve(world, order_of(world))
    early = solve(world, order_of(world), time_limit=1e-9)
    error = np.max(truth.values[0] - early.values[0])
    assert 1e-6 < error <= early.certificate.errors[0] < 100.0
    assert truth.certificate.errors[0] < 1e-14
    assert truth.certificate.holds
    assert not early.certificate.holds
    assert "Stopped after" in str(early.certificate)
    np.testing.assert_allclose(early.returns, evaluate(world, early.policy).returns, atol=1e-12)


def test_what_is_not_known_without_a_discount_is_said():
    """No bound adds up without one."""
    early = solve(staircase(1, 2), "max signal_1 > max signal_2", time_limit=1e-9)
    text = str(early.certificate)
    assert "inf" not in text
    assert "signal_1: how near values are to the truth is not known" in text
    assert "signal_1 may be below its optimum; signal_2 come from the same policy" in text


def test_progress_is_told():
    told = []
    solve(MOMDP.random(0, 10, 3, 2), "max signal_1 > max signal_2", progress=told.append)
    assert {one.objective for one in told} == {"signal_1", "signal_2"}
    assert told[-1].bound == 0
    assert np.isinf(told[0].bound)
    assert "inf" not in str(told[0])
    assert "signal_2: iteration" in str(told[-1])
    with pytest.raises(InputError, match=r"time limit is 0\.0; it must be"):
        solve(MOMDP.random(0, 10, 3, 1), time_limit=0.0)


def test_the_certificate_speaks_in_sentences():
    world = MOMDP.random(0, 10, 3, 2, tie_fraction=0.5)
    text = str(solve(world, "max signal_1 > min signal_2"))
    assert "max signal_1 > min signal_2" in text
    assert "signal_1: values are within" in text
    assert "signal_2: given the sets that signal_1 leave, values are within" in text


def one_state(*actions, gamma=0.5):
    """One state that loops; one row of rewards for each action."""
    rewards = np.array(actions, float).T[:, None, :]
    return MOMDP.from_arrays(np.ones((1, len(actions), 1)), rewards, gamma)


def test_tolerances_by_hand():
    # v_1 = 10 / (1 - 0.5) = 20, so q_1 = (20, 19, 17).
    world = one_state((10, 0), (9, 1), (7, 5))
    order = "max signal_1 > max signal_2"
    kept = {
        (Absolute(0.5),): [1, 0, 0],
        (Absolute(1.0),): [0, 1, 0],
        (Relative(0.05),): [0, 1, 0],
        (Relative(0.15),): [0, 0, 1],
        (Rounding(4.0),): [0, 1, 0],
        (Rounding(10.0),): [0, 0, 1],
    }
    for (tolerance,), expected in kept.items():
        policy = solve(world, order, tolerance=(tolerance, Absolute(0.0))).policy[0]
        np.testing.assert_array_equal(policy, expected, err_msg=str(tolerance))


def test_tolerances_written_in_the_order_come_first():
    world = one_state((10, 0), (9, 1), (7, 5))
    solution = solve(world, "max signal_1 ±5% > max signal_2", tolerance=0.0)
    np.testing.assert_array_equal(solution.sets[1, 0], [True, True, False])
    np.testing.assert_allclose(solution.values[:, 0], [20.0, 2.0])


def test_action_values_of_every_action_stay_in_the_sets_afterwards():
    # Objective 2 may use action 0 only, so its q is r_2(a) + 0.5 * 0.
    world = one_state((10, 0), (9, 1), (7, 5))
    solution = solve(world, "max signal_1 > max signal_2")
    np.testing.assert_allclose(solution.q[:, 0], [[20.0, 19.0, 17.0], [0.0, 1.0, 5.0]])


def test_bad_input_is_answered_in_a_sentence():
    world = MOMDP.random(0, 5, 2, 2)
    order = order_of(world)
    with pytest.raises(InputError, match="solve_average"):
        solve(MOMDP.random(0, 5, 2, 2, gamma=1.0), order)
    stay = np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    with pytest.raises(InputError, match="from state 0 no policy is sure to reach a terminal state"):
        solve(MOMDP.from_arrays(stay, np.zeros((1, 2, 2)), 1.0, terminal=[1]))
    with pytest.raises(InputError, match="limit, which is about the return of a whole policy"):
        solve(world, "signal_1 >= 3 > max signal_2")
    with pytest.raises(InputError, match="3 tolerances were given for 2"):
        solve(world, order, tolerance=(0.1, 0.1, 0.1))
    with pytest.raises(InputError, match="order is needed"):
        solve(world)
    with pytest.raises(InputError, match="shape"):
        evaluate(world, np.ones((4, 2)) / 2, order)
    with pytest.raises(InputError, match="sums to 2"):
        evaluate(world, np.ones((5, 2)), order)


def test_without_discount_the_best_policy_that_ends_is_found():
    """Fleeing from GridNav's goal takes longer than numbers can say; the optimum itself is harmless."""
    solution = solve(lexrl.GridNav.generate(size=12, map_seed=0).momdp(gamma=1.0), "min cost > max reward")
    assert (solution.certificate.errors < 1e-9).all()
    assert solution.returns[1] == pytest.approx(100.0)  # without discount the goal is reached for certain


def stay_or_go(stays, goes):
    """Stay for a reward, or go to the end for another one."""
    transitions = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    rewards = np.array([[[stay, go], [0.0, 0.0]] for stay, go in zip(stays, goes, strict=True)])
    return MOMDP.from_arrays(transitions, rewards, 1.0, terminal=[1])


def test_shortest_paths_where_some_policies_never_end():
    # Staying costs nothing, going costs 3; only who goes ends.
    free = solve(stay_or_go([0.0], [-3.0]))
    assert free.values[0, 0] == -3.0
    assert free.sets[1, 0].all()  # staying once more changes nothing
    assert free.policy[0, 1] > 0
    # The second objective pays for staying.
    solution = solve(stay_or_go([0.0, -1.0], [-3.0, 0.0]), "max signal_1 > max signal_2")
    np.testing.assert_array_equal(solution.policy[0], [0.0, 1.0])
    with pytest.raises(InputError, match="never ends gains 'signal_1' without limit"):
        solve(stay_or_go([0.1], [-3.0]))
    with pytest.raises(InputError, match="never ends gains 'signal_2' without limit"):
        solve(stay_or_go([0.0, 1.0], [-3.0, 0.0]), "max signal_1 > max signal_2")
