"""Gymnasium environments as finite MOMDPs."""

import random

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

import lexrl
from lexrl.envs.bridge import model_of
from lexrl.envs.randomness import Scripted, outcomes


def test_a_transition_table():
    momdp = lexrl.momdp_from_env("FrozenLake-v1", 0.9, is_slippery=False)
    assert (momdp.num_states, momdp.num_actions, momdp.signals) == (17, 4, ("reward",))
    # Six steps to the goal.
    assert lexrl.solve(momdp).returns[0] == pytest.approx(0.9**5)
    slippery = lexrl.momdp_from_env("FrozenLake-v1", 1.0)
    assert lexrl.solve(slippery).returns[0] == pytest.approx(14 / 17)


def test_cliff_walking_and_taxi():
    assert lexrl.solve(lexrl.momdp_from_env("CliffWalking-v1", 1.0)).returns[0] == -13.0
    taxi = lexrl.momdp_from_env("Taxi-v4", 1.0)
    assert taxi.num_states == 501
    assert 7.5 < lexrl.solve(taxi).returns[0] < 8.5


def stick(env, player, shown):
    """The expected reward of sticking, from the environment itself: every hidden card, every card the dealer draws."""
    inner = env.unwrapped
    worth = 0.0
    for hidden in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10]:

        def run(generator, hidden=hidden):
            inner.player, inner.dealer, inner.np_random = list(player), [shown, hidden], generator
            return inner.step(0)[1]

        worth += sum(one.probability * one.result for one in outcomes(run)) / 13
    return worth


@pytest.mark.parametrize("rules", [{}, {"sab": False}, {"sab": False, "natural": True}])
def test_blackjack(rules):
    env = lexrl.GymEnv("Blackjack-v1", max_episode_steps=100, **rules)
    model, momdp = model_of(env), lexrl.momdp_from_env(env, 1.0)
    real = env.make()
    real.reset(seed=0)
    naturals = len(model.observations) - 10  # the last ten: naturals, by the dealer's card
    for player, shown in (([10, 9], 10), ([10, 3], 9), ([1, 10], 10), ([1, 4, 6], 8)):
        total = sum(player) + 10 * (1 in player)
        ordinary = model.observations.index((total, shown, int(1 in player)))
        state = naturals + shown - 1 if player == [1, 10] else ordinary
        assert momdp.rewards[0, state, 0] == pytest.approx(stick(real, player, shown), abs=1e-12)
    assert -0.06 < lexrl.solve(momdp).returns[0] < 0.0
    assert momdp.initial.sum() == pytest.approx(1.0)


def test_exploring_deep_sea_treasure():
    momdp = lexrl.momdp_from_env("deep-sea-treasure-v0", 1.0)
    assert momdp.signals == ("reward_1", "reward_2")
    treasure = lexrl.solve(momdp, "max reward_1 > max reward_2")
    np.testing.assert_allclose(treasure.returns, [23.7, -19.0], rtol=1e-6)
    fastest = lexrl.solve(momdp, "max reward_2 > max reward_1")
    np.testing.assert_allclose(fastest.returns, [-1.0, 0.7], rtol=1e-6)


def test_how_far_exploring_is():
    told = []
    momdp = lexrl.momdp_from_env("deep-sea-treasure-v0", 1.0, progress=told.append)
    assert told[0] == 1
    assert told[-1] == momdp.num_states - 1  # the last state is where episodes end


def test_exploring_where_moves_are_random():
    momdp = lexrl.momdp_from_env("resource-gathering-v0", 0.9)
    safe = lexrl.solve(momdp, "max reward_1 > max reward_3 > max reward_2")
    np.testing.assert_allclose(safe.returns, [0.0, 0.9**9, 0.0], atol=1e-12)
    brave = lexrl.solve(momdp, "max reward_2 > max reward_3 > max reward_1")
    assert brave.returns[2] < 0 < brave.returns[0]


