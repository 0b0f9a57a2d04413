import numpy as np
import pytest
from brute_force import all_values, integer_world, order_of
from hypothesis import given, settings
from hypothesis import strategies as st

from lexrl.errors import InputError
from lexrl.exact import action_gaps, all_orders, critical_slack, evaluate, gap, solve, solve_slack, tolerance_table
from lexrl.momdp import MOMDP

SEEDS = st.integers(0, 10**6)


def one_state(*actions):
    """One state that loops, gamma 0.5; one row of rewards for each action."""
    return MOMDP.from_arrays(np.ones((1, len(actions), 1)), np.array(actions, float).T[:, None, :], 0.5)


def test_action_gaps_by_hand():
    # q_1 = (4, 4, 3): 1 decides, and two actions tie. Objective 2 chooses among the first two: q_2 = (6, 5.5, 9).
    gaps = action_gaps(solve(one_state((2, 3), (2, 2.5), (1, 6)), "max signal_1 > max signal_2"))
    np.testing.assert_allclose(gaps.deciding, [1.0, 0.5])
    np.testing.assert_allclose(gaps.literal, [0.0, 0.5])


def test_action_gaps_where_nothing_is_left_out():
    gaps = action_gaps(solve(one_state((1, 1), (1, 1)), "max signal_1 > max signal_2"))
    assert np.isinf(gaps.deciding).all()
    np.testing.assert_array_equal(gaps.literal, [0.0, 0.0])


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_below_the_gap_a_tolerance_changes_nothing_and_above_it_does(seed):
    world = MOMDP.random(seed, 6, 3, 3, tie_fraction=0.5)
    order = order_of(world)
    deciding = action_gaps(solve(world, order)).deciding.min()
    below, above = tolerance_table(world, order, [0.99 * deciding, 1.01 * deciding])
    assert below.below_gap
    assert not above.below_gap
    np.testing.assert_allclose(below.loss, 0.0, atol=1e-14)  # the same policy, rounded
    assert below.sizes.sum() == above.sizes.sum() == 6


def test_the_tolerance_table_counts_states_by_what_they_keep():
    world = MOMDP.random(0, 20, 4, 2, episodic=True, tie_fraction=0.5)
    rows = tolerance_table(world, order_of(world), [0.0, "5%", 1e6])
    np.testing.assert_array_equal(rows[-1].sizes, [0, 0, 0, 19])
    assert rows[0].sizes[0] == 19
    assert rows[-1].loss[0] > 0


def test_all_orders_in_the_users_objectives():
    world = MOMDP.random(0, 6, 3, 3, tie_fraction=0.3)
    rows = all_orders(world, "min signal_2 > max signal_1 > min signal_3")
    assert len(rows) == 6
    for row in rows:
        solution = solve(world, row.order)
        named = dict(zip(solution.objectives, row.order.unsigned(solution.returns), strict=True))
        np.testing.assert_allclose(row.returns, [named["signal_2"], named["signal_1"], named["signal_3"]])
        place = ["signal_2", "signal_1", "signal_3"].index(row.order.names[0])
        assert abs(row.price[place]) < 1e-12
        assert (row.price > -1e-9).all()


