"""Limits: an objective that counts only up to what is enough."""

import dataclasses
from itertools import permutations

import numpy as np
import pytest
from brute_force import grid

from lexrl.errors import InputError
from lexrl.exact import action_gaps, certify_program, evaluate, gap, solve, solve_average, solve_horizon, solve_slack
from lexrl.momdp import MOMDP


def one_state(*actions, gamma=0.5):
    rewards = np.array(actions, float).T[:, None, :]
    return MOMDP.from_arrays(
        np.ones((1, len(actions), 1)), rewards, gamma, signals=("cost", "reward", "energy")[: len(actions[0])]
    )


# Returns are twice these: (cost, reward).
WORLD = one_state((0, 0), (4, 6), (10, 9))


def test_by_hand():
    # Cost 8 buys reward 12, cost 20 buys 18; a limit of 14 is halfway between these two.
    found = solve_slack(WORLD, "cost <= 14 > max reward")
    np.testing.assert_allclose(found.policy, [[0.0, 0.5, 0.5]])
    np.testing.assert_allclose(found.returns, [-14.0, 15.0])
    np.testing.assert_allclose(found.best, [0.0, 15.0], atol=1e-15)
    np.testing.assert_allclose(found.shadow_prices[1], [0.5, 0.0])  # 6 more reward for 12 more cost
    np.testing.assert_allclose(found.thresholds, [-14.0, 15.0])
    assert found.shortfalls.tolist() == [0.0, 0.0]
    assert certify_program(WORLD, found).faults == ()


@pytest.mark.parametrize("solver", [solve_slack, solve_average])
def test_a_price_says_what_more_slack_would_bring(solver):
    """Where the limit is just what a policy returns, less slack would cost more than more slack brings."""
    unit = 2 if solver is solve_slack else 1
    for order in permutations([(0, 0), (4, 6), (10, 9)]):
        world = one_state(*order)
        found = solver(world, f"cost <= {4 * unit} > max reward")
        np.testing.assert_allclose(found.shadow_prices, [[0, 0], [0.5, 0]])
        assert certify_program(world, found).faults == ()
        for price in (1.0, 1.5):
            wrong = dataclasses.replace(found, shadow_prices=np.array([[0, 0], [price, 0]]))
            (fault,) = certify_program(world, wrong).faults
            assert fault == f"reward: more slack on cost brings less than its shadow price {price:g}."
    alone = one_state((0, 0), (4, 6))
    found = solver(alone, f"cost <= {4 * unit} > max reward")
    np.testing.assert_allclose(found.returns, [-4 * unit, 6 * unit])
    assert not found.shadow_prices.any()
    wrong = dataclasses.replace(found, shadow_prices=np.array([[0, 0], [1e-3, 0]]))
    assert "more slack on cost brings less" in certify_program(alone, wrong).faults[0]


@pytest.mark.parametrize("share", [1 / 3, 0.3333333])
def test_initial_probabilities_sum_to_1(share):
    """Thirds do not, as doubles; a return of 2 from everywhere is 2."""
    moves = np.repeat(np.eye(3)[:, None], 2, axis=1)
    world = MOMDP.from_arrays(moves, np.ones((1, 3, 2)), 0.5, initial=np.full(3, share))
    found = solve_slack(world, "signal_1 >= 2")
    assert found.best.tolist() == [2.0]
    assert found.shortfalls.tolist() == [0.0]
    assert "its limit can be satisfied" in str(found)
    assert solve(world).returns == pytest.approx(2.0, rel=1e-15)


@pytest.mark.parametrize("solver", [solve_slack, solve_average])
def test_an_optimum_that_is_its_limit_has_no_price(solver):
    world = one_state((0, 0), (0.1, 6), gamma=0.9)
    found = solver(world, "cost <= 0 > max reward")
    assert not found.shadow_prices.any()
    assert certify_program(world, found).faults == ()
    wrong = dataclasses.replace(found, shadow_prices=np.array([[0, 0], [100.0, 0]]))
    assert "cost has the shadow price 100, which it cannot have" in certify_program(world, wrong).faults[0]


def test_slack_that_is_just_what_another_policy_needs():
    """As doubles, 0.1 / (1 - 0.9) is not 1: whether the other policy is within the slack is a matter of roundings,
    and so is the price, but not that the solution is right."""
    for gamma in (0.9, 0.7, 0.6, 0.3):
        world = one_state((0, 0), (1 - gamma, 6), (3 * (1 - gamma), 9), gamma=gamma)
        for order in ("min cost ±1 > max reward", "cost <= 1 > max reward", "cost <= 0 ±1 > max reward"):
            assert certify_program(world, solve_slack(world, order)).faults == ()


