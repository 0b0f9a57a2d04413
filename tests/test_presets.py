"""Every preset fits its world and its order, and what is not there is said."""

import dataclasses

import jax
import numpy as np
import pytest

import lexrl
from lexrl import presets
from lexrl.runs import plan
from lexrl.schedules import Linear, OfRun

WORLDS = {"cart-safe": lexrl.CartSafe, "grid-nav": lexrl.GridNav.generate, "intersection": lexrl.Intersection}
KNOWN = [
    (name, world, algorithm)
    for name in ("paper", "tuned")
    for world in WORLDS
    for algorithm in presets.known(world, name)
]


@pytest.mark.parametrize(("name", "world", "algorithm"), KNOWN)
def test_a_preset_can_be_planned(name, world, algorithm):
    found = presets.preset(algorithm, world, name)
    run = plan(found.algorithm, WORLDS[world](**found.env_kwargs), found.order, 1, found.total_timesteps)
    assert run.total_timesteps == found.total_timesteps
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
    crossing = presets.preset("paper-lppo", "intersection", "paper")
    assert (crossing.algorithm.networks.hidden_sizes, crossing.algorithm.num_steps) == ((512, 512), 32)
    assert crossing.order == "min collision > max arrived"


def test_what_is_not_there_is_said():
    with pytest.raises(lexrl.InputError, match="no preset 'tuned' for lppo on cart-pole; there are: lppo on cart-safe"):
        presets.preset("lppo", "cart-pole")


@pytest.mark.parametrize("algorithm", ["lppo", "la2c"])
def test_the_papers_settings_are_for_the_papers_algorithm(algorithm):
    with pytest.raises(
        lexrl.InputError, match=f"no preset 'paper' for {algorithm} on grid-nav; .* is paper-{algorithm}"
    ):
        presets.preset(algorithm, "grid-nav", "paper")
    assert presets.find(f"paper-{algorithm}", "grid-nav", "paper") is not None


def test_find_says_whether_there_is_one():
    assert presets.find("lppo", "cart-pole") is None
    assert presets.find("lppo", "cart-safe") is not None
    assert presets.find("lppo", "CartPole-v1") is None


def short(steps=1500):
    """A thousandth of LDQN's preset."""
    return plan("ldqn", "cart-safe", seeds=1, total_timesteps=steps)


def test_a_shorter_run_ends_its_rates_sooner_and_has_a_smaller_buffer():
    whole, run = (plan("ldqn", "cart-safe", seeds=1, total_timesteps=steps) for steps in (None, 1500))
    assert (whole.total_timesteps, run.total_timesteps) == (1_500_000, 1500)
    assert 1500 <= run.algorithm.buffer_size < 2000
    assert whole.algorithm.epsilon == Linear(1.0, 0.05, 0.0667 * 1_500_000)
    assert run.algorithm.epsilon == Linear(1.0, 0.05, 0.0667 * 1504)  # 47 whole rollouts


@pytest.mark.parametrize(("name", "world", "algorithm"), KNOWN)
def test_schedules_follow_the_length_of_the_run(name, world, algorithm):
    """No preset has an absolute length, which would not fit a run of another one."""
    settings = presets.preset(algorithm, world, name).algorithm
    schedules = jax.tree.leaves(settings, is_leaf=lambda part: isinstance(part, Linear))
    assert all(isinstance(part.steps, OfRun) for part in schedules if isinstance(part, Linear))


@pytest.mark.slow
def test_a_shorter_run_learns_the_same_in_a_smaller_buffer():
    """Nothing in the buffer is overwritten, so the numbers are the same."""
    run = short()
    large = dataclasses.replace(run, algorithm=dataclasses.replace(run.algorithm, buffer_size=9600))
    one, other = (lexrl.train(each) for each in (run, large))
    np.testing.assert_array_equal(one.agent().agent.net.weights[0], other.agent().agent.net.weights[0])
    assert one.agent().agent.num_updates > 0


def test_a_buffer_that_is_filled_keeps_its_size():
    algorithm = lexrl.LDQN(num_envs=4, num_steps=4, buffer_size=640, learning_starts=64)
    assert plan(algorithm, "cart-safe", presets.SAFE, 1, 10_000).algorithm.buffer_size == 640


def test_the_oracle_of_a_shorter_run_has_a_smaller_buffer_too():
    run = plan("appropo", "cart-safe", seeds=1, total_timesteps=10_000)
    assert run.algorithm.oracle.buffer_size < 2 * run.total_timesteps
