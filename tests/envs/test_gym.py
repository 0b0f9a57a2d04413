"""Gymnasium environments as worlds: what they show, where their episodes end, what is closed, and what is refused."""

import sys

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import lexrl
from lexrl import catalog
from lexrl.envs.gym import GymEnv, UnlimitedEpisodes
from lexrl.errors import InputError
from lexrl.loops import host
from lexrl.loops.population import make_population
from lexrl.order import parse
from lexrl.types import Box, Discrete, EnvSpec, Transition

ORDER = parse("max reward")
KEYS = jax.random.split(jax.random.key(0), 1)


def unasked():
    """The keys of a step: an environment draws from a generator of its own."""
    raise AssertionError


def alone(world):
    """One environment after its reset, and what it shows."""
    envs = world.batched(1)
    return envs, envs.reset(np.array([True]), lambda: KEYS)


class Corridor(gymnasium.Env):
    """Walks on from cell 0 and pays 1 a step, or what else it is told to; ends at one cell, is cut off at another."""

    def __init__(self, end=99, cut=99, observation=None, action=None, reward=1.0, shown=None, broken=False):
        self.end, self.cut, self.reward, self.shown, self.broken = end, cut, reward, shown, broken
        self.observation_space = observation or spaces.Box(0.0, 99.0, (1,), np.float32)
        self.action_space = action or spaces.Discrete(2)
        self.cell, self.seeds, self.actions, self.closed = 0, [], [], 0

    def reset(self, *, seed=None, options=None):
        self.cell = 0
        self.seeds.append(seed)
        return self.seen(), {}

    def step(self, action):
        self.cell += 1
        self.actions.append(action)
        if self.broken and len(self.seeds) == 2:
            raise KeyboardInterrupt
        return self.seen(), self.reward, self.cell == self.end, self.cell >= self.cut, {}

    def seen(self):
        return np.array([self.cell], np.float32) if self.shown is None else self.shown

    def close(self):
        self.closed += 1


def corridor(max_episode_steps=8, **settings):
    """A world, and every environment it has made."""
    made = []

    def make():
        made.append(Corridor(**settings))
        return made[-1]

    return GymEnv(make, max_episode_steps), made


class Scribe(eqx.Module):
    """Learns nothing, and remembers the last rollout."""

    num_steps: int = eqx.field(static=True, default=7)
    num_envs: int = eqx.field(static=True, default=1)

    def init(self, spec, key):
        def zeros(*shape, dtype=jnp.float32):
            return jnp.zeros((self.num_steps, self.num_envs, *shape), dtype)

        return Transition(zeros(1), zeros(dtype=jnp.int32), zeros(1), zeros(), zeros(1), zeros(dtype=bool))

    def act(self, state, obs, key, *, greedy=False):
        return jnp.int32(0)

    def update(self, state, rollout, key):
        return rollout, {}


def lived(world):
    """Seven steps, as a learner hears of them."""
    result = lexrl.train(Scribe(), world, ORDER, seeds=1, total_timesteps=7, num_log_points=1)
    rollout = jax.tree.map(lambda leaf: np.asarray(leaf)[:, 0], result.agent())
    return rollout, result


def test_its_representation_is_short():
    assert repr(GymEnv("CartPole-v1")) == (
        "GymEnv(name='CartPole-v1', spec=EnvSpec(observation_space=Box(shape=(4,), low=-inf, high=inf), "
        "action_space=Discrete(n=2), signals=('reward',), max_episode_steps=500))"
    )


