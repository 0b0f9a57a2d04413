"""The host loop, stopped and taken up again from plain arrays: the same numbers, bit for bit, as if never stopped."""

import warnings

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium import spaces

import lexrl
from lexrl import catalog
from lexrl.envs.gym import GymEnv
from lexrl.loops import host
from lexrl.loops.population import make_population
from lexrl.order import parse
from lexrl.types import Discrete, EnvSpec, Step

ORDER = parse("max reward")
SEEDS, CHUNKS = (3, 8, 5), 4
ALGORITHMS = {
    "LPPO": lexrl.LPPO(
        networks=lexrl.Networks(hidden_sizes=(8,)), num_envs=3, num_steps=8, num_minibatches=2, num_epochs=2
    ),
    "LDQN": lexrl.LDQN(
        hidden_sizes=(8,),
        num_envs=4,
        num_steps=3,
        learning_starts=24,
        buffer_size=96,
        batch_size=8,
        target_update_interval=24,
        learning_rate=1e-3,
        epsilon=0.3,
        guard=lexrl.Guard(num_episodes=1.0, interval=1.0, growth_ends=9.0),
    ),
}
MAKERS = {
    "CartPole-v1": lambda: GymEnv("CartPole-v1", 30),
    "FrozenLake-v1": lambda: GymEnv("FrozenLake-v1", 12),  # slippery: its own generator is drawn from at every step
}
STEPS = 24 * 12


def begun(algorithm, make, order=ORDER):
    """A population and its environment, made anew."""
    env = make()
    return make_population(algorithm, env, order, SEEDS), env


def trained(algorithm, make, kept=None, steps=STEPS):
    population, env = begun(algorithm, make)
    return list(
        host.advance(
            population, env, host.start(population, env) if kept is None else kept, steps, num_log_points=CHUNKS
        )
    )


def stored(train_states):
    """As they come out of a file."""
    return jax.tree.map(lambda leaf: np.array(leaf), train_states)


def same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for (path, mine), theirs in zip(jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(other), strict=True):
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        assert mine.dtype == theirs.dtype
        assert mine.tobytes() == theirs.tobytes(), jax.tree_util.keystr(path)


@pytest.fixture(scope="module", params=[(a, w) for a in ALGORITHMS for w in MAKERS], ids="-".join)
def case(request):
    algorithm, env = request.param
    return ALGORITHMS[algorithm], MAKERS[env], trained(ALGORITHMS[algorithm], MAKERS[env])


class TestGoingOn:
    @pytest.mark.parametrize("after", range(CHUNKS - 1))
    def test_the_same_numbers(self, case, after):
        algorithm, make, whole = case
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rest = trained(algorithm, make, stored(whole[after].train_states))
        for one, other in zip(whole[after + 1 :], rest, strict=True):
            assert one.steps == other.steps
            same(one.metrics, other.metrics)
            same(one.train_states, other.train_states)

    def test_there_was_something_to_remember(self, case):
        """Episodes were under way, of different lengths; some had ended before; agents learned."""
        _, _, whole = case
        for chunk in whole[:-1]:
            assert len(np.unique(chunk.train_states.episode_step)) > 2
            np.testing.assert_array_equal(chunk.train_states.env_state.taken, chunk.train_states.episode_step)
        assert (np.asarray([chunk.metrics["num_episodes"] for chunk in whole]).sum(axis=0) > 3).all()
        one, other = (jax.tree.leaves(chunk.train_states.agent) for chunk in (whole[0], whole[-1]))
        assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))

    def test_the_shapes_are_known_beforehand(self, case):
        """Without an environment being made or taking a step."""
        algorithm, make, whole = case
        population, env = begun(algorithm, make)
        first = host.start(population, env)
        assert jax.tree.structure(first) == jax.tree.structure(whole[0].train_states)
        for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(whole[0].train_states), strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)

    def test_nothing_is_left_to_do(self, case):
        algorithm, make, whole = case
        assert trained(algorithm, make, whole[-1].train_states) == []


def test_actions_that_are_floats():
    algorithm = lexrl.PPO(
        networks=lexrl.Networks(hidden_sizes=(8,)), num_envs=2, num_steps=8, num_minibatches=2, num_epochs=1
    )
    whole = trained(algorithm, lambda: GymEnv("Pendulum-v1", 20), steps=96)
    rest = trained(algorithm, lambda: GymEnv("Pendulum-v1", 20), stored(whole[1].train_states), steps=96)
    same(whole[-1].train_states, rest[-1].train_states)
    assert whole[1].train_states.env_state.actions.dtype == np.float32


class Drawn:
    """An environment in plain Python, which draws with the keys it is given."""

    spec = EnvSpec(Discrete(4), Discrete(2), ("reward",), 7)

    def reset(self, key):
        cell = np.int32(jax.random.randint(key, (), 0, 4))
        return cell, cell

    def step(self, state, action, key):
        cell = np.int32((state + action + jax.random.randint(key, (), 0, 2)) % 4)
        return Step(cell, cell, np.array([float(cell)]), 0.0 if cell == 3 else 1.0)


def test_a_env_that_is_given_keys():
    whole = trained(lexrl.QLearning(**catalog.TEXTBOOK), Drawn, steps=40)
    rest = trained(lexrl.QLearning(**catalog.TEXTBOOK), Drawn, stored(whole[1].train_states), steps=40)
    same(whole[-1].train_states, rest[-1].train_states)


class Moody(gymnasium.Env):
    """What it pays depends on its seed (NaN for one in `bad`), what it shows on what happened in the process before."""

    observation_space, action_space = spaces.Box(-9.0, 9e9, (1,), np.float32), spaces.Discrete(2)
    total = 0

    def __init__(self, bad=10**9, forgetful=True):
        self.bad, self.forgetful = bad, forgetful

    def reset(self, *, seed=None, options=None):
        self.seed = seed if seed is not None else self.seed
        return np.zeros(1, np.float32), {}

    def step(self, action):
        Moody.total += 1
        shown = 0.0 if self.forgetful else Moody.total
        return np.full(1, shown, np.float32), np.nan if self.seed % self.bad == 0 else 1.0, False, False, {}


def test_a_env_that_is_not_reproducible_says_so():
    def make():
        return GymEnv(lambda: Moody(forgetful=False), 50)

    whole = trained(ALGORITHMS["LPPO"], make, steps=96)
    population, env = begun(ALGORITHMS["LPPO"], make)
    with pytest.warns(UserWarning, match="did not repeat itself") as caught:
        *_, end = host.advance(population, env, stored(whole[1].train_states), 96, num_log_points=CHUNKS)
    assert len(caught) == len(SEEDS)
    assert end.steps == 96
    assert end.faults == {}


class TestStopped:
    """A seed in a few meets a NaN, at the beginning of an episode."""

    @staticmethod
    def make():
        return GymEnv(lambda: Moody(bad=128), 3)

    @pytest.fixture(scope="class")
    @staticmethod
    def whole():
        return trained(ALGORITHMS["LPPO"], TestStopped.make)

    def test_some_stop_and_some_do_not(self, whole):
        assert 0 < len(whole[-1].faults) < 3

    @pytest.mark.parametrize("after", range(CHUNKS - 1))
    def test_they_stay_where_they_were(self, whole, after):
        rest = trained(ALGORITHMS["LPPO"], self.make, stored(whole[after].train_states))
        for one, other in zip(whole[after + 1 :], rest, strict=True):
            same(one.train_states, other.train_states)
            same(one.metrics, other.metrics)
            assert one.faults == other.faults
