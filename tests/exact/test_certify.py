"""Certificates computed again: what is right is found right, what is spoiled is noticed."""

import dataclasses

import numpy as np
import pytest
from brute_force import integer_world, order_of

from lexrl.errors import InputError
from lexrl.exact import certify, certify_program, solve, solve_average, solve_slack
from lexrl.momdp import MOMDP


def world_of(seed):
    return integer_world(seed, 2, gamma=0.9) if seed % 2 else MOMDP.random(seed, 6, 3, 3, tie_fraction=0.5)


def spoil_action(rng, policy, allowed):
    """In one state an action that is not among the allowed ones; None where there is no such state."""
    states = np.flatnonzero(~allowed.all(axis=1))
    if not len(states):
        return None
    state = rng.choice(states)
    spoiled = policy.copy()
    spoiled[state] = np.eye(policy.shape[1])[rng.choice(np.flatnonzero(~allowed[state]))]
    return spoiled


def spoiled_solutions(seeds):
    """How many spoiled solutions there were, and which were not noticed."""
    count, missed = 0, []
    for seed in seeds:
        rng, world = np.random.default_rng(seed), world_of(seed)
        order = order_of(world)
        solution = solve(world, order)
        assert certify(world, order, solution.policy, solution.values).holds
        policy = spoil_action(rng, solution.policy, solution.sets[-1])
        values = solution.values.copy()
        place = tuple(rng.integers(values.shape))
        values[place] += rng.choice([-1, 1]) * 10.0 ** -rng.integers(1, 12) * max(1.0, abs(values[place]))
        for claim in ((policy, solution.values), (solution.policy, values)):
            if claim[0] is not None:
                count += 1
                missed += [seed] * certify(world, order, *claim).holds
    return count, missed


def spoiled_programs(seeds, solver=solve_slack, slack=0.05, num_states=6):
    count, missed = 0, []
    for seed in seeds:
        rng, world = np.random.default_rng(seed), MOMDP.random(seed, num_states, 3, 2)
        found = solver(world, order_of(world), slack=(slack, 0.0))
        assert certify_program(world, found).faults == ()
        policy = found.policy.copy()
        state = int(np.argmax(found.occupancy.sum(axis=1)))
        policy[state] = np.roll(policy[state], 1)
        best = found.best.copy()
        best[rng.integers(2)] *= 1 + 10.0 ** -rng.integers(1, 12)
        claims = [{"policy": policy}, {"best": best}]
        if found.shadow_prices[1, 0] > 0:
            factor = 1 + rng.choice([-1, 1]) * 10.0 ** -rng.uniform(0.3, 6)
            claims += [
                {"shadow_prices": found.shadow_prices * factor},
                {"shadow_prices": found.shadow_prices + np.array([[0, 0.1], [0, 0]])},
            ]
        for claim in claims:
            count += 1
            missed += [(seed, list(claim))] * (not certify_program(world, dataclasses.replace(found, **claim)).faults)
    return count, missed


def test_what_is_spoiled_is_noticed():
    count, missed = spoiled_solutions(range(20))
    more, unseen = spoiled_programs(range(8))
    averages, unnoticed = spoiled_programs(range(8), solve_average, 0.005, 3)
    assert count + more > 60
    assert averages > 16
    assert not unnoticed
    assert not missed
    assert not unseen


@pytest.mark.slow
def test_what_is_spoiled_is_noticed_300_times():
    count, missed = spoiled_solutions(range(1000, 1100))
    more, unseen = spoiled_programs(range(1000, 1040))
    averages, unnoticed = spoiled_programs(range(1000, 1040), solve_average, 0.005, 3)
    more, unseen = more + averages, unseen + unnoticed
    print(f"{count + more} spoiled solutions, {len(missed) + len(unseen)} not noticed")
    assert count + more >= 300
    assert not missed
    assert not unseen


def test_the_sentence_names_the_place():
    world = MOMDP.random(0, 5, 2, 2)
    order = order_of(world)
    solution = solve(world, order)
    values = solution.values.copy()
    values[1, 3] += 1e-9
    (fault,) = certify(world, order, solution.policy, values).faults
    assert fault.startswith("signal_2: the value of state 3 is")
    wrong = 1 - solution.policy
    (fault,) = certify(world, order, wrong, solution.values).faults
    assert "in state 0, which signal_1 does not leave (and 4 more)" in fault
    with pytest.raises(InputError, match=r"values have shape \(5,\); they need \(2, 5\)"):
        certify(world, order, solution.policy, solution.values[0])


def test_any_choice_among_the_sets_will_do():
    world = integer_world(1, 2)
    solution = solve(world, order_of(world), tolerance=0.3)
    greedy = np.eye(world.num_actions)[np.argmax(solution.sets[-1], axis=1)]
    assert certify(world, order_of(world), greedy, solution.values, tolerance=0.3).holds


def loop_or_leave(gamma, *rewards):
    """Two states, of which the second ends: action 0 stays, action 1 leaves."""
    moves = np.zeros((2, 2, 2))
    moves[0, [0, 1], [0, 1]] = moves[1, :, 1] = 1.0
    paid = np.zeros((len(rewards), 2, 2))
    paid[:, 0] = rewards
    return MOMDP.from_arrays(moves, paid, gamma, terminal=[1])


def test_values_of_terminal_states_and_policies_that_never_end():
    """Staying for nothing ties with leaving for 5, but whoever only stays never gets it."""
    world = loop_or_leave(1.0, (0, 5))
    solution = solve(world)
    assert solution.returns[0] == 5.0
    assert certify(world, None, [[0, 1], [1, 0]], solution.values).holds
    (fault,) = certify(world, None, [[1, 0], [1, 0]], solution.values).faults
    assert fault == "Gamma is 1, but from state 0 the policy never reaches a terminal state."
    (fault,) = certify(world, None, solution.policy, [[5.0, 3.0]]).faults
    assert fault == "signal_1: the value of state 1 is 0, not 3."


