import numpy as np
import pytest
from brute_force import (
    all_policies,
    best_values,
    chain_of,
    grid,
    integer_world,
    lexicographic_best,
    order_of,
    staircase,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from lexrl.errors import InputError
from lexrl.exact import average_returns, certify_program, evaluate, solve, solve_average, solve_slack
from lexrl.momdp import MOMDP

SEEDS = st.integers(0, 10**6)


def agrees(world):
    program = solve_slack(world, order_of(world))
    truth = lexicographic_truth(world)
    np.testing.assert_allclose(program.returns, truth, atol=1e-8)
    np.testing.assert_allclose(program.best, truth, atol=1e-8)
    assert (np.abs(program.gaps) < 1e-9).all()


def lexicographic_truth(world):
    return best_values(world) @ world.initial


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(1, 4), st.sampled_from([0.0, 0.5, 1.0]))
def test_without_slack_equals_enumeration(seed, objectives, ties):
    agrees(MOMDP.random(seed, 4, 3, objectives, gamma=0.9, tie_fraction=ties))


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(1, 4))
def test_without_slack_equals_enumeration_where_ways_tie(seed, objectives):
    agrees(integer_world(seed, objectives))
    agrees(staircase(seed, objectives))


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_without_slack_equals_enumeration_when_starts_are_few(seed):
    # Many states are never visited: degenerate programs.
    world = integer_world(seed, 3)
    start = MOMDP.from_arrays(world.transitions, world.rewards, 0.9, initial=[1.0, 0.0, 0.0, 0.0])
    agrees(start)


def test_without_slack_nothing_moves_at_the_tenth_objective():
    world = MOMDP.random(2, 60, 4, 10, gamma=0.95, tie_fraction=0.8)
    order = order_of(world)
    np.testing.assert_allclose(solve_slack(world, order).returns, solve(world, order).returns, rtol=0, atol=1e-11)


