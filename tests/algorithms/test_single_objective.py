"""A learner of one objective among several is, to the last bit, that learner alone; the others are watched."""

import jax
import numpy as np
import pytest

import lexrl
from lexrl import SingleObjective

CART = lexrl.CartSafe(observe_cos_sin=True, max_episode_steps=30)
SMALL = lexrl.Networks(hidden_sizes=(8,))
LEARNERS = {
    "A2C": lexrl.A2C(num_envs=4, num_steps=8, networks=SMALL, learning_rate=0.01),
    "DQN": lexrl.DQN(num_envs=4, num_steps=4, batch_size=16, buffer_size=256, learning_starts=64, hidden_sizes=(8,)),
}


def trained(algorithm, order):
    return lexrl.train(algorithm, CART, order, seeds=2, total_timesteps=640, num_log_points=2)


@pytest.mark.parametrize(("name", "place"), [pytest.param("A2C", 0, marks=pytest.mark.slow), ("DQN", 1)])
def test_the_same_to_the_last_bit(name, place):
    both = ("min cost", "max reward")
    among = trained(SingleObjective(LEARNERS[name], both[place].split()[1]), " > ".join(both))
    alone = trained(LEARNERS[name], both[place])
    for seed in range(2):
        mine, theirs = among.agent(seed).agent, alone.agent(seed)
        if name == "DQN":  # remembers what the others paid in no other way
            assert mine.replay.added == theirs.replay.added
        assert jax.tree.structure(mine) == jax.tree.structure(theirs)
        jax.tree.map(np.testing.assert_array_equal, mine, theirs)
    np.testing.assert_array_equal(among.metrics["episode_return"][..., place], alone.metrics["episode_return"][..., 0])
    np.testing.assert_array_equal(among.evaluate(5).returns[..., place], alone.evaluate(5).returns[..., 0])


def test_the_others_are_watched():
    result = trained(SingleObjective(LEARNERS["A2C"], "reward"), "min cost > max reward")
    assert result.metrics["episode_return"].shape[-1] == 2
    assert np.isfinite(result.metrics["episode_return"][-1]).all()
    assert all(result.metrics[name].shape == (2, 2) for name in ("entropy", "value_loss"))
