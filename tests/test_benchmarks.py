"""The benchmarks are scripts: Python looks for modules beside them first."""

import importlib
import importlib.metadata
import pathlib
import sys

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl

FOLDER = pathlib.Path(__file__).parents[1] / "benchmarks"


def test_their_names_hide_no_package():
    names = {script.stem for script in FOLDER.glob("*.py")}
    assert "tabular" in names
    assert not names & (importlib.metadata.packages_distributions().keys() | sys.stdlib_module_names)


def test_what_is_timed_knows_the_length_of_its_run(monkeypatch):
    """The defaults of an algorithm last for fractions of a run."""
    monkeypatch.syspath_prepend(FOLDER)
    deep = importlib.import_module("deep")
    monkeypatch.setattr(deep, "SEEDS", [0])
    algorithm = lexrl.LDQN(num_envs=4, hidden_sizes=(4,), batch_size=4, buffer_size=64, learning_starts=8)
    assert deep.ours(algorithm, lexrl.CartSafe(), deep.ORDER, 64)() > 0


def test_mazes_have_a_way_to_the_goal(monkeypatch):
    """The exact optimum takes as many moves as the map says, and meets no hazard."""
    monkeypatch.syspath_prepend(FOLDER)
    mazes = importlib.import_module("mazes")
    for number in range(3):
        hazards, away = mazes.draw_hazards(5, number)
        solution = lexrl.solve(mazes.maze(hazards).momdp(1.0), mazes.ORDER)
        np.testing.assert_allclose(solution.returns, [0, 1, -away])


TASKS = {
    "Acrobot": ("Acrobot-v1", 500),
    "MountainCar": ("MountainCar-v0", 200),
    "CenteredCartPole": ("CartPole-v1", 30),
    "Pendulum": ("Pendulum-v1", 200),
}


@pytest.mark.parametrize("name", TASKS)
def test_compiled_classics_move_as_gymnasiums(name, monkeypatch):
    """Each step begins where Gymnasium's is; rounding would otherwise grow, as these systems are chaotic."""
    monkeypatch.syspath_prepend(FOLDER)
    env, step = vars(importlib.import_module("classic"))[name](), None
    theirs = gymnasium.make(TASKS[name][0]).unwrapped
    theirs.reset(seed=1)
    theirs.action_space.seed(1)
    key, play = jax.random.key(0), jax.jit(env.step)
    for _ in range(TASKS[name][1]):
        action = theirs.action_space.sample()
        step = play(jnp.asarray(theirs.state, jnp.float32), jnp.asarray(action), key)
        obs, reward, terminated, _, _ = theirs.step(action)
        np.testing.assert_allclose(step.obs, obs, atol=2e-5)
        assert (step.discount == 0) == terminated
        if name == "Pendulum":
            np.testing.assert_allclose(step.signals[0] - 0.001 * step.signals[1], reward, atol=2e-5)
        if terminated:
            theirs.reset()


@pytest.mark.parametrize("name", TASKS)
def test_compiled_classics_begin_as_gymnasiums(name, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    env = vars(importlib.import_module("classic"))[name]()
    theirs = gymnasium.make(TASKS[name][0])
    first = np.array([theirs.reset(seed=seed)[0] for seed in range(500)])
    ours = np.asarray(jax.vmap(env.reset)(jax.random.split(jax.random.key(0), 500))[1])
    assert env.spec.max_episode_steps == theirs.spec.max_episode_steps
    np.testing.assert_allclose(ours.mean(axis=0), first.mean(axis=0), atol=0.15 * np.abs(first).max())
    np.testing.assert_allclose(np.abs(ours).max(axis=0), np.abs(first).max(axis=0), rtol=0.05, atol=1e-6)


def test_rates_have_wilsons_interval_and_seeds_a_target(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    policies = importlib.import_module("intersection_policies")
    none, some = policies.rate(np.zeros(300)), policies.rate(np.arange(100) < 5)
    np.testing.assert_allclose(none, (0.0, 0.0, 0.0126), atol=1e-4)
    np.testing.assert_allclose(some, (0.05, 0.0215, 0.1118), atol=1e-4)

    def within(collisions, arrivals, episodes=2000):
        rates = [policies.rate(np.arange(episodes) < number) for number in (collisions, arrivals)]
        return policies.Row("a policy", 0, *rates, 10.0).within_target

    assert within(98, 1000)
    assert not within(101, 1000)
    assert not within(90, 999)
    assert not within(5, 50, episodes=100)  # its interval is too wide