def test_too_many_orders_are_refused():
    world = MOMDP.random(0, 3, 2, 7)
    with pytest.raises(InputError, match="5040"):
        all_orders(world, order_of(world))


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.booleans())
def test_the_critical_slack_curve_is_the_hull_of_all_policies(seed, tied):
    world = integer_world(seed, 2) if tied else MOMDP.random(seed, 4, 3, 2)
    curve = critical_slack(world, order_of(world))
    slacks, bought = np.array([p.slack for p in curve]), np.array([p.returns[1] for p in curve])
    prices = np.array([p.shadow_price for p in curve])
    assert (np.diff(slacks) > 0).all()
    assert (np.diff(prices) < 0).all()
    assert prices[-1] == 0
    np.testing.assert_allclose(np.diff(bought), prices[:-1] * np.diff(slacks), atol=1e-9)
    # No policy is above the curve, and the corners are policies.
    everyone = all_values(world) @ world.initial
    best = everyone[:, 0].max()
    reached = np.interp(best - everyone[:, 0], slacks, bought)
    assert (everyone[:, 1] <= reached + 1e-8).all()
    for point in curve:
        np.testing.assert_allclose(evaluate(world, point.policy).returns, point.returns, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_curve_agrees_with_the_programs(seed):
    world = MOMDP.random(seed, 8, 3, 2, gamma=1.0, episodic=True)
    order = order_of(world)
    asked = [0.0, 0.03, 0.2, 1.0, 100.0]
    for point in critical_slack(world, order, asked):
        program = solve_slack(world, order, slack=(point.slack, 0.0))
        np.testing.assert_allclose(point.returns[1], program.best[1], atol=1e-8)
        np.testing.assert_allclose(evaluate(world, point.policy).returns, point.returns, atol=1e-9)
        if point.slack > 0:
            np.testing.assert_allclose(point.shadow_price, program.shadow_prices[1, 0], atol=1e-7)


def test_a_policy_inside_a_piece_is_no_corner():
    # The first action beats the chord between the ends, but lies halfway between the two corners beside it.
    world = one_state((2.25, 2.25), (3, 0), (2.5, 2), (2, 2.5), (0, 3))
    curve = critical_slack(world, "max signal_1 > max signal_2")
    np.testing.assert_allclose([point.slack for point in curve], [0.0, 1.0, 2.0, 6.0])
    np.testing.assert_allclose([point.shadow_price for point in curve], [4.0, 1.0, 0.25, 0.0])


def test_a_curve_without_conflict_is_a_point():
    (point,) = critical_slack(one_state((1, 1), (0, 0)), "max signal_1 > max signal_2")
    assert (point.slack, point.shadow_price) == (0.0, 0.0)
    np.testing.assert_allclose(point.returns, [2.0, 2.0])
    assert [p.slack for p in critical_slack(one_state((1, 1)), "max signal_1 > max signal_2", [0.0, 1.0])] == [0.0, 1.0]


def test_curves_that_take_long():
    world, told = MOMDP.random(0, 10, 3, 2), []
    curve = critical_slack(world, order_of(world), progress=told.append)
    assert told[-1].iteration == len(curve)
    with pytest.raises(InputError, match=r"curve was not finished within .* s; 2 corners were found"):
        critical_slack(world, order_of(world), time_limit=1e-9)


def test_bad_curves():
    world = MOMDP.random(0, 4, 2, 2)
    with pytest.raises(InputError, match="one objective"):
        critical_slack(world, "max signal_1")
    with pytest.raises(InputError, match="from 0 on"):
        critical_slack(world, order_of(world), [-1.0])


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_the_optimum_has_no_gap(seed):
    world = MOMDP.random(seed, 6, 3, 3, tie_fraction=0.5)
    order = order_of(world)
    assert gap(world, solve(world, order).policy, order).level is None
    within = solve_slack(world, order, slack=0.1)
    assert gap(world, within.policy, order, 0.1).level is None
    np.testing.assert_allclose(gap(world, within.policy, order, 0.1).shortfall, within.best - within.returns, atol=1e-9)


def test_the_gap_names_the_first_objective_that_falls_short():
    # J: (4, 6), (4, 5), (2, 12).
    world = one_state((2, 3), (2, 2.5), (1, 6))
    order = "max signal_1 > max signal_2"
    second, third = np.array([[0.0, 1.0, 0.0]]), np.array([[0.0, 0.0, 1.0]])
    assert gap(world, second, order).level == 1
    np.testing.assert_allclose(gap(world, third, order).shortfall, [2.0, -6.0])
    assert gap(world, third, order).level == 0
    # Slack 2 lets objective 2 have all it wants, so action 0 is short of 12 now.
    np.testing.assert_allclose(gap(world, np.array([[1.0, 0.0, 0.0]]), order, (2.0, 0.0)).shortfall, [0.0, 6.0])
    assert gap(world, third, order, (2.0, 0.0)).level is None


def test_gaps_with_different_discounts_are_known_without_tolerance_only():
    world = MOMDP.random(0, 5, 2, 2, gamma=(0.9, 0.5))
    order = order_of(world)
    assert gap(world, solve(world, order).policy, order).level is None
    with pytest.raises(InputError, match="one gamma"):
        gap(world, solve(world, order).policy, order, 0.1)
