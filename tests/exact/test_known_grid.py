"""What the documentation says of GridNav, 25 x 25, seed 22, gamma 0.99."""

import numpy as np
import pytest

from lexrl.envs.grid_nav import GridNav
from lexrl.exact import critical_slack, evaluate, occupancy, solve

ORDER = "min cost > max reward"


@pytest.fixture(scope="module")
def process():
    return GridNav.generate(size=25, map_seed=22).momdp(gamma=0.99)


def test_the_optimum_never_goes_to_the_goal(process):
    solution = solve(process, ORDER)
    cost, reward = -solution.returns[0], solution.returns[1]
    assert cost == pytest.approx(0.00044075, rel=1e-4)
    assert reward < 1e-16
    visits = occupancy(process, solution.policy).sum(axis=1)
    assert visits[: 25 * 12].sum() < 1e-6 * visits.sum()  # it does not even get half way


@pytest.mark.slow
def test_the_curve_rises_from_there_to_the_best_reward_of_all(process):
    curve = critical_slack(process, ORDER)
    slack, reward = np.array([point.slack for point in curve]), np.array([point.returns[1] for point in curve])
    prices = np.array([point.shadow_price for point in curve])
    np.testing.assert_allclose(curve[0].returns, solve(process, ORDER).returns, atol=1e-9)
    assert reward[-1] == pytest.approx(solve(process, "max reward > min cost").returns[0])
    assert (np.diff(slack) > 0).all()
    assert (np.diff(reward) > 0).all()
    assert (np.diff(prices) < 0).all()
    assert np.interp(0.5, slack, reward) > 0.8 * reward[-1]
    for point in curve[:: len(curve) // 5]:  # each point is what its policy earns
        np.testing.assert_allclose(evaluate(process, point.policy, ORDER).returns, point.returns, atol=1e-8)
