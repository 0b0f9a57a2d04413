"""The statistics of a verdict: numbers worked out by hand, and how often statements are wrong."""

import math

import numpy as np
import pytest
from scipy import stats

from lexrl import verify
from lexrl.verify import KEPT, UNDECIDED, VIOLATED


def looked_after_every_batch(values, tolerance, alpha=0.05, span=1.0, batch=50):
    """Decisions `[rows]` of somebody who looks after every batch and stops at the first decision."""
    decided = np.zeros(len(values), int)
    for n in range(batch, values.shape[1] + 1, batch):
        decided = verify.first_decision(decided, verify.judge(values[:, :n], tolerance, alpha, span))
    return decided


def test_the_boundary_is_the_formula():
    alpha, n = 0.05, 500
    a = -2 * math.log(0.1)
    r = (a + math.log(1 + a)) / 500
    by_hand = math.sqrt(2 * (n * r + 1) / (n * n * r) * math.log(1 + math.sqrt(n * r + 1) / 0.1))
    assert verify.boundary(n, alpha) == pytest.approx(by_hand)
    # Looking all the time costs something: 1.645 / sqrt(n) is the bound of somebody who looks once.
    assert 1.3 < verify.boundary(n, alpha) * math.sqrt(n) / 1.645 < 1.8


def test_bounds_narrow_with_episodes_and_with_confidence():
    values = np.random.default_rng(0).normal(size=4000)
    few, many = verify.bounds(values[:400], 0.05, 1.0), verify.bounds(values, 0.05, 1.0)
    assert few.low < many.low < many.mean < many.high < few.high
    assert verify.bounds(values, 0.001, 1.0).low < many.low


def test_the_units_do_not_matter():
    values = np.random.default_rng(1).normal(size=(3, 200))
    one, large = verify.bounds(values, 0.05, 2.0), verify.bounds(1000 * values, 0.05, 2000.0)
    for a, b in zip(one, large, strict=True):
        np.testing.assert_allclose(1000 * a, b)


def test_equal_differences_follow_the_rule_of_three():
    """Without an event in n episodes its probability is below 3 / n; the bound is at most twice as wide."""
    clean = verify.bounds(np.zeros(400), 0.05, 1.0)
    assert -6 / 400 < clean.low < -3 / 400
    assert clean.high == -clean.low
    assert verify.bounds(np.zeros(400), 0.05, 0.0) == (0.0, 0.0, 0.0)  # nothing ever differs: a constant objective


def test_decisions():
    found = verify.Bounds(np.zeros(4), np.array([-1.0, -3.0, -9.0, np.nan]), np.array([2.0, -1.0, -2.5, np.nan]))
    assert verify.decide(found, 2.0).tolist() == [KEPT, UNDECIDED, VIOLATED, UNDECIDED]


def test_too_few_episodes_and_no_numbers_decide_nothing():
    assert verify.judge(np.full((2, 29), 5.0), 0.1, 0.05).tolist() == [UNDECIDED] * 2
    values = np.full((2, 100), 5.0)
    values[1, 7] = np.nan
    assert verify.judge(values, 0.1, 0.05).tolist() == [KEPT, UNDECIDED]


def test_what_was_decided_stays():
    before, now = np.array([KEPT, VIOLATED, UNDECIDED]), np.array([VIOLATED, KEPT, KEPT])
    assert verify.first_decision(before, now).tolist() == [KEPT, VIOLATED, KEPT]


DRAWS = {
    "normal": lambda random, short, shape: random.normal(-short, 0.3, shape),
    "rare": lambda random, short, shape: -(random.random(shape) < short).astype(float),
    "skewed": lambda random, short, shape: np.clip(0.1 - short - random.exponential(0.1, shape), -1, 1),
}


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize(("tolerances", "wrong"), [(0.0, VIOLATED), (0.5, VIOLATED), (1.5, KEPT), (3.0, KEPT)])
def test_wrong_statements_are_rare_however_often_one_looks(kind, tolerances, wrong):
    tolerance = 0.02
    values = DRAWS[kind](np.random.default_rng(3), tolerances * tolerance, (400, 2000))
    decided = looked_after_every_batch(values, tolerance)
    allowed = stats.binom.ppf(0.999, 400, 0.05) / 400
    assert (decided == wrong).mean() <= allowed


def test_decisions_become_more_with_episodes():
    values = np.random.default_rng(4).normal(-0.06, 0.3, (200, 2000))
    undecided = [(looked_after_every_batch(values[:, :n], 0.02) == UNDECIDED).mean() for n in (100, 500, 2000)]
    assert undecided[0] > undecided[1] > undecided[2]
    assert undecided[2] < 0.05


def test_statements_share_the_error():
    assert verify.share_alpha(20) == pytest.approx(0.0025)
    assert verify.share_alpha(0) == 0.05


