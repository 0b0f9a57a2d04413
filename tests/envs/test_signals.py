"""Signals by name: found in rewards and infos, or given by a function; and what a world says it found."""

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium import spaces

import lexrl
from lexrl.envs.gym import GymEnv
from lexrl.envs.vector import GymVectorEnv
from lexrl.errors import InputError
from lexrl.order import parse


class Told(gymnasium.Env):
    """Pays and says what it is told to, as functions of the time; without an end."""

    observation_space = spaces.Box(0.0, 999.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, reward=lambda t: float(t), info=lambda t: {}, cost=None):
        self.reward, self.info, self.cost, self.time = reward, info, cost, 0

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        costs = () if self.cost is None else (self.cost(self.time),)
        obs = np.full(1, self.time, np.float32)
        return obs, self.reward(self.time), *costs, False, False, self.info(self.time)


def unasked():
    """The keys of a step: an environment draws from a generator of its own."""
    raise AssertionError


def seen(world, steps=3):
    """The signals of the first steps, by name."""
    envs = world.batched(1)
    envs.reset(np.array([True]), lambda: jax.random.split(jax.random.key(0), 1))
    paid = np.concatenate([envs.step(np.array([1]), unasked).signals for _ in range(steps)])
    assert paid.dtype == np.float32
    return {name: paid[:, i].tolist() for i, name in enumerate(world.spec.signals)}


CASES = {
    "one number": ({}, {"reward": [1, 2, 3]}, "The signals are reward."),
    "a vector": (
        {"reward": lambda t: np.array([t, -1.0])},
        {"reward_1": [1, 2, 3], "reward_2": [-1, -1, -1]},
        "The signals are reward_1 (reward[0]), reward_2 (reward[1]).",
    ),
    "a cost": (
        {"info": lambda t: {"cost": 2 * t, "other": "text"}},
        {"reward": [1, 2, 3], "cost": [2, 4, 6]},
        "The signals are reward, cost (info['cost']).",
    ),
    "a cost that is not always there": (
        {"info": lambda t: {"cost": 5.0} if t % 2 == 0 else {}},
        {"reward": [1, 2, 3], "cost": [0, 5, 0]},
        "The signals are reward, cost (info['cost']).",
    ),
    "a truth": ({"info": lambda t: {"cost": t == 2}}, {"reward": [1, 2, 3], "cost": [0, 1, 0]}, "info['cost']"),
    "costs in an array": (
        {"info": lambda t: {"constraint_costs": np.array([t, 7])}},
        {"reward": [1, 2, 3], "cost_1": [1, 2, 3], "cost_2": [7, 7, 7]},
        "cost_2 (info['constraint_costs'][1])",
    ),
    "costs in a list": (
        {"info": lambda t: {"constraint_costs": [t]}},
        {"reward": [1, 2, 3], "cost_1": [1, 2, 3]},
        "cost_1 (info['constraint_costs'][0])",
    ),
    "costs by name": (
        {"info": lambda t: {"constraint_costs": {"heat": t} if t > 1 else {}}},
        {"reward": [1, 2, 3], "cost_heat": [0, 2, 3]},
        "cost_heat (info['constraint_costs']['heat'])",
    ),
    "costs each with a key": (
        {"info": lambda t: {"cost_of time": t, "cost_b": np.float32(0.5), "cost_note": "none"}},
        {"reward": [1, 2, 3], "cost_of_time": [1, 2, 3], "cost_b": [0.5] * 3},
        "cost_of_time (info['cost_of time']), cost_b (info['cost_b'])",
    ),
    "rewards by name": (
        {"info": lambda t: {"rewards": {"speed": t, "comfort": -t}}},
        {"reward": [1, 2, 3], "speed": [1, 2, 3], "comfort": [-1, -2, -3]},
        "comfort (info['rewards']['comfort'])",
    ),
    "six values": (
        {"cost": lambda t: 10 * t},
        {"reward": [1, 2, 3], "cost": [10, 20, 30]},
        "The signals are reward, cost (info['cost']).",
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_found(what):
    settings, paid, sentence = CASES[what]
    world = GymEnv(lambda: Told(**settings), 50)
    assert seen(world) == paid
    assert sentence in world.description


def test_of_our_own_worlds():
    world = GymEnv("lexrl/CartSafe-v0", max_episode_steps=20)
    assert world.spec.signals == lexrl.CartSafe().spec.signals
    assert "cost (info['signals']['cost'])" in world.description


class TestAFunction:
    def test_it_decides(self):
        def named(obs, action, reward, info):
            return {"cost": info["risk"] + action, "gain": 2 * reward, "place": obs[0]}

        world = GymEnv(lambda: Told(info=lambda t: {"risk": 0.5, "cost": 9}), 50, signals=named)
        assert seen(world) == {"cost": [1.5] * 3, "gain": [2, 4, 6], "place": [1, 2, 3]}
        assert world.description == "The signals are cost, gain, place, from the signals function."

    def test_what_it_leaves_out_is_0(self):
        world = GymEnv(Told, 50, signals=lambda obs, action, reward, info: {"even": 1} if reward % 2 == 0 else {})
        assert seen(world) == {"even": [0, 1, 0]}

    def test_the_cost_of_six_values_is_in_the_info(self):
        world = GymEnv(
            lambda: Told(cost=lambda t: t * t), 50, signals=lambda obs, action, reward, info: {"risk": info["cost"]}
        )
        assert seen(world) == {"risk": [1, 4, 9]}

    @pytest.mark.parametrize("answer", [3.0, {"cost": "much"}, {"cost": np.zeros(2)}, {}, {"my cost": 1.0}])
    def test_what_it_must_give(self, answer):
        with pytest.raises(InputError, match="The signals function returns") as error:
            GymEnv(Told, 50, signals=lambda *event: answer)
        assert "\n" not in str(error.value)


def vector(n=2, **settings):
    """Copies whose clocks differ, since the first is reset while the others go on."""
    return lambda: gymnasium.vector.SyncVectorEnv([lambda: Told(**settings)] * n)


@pytest.mark.parametrize("what", [what for what in CASES if what not in ("a vector", "six values")])
def test_of_vector_environments(what):
    """As of the single environments, also where only some of the worlds say something."""
    settings, paid, sentence = CASES[what]
    world = GymVectorEnv(vector(**settings), 50)
    assert sentence in world.description
    envs, keys = world.batched(2), jax.random.split(jax.random.key(0), 2)
    envs.reset(np.array([True, True]), lambda: keys)
    rows = [envs.step(np.array([0, 0]), unasked).signals]
    envs.reset(np.array([True, False]), lambda: keys)
    rows += [envs.step(np.array([0, 0]), unasked).signals for _ in range(2)]
    envs.close()
    rows = np.array(rows)
    assert {name: rows[1:, 0, i].tolist() for i, name in enumerate(world.spec.signals)} == {
        name: each[:2] for name, each in paid.items()
    }
    assert {name: rows[:, 1, i].tolist() for i, name in enumerate(world.spec.signals)} == paid


def test_the_order_picks_among_them():
    world = GymEnv(lambda: Told(info=lambda t: {"cost": 3.0, "cost_b": 1.0}), 5)
    result = lexrl.train(
        lexrl.Random(num_envs=1), world, "min cost_b > max reward", seeds=1, total_timesteps=10, num_log_points=1
    )
    assert result.metrics["episode_return"].tolist() == [[[5, 15]]]
    with pytest.raises(InputError, match=r"names 'risk', but the signals here are 'reward', 'cost', 'cost_b'"):
        lexrl.train(lexrl.Random(), world, parse("min risk"))
