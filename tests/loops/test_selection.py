"""Which policy is handed over: fresh episodes that are written out, and an algorithm that keeps three policies."""

import collections
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl.loops import selection
from lexrl.loops.evaluation import Evaluation
from lexrl.loops.population import make_population
from lexrl.order import parse
from lexrl.tolerance import Absolute, Tolerances, as_tolerance


class Keeper(eqx.Module):
    """Keeps policies 10, 20 and 30; an agent's state is the number of its policy."""

    tolerance: Tolerances
    limits: float = np.inf
    count: int = eqx.field(static=True, default=3)

    def num_candidates(self, num_objectives: int) -> int:
        return self.count

    def candidate(self, state: Any, index: Any) -> Any:
        return state + 10 * (index + 1)

    def first_returns(self, state: Any) -> Any:
        return jnp.zeros((2, 2))

    def describe_candidate(self, num_objectives: int, index: int) -> dict[str, Any]:
        return {"number": index, "of": num_objectives}


class Mixer(Keeper):
    """Keeps policy 40 besides, for mixtures; the state of a mixture is the sum of its policies, by their weights."""

    mixture: bool = eqx.field(static=True, default=True)

    def num_columns(self, num_objectives: int) -> int:
        return 1

    def mix(self, state: Any, weights: Any) -> Any:
        return state + 10 * jnp.sum(weights * jnp.arange(1, 5))


def population(tolerance, size=2, padded=2, kind=Keeper, **settings):
    """Two members; the leaves of the algorithm are one for each, as in the loops."""
    keeper = jax.tree.map(lambda leaf: np.full(padded, leaf, np.float32), kind(as_tolerance(tolerance), **settings))
    return one_of(lexrl.Random())._replace(algorithms=keeper, seeds=jnp.zeros(padded, jnp.uint32), size=size)


def one_of(algorithm):
    return make_population(algorithm, lexrl.CartSafe(), parse("min cost > max reward"), [0], jax.devices()[:1])


