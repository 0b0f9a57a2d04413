"""The tuned settings on GridNav, against the exact solvers.

On 25 x 25 the safest policy never goes to the goal, and learners must find how safe that is. On 8 x 8 a slack on cost
buys reward: the linear program says how much, and that the best policy is randomised.
"""

import numpy as np
import pytest

import lexrl
from lexrl import exact
from lexrl.presets import preset

SAFE = "min cost > max reward"


@pytest.mark.parametrize(
    "name",
    [pytest.param("ldqn", marks=pytest.mark.slow), "paper-la2c", pytest.param("paper-lppo", marks=pytest.mark.slow)],
)
def test_the_safest_policy_of_a_large_grid(name):
    tuned = preset(name, "grid-nav")
    world = lexrl.GridNav.generate(map_seed=22)
    result = lexrl.train(tuned.algorithm, world, SAFE, seeds=2, total_timesteps=tuned.total_timesteps, num_log_points=2)
    process = world.momdp(0.95)
    least = -exact.solve(process, SAFE).returns[0]
    costs = [-exact.evaluate(process, policy, SAFE).returns[0] for policy in result.probabilities()]
    assert least < 1e-3
    assert max(costs) <= least + 0.05
    nowhere = np.full((process.num_states, 4), 0.25)
    assert -exact.evaluate(process, nowhere, SAFE).returns[0] > 1  # chance does not find it


@pytest.mark.slow
def test_what_a_slack_buys():
    slacks = (0.25, 0.5, 1.0)
    world = lexrl.GridNav.generate(size=8, map_seed=3, max_episode_steps=100)
    tuned = preset("paper-lppo", "grid-nav")
    process = world.momdp(0.95)
    rewards = []
    for slack in slacks:
        order = f"min cost ±{slack} > max reward"
        result = lexrl.train(
            tuned.algorithm, world, order, seeds=1, total_timesteps=tuned.total_timesteps, num_log_points=2
        )
        cost, reward = exact.evaluate(process, result.probabilities(deterministic=False)[0], SAFE).returns * (-1, 1)
        best_cost, best_reward = exact.solve_slack(process, order).returns * (-1, 1)
        assert cost <= best_cost + 0.05
        assert reward >= 0.95 * best_reward
        rewards.append(reward)
    assert rewards[0] < rewards[1] < rewards[2]
