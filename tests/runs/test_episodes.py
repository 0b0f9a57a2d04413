"""The episode that is shown is the one that was evaluated."""

import numpy as np
import pytest

import lexrl
from lexrl import Networks
from lexrl.errors import InputError
from lexrl.runs import episodes

ORDER = "min cost > max reward"
CASES = {
    "cart-safe": (lexrl.LPPO(num_envs=4, num_steps=16, num_minibatches=2, networks=Networks(hidden_sizes=(8,))), ORDER),
    "grid-nav": (lexrl.QLearning(tolerance=5.0), ORDER),  # many actions are as good as the best
    "CartPole-v1": (
        lexrl.PPO(num_envs=4, num_steps=16, num_minibatches=2, networks=Networks(hidden_sizes=(8,))),
        "max reward",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_episode(name):
    algorithm, order = CASES[name]
    result = lexrl.train(algorithm, name, order, seeds=[3, 8], total_timesteps=1000, num_log_points=1)
    played = result.evaluate(3)
    for number in (0, 2):
        seen = episodes.record_episode(result.policies[1], result.run.env, number)
        assert len(seen.frames) == played.lengths[1, number] + 1
        np.testing.assert_allclose(seen.returns, played.returns[1, number], rtol=1e-5)
    assert {frame.dtype for frame in seen.frames} == {np.dtype(np.uint8)}
    assert len({frame.shape for frame in seen.frames}) == 1
    assert episodes.render_fps(result.run.env) >= 5


def test_worlds_that_cannot_be_drawn():
    world = lexrl.random_env(num_states=4)
    result = lexrl.train(lexrl.QLearning(), world, "max signal_1", seeds=1, total_timesteps=100, num_log_points=1)
    with pytest.raises(InputError, match="FiniteEnv cannot be rendered"):
        episodes.record_episode(result.policies[0], world)
    with pytest.raises(InputError, match="The episode is -1"):
        episodes.record_episode(result.policies[0], world, -1)