def test_exploring_rooms():
    """In four-room's code: a blue square to the left, the goal to the right; the goal pays 1 of each."""
    momdp = lexrl.momdp_from_env("four-room-v0", 0.5, maze=np.array([["1", "_", "G"]]))
    assert momdp.num_states == 4  # the start, the square, the start with what was collected, the end
    square = lexrl.solve(momdp, "max reward_1 > max reward_2 > max reward_3")
    np.testing.assert_allclose(square.returns, [1 + 0.25, 0.25, 0.25])
    goal = lexrl.solve(momdp, "max reward_2 > max reward_1 > max reward_3")
    np.testing.assert_allclose(goal.returns, [1.0, 1.0, 1.0])


class Corridor(gymnasium.Env):
    """Three cells; the last one ends. `memory` makes what happens depend on more than the cell."""

    observation_space = spaces.Discrete(3)
    action_space = spaces.Discrete(2)

    def __init__(self, memory=False, draw="random"):
        self.memory, self.draw, self.trail = memory, draw, []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.trail = 0, []
        return self.cell, {}

    def step(self, action):
        slips = getattr(self.np_random, self.draw)() < 0.3
        self.trail.append(self.cell)
        self.cell = max(0, self.cell - 1) if slips else min(2, self.cell + action)
        bonus = len(self.trail) if self.memory else 0
        return self.cell, float(self.cell + bonus), self.cell == 2, False, {"cost": float(slips)}


class Windy(FrozenLakeEnv):
    """Inherits a table, and does something else: from the first cell every move leads down."""

    def step(self, action):
        return super().step(1 if self.s == 0 else action)


def test_a_table_that_says_something_else_does_not_count():
    momdp = lexrl.momdp_from_env(Windy, 0.9, desc=["SF", "FG"], is_slippery=False)
    dense = momdp.transitions.toarray().reshape(-1, 4, momdp.num_states)
    first = int(np.argmax(momdp.initial))
    assert (np.argmax(dense[first], axis=1) == np.argmax(dense[first, 1])).all()
    costly = lexrl.momdp_from_env(
        "FrozenLake-v1", 0.9, signals=lambda obs, action, reward, info: {"reward": reward, "cost": obs == 1},
        desc=["SF", "FG"], is_slippery=False,
    )  # fmt: skip
    np.testing.assert_allclose(lexrl.solve(costly, "max cost > max reward").returns[0], 10.0)


class Listed(gymnasium.Env):
    """Two cells and a table, of which a part may be wrong."""

    observation_space = spaces.Discrete(3)
    action_space = spaces.Discrete(2)
    initial_state_distrib = (1.0, 0.0, 0.0)

    def __init__(self, table):
        self.P = table

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = 0
        return self.cell, {}

    def step(self, action):
        self.cell += action
        return self.cell, float(action), self.cell == 2, False, {}


RIGHT = {s: {a: [(1.0, min(s + a, 2), float(a), s + a > 1)] for a in range(2)} for s in range(3)}


@pytest.mark.parametrize(
    "table",
    [
        np.ones((3, 2, 3)),
        {s: {0: RIGHT[s][0]} for s in range(3)},
        {s: {a: [(1.0, 7, 1.0, False)] for a in range(2)} for s in range(3)},
        {s: {a: [(1.0, s + a, np.nan, False)] for a in range(2)} for s in range(3)},
    ],
    ids=["array", "an action missing", "no such state", "no number"],
)
def test_a_table_that_cannot_be_right_does_not_count(table):
    found = lexrl.momdp_from_env(lambda: Listed(table), 0.5)
    assert found.num_states == 3  # explored: the third cell is never shown
    assert lexrl.solve(found).returns[0] == 1.5
    assert lexrl.momdp_from_env(lambda: Listed(RIGHT), 0.5).num_states == 4
    half = {s: {a: [(0.5, *RIGHT[s][a][0][1:])] for a in range(2)} for s in range(3)}
    with pytest.raises(lexrl.InputError, match=r"state 0, action 0 sum to 0\.5"):
        lexrl.momdp_from_env(lambda: Listed(half), 0.5)


def test_other_rules_than_blackjack():
    twice = gymnasium.wrappers.TransformReward(gymnasium.make("Blackjack-v1"), lambda reward: 2 * reward)
    with pytest.raises(lexrl.InputError, match="hides the dealer's second card"):
        lexrl.momdp_from_env(twice)


