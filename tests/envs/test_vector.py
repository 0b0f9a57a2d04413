"""Vector environments: in all modes of resetting the same numbers as single environments; and what is refused."""

from types import SimpleNamespace

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import lexrl
from lexrl.envs.gym import GymEnv, UnlimitedEpisodes
from lexrl.envs.vector import GymVectorEnv
from lexrl.errors import InputError
from lexrl.loops import host
from lexrl.loops.population import make_population
from lexrl.order import parse
from lexrl.runs import plan
from lexrl.runs.pipeline import snapshots
from lexrl.types import Box, Discrete, Transition

ORDER = parse("max reward > min cost")
MODES = list(AutoresetMode)
WORLDS, STEPS = 3, 120


class Corridor(gymnasium.Env):
    """Starts at random, walks on by 1 or 2 at random; ends beyond cell 8, is cut off after 4 steps.

    It pays the cell, costs something in even cells, and counts its resets.
    """

    def __init__(self, dictionary=False):
        box = spaces.Box(0.0, 99.0, (1,), np.float32)
        self.dictionary = dictionary
        self.observation_space = spaces.Dict(cell=box, half=box) if dictionary else box
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.time = int(self.np_random.integers(3)), 0
        return self.seen(), {"cost": 100.0}

    def step(self, action):
        self.cell += int(self.np_random.integers(1, 3)) + int(action)
        self.time += 1
        info = {"cost": 0.5} if self.cell % 2 == 0 else {}
        return self.seen(), float(self.cell), self.cell > 8, self.time >= 4, info

    def seen(self):
        cell = np.array([self.cell], np.float32)
        return {"cell": cell, "half": cell / 2} if self.dictionary else cell


