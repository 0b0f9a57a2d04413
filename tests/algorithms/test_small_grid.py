"""Tabular Q-learning on small GridNav maps finds the very sets the exact solver computes, ties and all.

A learned set can only be compared where no action is near its threshold: maps and tolerances are chosen so that the
exact certificate leaves a wide margin, and the margin is checked. A reward of 100 at the goal makes values noisy (its
standard deviation beside the goal is about 25), so the learner explores evenly and its rate falls quickly.
"""

import numpy as np
import pytest

import lexrl
from lexrl import catalog
from lexrl.schedules import Power

ORDER = "min cost > max reward"
GAMMA = 0.8
TOLERANCE = (0.2, 3.0)
MARGINS = (0.16, 2.5)
MAPS = (20, 22, 42)
STEPS = 1_000_000


@pytest.fixture(scope="module")
def learned():
    """The sets `[S, M+1, A]` learned on each map."""
    given = {"gamma": GAMMA, "alpha": Power(0.8), "exploration": lexrl.EpsilonGreedy(1.0), "tolerance": TOLERANCE}
    algorithm = lexrl.QLearning(**catalog.TEXTBOOK | given)
    worlds = lexrl.per_seed([lexrl.GridNav.generate(size=4, map_seed=seed) for seed in MAPS])
    result = lexrl.train(algorithm, worlds, ORDER, seeds=len(MAPS), total_timesteps=STEPS, num_log_points=1)
    assert not result.faults
    return {seed: np.asarray(algorithm.sets(result.agent(place))) for place, seed in enumerate(MAPS)}


@pytest.mark.parametrize("seed", MAPS)
def test_the_learned_sets_are_the_exact_ones(learned, seed):
    world = lexrl.GridNav.generate(size=4, map_seed=seed)
    solution = lexrl.solve(world.momdp(GAMMA), ORDER, tolerance=TOLERANCE)
    assert (solution.certificate.margins > MARGINS).all()
    cells = ~solution.terminal  # every cell can be reached: obstacles cost, walls are at the rim only
    sizes = solution.sets[:, cells].sum(axis=2)
    assert (sizes[1] < 4).any(), "cost decides somewhere"
    assert (sizes[2] < sizes[1]).any(), "reward decides somewhere"
    assert (sizes[2] > 1).any(), "and some actions tie to the end"
    np.testing.assert_array_equal(learned[seed][cells], solution.sets.swapaxes(0, 1)[cells], err_msg=world.picture())