class TestEnds:
    def test_cut_off_by_the_environment(self):
        """The episode is over, the task is not: the successor is the true one, and worth something."""
        rollout, result = lived(corridor(cut=3)[0])
        assert rollout.obs[:, 0].tolist() == [0, 1, 2, 0, 1, 2, 0]
        assert rollout.next_obs[:, 0].tolist() == [1, 2, 3, 1, 2, 3, 1]
        assert rollout.last.tolist() == [False, False, True, False, False, True, False]
        assert rollout.discount.tolist() == [1] * 7
        assert result.metrics["episode_length"].tolist() == [[3]]
        assert result.metrics["episode_return"].tolist() == [[[3]]]

    def test_ended_by_the_environment(self):
        rollout, result = lived(corridor(end=3)[0])
        assert rollout.last.tolist() == [False, False, True, False, False, True, False]
        assert rollout.discount.tolist() == [1, 1, 0, 1, 1, 0, 1]
        assert result.metrics["episode_length"].tolist() == [[3]]

    def test_both_at_once_is_an_end(self):
        rollout, _ = lived(corridor(end=3, cut=3)[0])
        assert rollout.discount.tolist() == [1, 1, 0, 1, 1, 0, 1]

    def test_cut_off_by_the_loop(self):
        rollout, _ = lived(corridor(max_episode_steps=2)[0])
        assert rollout.last.tolist() == [False, True, False, True, False, True, False]
        assert rollout.discount.tolist() == [1] * 7

    def test_the_time_limit_is_the_loops(self):
        """It is lifted from the environment, so a longer one can be asked for."""
        world = GymEnv("Pendulum-v1", max_episode_steps=300)
        envs, _ = alone(world)
        assert not any(envs.step(np.zeros((1, 1), np.float32), unasked).truncated for _ in range(299))
        envs.close()

    @pytest.mark.parametrize(("settings", "worth"), [({"cut": 1}, 2.0), ({"end": 1}, 1.0)])
    def test_what_is_learned(self, settings, worth):
        """1 a step for ever, at gamma 0.5, is worth 2; 1 once is worth 1."""
        world, _ = corridor(observation=spaces.Discrete(1), shown=0, **settings)
        algorithm = lexrl.QLearning(**catalog.TEXTBOOK | {"alpha": 1.0, "gamma": 0.5})
        result = lexrl.train(algorithm, world, ORDER, seeds=1, total_timesteps=60, num_log_points=1)
        np.testing.assert_allclose(result.agent().q.max(), worth, rtol=1e-5)

    @pytest.mark.parametrize(("settings", "length"), [({"cut": 3}, 3), ({"end": 5}, 5), ({}, 8)])
    def test_in_evaluations(self, settings, length):
        _, result = lived(corridor(**settings)[0])
        played = result.evaluate(4, gamma=0.5)
        np.testing.assert_array_equal(played.lengths, [[length] * 4])
        np.testing.assert_array_equal(played.returns, [[[length]] * 4])
        np.testing.assert_allclose(played.discounted, [[[2 - 0.5 ** (length - 1)]] * 4])


class TestEnvironments:
    """The first is made to be asked for its spaces."""

    def test_training_keeps_one_for_each_world_and_closes_it(self):
        world, made = corridor(cut=2)
        lexrl.train(Scribe(num_envs=3), world, ORDER, seeds=2, total_timesteps=42, num_log_points=2)
        assert [env.closed for env in made] == [1] * (1 + 2 * 3)
        assert [len(env.actions) for env in made[1:]] == [14] * 6

    def test_a_run_that_is_left_closes_them_too(self):
        world, made = corridor()
        population = make_population(Scribe(), world, ORDER, [0])
        loop = host.advance(population, world, host.start(population, world), 70, num_log_points=10)
        next(loop)
        assert [env.closed for env in made] == [1, 0]
        loop.close()
        assert [env.closed for env in made] == [1, 1]

    def test_evaluating_needs_one_and_closes_it(self):
        world, made = corridor(cut=2)
        result = lexrl.train(Scribe(), world, ORDER, seeds=3, total_timesteps=7, num_log_points=1)
        made.clear()
        result.evaluate(5)
        assert [env.closed for env in made] == [1]
        assert len(set(made[0].seeds)) == 15

    def test_even_where_it_breaks(self):
        made, settings = [], {}
        world = GymEnv(lambda: made.append(Corridor(cut=2, **settings)) or made[-1], 8)
        result = lexrl.train(Scribe(), world, ORDER, seeds=1, total_timesteps=7, num_log_points=1)
        made.clear()
        settings["broken"] = True
        with pytest.raises(KeyboardInterrupt):
            result.evaluate(5)
        assert [env.closed for env in made] == [1]

    def test_evaluating_side_by_side(self):
        """As many episodes as were asked for, each as it is when played alone."""
        world = GymEnv("CartPole-v1", 40)
        result = lexrl.train(lexrl.Random(num_envs=3), world, ORDER, seeds=2, total_timesteps=3, num_log_points=1)
        alone = lexrl.train(lexrl.Random(num_envs=1), world, ORDER, seeds=2, total_timesteps=1, num_log_points=1)
        one, other = (run.evaluate(7, gamma=0.9, deterministic=False) for run in (result, alone))
        jax.tree.map(np.testing.assert_array_equal, one, other)
        assert len(np.unique(one.lengths)) > 4

    def test_an_episode_is_decided_by_its_seed(self):
        """As the environment itself plays it, whatever was played before."""
        world = GymEnv("CartPole-v1")
        envs, played = world.batched(1), []
        for _ in range(2):
            first = envs.reset(np.array([True]), lambda: KEYS)[0]
            played.append([first] + [envs.step(np.array([action]), unasked).obs[0] for action in (0, 1, 1)])
        envs.close()
        np.testing.assert_array_equal(played[0], played[1])
        env = gymnasium.make("CartPole-v1")
        first, _ = env.reset(seed=int(jax.random.bits(KEYS[0])))
        np.testing.assert_array_equal(played[0], [first] + [env.step(action)[0] for action in (0, 1, 1)])


