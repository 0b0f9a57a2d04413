"""Ties are judged where they are: real gaps stay gaps beside large values elsewhere, and units do not matter."""

import dataclasses

import numpy as np
import pytest
from brute_force import grid, integer_world, order_of

from lexrl.errors import InputError
from lexrl.exact import all_orders, critical_slack, evaluate, gap, solve, solve_average, solve_horizon, solve_slack
from lexrl.momdp import MOMDP


def loop(*rewards, gamma):
    """One state, one action for each reward."""
    return MOMDP.from_arrays(np.ones((1, len(rewards), 1)), np.array([[rewards]], float), gamma)


def test_a_small_gap_beside_a_long_horizon_is_a_gap():
    solution = solve(loop(1.0, 1 - 1e-5, gamma=0.99999))
    assert solution.returns[0] == pytest.approx(1 / (1 - 0.99999), rel=1e-14)
    np.testing.assert_array_equal(solution.policy, [[1.0, 0.0]])
    assert not solution.certificate.num_rounded.any()
    assert not solution.certificate.num_undecided.any()
    # A gap that is lost in the rounding of the values themselves counts as a tie, and is told.
    assert solve(loop(1.0, 1 - 1e-12, gamma=0.999999)).certificate.num_rounded.any()


def test_a_penalty_elsewhere_changes_nothing():
    moves = np.zeros((2, 2, 2))
    moves[0, :, 0] = moves[1, :, 1] = 1.0
    for penalty in (-1e9, -1e30):
        rewards = np.array([[[1.0, 1.01], [penalty, penalty]]])
        solution = solve(MOMDP.from_arrays(moves, rewards, 0.99, initial=[1.0, 0.0]))
        np.testing.assert_array_equal(solution.sets[1], [[False, True], [True, True]])
        assert solution.returns[0] == pytest.approx(101.0, rel=1e-14)


def test_the_input_is_rounded_and_that_is_said():
    solution = solve(loop(0.3, 0.1 + 0.2, gamma=0.5))
    assert solution.sets[1].all()
    (pair,) = solution.certificate.rounded
    assert (pair.state, pair.action) == (0, 0)
    assert 0 < pair.gap < 1e-16


def scaled(world, powers):
    factors = 2.0 ** np.array(powers)
    return dataclasses.replace(
        world,
        rewards=world.rewards * factors[:, None, None],
        outcome_rewards=world.outcome_rewards * factors,
        rewards_rest=None if world.rewards_rest is None else world.rewards_rest * factors[:, None, None],
    )


POWERS = (30, -30, 7)


@pytest.mark.parametrize("world", [MOMDP.random(3, 12, 3, 3, tie_fraction=0.5), integer_world(5, 3)], ids=["r", "i"])
def test_units_do_not_matter(world):
    """Bit for bit, in every solver."""
    order, other, factors = order_of(world), scaled(world, POWERS), 2.0 ** np.array(POWERS)
    for one, two in (
        (solve(world, order), solve(other, order)),
        (solve(world, order, tolerance=(0.1, 0.1, 0.0)), solve(other, order, tolerance=(*(0.1 * factors[:2]), 0.0))),
        (solve_horizon(world, order, 5), solve_horizon(other, order, 5)),
        (solve_slack(world, order), solve_slack(other, order)),
        (
            solve_slack(world, order, slack=("5%", 0.1, 0.0)),
            solve_slack(other, order, slack=("5%", 0.1 * factors[1], 0.0)),
        ),
        (solve_average(world, order), solve_average(other, order)),
    ):
        np.testing.assert_array_equal(one.policy, two.policy)
        np.testing.assert_array_equal(one.returns * factors, two.returns)
    for one, two in zip(all_orders(world, order), all_orders(other, order), strict=True):
        np.testing.assert_array_equal(one.returns * factors, two.returns)
        np.testing.assert_array_equal(one.price * factors, two.price)
    policy = np.full((world.num_states, world.num_actions), 1 / world.num_actions)
    one, two = gap(world, policy, order, "1%"), gap(other, policy, order, "1%")
    np.testing.assert_array_equal(one.shortfall * factors, two.shortfall)
    assert one.level == two.level


@pytest.mark.parametrize("world", [MOMDP.random(1, 10, 3, 2), grid(5)], ids=["random", "grid"])
def test_units_do_not_matter_to_the_curve(world):
    order, factors = order_of(world), 2.0 ** np.array(POWERS[:2])
    one, two = critical_slack(world, order), critical_slack(scaled(world, POWERS[:2]), order)
    assert len(one) == len(two) > 2
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.policy, b.policy)
        np.testing.assert_array_equal(a.returns * factors, b.returns)
        assert (a.slack * factors[0], a.shadow_price * factors[1] / factors[0]) == (b.slack, b.shadow_price)


def test_masked_actions_are_never_taken():
    world = MOMDP.random(0, 6, 3, 2, tie_fraction=0.5)
    mask = np.ones((6, 3), bool)
    best = solve(world, order_of(world))
    mask[np.arange(6), np.argmax(best.policy, axis=1)] = False
    dense = world.transitions.toarray().reshape(6, 3, 6)
    dense[~mask] = np.nan
    held = MOMDP.from_arrays(dense, np.where(mask, world.rewards, np.nan), 0.9, action_mask=mask)
    solution, program = solve(held, order_of(held)), solve_slack(held, order_of(held), slack=0.1)
    assert (solution.policy[~mask] == 0).all()
    assert (program.policy[~mask] == 0).all()
    assert (solution.returns[0], program.best[0]) == pytest.approx((program.best[0], solution.returns[0]))
    assert solution.returns[0] < best.returns[0]
    assert all((one.policy[~mask] == 0).all() for one in critical_slack(held, order_of(held)))
    assert (solve_average(held, order_of(held)).policy[~mask] == 0).all()
    assert (solve_horizon(held, order_of(held), 4).policy[:, ~mask] == 0).all()
    with pytest.raises(InputError, match=r"takes action \d in state 0, which has no such action"):
        evaluate(held, best.policy)


def test_bad_masks():
    moves, rewards = np.full((2, 2, 2), 0.5), np.zeros((1, 2, 2))
    with pytest.raises(InputError, match="leaves no action in state 1"):
        MOMDP.from_arrays(moves, rewards, 0.9, action_mask=[[True, True], [False, False]])
    with pytest.raises(InputError, match=r"mask has shape \(2,\); it needs \(2, 2\)"):
        MOMDP.from_arrays(moves, rewards, 0.9, action_mask=[True, False])
    with pytest.raises(InputError, match="true or 1 where there is the action"):
        MOMDP.from_arrays(moves, rewards, 0.9, action_mask=[[2, 1], [1, 1]])


def test_values_that_underflow_leave_an_action_everywhere():
    """A corridor with a reward at its end, halved at every step: from 1,100 steps away there is nothing left of it."""
    n = 1200
    moves = np.zeros((n, 2, n))
    moves[np.arange(n), 0, np.maximum(np.arange(n) - 1, 0)] = 1.0
    moves[np.arange(n), 1, np.minimum(np.arange(n) + 1, n - 1)] = 1.0
    paid = np.zeros((2, n, 2))
    paid[:, n - 1, 1] = 0.3, 0.7
    solution = solve(MOMDP.from_arrays(moves, paid, 0.5, initial=np.eye(n)[0]), "max signal_1 > max signal_2")
    assert solution.sets.any(axis=2).all()
    assert np.isfinite(solution.policy).all()
    assert (solution.policy[200:, 1] == 1).all()
