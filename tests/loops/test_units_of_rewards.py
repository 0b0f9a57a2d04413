"""Units do not matter: rewards of any objective times a power of 2, and its absolute tolerance with them, give the same
policies, bit for bit, in both loops.

All members have the same seed, and differ in the units of their environment: one program trains them all.
"""

import dataclasses

import jax
import numpy as np
import pytest

import lexrl
from lexrl import MOMDP, FiniteEnv, per_seed
from lexrl.order import parse
from loops import compiled_run, host_run

POWERS = {
    2: ((0, 0), (-20, 0), (0, 20), (20, -20), (7, 7), (-3, 20), (20, -3), (-20, 7)),
    3: ((0, 0, 0), (-20, 20, 7), (20, -3, -20), (-3, 7, 20)),
    1: ((0,), (-20,), (-3,), (7,), (20,)),
}
ORDERS = {
    1: "max signal_1",
    2: "max signal_1 > min signal_2",
    3: "max signal_1 > min signal_2 > max signal_3",
}
SEED, UPDATES = 5, 24
SMALL = {
    "num_envs": 4,
    "num_steps": 8,
    "gamma": 0.9,
    "learning_rate": 0.02,
    "networks": lexrl.Networks(hidden_sizes=(8,)),
}
MINIBATCHES = {"num_epochs": 2, "num_minibatches": 2}
CASES = {
    "LPPO": (lexrl.LPPO(**SMALL, **MINIBATCHES, stages=lexrl.Stages(budget=float(UPDATES))), 2),
    "Projection": (lexrl.Projection(**SMALL, **MINIBATCHES, stages=lexrl.Stages(budget=float(UPDATES))), 3),
    "LA2C": (lexrl.LA2C(**SMALL, stages=lexrl.Stages(budget=float(UPDATES))), 3),
    "PPO": (lexrl.PPO(**SMALL, **MINIBATCHES), 1),
    "A2C": (lexrl.A2C(**SMALL), 1),
}
TAU = (0.25, 0.125, 0.5)
HOST = 1
"""Of the members in other units, the one that is also stepped from Python."""


def env_in(units, m):
    """Five states, three actions, episodes of one to six steps; the rewards of each signal in its own unit."""
    process = MOMDP.random(4, 5, 3, m, num_successors=2, episodic=True)
    scale = 2.0 ** np.array(units, float)
    single = process.outcome_rewards.astype(np.float32).astype(np.float64)  # what a device makes of it scales exactly
    scaled = dataclasses.replace(
        process, rewards=process.rewards * scale[:, None, None], outcome_rewards=single * scale
    )
    return FiniteEnv(scaled, max_episode_steps=6)


def in_units(algorithm, units, m):
    if m == 1:
        return algorithm
    return dataclasses.replace(
        algorithm, tolerance=tuple(tau * 2.0**power for tau, power in zip(TAU, units, strict=False))
    )


def policies(train_states):
    """What decides about actions: the actor, and with several objectives everything that is kept of it."""
    state = train_states.agent
    kept = () if "course" not in state._fields or state.course is None else (
        state.course.average, state.course.references, state.course.candidates, multipliers_of(state.course),
        state.course.stages.stage, state.course.stages.found,
    )  # fmt: skip
    return state.agent.actor, kept


def multipliers_of(course):
    """Projection has none."""
    return None if course.multipliers is None else course.multipliers.log


@pytest.mark.parametrize("name", CASES)
def test_the_same_policies_in_any_units(name):
    algorithm, m = CASES[name]
    steps = UPDATES * algorithm.num_envs * algorithm.num_steps
    order, powers = parse(ORDERS[m]), POWERS[m]
    each = [in_units(algorithm, units, m) for units in powers]
    envs = [env_in(units, m) for units in powers]
    *_, end = compiled_run(each, per_seed(envs), order, [SEED] * len(powers), steps, num_log_points=1)
    assert not end.faults
    leaves = jax.tree_util.tree_leaves_with_path(policies(end.train_states))
    for path, leaf in leaves:
        found = np.asarray(leaf)[: len(powers)]
        for position, units in enumerate(powers):
            where = f"{jax.tree_util.keystr(path)}, {units}"
            np.testing.assert_array_equal(found[position], found[0], err_msg=where)
    *_, stepped = host_run(each[HOST], envs[HOST], order, [SEED], steps, num_log_points=1)
    _same_in_both_loops(leaves, jax.tree.leaves(policies(stepped.train_states)), m)
    if m > 1:  # else it would prove little
        course = end.train_states.agent.course
        assert (np.asarray(course.stages.stage)[: len(powers)] == m - 1).all()
        if name != "Projection":
            assert np.abs(np.asarray(multipliers_of(course))[: len(powers)]).max() > 0.1


def _same_in_both_loops(compiled_leaves, stepped_leaves, m):
    """On some processors (seen: a Xeon with AVX-512) XLA rounds gradients of three outputs differently for one member
    than for several side by side: the two loops then agree only to the last digits, and the test says so."""
    for (path, leaf), other in zip(compiled_leaves, stepped_leaves, strict=True):
        mine, theirs, where = np.asarray(leaf)[0], np.asarray(other)[0], jax.tree_util.keystr(path)
        if m == 3 and not np.array_equal(mine, theirs):
            np.testing.assert_allclose(theirs, mine, rtol=1e-3, atol=1e-4, err_msg=f"{where}, stepped from Python")
            pytest.xfail("gradients of three outputs are rounded differently side by side on this processor")
        np.testing.assert_array_equal(theirs, mine, err_msg=f"{where}, stepped from Python")
