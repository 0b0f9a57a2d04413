"""Numbers are data: a new value of anything that is a number runs the program there is, and only structure compiles."""

import jax
import numpy as np
import pytest

import lexrl
from lexrl import catalog, per_seed
from lexrl.loops import compiled, evaluation
from lexrl.loops.population import make_population
from lexrl.momdp import MOMDP
from lexrl.order import parse
from lexrl.schedules import Power
from lexrl.tolerance import Absolute, Relative
from loops import compiled_run

ORDER = parse("min cost > max reward")
SEEDS = (3, 7, 5)


def make_env(**changes):
    return lexrl.GridNav.generate(4, **({"map_seed": 1, "slip_probability": 0.3, "max_episode_steps": 12} | changes))


def make_algorithm(epsilon=0.3, **changes):
    given = {"tolerance": 0.05, "alpha": 0.2, "exploration": lexrl.EpsilonGreedy(epsilon), "initial_q": 0.5}
    return lexrl.QLearning(**(catalog.TEXTBOOK | given | changes))


def trained(algorithm=None, env=None, order=ORDER, seeds=SEEDS, steps=40, num_log_points=2):
    *_, end = compiled_run(
        algorithm or make_algorithm(), env or make_env(), order, seeds, steps, num_log_points=num_log_points
    )
    return end


def programs():
    return compiled._start._cache_size(), compiled._chunk._cache_size()


@pytest.fixture(autouse=True, scope="module")
def _warm():
    trained()


VALUES = {
    "tolerance": [{"algorithm": make_algorithm(tolerance=tau)} for tau in (0.0, 0.01, 3, "0.5", Absolute(1e9))],
    "learning rate": [{"algorithm": make_algorithm(alpha=alpha)} for alpha in (0.0, 0.01, 1, "0.3")],
    "epsilon": [{"algorithm": make_algorithm(epsilon)} for epsilon in (0.0, 0.05, 1)],
    "gamma": [{"algorithm": make_algorithm(gamma=gamma)} for gamma in (0.0, 0.5, 0.999, 1.0)],
    "initial value": [{"algorithm": make_algorithm(initial_q=first)} for first in (0.0, -7.5, 1e6)],
    "slip_probability": [{"env": make_env(slip_probability=slip)} for slip in (0.0, 0.25, 1.0)],
    "rewards": [
        {"env": make_env(goal_reward=goal, step_reward=step)} for goal in (1.0, 1000.0) for step in (-1.0, 0.5)
    ],
    "map": [{"env": make_env(map_seed=seed, obstacle_density=density)} for seed in range(3) for density in (0.0, 1.0)],
    "seeds": [{"seeds": seeds} for seeds in ((0, 1, 2), (9, 9, 9), (2**32 - 1, 0, 77))],
    "num_log_points": [{"steps": steps, "num_log_points": chunks} for steps in (1, 2, 61) for chunks in (1, 3, 1000)],
    "many at once": [{"algorithm": [make_algorithm(0.1 * i, gamma=0.3 * i, tolerance=1.0 * i) for i in range(3)]}],
}


@pytest.mark.parametrize("what", VALUES)
def test_values_never_compile(what):
    before = programs()
    for changes in VALUES[what]:
        trained(**changes)
    assert programs() == before


def test_values_reach_the_program():
    """The counter above would stand still, too, if values were ignored."""
    tables = [np.asarray(trained(**{"steps": 300} | changes).train_states.agent.q) for what in VALUES
              if what not in ("seeds", "num_log_points") for changes in VALUES[what]]  # fmt: skip
    assert len({table.tobytes() for table in tables}) >= len(tables) - 2  # some tolerances are as good as others


def test_structure_compiles_once():
    """And so the counter counts."""
    _, before = programs()
    trained(make_algorithm(tolerance=(Relative(0.1), Absolute(0.2)), gamma=(0.8, 0.9), alpha=Power(0.7)))
    assert programs()[1] == before + 1
    trained(make_algorithm(tolerance=(Relative(0.3), Absolute(0.0)), gamma=(0.1, 0.2), alpha=Power(1.0, 5.0)))
    assert programs()[1] == before + 1


def test_noise_and_rewards_of_finite_envs():
    def run(noise, seed):
        process = MOMDP.random(seed, 6, 3, 2, num_successors=3, episodic=True)
        env = lexrl.FiniteEnv(process, reward_noise=noise, max_episode_steps=6)
        trained(env=env, order=parse("max signal_2 > min signal_1"), seeds=range(30))

    run(0.1, 2)
    before = programs()
    for noise, seed in ((0.0, 2), (0.5, 2), (0.5, 3)):
        run(noise, seed)
    assert programs() == before


def test_a_env_each_compiles_once():
    def each(*slips):
        return per_seed([make_env(map_seed=i, slip_probability=slip) for i, slip in enumerate(slips)])

    trained(env=each(0.1, 0.2, 0.3))
    before = programs()
    trained(env=each(0.0, 0.7, 1.0), algorithm=[make_algorithm(gamma=0.2 * i) for i in range(3)])
    assert programs() == before


def test_evaluation():
    population = make_population(make_algorithm(), make_env(), ORDER, SEEDS)
    agents = compiled.start(population).agent
    evaluation.evaluate(population, agents, episodes=50)
    before = evaluation._play._cache_size()
    for gamma in (0.0, 0.9, 1.0, (0.3, 0.4)):
        evaluation.evaluate(population, agents, episodes=50, gamma=gamma)
    for episodes in (1, 51, 250):
        evaluation.evaluate(population, agents, episodes=episodes)
    assert evaluation._play._cache_size() == before
    evaluation.evaluate(population, agents, episodes=50, greedy=False)
    assert evaluation._play._cache_size() == before + 1


def test_a_list_of_algorithms_is_each_of_them_alone():
    each = [
        make_algorithm(0.1, tolerance=0.0, gamma=0.9, alpha=0.5),
        make_algorithm(0.9, tolerance=5.0, gamma=0.5, initial_q=20.0),
        make_algorithm(0.3),
    ]
    together = trained(each, seeds=(5, 5, 8), steps=300)
    tables = []
    for place, (algorithm, seed) in enumerate(zip(each, (5, 5, 8), strict=True)):
        alone = trained(algorithm, seeds=(seed,), steps=300)
        for one, other in zip(jax.tree.leaves(together.train_states), jax.tree.leaves(alone.train_states), strict=True):
            np.testing.assert_array_equal(np.asarray(one)[place], np.asarray(other)[0])
        tables.append(np.asarray(alone.train_states.agent.q))
    assert not np.array_equal(tables[0], tables[1])