def test_discounts_of_which_one_is_1():
    order = "max signal_1 > max signal_2"
    with pytest.raises(InputError, match="from state 0 no policy that signal_1 leaves is sure to reach a terminal"):
        solve(loop_or_leave((0.9, 1.0), (1, 0), (-1, 0)), order)
    with pytest.raises(InputError, match="the best policy for the less important objectives never ends"):
        solve(loop_or_leave((1.0, 0.9), (0, 5), (1, 0)), order)
    tied = solve(loop_or_leave((0.9, 1.0), (0, 0), (-1, 0)), order)
    np.testing.assert_array_equal(tied.policy[0], [0, 1])


def test_a_penalty_elsewhere_hides_nothing():
    """An average is judged by the rewards of the policy, not by the largest reward anywhere."""
    moves = np.zeros((2, 2, 2))
    moves[0, :, 0] = moves[1, :, 1] = 1.0
    world = MOMDP.from_arrays(moves, [[[1, 2], [-1e9, -1e9]], [[3, 1], [0, 0]]], 0.9, initial=[1, 0])
    found = solve_average(world, order_of(world))
    assert certify_program(world, found).faults == ()
    wrong = dataclasses.replace(found, best=found.best + np.array([0, 1e-6]))
    assert certify_program(world, wrong).faults == (
        "signal_2: the policy returns 1, less than the 1.000001 that is needed.",
        "signal_2: at these prices the best return is 1, not 1.000001.",
    )


@pytest.mark.parametrize("size", [1e4, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("slack", [0.0, 0.01])
@pytest.mark.parametrize("reached", [True, False])
def test_a_penalty_that_no_policy_takes_hides_nothing_in_a_large_program(size, slack, reached):
    """Whether it is within reach or not: averages are as precise as without it, and so is what is noticed."""
    rng = np.random.default_rng(1)
    moves, paid = rng.dirichlet(np.ones(9), size=(10, 3)), rng.normal(size=(2, 10, 3))
    moves = np.concatenate([moves, np.zeros((10, 3, 1))], axis=2)  # to state 9 no way leads
    moves[9] = np.full((3, 10), 0.1)
    mask = np.ones((10, 3), bool)
    place = (3, 2) if reached else (9, 2)
    mask[place] = False
    start = np.append(np.full(9, 1 / 9), 0.0)
    order = "max signal_1 > max signal_2"
    truth = solve_average(MOMDP.from_arrays(moves, paid, 0.9, initial=start, action_mask=mask), order, slack=slack)
    paid[:, *place] = -size
    world = MOMDP.from_arrays(moves, paid, 0.9, initial=start)
    found = solve_average(world, order, slack=slack)
    for one in (found.best, found.returns):
        np.testing.assert_allclose(one, truth.best - [slack * (one is found.returns), 0], rtol=1e-12)
    assert found.faults == ()
    assert certify_program(world, found).faults == ()
    for wrong in (1e-6, -1e-6):
        for i in range(2):
            spoiled = dataclasses.replace(found, best=found.best + wrong * np.eye(2)[i])
            assert f"signal_{i + 1}: at these prices the best return is" in str(certify_program(world, spoiled).faults)


def test_a_state_that_is_hardly_ever_visited_counts():
    """State 1 is visited 5e-15 of the time, where one action costs more than all the rest."""
    rare = 1e-7
    moves = np.zeros((4, 2, 4))
    moves[0, 0, [1, 2]] = moves[2, 0, [3, 2]] = moves[3, 0, [0, 3]] = rare, 1 - rare
    moves[0, 1, [3, 2]] = moves[1, 1, [3, 0]] = rare, 1 - rare
    moves[1, 0, 0] = 1.0
    paid = [[[-3.2e-9, -32], [0, -32], [-3.2e-9, 0], [3.2e-9, 0]]]
    world = MOMDP.from_arrays(moves, paid, 0.9, initial=np.eye(4)[1], action_mask=[[1, 1], [1, 1], [1, 0], [1, 0]])
    found = solve_average(world)
    np.testing.assert_allclose(found.returns, found.best, rtol=1e-9)
    np.testing.assert_array_equal(found.policy[1], [1, 0])


def test_prices_that_are_rounded_cast_no_doubt_on_what_cancels():
    """At the price of the first objective both actions of state 1 are worth 1e-7, one of them as a difference of 2."""
    tiny = 5e-13
    moves = np.zeros((4, 2, 4))
    moves[0, 0, [0, 2, 3]] = moves[0, 1, [2, 0, 3]] = tiny, 0.5 - tiny, 0.5
    moves[1, 0, [2, 3]] = 0.5 - tiny, 0.5 + tiny
    moves[1, 1, [0, 3]] = moves[2, 0, [2, 3]] = tiny, 1 - tiny
    moves[2, 1, [0, 3]] = 0.5
    moves[3, :, 3] = 1.0
    first = [[-1e-11, 1 - 1e-11], [1e-11, -1e-11], [1e-11 - 1, 1e-11], [0, 0]]
    second = [[-1e-7, -1.0], [-1e-7, 1e-7], [1 - 1e-7, -1 - 1e-7], [0, 0]]
    world = MOMDP.from_arrays(moves, [first, second], 1.0, terminal=[3])
    found = solve_slack(world, order_of(world), slack=(0.09166666666613332, 0.0))
    assert 0 < found.policy[1, 0] < 1
    assert certify_program(world, found).faults == ()
