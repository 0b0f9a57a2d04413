"""Intersection without highway-env: NumPy's random numbers, a stored trace, saved states, bad input, pictures."""

import importlib
import pathlib
import subprocess
import sys

import jax
import numpy as np
import pytest

import lexrl
from lexrl import store
from lexrl.colors import BLUE, RED
from lexrl.envs import batched
from lexrl.envs.intersection import generator, roads
from lexrl.envs.intersection.state import COUNT, CRASHED, EGO, LANE, X, Y
from lexrl.errors import InputError
from lexrl.loops import host
from lexrl.loops.population import make_population
from lexrl.order import parse
from lexrl.runs import pipeline
from lexrl.types import Savable, SavableBatchedEnv

BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"
TRACE = pathlib.Path(__file__).with_name("intersection_trace.npz")
ENV = lexrl.Intersection()
ORDER = parse("min collision > max arrived")
SLOWER, IDLE, FASTER = range(3)


def play(seeds, actions, env=ENV):
    """Lengths, last signals and observations `[episodes, T + 1, 15, 7]`, 0 after the end; `actions[episodes, T]`."""
    n, steps = np.shape(actions)
    state = env.empty_state(n)
    obs, _, _ = env.advance(state, np.ones(n, bool), np.array(seeds), np.full(n, -1))
    seen, lengths, ends = np.zeros((n, steps + 1, 15, 7), np.float32), np.zeros(n, int), np.zeros((n, 2))
    seen[:, 0], running = obs, np.ones(n, bool)
    for time in range(steps):
        chosen = np.where(running, np.asarray(actions)[:, time], -1)
        obs, signals, discount = env.advance(state, np.zeros(n, bool), np.zeros(n), chosen)
        seen[running, time + 1], ends[running] = obs[running], signals[running]
        lengths += running
        running &= discount > 0
    return lengths, ends, seen


@pytest.mark.parametrize("seed", [0, 1, 4_294_967_295])
def test_the_random_numbers_are_numpys(seed):
    state, theirs = np.zeros(6, np.uint64), np.random.default_rng(seed)
    generator.seed_generator(state, seed)
    for _ in range(3_000):
        assert generator.uniform(state) == theirs.uniform()
        assert generator.two_of_four(state) == tuple(theirs.choice(range(4), size=2, replace=False))
        assert generator.normal(state) == theirs.normal()


def test_even_those_of_the_tail():
    state, theirs = np.zeros(6, np.uint64), np.random.default_rng(9)
    generator.seed_generator(state, 9)
    drawn = [(generator.normal(state), theirs.normal()) for _ in range(40_000)]
    assert max(abs(mine) for mine, _ in drawn) > generator.TAIL
    assert all(mine == other for mine, other in drawn)


def test_a_stored_trace_of_highway_env():
    """20 episodes that highway-env 1.12.1 played. Last digits may differ where the machine's functions round otherwise,
    and grow; nearly all numbers are the same."""
    kept = np.load(TRACE)
    lengths, ends, seen = play(kept["seeds"], kept["actions"])
    np.testing.assert_array_equal(lengths, kept["lengths"])
    np.testing.assert_array_equal(ends, kept["ends"])
    np.testing.assert_allclose(seen, kept["observations"], atol=2e-3)
    assert (seen == kept["observations"]).mean() > 0.99
    assert {tuple(end) for end in kept["ends"].tolist()} == {(0, 0), (1, 0), (0, 1)}  # all that can happen is in it


def test_the_trace_notices_other_dynamics():
    kept = np.load(TRACE)
    lengths, _, seen = play(kept["seeds"], kept["actions"], lexrl.Intersection(connected_lanes=True))
    assert (lengths != kept["lengths"]).any()
    assert np.abs(seen - kept["observations"]).max() > 0.1


def test_running_out_of_time_may_end_the_task():
    """The episode is the same, and only its last step differs."""
    kinds = [lexrl.Intersection(max_episode_steps=5, timeout_terminates=ends) for ends in (False, True)]
    steps = []
    for env in kinds:
        state, _ = env.begin(0)
        for _ in range(5):
            steps.append(env.step(state, 0))
            state = steps[-1].state
    truncated, terminated = steps[:5], steps[5:]
    assert [float(step.discount) for step in truncated] == [1.0] * 5
    assert [float(step.discount) for step in terminated] == [1.0] * 4 + [0.0]
    for one, other in zip(truncated, terminated, strict=True):
        np.testing.assert_array_equal(one.obs, other.obs)
        np.testing.assert_array_equal(one.signals, other.signals)