def table(returns):
    """`play` from mean returns by the number of the policy: `[members, M]`, in each of four episodes the same."""
    played = []

    def play(agents, first=0):
        played.append(np.asarray(agents).tolist())
        mine = np.stack([returns[int(one) // 10][i] for i, one in enumerate(agents)])
        whole = np.repeat(np.asarray(mine, float)[:, None], 4, axis=1)
        return Evaluation(whole, whole, np.ones(whole.shape[:2]))

    return play, played


def test_each_member_gets_the_best_of_its_own():
    """Cost is minimized: a lower one is better. Member 0: the second costs less. Member 1: the third earns more."""
    play, played = table({1: [[5.0, 9.0], [2.0, 1.0]], 2: [[4.0, 1.0], [3.0, 9.0]], 3: [[4.0, 0.0], [2.0, 4.0]]})
    found = selection.select(population((0.0, 0.0)), jnp.array([1.0, 2.0]), play, 2)
    assert played == [[11.0, 12.0], [21.0, 22.0], [31.0, 32.0]]
    assert found.chosen.tolist() == [1, 2]
    np.testing.assert_array_equal(found.agents, [21.0, 32.0])
    np.testing.assert_array_equal(found.returns, [[4.0, 1.0], [2.0, 4.0]])
    assert found.about == ({"number": 1, "of": 2}, {"number": 2, "of": 2})


@pytest.mark.parametrize(("slack", "expected"), [(0.0, [0, 0]), (1.5, [2, 2])])
def test_slack_is_for_what_comes_after(slack, expected):
    play, _ = table({1: [[4.0, 1.0]] * 2, 2: [[9.0, 9.0]] * 2, 3: [[5.0, 7.0]] * 2})
    assert selection.select(population((slack, 0.0)), jnp.zeros(2), play, 2).chosen.tolist() == expected


def test_relative_slack_is_of_the_best_return():
    """A tenth of a cost of 20 is 2; of the best, and not of each."""
    play, _ = table({1: [[20.0, 1.0]] * 2, 2: [[21.9, 5.0], [22.1, 5.0]], 3: [[30.0, 9.0]] * 2})
    found = selection.select(population(("10%", 0.0)), jnp.zeros(2), play, 2)
    assert found.chosen.tolist() == [1, 0]


def test_padding_is_left_out():
    play, _ = table({1: [[1.0, 1.0]], 2: [[0.0, 1.0]], 3: [[2.0, 1.0]]})

    def one(agents, first=0):
        return play(np.asarray(agents)[:1])

    found = selection.select(population((0.0, 0.0), size=1, padded=2), jnp.zeros(2), one, 2)
    assert found.chosen.tolist() == [1]
    np.testing.assert_array_equal(found.agents, [20.0, 20.0])
    assert len(found.about) == len(found.returns) == 1


class TestMixtures:
    """A cost of 1 more buys 4 (the column), or 2; the slack is 0.5. In the episodes that decide, nothing is random."""

    RETURNS: ClassVar = {1: [[4.0, 1.0]] * 2, 2: [[9.0, 9.0]] * 2, 3: [[5.0, 3.0]] * 2, 4: [[5.0, 5.0]] * 2}

    def test_slack_is_used_by_a_mixture(self):
        play, _ = table(self.RETURNS)
        found = selection.select(population((0.5, 0.0), kind=Mixer), jnp.zeros(2), play, 2)
        np.testing.assert_allclose(found.weights, [[0.5, 0, 0, 0.5]] * 2, atol=1e-6)
        np.testing.assert_allclose(found.agents, [25.0, 25.0], atol=1e-4)
        np.testing.assert_allclose(found.returns, [[4.5, 3.0]] * 2, atol=1e-5)
        first, last = found.about[0]["mixture"]
        assert (first["number"], last["number"]) == (0, 3)
        assert first["probability"] == pytest.approx(0.5)

    @pytest.mark.parametrize(("slack", "expected"), [(0.5, 0), (1.5, 3)])
    def test_or_by_the_best_single_policy(self, slack, expected):
        play, _ = table(self.RETURNS)
        found = selection.select(population((slack, 0.0), kind=Mixer, mixture=False), jnp.zeros(2), play, 2)
        assert found.chosen.tolist() == [expected] * 2
        assert found.about[0] == {"number": expected, "of": 2}

    def test_without_slack_columns_do_not_play(self):
        play, played = table(self.RETURNS)
        found = selection.select(population((0.0, 0.0), kind=Mixer), jnp.zeros(2), play, 2)
        assert found.chosen.tolist() == [0, 0]
        assert len(played) == 3

    def test_the_probabilities_come_from_episodes_that_chose_nothing(self):
        play, _ = table(self.RETURNS)
        numbers = []

        def counted(agents, first):
            numbers.append(first - selection.FIRST)
            return play(agents)

        selection.select(population((0.5, 0.0), kind=Mixer), jnp.zeros(2), counted, 2)
        assert numbers[:4] == [0] * 4
        assert set(numbers[4:]) == {selection.EPISODES}, "once more is enough where nothing is random"

    def test_a_policy_without_a_return_spoils_no_other(self):
        play, _ = table(self.RETURNS | {2: [[np.nan, np.nan]] * 2})
        found = selection.select(population((0.0, 0.0)), jnp.zeros(2), play, 2)
        np.testing.assert_array_equal(found.returns, [[4.0, 1.0]] * 2)


class TestMoreEpisodes:
    """The second policy costs less in the first episodes, by nearly two standard errors: three times it is 1 less."""

    LUCK = np.array([0.0, 1.0] * 3 + [0.0] * 4)

    def play_with(self, later):
        numbers = []

        def play(agents, first=0):
            numbers.append(first - selection.FIRST)
            gain = self.LUCK if first == selection.FIRST else later
            cost = np.stack([5 - gain * (int(one) // 10 == 2) for one in agents])
            reward = np.stack([np.full(10, 9.0 - int(one) // 10) for one in agents])
            whole = np.stack([cost, reward], axis=-1)
            return Evaluation(whole, whole, np.ones(whole.shape[:2]))

        return play, numbers

    def test_luck_does_not_last(self):
        play, numbers = self.play_with(np.zeros(10))
        found = selection.select(population((0.0, 0.0)), jnp.zeros(2), play, 2)
        assert found.chosen.tolist() == [0, 0]
        assert numbers[:3] == [0] * 3
        assert all(count == 2 for count in collections.Counter(numbers[3:]).values()), (
            "only the two in question play again"
        )
        assert max(numbers) < 100 * selection.MAX_ROUNDS, "until it is clear"

    def test_what_is_better_stays_better(self):
        play, _ = self.play_with(self.LUCK)
        assert selection.select(population((0.0, 0.0)), jnp.zeros(2), play, 2).chosen.tolist() == [1, 1]


def test_differences_that_do_not_count():
    """From 0 at the beginning to a cost of 4: 0.04 is a percent of it."""
    play, _ = table({1: [[4.0, 9.0]] * 2, 2: [[3.97, 1.0], [3.94, 1.0]], 3: [[4.0, 1.0]] * 2})
    assert selection.select(population((0.0, 0.0)), jnp.zeros(2), play, 2).chosen.tolist() == [0, 1]


def test_nothing_to_choose_from():
    def play(agents, first=0):
        raise AssertionError("nothing is played")

    for algorithm in (Keeper(Absolute(0.0), count=0), lexrl.PPO(), lexrl.LPPO()):
        one = one_of(lexrl.Random())._replace(algorithms=algorithm)
        assert selection.select(one, jnp.zeros(1), play, 1) is None


@pytest.mark.parametrize(("total_timesteps", "expected"), [(1_000, 10), (90_000, 20), (10**7, 100)])
def test_episodes_that_are_stepped_from_python_are_few(total_timesteps, expected):
    """A fifth of the training's steps for three candidates of 300 steps."""
    assert selection.affordable(population(0.0), total_timesteps) == expected


AFFORDED = [(1, 1), (299, 1), (600, 2), (1_000, 3), (1e9, 40), (np.inf, 40)]


@pytest.mark.parametrize(("total_timesteps", "expected"), AFFORDED)
def test_candidates_play_again_as_often_as_can_be_afforded(monkeypatch, total_timesteps, expected):
    """Three that stay in question, four episodes of five steps: 60 steps in a round, of a fifth of training's."""
    monkeypatch.setattr(selection.Judged, "contenders", lambda self: list(range(len(self.returns))))
    numbers = []

    def play(agents, first=0):
        numbers.append(first - selection.FIRST)
        whole = np.zeros((len(agents), 4, 2))
        return Evaluation(whole, whole, np.full(whole.shape[:2], 5.0))

    selection.select(population((0.0, 0.0)), jnp.zeros(2), play, 2, total_timesteps)
    assert collections.Counter(numbers) == {100 * k: 3 for k in range(expected + 1)}


@pytest.mark.parametrize(("total_timesteps", "expected"), [(1, 1), (399, 1), (1_000, 5), (1e9, 40), (np.inf, 40)])
def test_a_mixture_plays_again_as_often_as_can_be_afforded(total_timesteps, expected):
    """Two of four candidates, four episodes of five steps: 40 steps in a round, of a fifth of training's. Costs are
    random, and differently for every policy: one round does not suffice by itself."""
    numbers = []

    def play(agents, first=0):
        numbers.append(first - selection.FIRST)
        rng = np.random.default_rng([first, *map(int, agents)])
        means = {1: [4.0, 1.0], 2: [9.0, 9.0], 3: [5.0, 3.0], 4: [5.0, 5.0]}
        whole = np.stack([np.tile(means[int(one) // 10], (4, 1)) for one in agents])
        whole[..., 0] += rng.normal(size=whole.shape[:2])
        return Evaluation(whole, whole, np.full(whole.shape[:2], 5.0))

    selection.select(population((0.01, 0.0), kind=Mixer), jnp.zeros(2), play, 2, total_timesteps)
    assert max(numbers) == 100 * expected


def test_rare_accidents_are_not_overlooked():
    """In the first episodes the second policy has fewer accidents than the first, and the third as few as the second;
    in fact only the third has hardly any. What beats the first is in question, though the second came between."""

    def play(agents, first=0):
        accidents = {10: np.arange(100) < 4, 20: np.arange(100) < 4, 30: np.zeros(100)}
        if first == selection.FIRST:
            accidents |= {20: np.arange(100) == 0, 30: np.arange(100) == 9}
        rewards = {10: 40.0, 20: 38.0, 30: 20.0}
        one = [np.stack([accidents[int(each)], np.full(100, rewards[int(each)])], axis=-1) for each in agents]
        return Evaluation(np.stack(one), np.stack(one), np.full((len(agents), 100), 20.0))

    assert selection.select(population((0.0, 0.0)), jnp.zeros(2), play, 2).chosen.tolist() == [2, 2]


def test_a_member_does_not_depend_on_its_neighbors():
    """The first one's returns are noisy, and its episodes short. The second's are clear in one case, and in the other
    they are noisier still, and its episodes are long."""

    def chosen(noise, length):
        def play(agents, first=0):
            both = []
            for i, one in enumerate(agents):
                rng = np.random.default_rng([first, i, int(one)])
                means = {1: [4.05, 1.0], 2: [4.0, 0.0], 3: [4.2, 3.0], 4: [4.1, 5.0]}[int(one) // 10]
                both.append(rng.normal(means, [(0.1, noise)[i], 0.1], (10, 2)))
            lengths = np.stack([np.full(10, 5.0), np.full(10, length)])
            return Evaluation(np.stack(both), np.stack(both), lengths)

        return selection.select(population((0.05, 0.0), kind=Mixer), jnp.zeros(2), play, 2, 10_000)

    one, other = chosen(0.0, 1.0), chosen(5.0, 100.0)
    np.testing.assert_array_equal(one.weights[0], other.weights[0])


@pytest.mark.parametrize(("total_timesteps", "expected"), [(1_000, 1_000), (300_000, 10_000)])
def test_episodes_that_do_not_end_are_cut_off(total_timesteps, expected):
    """Ten episodes of each of three candidates take as many steps as training, but a thousand can always be had."""
    assert selection.longest(population(0.0), total_timesteps) == expected
