"""The worlds through Gymnasium: its checker, the same states as in JAX, and rewards by MO-Gymnasium's convention."""

import pickle
import subprocess
import sys
import warnings

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import lexrl
from lexrl.envs import registration
from lexrl.errors import InputError

NAMES = ["lexrl/CartSafe-v0", "lexrl/MountainCarSafe-v0", "lexrl/GridNav-v0", "lexrl/Intersection-v0"]
SETTINGS = [
    ("lexrl/CartSafe-v0", {"effort_signal": True, "observe_cos_sin": True}, lexrl.CartSafe),
    ("lexrl/MountainCarSafe-v0", {"cost_boundary": -0.6}, lexrl.MountainCarSafe),
    ("lexrl/GridNav-v0", {"size": 6, "map_seed": 3, "slip_probability": 0.5}, lexrl.GridNav.generate),
    ("lexrl/GridNav-v0", {"size": 6, "one_hot": True}, lexrl.GridNav.generate),
]


class Summed(gymnasium.RewardWrapper, gymnasium.utils.RecordConstructorArgs):
    """Gymnasium's checker knows rewards of one number only, and makes what it checks once more."""

    def __init__(self, env):
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        gymnasium.RewardWrapper.__init__(self, env)

    def reward(self, reward):
        return float(reward.sum())


@pytest.mark.parametrize(
    ("name", "settings"),
    [*(one[:2] for one in SETTINGS), ("lexrl/Intersection-v0", {"connected_lanes": True})],
)
def test_gymnasium_has_nothing_to_complain_about(name, settings):
    env = gymnasium.make(name, render_mode="rgb_array", **settings)
    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always")
        check_env(Summed(env.unwrapped))
    expected = ("different from the unwrapped version", "infinity")
    left = [str(one.message) for one in complaints if not any(part in str(one.message) for part in expected)]
    assert left == []


@pytest.mark.parametrize(("name", "settings", "build"), SETTINGS)
def test_the_same_states_as_in_jax(name, settings, build):
    env, world = gymnasium.make(name, **settings), build(**settings)
    obs, _ = env.reset(seed=11)
    key = jax.random.key(env.unwrapped.episode)
    state, seen = world.reset(jax.random.fold_in(key, 0))
    np.testing.assert_array_equal(obs, seen)
    env.action_space.seed(0)
    step = jax.jit(lambda world, *rest: world.step(*rest))
    for time in range(1, 31):
        action = env.action_space.sample()
        obs, reward, terminated, truncated, info = env.step(action)
        answer = step(world, state, action, jax.random.fold_in(key, time))
        jax.tree.map(np.testing.assert_array_equal, env.unwrapped.state, jax.device_get(answer.state))
        np.testing.assert_array_equal(obs, answer.obs)
        np.testing.assert_array_equal(reward, answer.signals)
        assert terminated == (answer.discount == 0)
        assert not truncated
        assert obs in env.observation_space
        assert reward in env.unwrapped.reward_space
        assert reward.dtype == np.float32
        assert list(info["signals"]) == list(world.spec.signals)
        assert list(info["signals"].values()) == reward.tolist()
        state = answer.state
        if terminated:
            break
    assert time > 5


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_decides_all_that_follows(name):
    def path(seed):
        env = gymnasium.make(name)
        env.action_space.seed(0)
        seen = [env.reset(seed=seed)[0]]
        for _ in range(2):
            seen += [env.step(env.action_space.sample())[0] for _ in range(20)]
            seen.append(env.reset()[0])
        return np.array(seen)

    np.testing.assert_array_equal(path(4), path(4))
    assert (path(4) != path(5)).any()


def test_the_same_crossing_as_by_its_own_functions():
    env, inner = gymnasium.make("lexrl/Intersection-v0"), lexrl.Intersection()
    obs, _ = env.reset(seed=6)
    state, seen = inner.begin(6)
    np.testing.assert_array_equal(obs, seen)
    for action in (0, 2, 1):
        obs, reward, terminated, _, info = env.step(action)
        step = inner.step(state, action)
        state = step.state
        np.testing.assert_array_equal(obs, step.obs)
        np.testing.assert_array_equal(reward, step.signals)
        assert list(info["signals"]) == ["collision", "arrived"]
        assert terminated == (step.discount == 0)


def test_episodes_differ():
    env = gymnasium.make("lexrl/MountainCarSafe-v0")
    places = {float(env.reset(seed=0 if i == 0 else None)[0][0]) for i in range(20)}
    assert len(places) == 20


class TestEnds:
    def test_time_runs_out_by_truncation(self):
        env = gymnasium.make("lexrl/CartSafe-v0", time_limit=7)
        for _ in range(2):
            env.reset(seed=0)
            ends = [env.step(time % 2)[2:4] for time in range(7)]
            assert ends == [(False, False)] * 6 + [(False, True)]

    def test_a_task_that_ends_is_terminated(self):
        env = gymnasium.make("lexrl/CartSafe-v0")
        env.reset(seed=0)
        ends, rewards = [], []
        while not ends or not any(ends[-1]):
            _, reward, *end, _ = env.step(1)
            ends.append(tuple(end))
            rewards.append(reward)
        assert ends[-1] == (True, False)
        assert rewards[-1][1] == 1 + 300 - len(rewards)  # what was left is charged

    def test_arriving_in_the_last_step_is_no_truncation(self):
        env = gymnasium.make("lexrl/MountainCarSafe-v0", time_limit=1)
        env.reset(seed=0)
        env.unwrapped.state = np.array([0.44, 0.06], np.float32)
        _, reward, terminated, truncated, _ = env.step(np.array([0.0], np.float32))
        assert reward.tolist() == [100.0, 0.0, 1.0]
        assert (terminated, truncated) == (True, False)