def test_where_nothing_comes_the_policy_is_lexicographic_too():
    world = grid(8)
    order = "min cost > max reward"
    program, solution = solve_slack(world, order), solve(world, order)
    assert (program.occupancy.sum(axis=1) == 0).any()
    assert solution.sets[-1][program.policy > 0].all()


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(2, 3), st.booleans())
def test_slack_is_kept_and_used(seed, objectives, episodic):
    world = MOMDP.random(seed, 6, 3, objectives, gamma=1.0 if episodic else 0.9, episodic=episodic)
    program = solve_slack(world, order_of(world), slack=0.1)
    assert (program.returns >= program.best - program.slack - 1e-8).all()
    assert (np.abs(program.gaps) < 1e-7).all()
    np.testing.assert_allclose(program.returns, evaluate(world, program.policy).returns)
    np.testing.assert_allclose(program.returns, np.einsum("msa,sa->m", world.rewards, program.occupancy), atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_what_slack_buys_is_concave_and_its_slope_is_the_price(seed):
    world = MOMDP.random(seed, 8, 3, 2, gamma=0.9)
    slacks = np.linspace(0.01, 2.0, 12)
    programs = [solve_slack(world, order_of(world), slack=(e, 0.0)) for e in slacks]
    bought = np.array([program.best[1] for program in programs])
    prices = np.array([program.shadow_prices[1, 0] for program in programs])
    assert (np.diff(bought) >= -1e-9).all()
    assert (np.diff(bought, 2) <= 1e-9).all()
    # A concave curve lies below its tangents, everywhere.
    tangents = bought[:, None] + prices[:, None] * (slacks[None] - slacks[:, None])
    assert (tangents >= bought[None] - 1e-8).all()
    step = 1e-6
    ahead = solve_slack(world, order_of(world), slack=(slacks[5] + step, 0.0)).best[1]
    behind = solve_slack(world, order_of(world), slack=(slacks[5] - step, 0.0)).best[1]
    assert (ahead - bought[5]) / step - 1e-3 <= prices[5] <= (bought[5] - behind) / step + 1e-3


def test_a_third_objective_cannot_undo_the_second_within_slack():
    # Level 2 has slack to use and no slack to give: level 3 must keep both J_2 and the slack row it was bought with.
    for seed in range(10):
        world = MOMDP.random(seed, 8, 3, 3, gamma=0.9, tie_fraction=0.5)
        program = solve_slack(world, "max signal_1 ±0.2 > max signal_2 > max signal_3")
        assert abs(program.returns[1] - program.best[1]) < 1e-8
        assert program.returns[0] >= program.best[0] - 0.2 - 1e-8
        two = solve_slack(world, "max signal_1 ±0.2 > max signal_2")
        assert abs(two.best[1] - program.best[1]) < 1e-8


def test_relative_slack_by_hand():
    # One state, gamma 0.5: J_1 = 20 for action 0 and 10 for action 1; 25% of 20 is a mixture of half and half.
    world = MOMDP.from_arrays(np.ones((1, 2, 1)), np.array([[[10.0, 5.0]], [[0.0, 1.0]]]), 0.5)
    program = solve_slack(world, "max signal_1 ±25% > max signal_2")
    np.testing.assert_allclose(program.policy, [[0.5, 0.5]], atol=1e-9)
    np.testing.assert_allclose(program.returns, [15.0, 1.0], atol=1e-9)
    np.testing.assert_allclose(program.shadow_prices, [[0.0, 0.0], [0.2, 0.0]], atol=1e-9)
    np.testing.assert_allclose(program.slack, [5.0, 0.0])


def test_the_size_of_rewards_does_not_matter():
    world = MOMDP.random(0, 10, 3, 3, tie_fraction=0.5)
    scaled = MOMDP.from_arrays(world.transitions, world.rewards * np.array([1e6, 1e-6, 1.0])[:, None, None], 0.9)
    one = solve_slack(world, order_of(world), slack=("5%", "5%", "0"))
    other = solve_slack(scaled, order_of(world), slack=("5%", "5%", "0"))
    np.testing.assert_allclose(other.returns, one.returns * [1e6, 1e-6, 1.0], rtol=1e-7)


def all_gains(world):
    """Averages of every deterministic policy, `[n, M]`, by a long power of its chain made aperiodic."""
    policies = all_policies(world)
    chains = 0.5 * chain_of(world, policies) + 0.5 * np.eye(world.num_states)
    stationary = np.linalg.matrix_power(chains, 2**14)[:, 0]
    rewards = world.rewards[:, np.arange(world.num_states), policies]
    return np.einsum("ns,mns->nm", stationary, rewards)


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(1, 4), st.sampled_from([0.0, 0.5, 1.0]))
def test_limit_averages_equal_enumeration(seed, objectives, ties):
    world = MOMDP.random(seed, 4, 3, objectives, num_successors=4, tie_fraction=ties)
    program = solve_average(world, order_of(world))
    np.testing.assert_allclose(program.returns, lexicographic_best(all_gains(world)), atol=1e-9)
    assert (np.abs(program.gaps) < 1e-9).all()


@pytest.mark.parametrize("seed", range(5))
def test_limit_averages_with_slack(seed):
    world = MOMDP.random(seed, 6, 3, 2, num_successors=6)
    program = solve_average(world, order_of(world), slack=(0.05, 0.0))
    assert program.returns[0] >= program.best[0] - 0.05 - 1e-9
    assert program.best[1] >= solve_average(world, order_of(world)).best[1] - 1e-9
    np.testing.assert_allclose(program.returns, average_returns(world, program.policy))
    assert abs(program.occupancy.sum() - 1) < 1e-9


def test_limit_averages_are_the_end_of_discounting():
    world = MOMDP.random(0, 6, 3, 1, num_successors=6, gamma=0.999999)
    np.testing.assert_allclose(solve_average(world).best, solve(world).returns * 1e-6, atol=1e-4)


def test_limit_averages_where_states_are_left_for_ever():
    # State 0 leads to the loop of states 1 and 2 and never comes back.
    transitions = np.zeros((3, 2, 3))
    transitions[0, :, 1] = transitions[1, :, 2] = transitions[2, :, 1] = 1.0
    rewards = np.zeros((2, 3, 2))
    rewards[0, 0, 1] = 7.0
    rewards[0, 1] = [1.0, 1.0]
    rewards[1, 1] = [0.0, 4.0]
    program = solve_average(MOMDP.from_arrays(transitions, rewards, 0.9), "max signal_1 > max signal_2")
    np.testing.assert_allclose(program.returns, [0.5, 2.0])
    np.testing.assert_array_equal(program.policy[1], [0.0, 1.0])


