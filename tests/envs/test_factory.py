"""Environments by name, and from whatever stands for one: instances, wrapped ones, classes, functions."""

import threading

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeLimit, TransformObservation

import lexrl
from lexrl import catalog
from lexrl.envs.checker import check_env
from lexrl.envs.factory import as_env, env_name, make_env
from lexrl.envs.gym import GymEnv, UnlimitedEpisodes
from lexrl.envs.vector import GymVectorEnv
from lexrl.types import Batchable, Box, Describable, Discrete, Env, HasModel, Renderable, Step, unwrapped


class Walk(gymnasium.Env):
    """Walks on by a step that can be set; pays its position."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, stride=1.0):
        self.stride, self.position, self.num_resets = stride, 0.0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position, self.num_resets = 0.0, self.num_resets + 1
        return np.array([self.position], np.float32), {}

    def step(self, action):
        self.position += self.stride
        return np.array([self.position], np.float32), self.position, False, False, {}


class Locked(Walk):
    """Cannot be copied."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


class Shared(Walk):
    """Its copies are the same object."""

    def __deepcopy__(self, memo):
        return self


gymnasium.register("lexrl-tests/Locked-v0", Locked, max_episode_steps=6)


def returns(env, **settings):
    result = lexrl.train(lexrl.Random(**settings), env, "max reward", seeds=2, total_timesteps=24, num_log_points=1)
    return result.evaluate(2).returns[..., 0]


class TestNames:
    @pytest.mark.parametrize("name", catalog.ENVS)
    def test_of_the_catalog(self, name):
        env = make_env(name)
        assert isinstance(env, Env | Batchable)
        check_env(env)

    def test_settings(self):
        assert make_env("grid-nav", size=5, max_episode_steps=9).spec.max_episode_steps == 9
        assert make_env("CartPole-v1", max_episode_steps=9).spec.max_episode_steps == 9

    @pytest.mark.parametrize("name", ["gym:CartPole-v1", "CartPole-v1"])
    def test_of_gymnasium(self, name):
        env = make_env(name)
        assert isinstance(env, GymEnv)
        assert env_name(env) == "CartPole-v1"

    def test_names_of_environments(self):
        assert env_name(lexrl.CartSafe()) == "cart-safe"
        assert env_name(make_env("grid-nav")) == "grid-nav"
        assert env_name(GymEnv(Walk, 5)) == "Walk"

    def test_unknown_names(self):
        with pytest.raises(lexrl.InputError, match=r"no environment 'cartsafe'; there are cart-safe, .* gym:"):
            make_env("cartsafe")

    def test_unknown_settings(self):
        with pytest.raises(lexrl.InputError, match="has no setting 'size'; its settings are charge_remaining,"):
            make_env("cart-safe", size=3)


