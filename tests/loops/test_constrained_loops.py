"""Constrained algorithms in both loops: compiled with others and stepped from Python alone, the same bits; also if
cut differently or resumed; and new limits do not compile."""

import jax
import numpy as np
import pytest

import lexrl
from lexrl import PIDLagrangian
from lexrl.constraints import as_limits
from lexrl.envs.cost_aware import CostAwareObservation
from lexrl.loops import compiled
from lexrl.loops.population import make_population
from lexrl.order import parse
from loops import compiled_run, host_run

CART, ORDER = lexrl.CartSafe(observe_cos_sin=True, max_episode_steps=30), parse("min cost > max reward")
SMALL = lexrl.Networks(hidden_sizes=(8,))
LAGRANGIAN = PIDLagrangian(ki=lexrl.schedules.Constant(1.0), stats_window_size=5.0, kp=0.1, kd=0.1)
COMMON = {"networks": SMALL, "num_envs": 4, "learning_rate": 0.01, "lagrangian": LAGRANGIAN}
ORACLE = lexrl.DQN(
    hidden_sizes=(8,),
    num_envs=4,
    num_steps=4,
    learning_starts=64,
    buffer_size=128,
    batch_size=16,
    target_update_interval=32,
    learning_rate=0.01,
    epsilon=0.3,
)
ALGORITHMS = {
    "RCPO": lambda least: lexrl.RCPO(constraints=f"cost <= {least}", num_steps=8, **COMMON),
    "PPOLagrangian": lambda least: lexrl.PPOLagrangian(
        constraints=f"cost <= {least}", num_steps=16, num_minibatches=2, num_epochs=2, **COMMON
    ),
    "VaRAC": lambda least: lexrl.VaRAC(
        chance_constraints=f"cost <= {least} with 0.9", num_steps=8, risk_measure="cvar", **COMMON
    ),
    "ApproPO": lambda least: lexrl.ApproPO(
        target_set=f"reward in 20..60, cost in 0..{least}", mixture_size=4, oracle=ORACLE
    ),
}
SEEDS, STEPS = (4, 3, 9), 640


def make_env(name):
    return CostAwareObservation.wrap(CART, as_limits("cost <= 2")) if name == "VaRAC" else CART


def member(tree, place):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[place], tree)


def same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for (path, mine), theirs in zip(jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(mine, theirs, err_msg=jax.tree_util.keystr(path))


class Case:
    def __init__(self, name):
        self.name, self.algorithm, self.env = name, ALGORITHMS[name](2), make_env(name)
        self.end = list(compiled_run(self.algorithm, self.env, ORDER, SEEDS, STEPS, num_log_points=5))[-1]


EVERY_DAY = ("RCPO", "ApproPO")


@pytest.fixture(
    scope="module",
    params=[name if name in EVERY_DAY else pytest.param(name, marks=pytest.mark.slow) for name in ALGORITHMS],
)
def case(request):
    return Case(request.param)


def test_the_run_has_something_to_show(case):
    agent = case.end.train_states.agent
    if case.name == "ApproPO":
        assert (np.asarray(agent.num_direction_updates)[:3] > 4).all()
        assert np.abs(np.asarray(agent.direction)[:3]).sum() > 0
    else:
        assert (np.asarray(agent.lagrangian.num_episodes)[:3] >= 12).all()
    assert case.end.faults == {}


def test_stepped_from_python_alone(case):
    *_, end = host_run(case.algorithm, case.env, ORDER, [3], STEPS, num_log_points=2)
    same(member(case.end.train_states.agent, 1), member(end.train_states.agent, 0))


def test_taken_up_again_in_other_parts(case):
    population = make_population(case.algorithm, case.env, ORDER, SEEDS)
    *_, half = compiled.advance(population, compiled.start(population), 300, num_log_points=2)
    *_, end = compiled.advance(population, half.train_states, STEPS, num_log_points=1)
    same(case.end.train_states.agent, end.train_states.agent)


def test_new_limits_do_not_compile(case):
    before = compiled._start._cache_size(), compiled._chunk._cache_size()
    *_, end = compiled_run(ALGORITHMS[case.name](1), case.env, ORDER, SEEDS, STEPS, num_log_points=5)
    assert (compiled._start._cache_size(), compiled._chunk._cache_size()) == before
    if case.name == "ApproPO":  # its direction shows it
        assert not np.array_equal(end.train_states.agent.direction, case.end.train_states.agent.direction)


def test_evaluated_alike_in_both_loops():
    """Of a mixture, both draw the same part for an episode."""

    class Stepped:
        """The environment as if it were one in Python."""

        spec = CART.spec
        reset, step = staticmethod(jax.jit(CART.reset)), staticmethod(jax.jit(CART.step))

    algorithm = ALGORITHMS["ApproPO"](2)
    # All three seeds, so that the program is the one the tests above have compiled.
    shown = lexrl.train(algorithm, CART, ORDER, seeds=SEEDS, total_timesteps=STEPS, num_log_points=1)
    stepped = lexrl.train(algorithm, Stepped(), ORDER, seeds=[3], total_timesteps=STEPS, num_log_points=1)
    np.testing.assert_allclose(shown.evaluate(12).returns[1:2], stepped.evaluate(12).returns, rtol=1e-4)