def test_bad_input_is_answered_in_a_sentence():
    with pytest.raises(InputError, match="one gamma"):
        solve_slack(MOMDP.random(0, 5, 2, 2, gamma=(0.9, 0.8)), "max signal_1 > max signal_2")
    with pytest.raises(InputError, match="solve_average"):
        solve_slack(MOMDP.random(0, 5, 2, 1, gamma=1.0))
    with pytest.raises(InputError, match="terminal"):
        solve_average(MOMDP.random(0, 5, 2, 1, episodic=True))
    with pytest.raises(InputError, match="3 tolerances"):
        solve_slack(MOMDP.random(0, 5, 2, 1), slack=(1.0, 2.0, 3.0))


def test_limit_averages_of_chains_that_hardly_mix():
    """Two states that are left once in 2^40 steps: the frequencies are what they are, to the last digit."""
    rare, moves = 2.0**-40, np.zeros((2, 1, 2))
    moves[0, 0], moves[1, 0] = [1 - rare, rare], [3 * rare, 1 - 3 * rare]
    world = MOMDP.from_arrays(moves, [[[1.0], [5.0]]], 0.9)
    assert average_returns(world, np.ones((2, 1)))[0] == pytest.approx(2.0, rel=1e-15)
    # And a state that is left as rarely, for either of two where one stays.
    moves = np.zeros((3, 1, 3))
    moves[0, 0], moves[1, 0, 1], moves[2, 0, 2] = [1 - 4 * rare, rare, 3 * rare], 1.0, 1.0
    world = MOMDP.from_arrays(moves, [[[9.0], [1.0], [5.0]]], 0.9, initial=[1.0, 0.0, 0.0])
    assert average_returns(world, np.ones((3, 1)))[0] == pytest.approx(4.0, rel=1e-15)


def test_limit_averages_where_rewards_depend_on_the_successor():
    """What is expected is the same for both actions, though sums of doubles say otherwise."""
    row = np.array([0.1, 0.2, 0.7])
    moves = np.stack([np.tile(row, (3, 1)), np.tile(row[::-1], (3, 1))], axis=1)
    rewards = np.ones((3, 2, 3))
    second = np.zeros((3, 2, 3))
    second[:, 1] = 1.0
    world = MOMDP.from_arrays(moves, np.stack([rewards, second]), 0.9)
    assert world.rewards[0, 0, 0] != world.rewards[0, 0, 1]
    np.testing.assert_allclose(solve_average(world, order_of(world)).best, [1.0, 1.0], rtol=1e-15)


def test_limit_averages_of_many_states():
    """Too many for rational numbers: a penalty that nobody meets changes nothing, and what cannot be told is said."""
    rng = np.random.default_rng(0)
    moves = np.zeros((21, 2, 21))
    moves[:20, :, :20] = rng.dirichlet(np.ones(20), size=(20, 2))
    moves[20, :, 20] = 1.0
    rewards, first = rng.integers(-2, 3, (2, 21, 2)).astype(float), np.eye(21)[0]
    found = []
    for penalty in (0.0, -1e9):
        rewards[:, 20] = penalty
        found.append(
            solve_average(MOMDP.from_arrays(moves, rewards, 0.9, initial=first), "max signal_1 > max signal_2")
        )
        assert found[-1].faults == ()
    np.testing.assert_array_equal(found[0].best, found[1].best)
    stay = np.tile(np.eye(15)[:, None], (1, 2, 1))
    paid = np.stack([np.tile([1.0, 1 + 1e-10], (15, 1)), np.tile([1.0, 0.0], (15, 1))])
    (fault,) = solve_average(MOMDP.from_arrays(stay, paid, 0.9), "max signal_1 > max signal_2").faults
    assert fault.startswith("signal_1: 15 actions cost so little")


def test_ties_have_no_price():
    """Two policies return 128, one of them 1e-30 more by computation; with a price for that, the first objective would
    be held to its threshold, and the third could not have what it can."""
    moves = [[[1.0, 0.0], [0.33003136, 0.66996864]], [[0.64404325, 0.35595675], [0.04562619, 0.95437381]]]
    first, second = [[-0.125, 0.125], [-0.125, 0.125]], [[64.0, 64.0], [64.0, 0.0]]
    world = MOMDP.from_arrays(moves, [first, second, first], 0.5)
    found = solve_slack(world, "signal_1 >= 0 ±0.0625 > max signal_2 > max signal_3")
    truth = evaluate(world, [[0, 1], [1, 0]]).returns
    np.testing.assert_allclose(found.best, [0.25, 128.0, truth[2]])
    np.testing.assert_array_equal(found.shadow_prices[1], 0)
    assert certify_program(world, found).faults == ()