class TestSpaces:
    def test_of_registered_ones(self):
        cart = GymEnv("CartPole-v1").spec
        assert cart == EnvSpec(cart.observation_space, Discrete(2), ("reward",), 500)
        assert cart.observation_space.shape == (4,)
        pendulum = GymEnv("Pendulum-v1", max_episode_steps=50).spec
        assert pendulum == EnvSpec(Box((3,), -8.0, 8.0), Box((1,), -2.0, 2.0), ("reward",), 50)
        assert GymEnv("FrozenLake-v1").spec[:2] == (Discrete(16), Discrete(4))

    def test_actions_stay_in_their_own_bounds(self):
        box = spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([1.0, 5.0], np.float32))
        world, made = corridor(action=box)
        assert world.spec.action_space == Box((2,), -1.0, 5.0)
        envs, _ = alone(world)
        envs.step(np.array([[3.0, -2.0]], np.float32), unasked)
        assert made[-1].actions[0].tolist() == [1.0, 0.0]

    def test_numbers_that_do_not_begin_at_0_are_shifted(self):
        world, made = corridor(observation=spaces.Discrete(3, start=5), action=spaces.Discrete(2, start=-1), shown=6)
        assert world.spec[:2] == (Discrete(3), Discrete(2))
        envs, first = alone(world)
        assert first.tolist() == envs.step(np.array([1]), unasked).obs.tolist() == [1]
        assert made[-1].actions == [0]

    @pytest.mark.parametrize(
        ("space", "shown", "size", "number"),
        [
            (spaces.Box(0, 10, (2,), np.int32), np.array([3, 4], np.int32), 121, 37),
            (spaces.Box(np.array([-1, 0]), np.array([1, 4]), dtype=np.int64), np.array([1, 2]), 15, 12),
            (spaces.MultiDiscrete([2, 5]), np.array([1, 3]), 10, 8),
            (spaces.MultiBinary(3), np.array([1, 0, 1], np.int8), 8, 5),
            (spaces.Tuple([spaces.Discrete(4, start=1), spaces.Discrete(2)]), (3, 1), 8, 5),
            (spaces.Dict(a=spaces.Discrete(4), b=spaces.MultiBinary(1)), {"b": np.array([1]), "a": 2}, 8, 5),
            (spaces.Discrete(7), 4, 7, 4),
        ],
        ids=str,
    )
    def test_whole_numbers_can_be_numbered(self, space, shown, size, number):
        world = GymEnv(lambda: Corridor(observation=space, shown=shown), 8, discrete_observations=True)
        assert world.spec.observation_space == Discrete(size)
        envs, first = alone(world)
        assert first.tolist() == envs.step(np.array([0]), unasked).obs.tolist() == [number]
        assert first.dtype == np.int32

    def test_each_number_once(self):
        space = spaces.Tuple([spaces.Discrete(3), spaces.Box(-1, 1, (2,), np.int8)])
        world = GymEnv(
            lambda: Corridor(observation=space, shown=(0, np.zeros(2, np.int8))), 8, discrete_observations=True
        )
        seen = [(a, np.array([b, c])) for a in range(3) for b in (-1, 0, 1) for c in (-1, 0, 1)]
        assert world.interface.observations.stack(seen).tolist() == list(range(27))

    def test_what_can_be_flattened_is(self):
        space = spaces.Dict(a=spaces.Discrete(3), b=spaces.Box(-1.0, 2.0, (2,), np.float32))
        world = GymEnv(lambda: Corridor(observation=space, shown={"a": 1, "b": np.array([0.5, 2.0], np.float32)}), 8)
        assert world.spec.observation_space == Box((5,), -1.0, 2.0)
        _, first = alone(world)
        np.testing.assert_array_equal(first, [[0, 1, 0, 0.5, 2.0]])
        assert first.dtype == np.float32
        assert GymEnv("Blackjack-v1", max_episode_steps=9).spec.observation_space == Box((45,), 0.0, 1.0)

    def test_numbers_are_converted(self):
        for space, shown, kind in (
            (spaces.Discrete(5), np.int64(3), np.int32),
            (spaces.Box(0, 255, (2, 2), np.uint8), np.ones((2, 2), np.uint8), np.float32),
            (spaces.Box(0.0, 1.0, (1,), np.float64), np.ones(1), np.float32),
        ):
            world, _ = corridor(observation=space, shown=shown)
            envs, obs = alone(world)
            assert obs.dtype == envs.step(np.array([0]), unasked).obs.dtype == kind


