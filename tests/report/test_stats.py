"""Numbers over seeds, against numbers worked out by hand, SciPy, and simulation."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from lexrl.report import stats
from lexrl.report.stats import Interval

NAN = float("nan")


class TestMean:
    def test_by_hand(self):
        # 1, 2, 3: mean 2, standard deviation 1, standard error 1 / sqrt(3) = 0.57735, Student's 97.5 % point 4.30265.
        found = stats.mean(np.array([1.0, 2.0, 3.0]))
        assert found == pytest.approx((2.0, 2 - 4.30265 * 0.57735, 2 + 4.30265 * 0.57735), abs=1e-4)

    def test_leaves_out_what_is_not_known(self):
        assert stats.mean(np.array([1.0, NAN, 2.0, 3.0, np.inf])) == stats.mean(np.array([1.0, 2.0, 3.0]))

    def test_of_equal_values_is_sure(self):
        assert stats.mean(np.full(5, 7.0)) == (7.0, 7.0, 7.0)

    def test_of_one_value_has_no_interval(self):
        found = stats.mean(np.array([4.0, NAN]))
        assert found.mean == 4.0
        assert np.isnan([found.low, found.high]).all()

    def test_of_no_values_is_not_known(self):
        assert np.isnan(stats.mean(np.array([NAN, NAN]))).all()
        assert np.isnan(stats.mean(np.array([]))).all()

    @pytest.mark.parametrize("seeds", [2, 4, 10])
    def test_covers_the_truth_in_95_of_100_cases(self, seeds):
        samples = np.random.default_rng(0).normal(3.0, 2.0, (4000, seeds))
        found = [stats.mean(sample) for sample in samples]
        assert 0.93 < np.mean([one.low < 3.0 < one.high for one in found]) < 0.97


class TestDifference:
    def test_by_hand(self):
        # Means 2 and 6, variances of the means 1/3 and 4/3, together 5/3; (5/3)^2 / ((1/3)^2 / 2 + (4/3)^2 / 2) = 2.941
        # degrees of freedom, for which Student's 97.5 % point is 3.2192.
        found = stats.difference(np.array([1.0, 2.0, 3.0]), np.array([4.0, 6.0, 8.0]))
        half = 3.2192 * np.sqrt(5 / 3)
        assert found == pytest.approx((-4.0, -4 - half, -4 + half), abs=1e-3)

    @pytest.mark.parametrize("sizes", [(2, 2), (3, 10), (10, 10)])
    def test_is_welchs(self, sizes):
        random = np.random.default_rng(1)
        first, second = random.normal(0, 1, sizes[0]), random.normal(1, 5, sizes[1])
        known = scipy_stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
        found = stats.difference(first, second)
        assert found == pytest.approx((first.mean() - second.mean(), known.low, known.high), rel=1e-9)

    def test_covers_the_truth_in_95_of_100_cases_though_spreads_differ(self):
        random = np.random.default_rng(2)
        found = [stats.difference(random.normal(5, 1, 8), random.normal(3, 4, 12)) for _ in range(4000)]
        assert 0.93 < np.mean([one.low < 2.0 < one.high for one in found]) < 0.97

    def test_turns_with_its_arguments(self):
        first, second = np.array([1.0, 2.0, 4.0]), np.array([3.0, 7.0])
        there, back = stats.difference(first, second), stats.difference(second, first)
        assert there == pytest.approx((-back.mean, -back.high, -back.low))

    def test_leaves_out_what_is_not_known(self):
        first, second = np.array([1.0, NAN, 3.0]), np.array([4.0, 6.0])
        assert stats.difference(first, second) == stats.difference(np.array([1.0, 3.0]), second)

    def test_of_equal_values_is_sure(self):
        assert stats.difference(np.full(3, 5.0), np.full(4, 2.0)) == (3.0, 3.0, 3.0)

    def test_with_one_value_has_no_interval(self):
        found = stats.difference(np.array([5.0]), np.array([1.0, 2.0, 3.0]))
        assert found.mean == 3.0
        assert np.isnan([found.low, found.high]).all()

    def test_with_no_values_is_not_known(self):
        assert np.isnan(stats.difference(np.array([NAN]), np.array([1.0, 2.0]))).all()


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(1.23456, 1.0, 1.5), "1.235 [1, 1.5]"),
        (Interval(2.0, NAN, NAN), "2"),
        (Interval(NAN, NAN, NAN), "none"),
    ],
)
def test_reads_as_people_write_it(interval, text):
    assert str(interval) == text
