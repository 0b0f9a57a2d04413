"""The fitted exponent, against exact power laws, least squares by another hand, and simulation."""

import numpy as np
import pytest

from lexrl.errors import InputError
from lexrl.experiments.power_law import LearningTime, fit

NAN = float("nan")
SIZES = np.array([10, 20, 50, 100])


def geometric(times, resamples=1000, seed=0):
    """Of times `[K, n]`: the geometric mean over environments is the time of a size."""
    n = times.shape[1]
    picks = np.random.default_rng(seed).integers(n, size=(resamples, n))
    logs = np.log(times)
    return [LearningTime(float(np.exp(row.mean())), np.exp(row[picks].mean(axis=1)), n) for row in logs]


@pytest.mark.parametrize("power", [0.0, 1.0, 2.5, -0.7])
def test_of_an_exact_power_law(power):
    law = fit(SIZES, geometric(3e-6 * SIZES[:, None] ** power * np.ones(6)))
    assert law.exponent == pytest.approx((power,) * 3, abs=1e-9)
    assert law.line == pytest.approx(3e-6 * SIZES**power)


def test_is_least_squares():
    times = np.random.default_rng(0).lognormal(size=(4, 5))
    slope = np.polyfit(np.log(SIZES), np.log(times).mean(axis=1), 1)[0]
    found = fit(SIZES, geometric(times)).exponent
    assert found.middle == pytest.approx(slope)
    assert found.low < found.middle < found.high


def test_does_not_know_units():
    times = np.random.default_rng(1).lognormal(size=(4, 5))
    assert fit(7 * SIZES, geometric(1e6 * times)).exponent == pytest.approx(fit(SIZES, geometric(times)).exponent)


def test_of_one_environment_has_no_interval():
    found = fit(SIZES, geometric(SIZES[:, None] ** 2.0)).exponent
    assert found.middle == pytest.approx(2)
    assert np.isnan([found.low, found.high]).all()


def test_a_size_without_a_time_is_left_out():
    times = geometric(SIZES[:, None] ** 2.0 * np.ones(6))
    times[1] = LearningTime(NAN, np.full(1000, NAN), 6)
    assert fit(SIZES, times).exponent == pytest.approx((2, 2, 2))


def test_fewer_than_two_sizes_make_no_law():
    times = [LearningTime(NAN, np.full(9, NAN), 6)] * 3 + geometric(np.ones((1, 6)), 9)
    assert fit(SIZES, times) is None


def test_resamples_without_a_time_take_the_interval():
    few, many = np.ones(100), np.ones(100)
    few[:4], many[:6] = NAN, NAN
    assert LearningTime(1.0, few, 10).interval() == (1, 1, 1)
    assert np.isnan(LearningTime(1.0, many, 10).interval().low)


@pytest.mark.parametrize(("n", "least", "most"), [(5, 0.89, 0.96), (10, 0.92, 0.97), (30, 0.93, 0.98)])
def test_covers_the_truth(n, least, most):
    random = np.random.default_rng(n)
    hits = []
    for _ in range(1000):
        noise = random.normal(0, 0.3, (4, n))
        # Some environments are slow, and some get slow.
        noise += random.normal(0, 0.5, n) + random.normal(0, 0.2, n) * np.log(SIZES)[:, None]
        found = fit(SIZES, geometric(SIZES[:, None] ** 1.5 * np.exp(noise), 600)).exponent
        hits.append(found.low < 1.5 < found.high)
    assert least < np.mean(hits) < most


@pytest.mark.parametrize(
    ("sizes", "times", "said"),
    [
        (SIZES, np.ones((3, 2)), r"There are 3 times for \(4,\) sizes"),
        (np.array([1, 2]), np.array([[1.0], [0.0]]), "positive"),
        (np.array([-1, 2]), np.ones((2, 3)), "positive"),
    ],
)
def test_says_what_it_needs(sizes, times, said):
    given = [LearningTime(float(row[0]), row, len(row)) for row in times]
    with pytest.raises(InputError, match=said):
        fit(sizes, given)