class TestRefused:
    @pytest.mark.parametrize(
        ("settings", "parts"),
        [
            (
                {"observation": spaces.Graph(spaces.Discrete(2), spaces.Discrete(2))},
                ("The observations are Graph(", "cannot be flattened", "wrap"),
            ),
            ({"action": spaces.MultiDiscrete([2, 2])}, ("The actions are MultiDiscrete([2 2])", "TransformAction")),
            (
                {"observation": spaces.Sequence(spaces.Box(np.arange(40.0), np.arange(40.0) + 1, dtype=np.float64))},
                ("The observations are Sequence(", "wrap the environment"),
            ),
        ],
    )
    def test_spaces(self, settings, parts):
        with pytest.raises(InputError) as error:
            corridor(**settings)
        assert all(part in str(error.value) for part in parts)
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        ("settings", "sentence"),
        [
            (
                {"shown": np.zeros(2)},
                r"A reset returns .* float32\[2\], but the spec says Box\(shape=\(1,\)",
            ),
            ({"shown": 0.0}, r"A reset returns the observation float32\[\]"),
            ({"reward": np.zeros(2)}, "The order names 'reward', but the signals here are 'reward_1', 'reward_2'"),
        ],
    )
    def test_what_does_not_fit_the_spaces(self, settings, sentence):
        with pytest.raises(InputError, match=sentence):
            lexrl.train(Scribe(), corridor(**settings)[0], ORDER, seeds=1, total_timesteps=7)

    @pytest.mark.parametrize(
        ("space", "part"),
        [
            (spaces.Box(0.0, 1.0, (2,), np.float32), "which are not integers"),
            (spaces.Box(0, 255, (9, 9), np.uint8), "more than the 10,000,000"),
        ],
    )
    def test_what_cannot_be_numbered(self, space, part):
        with pytest.raises(InputError, match=part) as error:
            GymEnv(lambda: Corridor(observation=space), 8, discrete_observations=True)
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize("settings", [{}, {"max_episode_steps": 5}])
    def test_names(self, settings):
        with pytest.raises(InputError, match="Gymnasium cannot make 'Nowhere-v0'"):
            GymEnv("Nowhere-v0", **settings)

    def test_names_of_a_package_that_is_not_there(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "mo_gymnasium", None)
        with pytest.raises(InputError, match=r"'mo-nothing-v0', .* pip install 'lexrl\[mo\]'"):
            GymEnv("mo-nothing-v0")

    def test_lengths(self):
        with pytest.warns(UnlimitedEpisodes, match=r"Blackjack-v1 has no time limit, .* after 1,000 steps"):
            assert GymEnv("Blackjack-v1").spec.max_episode_steps == 1_000
        with pytest.warns(UnlimitedEpisodes, match="Corridor.* has no time limit"):
            assert GymEnv(Corridor).spec.max_episode_steps == 1_000
        with pytest.raises(InputError, match="max_episode_steps is 0; it must be 1 or more"):
            GymEnv("CartPole-v1", max_episode_steps=0)

    def test_steps_of_another_length(self):
        class Short(Corridor):
            def step(self, action):
                return super().step(action)[:4]

        with pytest.raises(InputError, match="A step returns 4 values"):
            GymEnv(Short, 8)