class TestInstances:
    def test_ours_are_returned(self):
        for env in (lexrl.CartSafe(), GymEnv("CartPole-v1"), lexrl.per_seed([lexrl.CartSafe()] * 2)):
            assert as_env(env) is env

    def test_what_was_set_on_an_instance_holds_for_its_copies(self):
        env = TimeLimit(Walk(), 4)
        env.unwrapped.stride = 2.0
        assert as_env(env).spec.max_episode_steps == 4
        np.testing.assert_array_equal(returns(env, num_envs=3), np.full((2, 2), 2.0 + 4 + 6 + 8))

    def test_it_is_left_alone(self):
        env = TimeLimit(Walk(), 4)
        returns(env, num_envs=2)
        assert (env.unwrapped.num_resets, env.unwrapped.position) == (0, 0.0)

    def test_copies_are_independent(self):
        envs = as_env(TimeLimit(Walk(), 4)).batched(3)
        assert len({id(env.unwrapped) for env in envs.envs}) == 3

    def test_wrappers_are_kept(self):
        inner = Walk()
        box = spaces.Box(0.0, 9.0, (2,), np.float32)
        env = as_env(TimeLimit(TransformObservation(inner, lambda obs: np.repeat(obs, 2), box), 4))
        assert env.spec.observation_space == Box((2,), 0.0, 9.0)
        check_env(env)

    def test_made_by_gymnasium(self):
        env = as_env(gymnasium.make("CartPole-v1"))
        assert env.spec == GymEnv("CartPole-v1").spec
        np.testing.assert_array_equal(returns(env), returns("CartPole-v1"))

    def test_made_again_where_copying_fails(self):
        env = gymnasium.make("lexrl-tests/Locked-v0")
        assert as_env(env).spec.max_episode_steps == 6
        np.testing.assert_array_equal(returns(env, num_envs=2), np.full((2, 2), 21.0))

    @pytest.mark.parametrize(("kind", "reason"), [(Locked, "cannot pickle"), (Shared, "share one state")])
    def test_neither_copied_nor_made_again(self, kind, reason):
        with pytest.raises(lexrl.InputError, match=rf"cannot be copied \(.*{reason}.*; pass a function that makes it"):
            as_env(kind(), max_episode_steps=5)

    def test_no_time_limit(self):
        with pytest.warns(UnlimitedEpisodes, match="has no time limit"):
            assert as_env(Walk()).spec.max_episode_steps == 1_000
        assert as_env(Walk(), max_episode_steps=5).spec.max_episode_steps == 5

    def test_settings_come_too_late(self):
        with pytest.raises(lexrl.InputError, match="stride cannot be passed to an environment that is made already"):
            as_env(Walk(), stride=2.0, max_episode_steps=5)
        with pytest.raises(lexrl.InputError, match="CartSafe is made already"):
            as_env(lexrl.CartSafe(), max_episode_steps=5)

    def test_vectors(self):
        env = as_env(SyncVectorEnv([lambda: TimeLimit(Walk(), 4)] * 3))
        assert isinstance(env, GymVectorEnv)
        assert (env.num_envs, env.spec.max_episode_steps) == (3, 4)
        np.testing.assert_array_equal(returns(env, num_envs=3), np.full((2, 2), 10.0))
        check_env(env)

    def test_vectors_made_by_gymnasium(self):
        env = as_env(gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync"))
        assert (env.num_envs, env.spec) == (2, GymEnv("CartPole-v1").spec)


class TestFactories:
    def test_classes(self):
        assert as_env(lexrl.CartSafe) == lexrl.CartSafe()
        assert as_env(Walk, max_episode_steps=5, stride=3.0).spec.max_episode_steps == 5

    def test_functions(self):
        np.testing.assert_array_equal(returns(lambda: TimeLimit(Walk(stride=2.0), 2), num_envs=2), np.full((2, 2), 6.0))
        assert isinstance(as_env(lambda: SyncVectorEnv([lambda: TimeLimit(Walk(), 4)])), GymVectorEnv)
        assert as_env(lambda: lexrl.CartSafe(max_episode_steps=7)).spec.max_episode_steps == 7

    def test_classes_with_arguments(self):
        class Needy(Walk):
            def __init__(self, size):
                super().__init__()

        with pytest.raises(lexrl.InputError, match=r"Needy\(\) fails .*; pass a function without arguments"):
            as_env(Needy)

    @pytest.mark.parametrize("given", [3, None, object()])
    def test_no_environment(self, given):
        with pytest.raises(lexrl.InputError, match="is not an environment"):
            as_env(given)
        with pytest.raises(lexrl.InputError, match="is not an environment"):
            as_env(lambda: given)


class TestChecker:
    def test_a_wrong_observation(self):
        class Wide(Walk):
            observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)

        with pytest.raises(lexrl.InputError, match=r"A reset returns the observation float32\[1\]"):
            check_env(TimeLimit(Wide(), 5))

    def test_environments_in_python(self):
        class Plain:
            spec = lexrl.CartPole().spec

            def reset(self, key):
                return 0, np.zeros(4, np.float32)

            def step(self, state, action, key):
                return Step(0, np.zeros(3, np.float32), np.zeros(1), 1.0)

        with pytest.raises(lexrl.InputError, match=r"A step returns the observation float32\[3\]"):
            check_env(Plain())


def test_protocols():
    cart, grid, gym = lexrl.CartSafe(), lexrl.GridNav.generate(4), GymEnv(Walk, 5)
    assert [isinstance(env, HasModel) for env in (cart, grid, gym)] == [False, True, False]
    assert [isinstance(env, Renderable) for env in (cart, grid, gym, lexrl.CartPole())] == [True, True, False, False]
    assert [isinstance(env, Batchable) for env in (cart, gym)] == [False, True]
    assert isinstance(gym, Describable)
    assert gym.description == "The signals are reward."
    assert unwrapped(cart) is cart
    assert grid.spec.observation_space == Discrete(16)