class Scribe(eqx.Module):
    """Acts at random and remembers the last rollout."""

    num_steps: int = eqx.field(static=True, default=STEPS // WORLDS)
    num_envs: int = eqx.field(static=True, default=WORLDS)

    def init(self, spec, key):
        def zeros(*shape, dtype=jnp.float32):
            return jnp.zeros((self.num_steps, self.num_envs, *shape), dtype)

        shape = spec.observation_space.shape
        return Transition(zeros(*shape), zeros(dtype=jnp.int32), zeros(2), zeros(), zeros(*shape), zeros(dtype=bool))

    def act(self, state, obs, key, *, greedy=False):
        return jax.random.randint(key, (), 0, 2)

    def update(self, state, rollout, key):
        return rollout, {}


def together(mode, n=WORLDS, **settings):
    return GymVectorEnv(lambda: SyncVectorEnv([lambda: Corridor(**settings)] * n, autoreset_mode=mode), 9)


def lived(world, **settings):
    *_, last = snapshots(plan(Scribe(**settings), world, ORDER, 2, STEPS, 1))
    result = last.result
    return SimpleNamespace(
        train_states=last.train_states, metrics=result.metrics, agent=result.agent, evaluate=result.evaluate
    )


def same(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.fixture(scope="module")
def alone():
    return lived(GymEnv(Corridor, 9))


class TestModes:
    def test_the_run_has_something_to_show(self, alone):
        seen = alone.agent()
        ended, cut = seen.discount == 0, seen.last & (seen.discount == 1)
        assert ended.sum() > 5
        assert cut.sum() > 5
        assert (seen.reward[..., 1] == 0).any()

    @pytest.mark.parametrize("mode", MODES)
    def test_the_same_numbers_as_single_environments(self, alone, mode):
        result = lived(together(mode))
        same(result.train_states, alone.train_states)
        same(result.metrics, alone.metrics)

    @pytest.mark.parametrize("mode", MODES)
    def test_what_is_told(self, mode):
        """No step is spent on a reset, successors are true, and only an end is an end."""
        seen = jax.tree.map(np.asarray, lived(together(mode)).agent())
        pay = seen.reward[..., 0]
        np.testing.assert_array_equal(pay, seen.next_obs[..., 0])
        np.testing.assert_array_equal(seen.reward[..., 1], np.where(pay % 2 == 0, -0.5, 0.0))
        walked = seen.next_obs[..., 0] - seen.obs[..., 0]
        assert ((walked >= 1) & (walked <= 3)).all()
        np.testing.assert_array_equal(seen.discount == 0, pay > 8)
        np.testing.assert_array_equal(seen.obs[1:][~seen.last[:-1]], seen.next_obs[:-1][~seen.last[:-1]])
        assert (seen.obs[1:][seen.last[:-1]] < 3).all()

    @pytest.mark.parametrize("mode", MODES)
    def test_the_loop_cuts_episodes_off_too(self, mode):
        alone, vector = GymEnv(Corridor, 2), together(mode)
        result = lived(GymVectorEnv(vector.make, 2))
        same(result.train_states, lived(alone).train_states)
        assert result.metrics["episode_length"].max() == 2

    @pytest.mark.parametrize("mode", MODES)
    def test_dictionaries(self, mode):
        result = lived(together(mode, dictionary=True))
        same(result.train_states, lived(GymEnv(Corridor, 9, dictionary=True)).train_states)
        assert result.agent().obs.shape[-1] == 2

    @pytest.mark.parametrize("mode", MODES)
    def test_evaluation(self, alone, mode):
        result = lived(together(mode))
        same(result.evaluate(8, gamma=0.9), alone.evaluate(8, gamma=0.9))

    @pytest.mark.parametrize("mode", MODES)
    def test_going_on(self, mode):
        """Stopped in the middle of episodes that began at different times."""
        algorithm = Scribe(num_steps=5)
        population = make_population(algorithm, together(mode), ORDER, [3, 4])
        whole = list(
            host.advance(population, together(mode), host.start(population, together(mode)), STEPS, num_log_points=8)
        )
        clocks = np.asarray(whole[2].train_states.episode_step)
        assert len(np.unique(clocks)) > 2
        kept = jax.tree.map(np.asarray, whole[2].train_states)
        rest = list(host.advance(population, together(mode), kept, STEPS, num_log_points=8))
        assert len(rest) == 5
        for one, other in zip(whole[3:], rest, strict=True):
            same(one.train_states, other.train_states)
            same(one.metrics, other.metrics)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_in_processes_of_their_own(alone, mode):
    def make():
        return AsyncVectorEnv([Corridor] * WORLDS, autoreset_mode=mode, context="spawn")

    same(lived(GymVectorEnv(make, 9)).train_states, alone.train_states)


class TestSpaces:
    def test_they_are_those_of_one_world(self):
        world = together(AutoresetMode.NEXT_STEP)
        assert world.spec == GymEnv(Corridor, 9).spec
        assert world.description == GymEnv(Corridor, 9).description
        assert world.spec[:2] == (Box((1,), 0.0, 99.0), Discrete(2))

    def test_by_name(self):
        world = GymVectorEnv(lambda: gymnasium.make_vec("Pendulum-v1", num_envs=2, vectorization_mode="sync"))
        assert world.spec == GymEnv("Pendulum-v1").spec
        assert world.spec.max_episode_steps == 200

    def test_numbers(self):
        world = GymVectorEnv(
            lambda: gymnasium.make_vec("Blackjack-v1", num_envs=2, vectorization_mode="sync"),
            9,
            discrete_observations=True,
        )
        assert world.spec.observation_space == Discrete(704)


class Careless(gymnasium.vector.VectorEnv):
    """Resets everyone, whoever was asked to."""

    num_envs = 2
    metadata = {"autoreset_mode": AutoresetMode.DISABLED}  # noqa: RUF012
    single_observation_space, single_action_space = spaces.Box(0.0, 9.0, (1,), np.float32), spaces.Discrete(2)
    action_space = spaces.MultiDiscrete([2, 2])

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return np.zeros((2, 1), np.float32), {}

    def step(self, actions):
        self.time += 1
        none = np.zeros(2, bool)
        return np.full((2, 1), self.time, np.float32), np.ones(2), none, none, {}


class TestRefused:
    @pytest.mark.parametrize(
        "make",
        [
            Careless,
            lambda: gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="vector_entry_point"),
        ],
    )
    def test_worlds_that_cannot_be_reset_one_by_one(self, make):
        with pytest.raises(InputError, match=r"cannot be reset one by one.* vectorization_mode='sync'") as error:
            GymVectorEnv(make, 9)
        assert "\n" not in str(error.value)

    def test_a_learner_with_another_number_of_worlds(self):
        with pytest.raises(InputError, match=r"has num_envs=5, but the vector environment holds 3; set num_envs=3, or"):
            lexrl.train(Scribe(num_envs=5), together(AutoresetMode.NEXT_STEP), ORDER, seeds=1, total_timesteps=5)

    def test_no_time_limit(self):
        with pytest.warns(UnlimitedEpisodes, match="has no time limit"):
            assert GymVectorEnv(lambda: SyncVectorEnv([Corridor])).spec.max_episode_steps == 1_000

    def test_closed_after_looking(self):
        made = []
        GymVectorEnv(lambda: made.append(SyncVectorEnv([Corridor])) or made[-1], 9)
        assert [env.closed for env in made] == [True]
