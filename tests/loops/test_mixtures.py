"""The best mixture of policies within slack, on numbers worked out by hand."""

import numpy as np
import pytest

from lexrl.loops.mixtures import best_mixtures

SAFE, RISKY, WORSE = (0.0, 0.0), (-1.0, 1.0), (-1.0, 0.5)


def played(*means, noise=0.0, episodes=100):
    """Returns `[candidates, episodes, 2, M]`, discounted and undiscounted alike."""
    rng = np.random.default_rng(0)
    shape = (len(means), episodes, 1, len(means[0]))
    returns = np.asarray(means)[:, None, None, :] + noise * rng.standard_normal(shape)
    return np.repeat(returns, 2, axis=2)


def result(returns, slack, **options):
    return best_mixtures(returns, np.asarray(slack), **options).weights[-1]


class TestTwoObjectives:
    @pytest.mark.parametrize("slack", [0.0, 1e-3, 0.25, 0.6, 1.0])
    def test_the_slack_is_used_and_no_more(self, slack):
        np.testing.assert_allclose(
            result(played(RISKY, WORSE, SAFE), (slack, 0.0)), [slack, 0, 1 - slack], atol=1e-6
        )  # fmt: skip

    def test_more_slack_than_useful(self):
        np.testing.assert_allclose(result(played(SAFE, RISKY), (3.0, 0.0)), [0, 1], atol=1e-9)

    @pytest.mark.parametrize(("slack", "best"), [(0.9, 0), (1.1, 1)])
    def test_a_single_policy_is_the_best_that_obeys(self, slack, best):
        weights = result(played(SAFE, RISKY), (slack, 0.0), single=True)
        np.testing.assert_array_equal(weights, np.eye(2)[best])

    @pytest.mark.parametrize("unit", [1e-9, 1e9])
    def test_units_do_not_matter(self, unit):
        weights = result(unit * played(SAFE, RISKY, WORSE), (0.25 * unit, 0.0))
        np.testing.assert_allclose(weights, [0.75, 0.25, 0], atol=1e-6)

    def test_confidence_is_paid_for(self):
        weights = result(played(SAFE, RISKY, noise=0.5), (0.25, 0.0))
        assert 0.15 < weights[1] < 0.25

    def test_what_cannot_be_told_apart_is_no_loss(self):
        assert result(played(SAFE, (0.0, 1.0), noise=0.5), (1e-9, 0.0))[1] > 0.99

    def test_without_slack_undiscounted_returns_count_too(self):
        returns = played(SAFE, (0.0, 1.0))
        returns[1, :, 1, 0] = -1.0  # a loss that comes late
        np.testing.assert_array_equal(result(returns, (0.0, 0.0)), [1, 0])
        np.testing.assert_array_equal(result(returns, (0.1, 0.0)), [0, 1])

    def test_policies_without_a_return_are_left_out(self):
        np.testing.assert_allclose(result(played((np.nan, 5.0), SAFE, RISKY), (0.25, 0.0)), [0, 0.75, 0.25], atol=1e-6)
        np.testing.assert_array_equal(result(played((np.nan, 5.0), (np.nan, 5.0)), (0.25, 0.0)), [1, 0])


class TestSeveralSlacks:
    # Best J_2 with 0.5 of J_1 given up: 0.5. With 0.25 of that given up, the third policy gets 1/4, and the second
    # still needs 1/2 for J_2 = 1/2 - 1/4.
    POLICIES = ((0.0, 0.0, 0.0), (-1.0, 1.0, 0.0), (0.0, -1.0, 1.0))

    def test_three_policies_are_mixed(self):
        np.testing.assert_allclose(result(played(*self.POLICIES), (0.5, 0.25, 0.0)), [0.25, 0.5, 0.25], atol=1e-6)

    def test_slack_on_the_first_only(self):
        np.testing.assert_allclose(result(played(*self.POLICIES), (0.5, 0.0, 0.0)), [0.5, 0.5, 0], atol=1e-6)

    def test_all_that_is_needed_on_the_way_is_named(self):
        np.testing.assert_array_equal(best_mixtures(played(*self.POLICIES), np.array([2.0, 0, 0])).support, [0, 1])
