"""A learner of one objective among several is, to the last bit, that learner alone; the others are watched."""

import jax
import numpy as np
import pytest

import lexrl
from lexrl import Only

CART = lexrl.cart_safe(trigonometric=True, max_steps=30)
SMALL = lexrl.Networks(hidden=(8,))
LEARNERS = {
    "A2C": lexrl.A2C(worlds=4, rollout=8, networks=SMALL, rate=0.01),
    "DQN": lexrl.DQN(worlds=4, rollout=4, batch=16, capacity=256, warmup=64, hidden=(8,)),
}


def trained(algorithm, order):
    return lexrl.train(algorithm, CART, order, seeds=2, steps=640, chunks=2)


@pytest.mark.parametrize(("name", "place"), [pytest.param("A2C", 0, marks=pytest.mark.slow), ("DQN", 1)])
def test_the_same_to_the_last_bit(name, place):
    both = ("min cost", "max reward")
    among = trained(Only(LEARNERS[name], both[place].split()[1]), " > ".join(both))
    alone = trained(LEARNERS[name], both[place])
    for seed in range(2):
        mine, theirs = among.learner(seed).learner, alone.learner(seed)
        if name == "DQN":  # remembers what the others paid in no other way
            assert mine.replay.added == theirs.replay.added
        assert jax.tree.structure(mine) == jax.tree.structure(theirs)
        jax.tree.map(np.testing.assert_array_equal, mine, theirs)
    np.testing.assert_array_equal(among.metrics["return"][..., place], alone.metrics["return"][..., 0])
    np.testing.assert_array_equal(among.evaluate(5).returns[..., place], alone.evaluate(5).returns[..., 0])


def test_the_others_are_watched():
    result = trained(Only(LEARNERS["A2C"], "reward"), "min cost > max reward")
    assert result.metrics["return"].shape[-1] == 2
    assert np.isfinite(result.metrics["return"][-1]).all()
    assert all(result.metrics[name].shape == (2, 2) for name in ("entropy", "critic_loss"))