def test_the_time_can_be_observed(monkeypatch):
    """It is a feature of the ego's row; what else is observed stays the same."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    with_time = importlib.import_module("intersection_policies").with_time
    plain, timed = ENV, lexrl.Intersection(observe_time=True)
    assert timed.spec.observation_space.shape == (15, 8)
    (state, obs), (other, seen) = plain.begin(0), timed.begin(0)
    for time in range(4):
        np.testing.assert_allclose(seen, with_time(obs, time), rtol=1e-6)
        step, also = plain.step(state, SLOWER), timed.step(other, SLOWER)
        (state, obs), (other, seen) = step[:2], also[:2]


def test_lanes_meet():
    """Every lane of a route begins where the one before it ends."""

    def end(lane):
        one = roads.LANES[lane]
        if not one.radius:
            return one.x + one.length * one.along_x, one.y + one.length * one.along_y
        phase = one.phase + one.turn * one.length / one.radius
        return one.x + one.radius * np.cos(phase), one.y + one.radius * np.sin(phase)

    def start(lane):
        one = roads.LANES[lane]
        if not one.radius:
            return one.x, one.y
        return one.x + one.radius * np.cos(one.phase), one.y + one.radius * np.sin(one.phase)

    for origin in range(4):
        for destination in set(range(4)) - {origin}:
            first, second, third = roads.ROUTES[origin, destination]
            np.testing.assert_allclose(end(first), start(second), atol=1e-9)
            np.testing.assert_allclose(end(second), start(third), atol=1e-9)


class TestBlindPolicies:
    """What the three blind policies reach, within what 400 episodes can tell (four standard deviations)."""

    def rates(self, actions):
        lengths, ends, _ = play(range(len(actions)), actions)
        return ends.mean(axis=0), lengths

    def test_slower_stops(self):
        (collision, arrived), lengths = self.rates(np.full((400, 13), SLOWER))
        assert collision <= 0.005
        assert arrived == 0
        assert lengths.mean() > 12.9

    @pytest.mark.parametrize("action", [IDLE, FASTER])
    def test_idle_and_faster_drive_across(self, action):
        (collision, arrived), lengths = self.rates(np.full((400, 13), action))
        assert collision == pytest.approx(0.502, abs=0.1)
        assert arrived == pytest.approx(0.505, abs=0.1)
        assert lengths.mean() == pytest.approx(7.36, abs=0.5)

    def test_random(self):
        (collision, arrived), _ = self.rates(np.random.default_rng(0).integers(3, size=(400, 13)))
        assert collision == pytest.approx(0.44, abs=0.1)
        assert arrived == pytest.approx(0.175, abs=0.08)


def keys_of(n, seed=0):
    keys = jax.random.split(jax.random.key(seed), n)
    return lambda: keys


class TestSideBySide:
    def test_one_does_not_depend_on_the_others(self):
        actions = np.random.default_rng(1).integers(3, size=(5, 13))
        together = play(range(5), actions)
        for i in range(5):
            for whole, alone in zip(together, play([i], actions[i : i + 1]), strict=True):
                np.testing.assert_array_equal(whole[i], alone[0])

    def test_only_some_are_reset(self):
        envs = ENV.batched(3)
        first = envs.reset(np.ones(3, bool), keys_of(3))
        before = envs.save()
        again = envs.reset(np.array([False, True, False]), keys_of(3, 1))
        after = envs.save()
        assert (again[1] != first[1]).any()
        for old, new in zip(before, after, strict=True):
            np.testing.assert_array_equal(old[[0, 2]], new[[0, 2]])

    def test_saved_and_restored(self):
        assert isinstance(ENV, Savable)
        envs, other = ENV.batched(4), ENV.batched(4)
        assert isinstance(envs, SavableBatchedEnv)
        envs.reset(np.ones(4, bool), keys_of(4))
        envs.step(np.array([0, 1, 2, 0]), keys_of(4))
        kept = envs.save()
        one = [envs.step(np.array([2, 2, 0, 1]), keys_of(4)) for _ in range(3)]
        other.restore(kept)
        two = [other.step(np.array([2, 2, 0, 1]), keys_of(4)) for _ in range(3)]
        jax.tree.map(np.testing.assert_array_equal, one, two)
        jax.tree.map(np.testing.assert_array_equal, envs.save(), other.save())

    def test_a_single_one_is_the_same(self):
        envs = ENV.batched(1)
        state, obs = ENV.begin(7)
        envs.restore(jax.tree.map(lambda part: part[None], state))
        step = ENV.step(state, FASTER)
        batch = envs.step(np.array([FASTER]), keys_of(1))
        np.testing.assert_array_equal(step.obs, batch.obs[0])
        np.testing.assert_array_equal(obs, play([7], [[0]])[2][0, 0])
        assert ENV.begin(7)[0].counters.tolist() == state.counters.tolist()  # the state given was not changed


LPPO = lexrl.LPPO(
    networks=lexrl.Networks(hidden_sizes=(8,)),
    num_envs=3,
    num_steps=8,
    num_minibatches=2,
    num_epochs=2,
    stages=lexrl.Stages(budget=6.0),
)


def chunks(kept=None):
    population = make_population(LPPO, ENV, ORDER, (3, 5))
    begun = host.start(population, ENV) if kept is None else kept
    return list(host.advance(population, ENV, begun, 24 * 6, num_log_points=3))


def test_a_resumed_run_is_the_same_without_replaying(monkeypatch, tmp_path):
    whole = chunks()
    monkeypatch.setattr(batched, "_replay", lambda *given: pytest.fail("actions were replayed"))
    kept = jax.tree.map(np.array, whole[0].train_states)
    assert kept.env_state.vehicles.dtype == np.float64
    resumed = chunks(kept)
    same = jax.tree.map(lambda a, b: np.asarray(a).tobytes() == np.asarray(b).tobytes(), whole[1:], resumed)
    assert jax.tree.all(same)


def test_a_checkpoint_on_disk_holds_the_state(tmp_path):
    results = []

    def stop(result):
        results.append(result)
        if len(results) == 2:
            raise KeyboardInterrupt

    settings = {"seeds": 1, "total_timesteps": 24 * 6, "num_log_points": 3, "eval_episodes": 2}
    whole = lexrl.train(LPPO, "intersection", str(ORDER), out=tmp_path / "whole", **settings)
    with pytest.raises(KeyboardInterrupt):
        lexrl.train(LPPO, "intersection", str(ORDER), out=tmp_path / "part", callback=stop, **settings)
    found, _ = pipeline.latest_checkpoint(tmp_path / "part", store.read_identity(tmp_path / "part"))
    assert found.arrays["train_state/env_state/vehicles"].dtype == np.float64
    resumed = lexrl.resume(tmp_path / "part")
    np.testing.assert_array_equal(whole.metrics["episode_return"], resumed.metrics["episode_return"])
    jax.tree.map(np.testing.assert_array_equal, whole.policies[0].state, resumed.policies[0].state)


def test_what_was_spent_can_be_observed():
    """VaR-AC observes the collisions so far, beside the flattened rows."""
    small = lexrl.Networks(hidden_sizes=(8,))
    algorithm = lexrl.VaRAC(chance_constraints="collision <= 1 with 0.95", networks=small, num_envs=2, num_steps=8)
    result = lexrl.train(algorithm, "intersection", str(ORDER), seeds=1, total_timesteps=64, num_log_points=1)
    env = result.run.env
    assert env.spec.observation_space.shape == (15 * 7 + 1,)
    envs = env.batched(2)
    obs = envs.reset(np.ones(2, bool), keys_of(2))
    np.testing.assert_array_equal(env.inner_observation(obs)[:, 0, 0], [1, 1])
    total = sum(envs.step(np.full(2, IDLE), keys_of(2)).signals[:, 0] for _ in range(8))
    np.testing.assert_array_equal(envs.save().sums[:, 0], total)


class TestBadInput:
    @pytest.mark.parametrize(
        ("settings", "sentence"),
        [
            ({"initial_vehicle_count": -1}, "initial_vehicle_count is -1; it must be 1 or more."),
            ({"initial_vehicle_count": 21}, "initial_vehicle_count is 21; it must be 20 or less."),
            ({"spawn_probability": 1.5}, "spawn_probability is 1.5; it must be a number from 0 to 1."),
            ({"max_episode_steps": 0}, "max_episode_steps is 0; it must be 1 or more."),
        ],
    )
    def test_settings(self, settings, sentence):
        with pytest.raises(InputError, match=sentence):
            lexrl.make_env("intersection", **settings)

    @pytest.mark.parametrize("action", [3, -1, 1.5, "FASTER", None, [1]])
    def test_actions(self, action):
        state, _ = ENV.begin(3)
        with pytest.raises(InputError, match=r"it must be 0 \(SLOWER\), 1 \(IDLE\) or 2 \(FASTER\)"):
            ENV.step(state, action)

    @pytest.mark.parametrize(("seed", "sentence"), [(-1, "0 or more"), (2**32, "or less")])
    def test_seeds(self, seed, sentence):
        with pytest.raises(InputError, match=f"seed is {seed}; it must be .*{sentence}"):
            ENV.begin(seed)

    def test_a_setting_that_is_not_there(self):
        with pytest.raises(InputError, match="intersection has no setting 'lanes'; its settings are initial_vehicle_"):
            lexrl.make_env("intersection", lanes=2)

    def test_without_the_compiler(self):
        program = "import sys; sys.modules['numba'] = None; from lexrl import cli; cli.main(sys.argv[1:])"
        command = [sys.executable, "-c", program, "train", "lppo", "intersection", "--seeds", "1"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 2
        assert "pip install 'lexrl[intersection]'" in " ".join((done.stdout + done.stderr).split())


def test_crowded_roads_and_long_episodes_stay_within_the_arrays():
    env = lexrl.Intersection(initial_vehicle_count=20, spawn_probability=1.0, max_episode_steps=60)
    envs = env.batched(8)
    envs.reset(np.ones(8, bool), keys_of(8))
    for _ in range(60):
        envs.step(np.zeros(8, int), keys_of(8))
    state = envs.save()
    assert (state.counters[:, COUNT] <= state.vehicles.shape[1]).all()
    assert np.isfinite(state.vehicles).all()


def pixels(frame, color):
    return (frame == np.frombuffer(bytes.fromhex(color[1:]), np.uint8)).all(axis=-1)


class TestPicture:
    def test_the_ego_is_where_it_is(self):
        state, _ = ENV.begin(0)
        ego = state.vehicles[state.counters[EGO]]
        state.vehicles[state.counters[EGO], Y] = 40.0  # inside the picture
        frame = ENV.render(state)
        assert frame.shape == (600, 600, 3)
        assert frame.dtype == np.uint8
        rows, columns = np.nonzero(pixels(frame, BLUE))
        assert columns.mean() / 5 - 60 == pytest.approx(ego[X], abs=0.5)
        assert rows.mean() / 5 - 60 == pytest.approx(40.0, abs=0.7)  # south is below

    def test_a_crash_is_marked(self):
        state, _ = ENV.begin(0)
        assert not pixels(ENV.render(state), RED).any()
        state.vehicles[state.counters[EGO], Y] = 40.0
        state.marks[state.counters[EGO], CRASHED] = 1
        assert pixels(ENV.render(state), RED).sum() > 50

    def test_every_vehicle_is_drawn(self):
        state, _ = ENV.begin(1)
        blank = jax.tree.map(np.copy, state)
        blank.counters[COUNT] = 0
        inside = [i for i in range(state.counters[COUNT]) if np.abs(state.vehicles[i, [X, Y]]).max() < 55]
        changed = (ENV.render(state) != ENV.render(blank)).any(axis=-1)
        for i in inside:
            column, row = ((state.vehicles[i, [X, Y]] + 60) * 5).astype(int)
            assert changed[row - 3 : row + 3, column - 3 : column + 3].any()
        assert len(inside) > 2


def test_vehicles_are_on_the_lane_that_is_closest():
    state, _ = ENV.begin(2)
    for i in range(int(state.counters[COUNT])):
        lane = roads.LANES[state.marks[i, LANE]]
        if not lane.radius:
            delta = state.vehicles[i, [X, Y]] - (lane.x, lane.y)
            assert abs(delta @ (-lane.along_y, lane.along_x)) < roads.WIDTH / 2
