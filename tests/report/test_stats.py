"""Numbers over seeds, against numbers worked out by hand, SciPy, and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from lexrl.errors import InputError
from lexrl.report import stats
from lexrl.report.stats import Interval

NAN = float("nan")

samples = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12)


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
        assert found.middle == 4.0
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
        assert there == pytest.approx((-back.middle, -back.high, -back.low))

    def test_leaves_out_what_is_not_known(self):
        first, second = np.array([1.0, NAN, 3.0]), np.array([4.0, 6.0])
        assert stats.difference(first, second) == stats.difference(np.array([1.0, 3.0]), second)

    def test_of_equal_values_is_sure(self):
        assert stats.difference(np.full(3, 5.0), np.full(4, 2.0)) == (3.0, 3.0, 3.0)

    def test_with_one_value_has_no_interval(self):
        found = stats.difference(np.array([5.0]), np.array([1.0, 2.0, 3.0]))
        assert found.middle == 3.0
        assert np.isnan([found.low, found.high]).all()

    def test_with_no_values_is_not_known(self):
        assert np.isnan(stats.difference(np.array([NAN]), np.array([1.0, 2.0]))).all()


class TestInterquartileMean:
    @pytest.mark.parametrize(
        ("values", "known"),
        [
            ([7.0], 7.0),
            ([1.0, 4.0], 2.5),
            ([0.0, 3.0, 100.0], (0.25 * 0 + 3 + 0.25 * 100) / 1.5),
            ([100.0, 1.0, 2.0, -50.0], 1.5),
            ([0.0, 1.0, 2.0, 3.0, 90.0], (0.75 * 1 + 2 + 0.75 * 3) / 2.5),
            ([9.0, 1.0, 2.0, 30.0, 4.0, 5.0, 6.0, -80.0], (2 + 4 + 5 + 6) / 4),
            # The edges are at 2.5 and 7.5 of 10: the third and the eighth count half.
            ([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0], (2 + 8 + 16 + 32 + 64 + 64) / 5),
        ],
    )
    def test_by_hand(self, values, known):
        assert stats.iqm(np.array(values)) == pytest.approx(known, rel=1e-14)

    @pytest.mark.parametrize("n", [4, 8, 40])
    def test_is_scipys_where_quarters_are_whole(self, n):
        values = np.random.default_rng(n).normal(size=(n, 3))
        assert stats.iqm(values, axis=0) == pytest.approx(scipy_stats.trim_mean(values, 0.25, axis=0))

    def test_is_the_middle_half_of_each_value_four_times(self):
        values = np.random.default_rng(0).normal(size=(5, 11))
        assert stats.iqm(values) == pytest.approx(scipy_stats.trim_mean(values.repeat(4, axis=1), 0.25, axis=1))

    def test_leaves_out_what_is_not_known(self):
        rows = np.array([[1.0, NAN, 2.0, 50.0, -9.0], [NAN, 3.0, np.inf, NAN, 4.0], [NAN] * 5])
        assert stats.iqm(rows) == pytest.approx([1.5, 3.5, NAN], nan_ok=True)
        assert np.isnan(stats.iqm(np.array([])))

    def test_of_equal_values_is_that_value(self):
        assert all(stats.iqm(np.full(n, 0.1)) == 0.1 for n in range(1, 30))

    @settings(max_examples=100, deadline=None)
    @given(samples, st.randoms(use_true_random=False), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
    def test_moves_with_its_values_and_knows_no_order(self, values, random, shift, scale):
        middle, mixed = stats.iqm(np.array(values)), random.sample(values, len(values))
        assert stats.iqm(np.array(mixed)) == middle
        assert min(values) - 1e-9 <= middle <= max(values) + 1e-9
        assert stats.iqm(shift + scale * np.array(values)) == pytest.approx(shift + scale * middle, abs=1e-6)


class TestBootstrap:
    def test_is_the_same_each_time_and_in_any_order(self):
        values = np.random.default_rng(0).lognormal(size=12)
        found = stats.bootstrap([values])
        assert found == stats.bootstrap([values[::-1]]) == stats.bootstrap([np.append(values, NAN)])
        assert found.middle == stats.iqm(values)
        assert found.low < found.middle < found.high

    @settings(max_examples=100, deadline=None)
    @given(st.lists(samples, min_size=1, max_size=3))
    def test_holds_its_middle(self, strata):
        found = stats.bootstrap([np.array(each) for each in strata], resamples=100)
        if min(len(each) for each in strata) > 1:
            assert found.low <= found.middle <= found.high
        else:
            assert np.isnan([found.low, found.high]).all()

    def test_moves_with_its_values(self):
        values = np.random.default_rng(1).normal(size=9)
        found, moved = stats.bootstrap([values]), stats.bootstrap([3 + 2 * values])
        assert moved == pytest.approx(tuple(3 + 2 * each for each in found))

    def test_resamples_within_strata_only(self):
        # Far apart, but each of them sure.
        assert stats.bootstrap([np.full(5, 0.0), np.full(5, 100.0)]) == (50.0, 50.0, 50.0)
        near = stats.bootstrap([np.arange(5.0), 100 + np.arange(5.0)])
        assert 48 < near.low < near.high < 56

    def test_of_another_statistic(self):
        values = np.random.default_rng(2).normal(size=40)
        found, known = stats.bootstrap([values], lambda drawn: drawn.mean(axis=-1)), stats.mean(values)
        assert found == pytest.approx(known, abs=0.03)

    @pytest.mark.parametrize("n", [2, 3, 5, 10])
    def test_of_equal_values_is_sure(self, n):
        assert stats.bootstrap([np.full(n, 0.1)]) == (0.1, 0.1, 0.1)

    def test_of_one_value_has_no_interval(self):
        for strata in ([np.array([4.0])], [np.array([4.0, NAN]), np.array([])], [np.full(6, 4.0), np.array([4.0])]):
            found = stats.bootstrap(strata)
            assert found.middle == 4.0
            assert np.isnan([found.low, found.high]).all()

    def test_of_no_values_is_not_known(self):
        assert np.isnan(stats.bootstrap([np.array([NAN]), np.array([])])).all()

    def test_says_what_it_needs(self):
        with pytest.raises(InputError, match="no strata"):
            stats.bootstrap([])
        with pytest.raises(InputError, match=r"Stratum 2 has the shape \(2, 3\)"):
            stats.bootstrap([np.zeros(3), np.zeros((2, 3))])

    def test_covers_the_truth_in_strata(self):
        # The middle half of an even mixture of N(-2, 1) and N(2, 1) lies even about 0.
        random = np.random.default_rng(3)
        found = [stats.bootstrap([random.normal(-2, 1, 8), random.normal(2, 1, 8)], resamples=1000) for _ in range(800)]
        assert 0.92 < np.mean([one.low < 0 < one.high for one in found]) < 0.99


NORMAL, LOGNORMAL, MIXTURE = 0.0, 1.0730, 0.1377
"""The interquartile means of whole distributions; the second and third by numerical integration, tested below."""


class TestBand:
    def test_is_the_bootstrap_at_each_point(self):
        values = np.random.default_rng(0).lognormal(size=(6, 9))
        values[1, :3], values[2, 2:], values[3, 1:], values[4] = NAN, NAN, NAN, NAN
        known = [stats.bootstrap([row]) for row in values]
        found = stats.band(values)
        assert np.stack(found, axis=1) == pytest.approx(np.array(known), rel=1e-9, nan_ok=True)
        assert np.isnan(found.middle).tolist() == [False] * 4 + [True, False]

    def test_of_equal_values_has_no_width(self):
        found = stats.band(np.full((3, 7), 0.1))
        assert all((each == 0.1).all() for each in found)

    @pytest.mark.parametrize("shape", [(5,), (3, 0), (2, 2, 2)])
    def test_says_what_it_needs(self, shape):
        with pytest.raises(InputError, match=r"needs \[points, seeds\]"):
            stats.band(np.zeros(shape))

    def test_of_no_points_is_empty(self):
        assert all(each.shape == (0,) for each in stats.band(np.zeros((0, 3))))

    def test_true_middles(self):
        normal = scipy_stats.norm
        quarter = normal.ppf(0.75)
        # E[exp(z); |z| < a] = sqrt(e) (Phi(a - 1) - Phi(-a - 1)).
        middle = 2 * np.exp(0.5) * (normal.cdf(quarter - 1) - normal.cdf(-quarter - 1))
        assert middle == pytest.approx(LOGNORMAL, abs=1e-4)
        grid = np.linspace(-1, 2, 300_001)
        weight = 0.7 * normal.pdf(grid, 0, 0.1) + 0.3 * normal.pdf(grid, 1, 0.1)
        share = np.cumsum(weight) / weight.sum()
        inside = (share > 0.25) & (share < 0.75)
        assert np.average(grid[inside], weights=weight[inside]) == pytest.approx(MIXTURE, abs=1e-3)

    @pytest.mark.parametrize(
        ("kind", "truth", "n", "least", "most"),
        [
            ("normal", NORMAL, 3, 0.91, 0.96),
            ("normal", NORMAL, 5, 0.92, 0.96),
            ("normal", NORMAL, 10, 0.95, 0.985),
            ("normal", NORMAL, 30, 0.94, 0.975),
            ("lognormal", LOGNORMAL, 3, 0.90, 0.95),
            ("lognormal", LOGNORMAL, 5, 0.92, 0.96),
            ("lognormal", LOGNORMAL, 10, 0.95, 0.985),
            ("lognormal", LOGNORMAL, 30, 0.94, 0.98),
            ("mixture", MIXTURE, 5, 0.86, 0.92),
            ("mixture", MIXTURE, 10, 0.95, 0.985),
            ("mixture", MIXTURE, 30, 0.93, 0.97),
        ],
    )
    def test_covers_the_truth_as_often_as_it_says(self, kind, truth, n, least, most):
        random = np.random.default_rng(n)
        normal = random.normal(size=(4000, n))
        draws = {
            "normal": normal,
            "lognormal": np.exp(normal),
            "mixture": 0.1 * normal + (random.random(normal.shape) < 0.3),
        }
        found = stats.band(draws[kind], resamples=1000)
        assert least < np.mean((found.low < truth) & (truth < found.high)) < most


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(1.23456, 1.0, 1.5), "1.23 [1, 1.50]"),
        (Interval(499.8, 479.2, 504.4), "500 [479, 504]"),
        (Interval(36_530.0, 31_400.0, 54_700.0), "37,000 [31,000, 55,000]"),
        (Interval(-0.05069, -0.352, 0.272), "-0.05 [-0.35, 0.27]"),
        (Interval(-0.2, -30.0, 10.0), "0 [-30, 10]"),
        (Interval(139.16, 45.2, 258.1), "139 [45, 258]"),
        (Interval(500.0, 499.999999, 500.000001), "500 [500, 500]"),
        (Interval(0.0, 0.0, 0.0), "0 [0, 0]"),
        (Interval(8.9e-5, 8.1e-5, 9.9e-5), "0.0000890 [0.0000810, 0.0000990]"),
        (Interval(2.0, NAN, NAN), "2"),
        (Interval(0.33, NAN, NAN), "0.33"),
        (Interval(123_456.7, NAN, NAN), "123,457"),
        (Interval(NAN, NAN, NAN), "none"),
    ],
)
def test_reads_as_people_write_it(interval, text):
    assert str(interval) == text