def test_time_limits_play_no_part():
    lake = gymnasium.make("FrozenLake-v1", desc=["SF", "FG"], is_slippery=False, max_episode_steps=3)
    twice = gymnasium.wrappers.TransformReward(lake, lambda reward: 2 * reward)
    assert lexrl.solve(lexrl.momdp_from_env(twice, 0.5)).returns[0] == pytest.approx(1.0)


def test_every_draw_is_followed():
    momdp = lexrl.momdp_from_env(Corridor, 0.9)
    assert momdp.signals == ("reward", "cost")
    dense = momdp.transitions.toarray().reshape(3, 2, 3)
    np.testing.assert_allclose(dense[1, 1], [0.3, 0.0, 0.7], atol=1e-16)
    np.testing.assert_allclose(momdp.rewards[:, 1, 1], [1.4, 0.3])


def test_what_is_not_markov_is_refused():
    with pytest.raises(lexrl.InputError, match="not Markov in what it shows"):
        lexrl.momdp_from_env(lambda: Corridor(memory=True))


class Line(gymnasium.Env):
    """Steps to the right, one at a time, up to 5; `pays` says what for."""

    observation_space = spaces.Discrete(6)
    action_space = spaces.Discrete(2)

    def __init__(self, pays, stays=False):
        self.pays, self.stays, self.generator = pays, stays, np.random.default_rng(0)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = self.steps = 0
        return self.cell, {}

    def step(self, action):
        self.steps += 1
        self.cell += 1 if action or not self.stays else 0
        return self.cell, self.pays(self, action), self.cell == 5, False, {}


@pytest.mark.parametrize(
    ("pays", "stays"),
    [
        (lambda env, action: float(env.steps), True),  # only staying shows that steps are counted
        (lambda env, action: float(env.steps > 12), True),  # and only staying for long
        (lambda env, action: random.random(), False),
        (lambda env, action: env.generator.random(), False),
        (lambda env, action: float(0.335 < env.np_random.random() < 0.34), False),  # too narrow to be found
    ],
    ids=["counts", "counts late", "global", "own", "narrow"],
)
def test_what_depends_on_more_than_is_shown_is_refused(pays, stays):
    with pytest.raises(lexrl.InputError, match="not Markov in what it shows, or not random by its own np_random"):
        lexrl.momdp_from_env(lambda: Line(pays, stays))


def test_rewards_that_are_no_numbers_are_refused():
    with pytest.raises(lexrl.InputError, match="Line pays nan in a step"):
        lexrl.momdp_from_env(lambda: Line(lambda env, action: np.nan))


class Counted(gymnasium.Wrapper):
    """Pays one more at every step."""

    def reset(self, **settings):
        self.count = 0
        return self.env.reset(**settings)

    def step(self, action):
        self.count += 1
        obs, reward, *rest = self.env.step(action)
        return obs, reward + self.count, *rest


def test_wrappers_are_taken_back_too():
    momdp = lexrl.momdp_from_env(lambda: Counted(Line(lambda env, action: float(action))), 1.0)
    np.testing.assert_array_equal(momdp.rewards[0, :5], [[k + 1, k + 2] for k in range(5)])


def test_what_cannot_be_followed_is_refused():
    with pytest.raises(lexrl.InputError, match=r"draws from np_random.normal, which cannot be followed"):
        lexrl.momdp_from_env(lambda: Corridor(draw="normal"))
    with pytest.raises(lexrl.InputError, match="not integers"):
        lexrl.momdp_from_env("CartPole-v1")
    with pytest.raises(lexrl.InputError, match="continuous actions"):
        lexrl.momdp_from_env("Pendulum-v1")
    with pytest.raises(lexrl.InputError, match="more than 5 states"):
        lexrl.momdp_from_env("deep-sea-treasure-v0", max_states=5)


class Shown(Line):
    """A line whose cell is shown in some other way."""

    def __init__(self, show, space):
        super().__init__(lambda env, action: float(action))
        self.show, self.observation_space = show, space

    def reset(self, **settings):
        return self.show(super().reset(**settings)[0]), {}

    def step(self, action):
        obs, *rest = super().step(action)
        return self.show(obs), *rest


