"""An environment in which only a policy that sees what it spent can be optimal under a chance constraint.

Two steps. The first costs 1 or nothing by a fair coin, whatever is done; in the second, one action pays 1 and costs 1,
the other neither. An episode must cost no more than 1, with probability 0.99. Who sees the coin takes the paying action
where nothing was spent: reward 0.5, limit never broken. Who does not may take it as often as the limit is broken by it
in 0.01 of episodes, that is with probability 0.02: reward 0.02.
"""

import numpy as np

import lexrl
from lexrl import Networks, PIDLagrangian, VaRAC
from lexrl.constraints import as_limits
from lexrl.envs.cost_aware import CostAwareObservation

ORDER = "min cost > max reward"


def env():
    moves, rewards = np.zeros((5, 2, 5)), np.zeros((2, 5, 2))
    moves[0, :, 1:3] = 0.5
    moves[1:3, :, 3] = 1  # 1 costs, 2 does not; both lead to the choice
    moves[3:, :, 4] = 1
    rewards[1, 1] = 1
    rewards[:, 3, 1] = 1
    process = lexrl.MOMDP.from_arrays(
        moves, rewards, 1.0, initial=np.eye(5)[0], terminal=[4], signals=("reward", "cost")
    )
    return lexrl.FiniteEnv(process, max_episode_steps=5)


def outcomes(env):
    algorithm = VaRAC(
        chance_constraints="cost <= 1 with 0.99",
        networks=Networks(hidden_sizes=(), use_bias=False),
        num_envs=32,
        num_steps=6,
        gamma=1.0,
        gae_lambda=1.0,
        learning_rate="0.03 to 0.001 in 1500",
        critic_learning_rate=0.03,
        lagrangian=PIDLagrangian(ki="5 to 0.5 in 1500", stats_window_size=300.0),
    )
    result = lexrl.train(algorithm, env, ORDER, seeds=2, total_timesteps=192 * 1500, num_log_points=1)
    assert not result.faults
    returns = result.evaluate(1000, deterministic=False).returns
    return returns[..., 1].mean(axis=1), (returns[..., 0] > 1).mean(axis=1)


def test_who_sees_it_is_optimal():
    reward, broken = outcomes(env())
    np.testing.assert_allclose(reward, 0.5, atol=0.06)
    assert (broken <= 0.02).all()


class Hidden(CostAwareObservation):
    """The same signals and numbers of states, with every sum shown as 0."""

    def _observation(self, obs, sums):
        return CostAwareObservation._observation(self, obs, 0 * sums)


def test_who_does_not_cannot_be():
    """What it earns it pays for: half of the times it takes the paying action, the limit is broken."""
    shown = CostAwareObservation.wrap(env(), as_limits("cost <= 1"))
    reward, broken = outcomes(Hidden(shown.env, shown.signals, shown.limits, shown.rounding))
    np.testing.assert_allclose(reward, 2 * broken, atol=0.06)
    assert not ((reward > 0.1) & (broken <= 0.02)).any()
