"""Every preset fits its world and its order, and what is not there is said."""

import dataclasses

import numpy as np
import pytest

import lexrl
from lexrl import presets
from lexrl.runs import plan

WORLDS = {"cart-safe": lexrl.CartSafe, "grid-nav": lexrl.GridNav.generate}
KNOWN = [
    (name, world, algorithm)
    for name in ("paper", "tuned")
    for world in WORLDS
    for algorithm in presets.known(name, world)
]


@pytest.mark.parametrize(("name", "world", "algorithm"), KNOWN)
def test_a_preset_can_be_planned(name, world, algorithm):
    found = presets.preset(algorithm, world, name)
    run = plan(found.algorithm, WORLDS[world](**found.world), found.order, 1, found.steps)
    assert run.total_timesteps == found.steps
    assert len(run.order.objectives) == (1 if algorithm in ("ppo", "a2c", "dqn") else 2)


def test_the_papers_table():
    found = presets.preset("ldqn", "cart-safe", "paper").algorithm
    assert (found.hidden_sizes, found.num_steps, found.batch_size, found.buffer_size) == ((24, 24), 8, 8, 100_000)
    grid = presets.preset("ldqn", "grid-nav", "paper").algorithm
    assert (grid.hidden_sizes, grid.use_bias, grid.num_steps, grid.batch_size, str(grid.tolerance)) == (
        (),
        False,
        32,
        32,
        "5%",
    )


def test_what_is_not_there_is_said():
    with pytest.raises(lexrl.InputError, match="no preset 'tuned' for lppo on cart-pole; there are: lppo on cart-safe"):
        presets.preset("lppo", "cart-pole")


def test_a_shortened_preset_ends_its_rates_sooner_and_has_a_smaller_buffer():
    found = presets.preset("ldqn", "cart-safe")
    short = presets.shortened(found, 0.001)
    assert short.steps == 1500
    assert 1500 <= short.algorithm.buffer_size < 2000
    assert short.algorithm.learning_rate.steps == pytest.approx(0.001 * found.algorithm.learning_rate.steps)


@pytest.mark.slow
def test_a_shortened_preset_learns_the_same_in_a_smaller_buffer():
    """Nothing that was remembered is forgotten, so the numbers are the same."""
    found = presets.preset("ldqn", "cart-safe")
    short = presets.shortened(found, 0.001)
    long = dataclasses.replace(short.algorithm, buffer_size=9600)
    world = lexrl.CartSafe(**found.world)
    one, other = (
        lexrl.train(learner, world, found.order, seeds=1, total_timesteps=1500) for learner in (short.algorithm, long)
    )
    np.testing.assert_array_equal(one.agent().net.weights[0], other.agent().net.weights[0])
    assert one.agent().num_updates > 0


def test_a_shortened_oracle_has_a_smaller_buffer_too():
    short = presets.shortened(presets.preset("appropo", "cart-safe"), 0.01)
    assert short.algorithm.oracle.buffer_size < 2 * short.steps