def test_a_limit_that_does_not_bind():
    found = solve_slack(WORLD, "cost <= 25 > max reward")
    np.testing.assert_allclose(found.returns, [-20.0, 18.0])
    assert found.shadow_prices[1, 0] == 0


def test_a_limit_that_cannot_be_satisfied():
    found = solve_slack(WORLD, "cost <= -3 > max reward")
    np.testing.assert_allclose(found.returns, [0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(found.shortfalls, [3.0, 0.0])
    assert "no policy satisfies the limit, the nearest misses it by 3" in str(found)


def test_a_limit_from_below():
    found = solve_slack(WORLD, "reward >= 6 > min cost")
    np.testing.assert_allclose(found.policy, [[0.5, 0.5, 0.0]])
    np.testing.assert_allclose(found.returns, [6.0, -4.0])


def test_with_a_tolerance():
    found = solve_slack(WORLD, "cost <= 12 ±2 > max reward")
    np.testing.assert_allclose(found.returns, [-14.0, 15.0])
    relative = solve_slack(WORLD, "cost <= 10 ±40% > max reward")
    np.testing.assert_allclose(relative.returns, [-14.0, 15.0])


def test_a_limit_of_the_best_is_no_slack():
    limited, plain = solve_slack(WORLD, "cost <= 0 > max reward"), solve_slack(WORLD, "min cost > max reward")
    np.testing.assert_array_equal(limited.policy, plain.policy)


def test_beneath_other_objectives_and_above_others():
    world = one_state((0, 0, 0), (4, 6, 1), (10, 9, 5), (10, 9, 2))
    found = solve_slack(world, "cost <= 14 > max reward > min energy")
    np.testing.assert_allclose(found.returns, [-14.0, 15.0, -3.0])
    found = solve_slack(world, "max reward > cost <= 30 > max energy")
    np.testing.assert_allclose(found.policy, [[0.0, 0.0, 1.0, 0.0]])
    two = solve_slack(world, "cost <= 14 > reward >= 12 > min energy")
    np.testing.assert_allclose(two.returns[2], -2.0)
    assert (two.returns >= [-14 - 1e-9, 12 - 1e-9, -np.inf]).all()


def test_on_a_grid():
    world = grid(6)
    free = solve_slack(world, "max reward > min cost")
    for limit in (0.5, 1.0, 3.0):
        found = solve_slack(world, f"cost <= {limit} > max reward")
        assert -found.returns[0] <= limit + 1e-9
        assert found.returns[1] <= free.returns[0] + 1e-9
        np.testing.assert_allclose(found.returns, evaluate(world, found.policy, found.order).returns)


def test_averages_too():
    found = solve_average(WORLD, "cost <= 7 > max reward")
    np.testing.assert_allclose(found.returns, [-7.0, 7.5])


def test_gaps_count_up_to_the_limit():
    policy = np.array([[0.5, 0.5, 0.0]])
    measured = gap(WORLD, policy, "cost <= 14 > max reward")
    np.testing.assert_allclose(measured.shortfall, [0.0, 9.0])
    assert measured.level == 1


@pytest.mark.parametrize(
    "solver", [solve, lambda world, order: solve_horizon(world, order, 3)], ids=["solve", "solve_horizon"]
)
def test_action_tolerance_refuses(solver):
    with pytest.raises(InputError, match=r"'cost <= 14 > max reward' has a limit.*`lexrl.exact.solve_slack`"):
        solver(WORLD, "cost <= 14 > max reward")


def test_gaps_of_actions_are_not_touched():
    assert np.isfinite(action_gaps(solve(WORLD, "min cost > max reward")).deciding[0])


def test_whether_a_limit_can_be_satisfied_is_open_when_time_runs_out():
    world = grid(8)
    truth = solve_slack(world, "cost <= 1.5 > max reward")
    assert truth.shortfalls[0] == 0
    late = solve_slack(world, "cost <= 1.5 > max reward", time_limit=1e-9)
    assert late.faults[0].startswith("Stopped after")
    assert (late.best + late.gaps >= truth.best).all()
    assert late.shortfalls[0] > 0
    assert "no policy satisfies the limit" not in str(late)
    assert "whether one satisfies it is open" in str(late)
    assert "how much better a policy could be is not known" in str(late)
    assert late.summary()["gaps"][1] is None