@pytest.mark.parametrize(
    ("show", "space", "said"),
    [
        (lambda cell: {"x": np.array([cell / 2])}, spaces.Dict(x=spaces.Box(0, 3, (1,))), r"shows \[0.5\], which"),
        (lambda cell: (np.array([cell / 2]), 0), spaces.Tuple((spaces.Box(0, 3, (1,)), spaces.Discrete(1))), "0.5"),
        (lambda cell: [cell / 2], spaces.Box(0, 3, (1,)), r"shows \[0.5\], which"),
        (lambda cell: "abcdef"[cell], spaces.Text(1), "shows .'a'., which are not integers"),
    ],
    ids=["dict", "tuple", "list", "text"],
)
def test_observations_that_are_no_integers_are_refused(show, space, said):
    with pytest.raises(lexrl.InputError, match=said):
        lexrl.momdp_from_env(lambda: Shown(show, space))


def test_a_state_may_be_changed_inside_a_tuple():
    class Boxed(Line):
        def reset(self, **settings):
            self.box = (np.zeros(1, int),)
            return super().reset(**settings)

        def step(self, action):
            self.box[0][0] = min(5, self.box[0][0] + 1)
            self.cell = int(self.box[0][0]) - 1
            return super().step(1)

    assert lexrl.momdp_from_env(lambda: Boxed(lambda env, action: 1.0)).num_states == 6


def test_draws_of_many_values(monkeypatch):
    monkeypatch.setattr("lexrl.envs.exploration._MOST_RUNS", 500)  # 200,000 take their time
    with pytest.raises(lexrl.InputError, match="Line draws so many random numbers in one step or reset"):
        lexrl.momdp_from_env(lambda: Line(lambda env, action: sum(env.np_random.integers(10) for _ in range(9))))
    assert sorted(one.result for one in outcomes(lambda rng: rng.integers(1, 3, endpoint=True))) == [1, 2, 3]
    for draw, said in (
        (lambda rng: rng.integers(2**31), "one of 2,147,483,648 values"),
        (lambda rng: rng.integers(0), "one of 0 values"),
        (lambda rng: rng.choice(10**9), "one of 1,000,000,000 values"),
        (lambda rng: rng.random(dtype=np.float32), "of type float32; only float64"),
    ):
        with pytest.raises(lexrl.InputError, match=said):
            outcomes(draw)


def test_what_has_no_model_is_refused():
    with pytest.raises(lexrl.InputError, match="cart-safe has no finite model that could be solved"):
        lexrl.momdp_from_env("cart-safe")
    with pytest.raises(lexrl.InputError, match="CartSafe has no finite model"):
        lexrl.momdp_from_env(lexrl.CartSafe())
    with pytest.raises(lexrl.InputError, match="The most states are 0; give a whole number from 1 on"):
        lexrl.momdp_from_env("deep-sea-treasure-v0", max_states=0)
    with pytest.raises(lexrl.InputError, match=r"Line pays \[None\] in a step, which are not numbers"):
        lexrl.momdp_from_env(lambda: Line(lambda env, action: None))


def test_scripts():
    assert sorted(outcomes(lambda rng: rng.integers(2) + rng.choice([0, 1]))) == [(0.25, 0), (0.25, 2), (0.5, 1)]
    found = outcomes(lambda rng: int(rng.random() < 0.1) + int(rng.uniform(0, 2) < 0.5))
    assert sum(one.probability for one in found) == pytest.approx(1.0, abs=1e-15)
    assert {one.result: one.probability for one in found}[2] == pytest.approx(0.025, abs=1e-16)
    assert Scripted((0.25,)).random() == 0.25


def test_outcomes_that_are_narrower_than_the_grid():
    shares = np.array([0.33, 0.001, 0.004, 0.6, 0.065])
    found = outcomes(lambda rng: int(np.argmax(np.cumsum(shares) > rng.random())))
    assert [one.result for one in found] == [0, 1, 2, 3, 4]
    np.testing.assert_allclose([one.probability for one in found], shares, rtol=1e-12)


def test_lexrl_environments_have_their_own_models():
    env = lexrl.GridNav.generate(4, map_seed=1)
    assert lexrl.momdp_from_env(env, 0.9).num_states == env.momdp(0.9).num_states
