"""Every preset fits its world and its order, and what is not there is said."""

import pytest

import lexrl
from lexrl import presets
from lexrl.run import plan

WORLDS = {"cart-safe": lexrl.cart_safe, "grid-nav": lexrl.grid_nav}
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
    assert run.steps == found.steps
    assert len(run.order.objectives) == (1 if algorithm in ("ppo", "a2c", "dqn") else 2)


def test_the_papers_table():
    found = presets.preset("ldqn", "cart-safe", "paper").algorithm
    assert (found.hidden, found.rollout, found.batch, found.capacity) == ((24, 24), 8, 8, 100_000)
    grid = presets.preset("ldqn", "grid-nav", "paper").algorithm
    assert (grid.hidden, grid.bias, grid.rollout, grid.batch, str(grid.tolerance)) == ((), False, 32, 32, "5%")


def test_what_is_not_there_is_said():
    with pytest.raises(lexrl.InputError, match="no preset 'tuned' for lppo on cart-pole; there are: lppo on cart-safe"):
        presets.preset("lppo", "cart-pole")
