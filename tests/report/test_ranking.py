"""Who is better, against planted answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexrl.errors import InputError
from lexrl.report import ranking

NAN = float("nan")


def run(means: tuple[float, ...], seed: int, seeds: int = 10, noise: float = 1.0) -> np.ndarray:
    """Seeds `[seeds, M]` that spread about their means."""
    return np.random.default_rng(seed).normal(means, noise, (seeds, len(means)))


class TestCompare:
    def test_the_first_objective_decides_where_it_can(self):
        good, bad = run((10.0, 0.0), 0), run((0.0, 10.0), 1)
        assert ranking.compare(good, bad, [1, 1]) == (1.0, 0.0, 0.0, 0)
        assert ranking.compare(bad, good, [1, 1]) == (0.0, 1.0, 0.0, 0)
        assert ranking.compare(good, bad, [1, 1]).winner == 1
        assert ranking.compare(bad, good, [1, 1]).winner == -1

    def test_signs_turn_it_round(self):
        found = ranking.compare(run((10.0, 0.0), 0), run((0.0, 10.0), 1), np.array([-1, 1]))
        assert (found.winner, found.by) == (-1, 0)

    def test_within_tolerance_the_second_decides(self):
        first, second = run((0.0, 5.0), 0), run((0.2, 0.0), 1)
        found = ranking.compare(first, second, [1, 1], [3.0, 0.0])
        assert (found.winner, found.by) == (1, 1)
        turned = ranking.compare(first, second, [1, -1], [3.0, 0.0])
        assert (turned.winner, turned.by) == (-1, 1)

    def test_without_tolerance_noise_decides_nothing(self):
        found = ranking.compare(run((0.0, 5.0), 0), run((0.0, 0.0), 3), [1, 1])
        assert found.equal == 0
        assert 0.05 < found.over < 0.95
        assert (found.winner, found.by) == (0, None)

    def test_within_every_tolerance_they_are_equal(self):
        found = ranking.compare(run((0.0, 0.0), 0), run((0.0, 0.0), 1), [1, 1], 4.0)
        assert found.equal > 0.99
        assert (found.winner, found.by) == (0, None)

    def test_an_endless_tolerance_leaves_an_objective_out(self):
        found = ranking.compare(run((9.0, 0.0), 0), run((0.0, 9.0), 1), [1, 1], [np.inf, 0])
        assert (found.winner, found.by) == (-1, 1)

    def test_equal_values_are_equal_though_sums_are_rounded(self):
        first, second = np.full((7, 2), 0.1), np.full((10, 2), 0.1)
        first[:, 1] = 0.3
        assert ranking.compare(first, second, [1, 1]) == (1.0, 0.0, 0.0, 1)
        assert ranking.compare(second, second[:3], [1, 1]) == (0.0, 0.0, 1.0, None)

    def test_is_students_probability_for_one_objective(self):
        # Against a constant, P(mean > 0) is Student's: t = mean / (s / sqrt(n)) = 1.5 with 19 degrees.
        values = run((0.0,), 4, 20)
        values = (values - values.mean()) / values.std(ddof=1) + 1.5 / np.sqrt(20)
        found = ranking.compare(values, np.zeros((2, 1)), [1], resamples=40_000)
        assert found.over == pytest.approx(0.92498, abs=0.01)

    @pytest.mark.parametrize("given", [np.zeros((1, 2)), np.zeros((0, 2)), np.array([[1.0, NAN], [2.0, 1.0]])])
    def test_of_one_seed_nothing_is_known(self, given):
        found = ranking.compare(given, run((50.0, 50.0), 0), [1, 1])
        assert np.isnan(found[:3]).all()
        assert (found.winner, found.by) == (0, None)

    def test_leaves_out_seeds_that_are_not_known(self):
        first, second = run((1.0, 0.0), 0), run((0.0, 0.0), 1)
        assert ranking.compare(np.vstack([first, [[NAN, 5.0]]]), second, [1, 1]) == ranking.compare(
            first, second, [1, 1]
        )

    @pytest.mark.parametrize("seeds", [3, 5, 10])
    def test_seldom_tells_apart_what_is_the_same(self, seeds):
        found = [
            ranking.compare(run((0.0,), 2 * i, seeds), run((0.0,), 2 * i + 1, seeds), [1], resamples=1000).winner
            for i in range(600)
        ]
        assert np.mean(np.abs(found)) < 0.11

    def test_finds_a_gap_of_two_deviations_with_ten_seeds(self):
        found = [ranking.compare(run((2.0,), i), run((0.0,), i + 900), [1], resamples=1000).winner for i in range(200)]
        assert np.mean(found) > 0.95


class TestRanking:
    def test_planted_classes(self):
        means = [(0.0, 0.0), (9.0, 0.0), (0.0, 9.0), (9.0, 0.0), (-9.0, 50.0)]
        found = ranking.rank([run(each, i) for i, each in enumerate(means)], [1, 1], [3.0, 0.0])
        assert [set(each) for each in found.classes] == [{1, 3}, {2}, {0}, {4}]
        assert found.over[1, 0] == 1
        assert found.odds[2][0].by == 1

    def test_of_one_objective_is_the_order_of_the_means(self):
        runs = [run((mean,), i) for i, mean in enumerate((5.0, 20.0, 0.0, 10.0))]
        assert ranking.rank(runs, [1]).classes == ((1,), (3,), (0,), (2,))
        assert ranking.rank(runs, [-1]).classes == ((2,), (0,), (3,), (1,))

    def test_of_one_run(self):
        assert ranking.rank([run((1.0,), 0)], [1]).classes == ((0,),)

    def test_probabilities_add_up(self):
        found = ranking.rank([run((0.0, 0.0), i, 5) for i in range(4)], [1, -1], 0.5)
        equal = np.array([[one.equal for one in row] for row in found.odds])
        assert found.over + found.over.T + equal == pytest.approx(np.ones((4, 4)))
        assert (equal == equal.T).all()
        assert (np.diag(found.over) == 0).all()

    def test_is_compare_for_two(self):
        first, second = run((0.3, 0.0), 0), run((0.0, 0.0), 1)
        assert ranking.rank([first, second], [1, 1], 0.1).odds[0][1] == ranking.compare(first, second, [1, 1], 0.1)

    def test_more_wins_come_first_in_a_class(self):
        found = ranking.rank([run((0.0,), 0, 3, 9.0), run((2.0,), 1, 3, 9.0), run((4.0,), 2, 3, 9.0)], [1])
        (only,) = found.classes
        assert list(only) == sorted(range(3), key=lambda i: -found.over[i].sum())

    def test_who_cannot_be_told_apart_from_the_best_is_with_them(self):
        # The wide one might be better or worse than both of the others, of which one is better.
        wide = run((0.5,), 2, 4, 60.0)
        found = ranking.rank([run((0.0,), 0, 10, 0.1), run((1.0,), 1, 10, 0.1), wide], [1])
        assert [set(each) for each in found.classes] == [{1, 2}, {0}]

    def test_a_run_of_one_seed_is_not_ranked_down(self):
        found = ranking.rank([run((0.0,), 0), run((9.0,), 1), np.array([[4.0]])], [1])
        assert [set(each) for each in found.classes] == [{1, 2}, {0}]
        assert np.isnan(found.over[2, :2]).all()

    def test_a_circle_is_one_class(self):
        # Neighbours are equal in the first objective, and the ends are not.
        means = [(0.0, 2.0), (1.0, 1.0), (2.0, 0.0), (-9.0, 9.0)]
        found = ranking.rank([run(each, i, noise=0.01) for i, each in enumerate(means)], [1, 1], [1.5, 0.5])
        assert [set(each) for each in found.classes] == [{0, 1, 2}, {3}]
        assert [found.over[0, 1], found.over[1, 2], found.over[2, 0]] == [1, 1, 1]

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 10_000), st.integers(2, 6))
    def test_losers_are_always_behind(self, seed, count):
        random = np.random.default_rng(seed)
        runs = [random.normal(random.normal(0, 1, 2), 1, (random.integers(2, 8), 2)) for _ in range(count)]
        found = ranking.rank(runs, [1, 1], resamples=300)  # without a tolerance there are no circles
        place = {i: level for level, each in enumerate(found.classes) for i in each}
        assert sorted(place) == list(range(count))
        beats = [(i, j) for i in range(count) for j in range(count) if found.odds[i][j].winner > 0]
        assert all(place[i] < place[j] for i, j in beats)


@pytest.mark.parametrize(
    ("runs", "signs", "tolerance", "said"),
    [
        ([], [1], 0.0, "no runs"),
        ([np.zeros((3, 2))], [1], 0.0, r"Run 1 has the shape \(3, 2\), and the signs are \[1\]"),
        ([np.zeros((3, 1)), np.zeros(3)], [1], 0.0, r"Run 2 has the shape \(3,\)"),
        ([np.zeros((3, 2))], [1, 0], 0.0, r"The signs are \[1, 0\]"),
        ([np.zeros((3, 0))], [], 0.0, r"The signs are \[\]"),
        ([np.zeros((3, 2))], [1, 1], [0.0, 1.0, 2.0], r"shape \(3,\) for 2 objectives"),
        ([np.zeros((3, 2))], [1, 1], -1.0, "0 or more"),
        ([np.zeros((3, 2))], [1, 1], [0.0, NAN], "0 or more"),
    ],
)
def test_says_what_it_needs(runs, signs, tolerance, said):
    with pytest.raises(InputError, match=said):
        ranking.rank(runs, signs, tolerance)


def test_more_than_enough_makes_no_difference():
    random = np.random.default_rng(0)
    careful = np.stack([1.0 + 0.1 * random.normal(size=10), 5.0 + 0.1 * random.normal(size=10)], axis=1)
    bold = np.stack([8.0 + 0.1 * random.normal(size=10), 9.0 + 0.1 * random.normal(size=10)], axis=1)
    assert ranking.rank([careful, bold], [-1, 1]).classes == ((0,), (1,))
    assert ranking.rank([careful, bold], [-1, 1], limits=[10.0, None]).classes == ((1,), (0,))
    assert ranking.rank([careful, bold], [-1, 1], limits=[5.0, None]).classes == ((0,), (1,))
