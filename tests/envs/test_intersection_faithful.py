"""Intersection against highway-env itself: every sub-step from its own state, and whole episodes from its seeds."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import lexrl
from lexrl.envs.intersection import motion
from lexrl.envs.intersection.reference import state_of
from lexrl.envs.intersection.state import EGO, EXPONENT, IMPACT_X, IMPACT_Y

highway_env = pytest.importorskip("highway_env")
gymnasium = pytest.importorskip("gymnasium")

DT = 1 / 15


def make(env_id="intersection-v0"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gymnasium.make(env_id, disable_env_checker=True)


def live(state):
    """The parts of a state that mean something: vehicles that are there, impacts that are coming, routes ahead."""
    n, ego = state.counters[:2]
    vehicles, marks = state.vehicles[:n].copy(), state.marks[:n].copy()
    vehicles[marks[:, 1] == 0, IMPACT_X : IMPACT_Y + 1] = 0
    vehicles[ego, EXPONENT] = 0
    for row in marks:
        row[3 : 3 + row[6]] = 0
    return vehicles, marks, state.counters


def substeps(seed, actions, env_id="intersection-v0"):
    """For every sub-step of an episode: our state after it, from highway-env's before it, and highway-env's."""
    env = make(env_id)
    env.reset(seed=seed)
    inner = env.unwrapped
    for action in actions:
        for frame in range(15):
            before = state_of(env)
            if frame == 0:
                inner.action_type.act(action)
                before.vehicles[before.counters[EGO]] = state_of(env).vehicles[before.counters[EGO]]
            inner.road.act()
            inner.road.step(DT)
            motion.substep(before.vehicles, before.marks, before.counters, env_id == "intersection-v2")
            yield before, state_of(env)
        inner._clear_vehicles()
        inner._spawn_vehicle(spawn_probability=0.6)
        if inner.vehicle.crashed or inner.has_arrived(inner.vehicle):
            return


def largest_difference(pairs):
    """Of all numbers, and whether all flags, lanes and counters are the same."""
    worst, same, count = 0.0, True, 0
    for mine, theirs in pairs:
        (vehicles, marks, counters), (other, flags, counts) = live(mine), live(theirs)
        worst = max(worst, np.abs(vehicles - other).max())
        same = same and (marks == flags).all() and (counters == counts).all()
        count += 1
    return worst, same, count


@pytest.mark.parametrize(("seed", "env_id"), [(3, "intersection-v0"), (0, "intersection-v0"), (1, "intersection-v2")])
def test_every_substep(seed, env_id):
    actions = np.random.default_rng(seed).integers(3, size=6).tolist()
    worst, same, count = largest_difference(substeps(seed, actions, env_id))
    assert count >= 60
    assert same
    assert worst < 1e-9


def test_a_disturbed_gain_is_noticed(monkeypatch):
    from highway_env.vehicle.controller import ControlledVehicle

    monkeypatch.setattr(ControlledVehicle, "KP_LATERAL", ControlledVehicle.KP_LATERAL * (1 + 1e-3))
    worst, _, _ = largest_difference(substeps(3, [1, 1]))
    assert worst > 1e-9


def test_a_turned_right_of_way_is_noticed(monkeypatch):
    from highway_env.road.regulation import RegulatedRoad

    right = RegulatedRoad.respect_priorities
    monkeypatch.setattr(RegulatedRoad, "respect_priorities", staticmethod(lambda a, b: b if right(a, b) is a else a))
    assert not largest_difference(substeps(2, [1, 1, 1]))[1]


def episode(env, seed, actions):
    """Length, signals at the end and observations."""
    obs, _ = env.reset(seed=seed)
    seen = [obs]
    for action in actions:
        obs, _, terminated, truncated, info = env.step(int(action))
        seen.append(obs)
        if terminated or truncated:
            break
    rewards = info["rewards"]
    return len(seen) - 1, [float(rewards["collision_reward"]), float(rewards["arrived_reward"])], np.array(seen)


def ours(seed, actions):
    twin = gymnasium.make("lexrl/Intersection-v0")
    obs, _ = twin.reset(seed=seed)
    seen = [obs]
    for action in actions:
        obs, reward, terminated, truncated, _ = twin.step(int(action))
        seen.append(obs)
        if terminated or truncated:
            break
    return len(seen) - 1, reward.tolist(), np.array(seen)


@pytest.mark.parametrize("seed", range(4))
def test_whole_episodes(seed):
    actions = np.random.default_rng(seed).integers(3, size=13) if seed % 2 else np.full(13, 1)
    (length, ends, seen), (mine, signals, shown) = episode(make(), seed, actions), ours(seed, actions)
    assert (mine, signals) == (length, ends)
    np.testing.assert_allclose(shown, seen, atol=2e-3)


def test_the_loop_sees_the_same(capsys):
    """Trained on either for a few steps, an agent sees the same: keys become the same seeds."""
    algorithm = lexrl.A2C(num_envs=1, num_steps=4, networks=lexrl.Networks(hidden_sizes=(4,)))
    results = [
        lexrl.train(algorithm, name, "max arrived", seeds=1, total_timesteps=16, num_log_points=1)
        for name in ("intersection", "highway:intersection-v0")
    ]
    mine, theirs = (result.metrics["entropy"] for result in results)
    np.testing.assert_allclose(mine, theirs, rtol=1e-4)


BITS = """
import numpy as np
from tests.envs.test_intersection_faithful import episode, largest_difference, make, ours, substeps
assert largest_difference(substeps(3, [0, 2, 1, 2]))[:2] == (0.0, True)
for seed in range(2):
    actions = np.random.default_rng(seed).integers(3, size=13)
    (_, _, seen), (_, _, shown) = episode(make(), seed, actions), ours(seed, actions)
    assert seen.tobytes() == shown.tobytes()
"""


@pytest.mark.slow
def test_bit_for_bit_where_numpy_computes_as_the_c_library():
    """NumPy's vectorized functions and fused products round differently in the last digit; both can be turned off."""
    plain = {"NPY_DISABLE_CPU_FEATURES": "X86_V4", "OPENBLAS_CORETYPE": "Nehalem"}
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    where = {"PYTHONPATH": os.pathsep.join([root, *sys.path])}
    subprocess.run([sys.executable, "-c", BITS], env={**os.environ, **plain, **where}, check=True, timeout=600)