def test_ten_environments_compile_once():
    def play(name, **settings):
        env = gymnasium.make(name, **settings)
        env.reset(seed=0)
        env.step(env.action_space.sample())
        env.step(env.action_space.sample())

    for name, same, changed in [
        ("lexrl/CartSafe-v0", {"time_limit": 123}, {"time_limit": 123}),
        ("lexrl/MountainCarSafe-v0", {"time_limit": 123}, {"time_limit": 123, "cost_boundary": -0.8}),
        ("lexrl/GridNav-v0", {"size": 7}, {"size": 7, "map_seed": 5, "slip_probability": 0.3}),
    ]:
        play(name, **same)
        before = registration._reset._cache_size(), registration._step._cache_size()
        for _ in range(5):
            play(name, **same)
            play(name, **changed)
        assert (registration._reset._cache_size(), registration._step._cache_size()) == before
        play(name, **{**same, "time_limit": 124})
        assert registration._step._cache_size() == before[1] + 1


class TestSpaces:
    def test_boxes_and_numbers(self):
        names = ("lexrl/CartSafe-v0", "lexrl/MountainCarSafe-v0", "lexrl/GridNav-v0")
        cart, car, grid = map(gymnasium.make, names)
        assert car.action_space == gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        assert cart.action_space == gymnasium.spaces.Discrete(2)
        assert grid.action_space == gymnasium.spaces.Discrete(4)
        assert grid.observation_space == gymnasium.spaces.Discrete(625)
        assert car.observation_space == gymnasium.spaces.Box(-1.2, 0.6, (2,), np.float32)
        assert cart.observation_space.dtype == np.float32

    def test_one_reward_for_each_signal(self):
        env = gymnasium.make("lexrl/CartSafe-v0", effort_signal=True)
        assert env.get_wrapper_attr("reward_space").shape == (3,)
        assert gymnasium.make("lexrl/CartSafe-v0").get_wrapper_attr("reward_space").shape == (2,)

    def test_side_by_side(self):
        envs = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("lexrl/GridNav-v0", size=5)] * 3)
        obs, _ = envs.reset(seed=0)
        assert obs.tolist() == [24, 24, 24]
        envs.close()


class TestPictures:
    @pytest.mark.parametrize("name", NAMES)
    def test_the_state_is_shown(self, name):
        env = gymnasium.make(name, render_mode="rgb_array")
        env.reset(seed=0)
        world, state = env.unwrapped.inner, env.unwrapped.state
        np.testing.assert_array_equal(env.render(), world.render(state))
        assert env.metadata["render_modes"] == ["rgb_array"]
        assert env.metadata["render_fps"] >= 3

    def test_lists_of_frames(self):
        env = gymnasium.make("lexrl/GridNav-v0", size=5, render_mode="rgb_array_list")
        env.reset(seed=0)
        env.step(0)
        env.step(3)
        assert len(env.render()) == 3

    def test_no_picture_without_a_mode(self):
        env = registration.GridNav(size=5)
        env.reset(seed=0)
        with pytest.warns(UserWarning, match="render_mode='rgb_array'"):
            assert env.render() is None

    def test_no_other_mode(self):
        with pytest.raises(InputError, match="render mode is 'ansi'"):
            registration.CartSafe(render_mode="ansi")


class TestComplaints:
    def test_settings_are_the_builders(self):
        with pytest.raises(InputError, match="no room for obstacles"):
            gymnasium.make("lexrl/GridNav-v0", size=1)

    @pytest.mark.parametrize("action", [2, -1, 0.5, None])
    def test_no_such_action(self, action):
        env = gymnasium.make("lexrl/CartSafe-v0")
        env.reset(seed=0)
        with pytest.raises(InputError, match="it must be an integer from 0 to 1"):
            env.step(action)

    def test_a_push_has_one_entry(self):
        env = gymnasium.make("lexrl/MountainCarSafe-v0")
        env.reset(seed=0)
        with pytest.raises(InputError, match=r"it must have \(1,\)"):
            env.step(0.5)


def test_it_can_be_pickled():
    env = registration.CartSafe(effort_signal=True)
    env.reset(seed=3)
    env.step(1)
    copy = pickle.loads(pickle.dumps(env))
    for one, other in zip(env.step(0), copy.step(0), strict=True):
        np.testing.assert_array_equal(one, other)


def test_gymnasium_finds_it_without_an_import():
    lines = "import gymnasium; print(gymnasium.make('lexrl:lexrl/GridNav-v0', size=5).observation_space)"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "Discrete(25)"