@pytest.mark.parametrize(("probability", "needed"), [(0.1, 29), (0.01, 299), (0.001, 2995)])
def test_clean_episodes(probability, needed):
    assert verify.clean_episodes(probability) == needed
    assert verify.event_bound(0, needed) <= probability < verify.event_bound(0, needed - 1)


@pytest.mark.parametrize(("events", "n"), [(0, 100), (3, 50), (50, 50)])
def test_clopper_and_pearson(events, n):
    """The bound is the probability under which so few events have probability 5 %."""
    bound = verify.event_bound(events, n)
    assert bound == 1.0 if events == n else stats.binom.cdf(events, n, bound) == pytest.approx(0.05)


def test_episodes_needed():
    found = verify.Bounds(np.array(-0.2), np.array(-0.5), np.array(0.1))
    assert verify.episodes_needed(found, 0.1, 100) == math.ceil(100 * 1.3 * 9)
    assert verify.episodes_needed(found, 0.2, 100) is None


def test_discounted_returns_of_even_rewards():
    """Ten rewards of 1: the discounted return is the share of the undiscounted one."""
    share = verify.horizon_share((0.9, 1.0), 10.0)
    assert share[0] * 10 == pytest.approx(sum(0.9**t for t in range(10)))
    assert share[1] == 1.0


def bet(values, tolerance, alpha=0.05, batch=100):
    """`looked_after_every_batch`, by betting on values between -1 and 1."""
    decided = np.zeros(len(values), int)
    for n in range(batch, values.shape[1] + 1, batch):
        now = verify.judge_bounded(values[:, :n], tolerance, alpha, verify.Range(-1.0, 1.0))
        decided = verify.first_decision(decided, now)
    return decided


def test_the_capital_is_the_formula():
    """Two values between 0 and 1, and the hypothesis that their mean is at most 1/4."""
    values, shares = np.array([0.5, 0.0]), verify.BETS
    by_hand = np.mean([(1 - c + c * 2) * (1 - c) for c in shares])
    assert verify.log_capital(values, 0.25, 0.0) == pytest.approx(math.log(by_hand))
    assert verify.log_capital(values, 0.0, 0.0) == np.inf


def test_betting_bounds_are_where_the_capital_is_enough():
    values = np.random.default_rng(5).uniform(-1, 1, (2, 300))
    found = verify.betting_bounds(values, 0.05, verify.Range(-1.0, 1.0))
    np.testing.assert_allclose(verify.log_capital(values, found.low, -1.0), math.log(20), rtol=1e-6)
    np.testing.assert_allclose(verify.log_capital(-values, -found.high, -1.0), math.log(20), rtol=1e-6)
    assert (found.low < found.mean).all()
    assert (found.mean < found.high).all()
    for tolerance in (-0.2, -0.05, 0.0, 0.1, 0.3):
        same = verify.judge_bounded(values, tolerance, 0.05, verify.Range(-1.0, 1.0))
        assert same.tolist() == verify.decide(found, tolerance).tolist()


def test_betting_needs_no_distribution_and_no_guess():
    """With 0 in all of n episodes the mean is above -(log(20) + log(12)) / n, whatever was seen before."""
    few = math.ceil(verify.fewest_episodes(0.01, 0.05, verify.Range(-1.0, 1.0)))
    zeros = np.zeros((1, few))
    assert 400 < few < 600
    assert verify.judge_bounded(zeros, 0.01, 0.05, verify.Range(-1.0, 1.0)).tolist() == [KEPT]
    assert verify.judge_bounded(zeros[:, : few // 2], 0.01, 0.05, verify.Range(-1.0, 1.0)).tolist() == [UNDECIDED]
    assert verify.judge_bounded(zeros + np.nan, 0.01, 0.05, verify.Range(-1.0, 1.0)).tolist() == [UNDECIDED]
    assert verify.judge_bounded(zeros, 1.0, 0.05, verify.Range(-1.0, 1.0)).tolist() == [KEPT]  # nothing is worse


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize(("tolerances", "wrong"), [(0.0, VIOLATED), (1.0, VIOLATED), (1.01, KEPT), (3.0, KEPT)])
def test_bets_are_rarely_wrong_however_often_one_looks(kind, tolerances, wrong):
    values = np.clip(DRAWS[kind](np.random.default_rng(6), tolerances * 0.02, (200, 1000)), -1, 1)
    allowed = stats.binom.ppf(0.999, 200, 0.05) / 200
    assert (bet(values, 0.02) == wrong).mean() <= allowed


def test_bets_decide_as_soon_as_asymptotic_bounds_do():
    values = np.random.default_rng(7).normal(-0.08, 0.3, (50, 2000)).clip(-1, 1)
    assert (bet(values, 0.02) == VIOLATED).mean() > 0.9
