"""Multipliers and gradient weights, with numbers worked out by hand."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lexrl
from lexrl import convergence, dual_ascent
from lexrl.convergence import Convergence, Sample
from lexrl.dual_ascent import DualAscent, ascend, gradient_weights
from lexrl.errors import InputError
from lexrl.schedules import Power
from lexrl.tolerance import Absolute, Relative

NOTHING = Absolute(0.0)
BATCH = 10


class Rules(NamedTuple):
    """The two controllers, one after the other."""

    convergence: Convergence
    multipliers: DualAscent


class State(NamedTuple):
    convergence: convergence.State
    multipliers: dual_ascent.State


CONVERGENCE = ("stats_window_size", "patience", "sequential")


def rules(**given):
    return Rules(
        Convergence(**{name: value for name, value in given.items() if name in CONVERGENCE}),
        DualAscent(**{name: value for name, value in given.items() if name not in CONVERGENCE}),
    )


@jax.jit
def update(how, now, sample, tolerance):
    after, progress = how.convergence.update(now.convergence, sample, tolerance)
    return State(after, how.multipliers.update(now.multipliers, progress))


@jax.jit
def weights(how, now):
    return how.multipliers.weights(
        now.multipliers, how.convergence.active(now.convergence), now.convergence.num_updates + 1
    )


def sample(*returns, change=0.0):
    """Fresh episodes, each with its returns `[M]`."""
    each = np.array(returns, float)
    return Sample(
        jnp.float32(len(each)),
        jnp.array(each.sum(axis=0), jnp.float32),
        jnp.array((each**2).sum(axis=0), jnp.float32),
        change,
    )


def state(objectives=2, value=None, violation=None, **given):
    """A state with some of its numbers set."""
    kinds = {"converged": bool, "num_updates": jnp.int32}
    here = Convergence().init(objectives)
    here = here._replace(**{name: jnp.asarray(it, kinds.get(name, jnp.float32)) for name, it in given.items()})
    each = [jnp.zeros(objectives) if it is None else jnp.asarray(it, jnp.float32) for it in (value, violation)]
    return State(here, dual_ascent.State(*each))


def holding(mean, multiplier=1.0, **changes):
    """The first objective has converged and must keep 8; where it is now is given."""
    given = {
        "mean": [mean, 0.0],
        "slow_mean": [min(mean, 7.0), 0.0],
        "num_episodes": 1e6,
        "converged": [True, False],
        "threshold": [8.0, 0.0],
        "value": [multiplier, 0.0],
    }
    return state(**(given | changes))


def five(mean):
    return sample(*[[mean, 0.0]] * 5)


class TestMultipliers:
    how = rules(eta=0.5, stats_window_size=10.0, normalize_violation=False)
    """Five episodes: eta * episodes / window = 0.25."""

    def test_rises_below_the_threshold(self):
        after = update(self.how, holding(6.0), five(6.0), Absolute(0.25))
        assert after.multipliers.value.tolist() == [1.4375, 0.0]  # 1 + 0.25 (8 - 0.25 - 6)

    def test_falls_above_the_threshold(self):
        after = update(self.how, holding(10.0), five(10.0), Absolute(0.25))
        assert after.convergence.threshold[0] == 8.0
        assert after.multipliers.value.tolist() == [0.4375, 0.0]  # 1 + 0.25 (8 - 0.25 - 10)

    def test_the_return_is_the_new_mean(self):
        after = update(self.how, holding(6.0), five(4.0), NOTHING)
        mean = 6 + (1 - 0.9**5) * (4 - 6)
        np.testing.assert_allclose(after.convergence.mean[0], mean, rtol=1e-6)
        np.testing.assert_allclose(after.multipliers.value[0], 1 + 0.25 * (8 - mean), rtol=1e-6)

    @pytest.mark.parametrize(("mean", "charged"), [(6.0, 2 * 1.875), (8.0, 2 * 0.875), (10.0, 0.0)])
    def test_damping_weighs_more_below_the_threshold_and_less_above(self, mean, charged):
        how = rules(eta=0.0, stats_window_size=10.0, normalize_violation=False, damping=0.5)
        after = update(how, holding(mean, multiplier=2.0), five(mean), Absolute(0.25))
        assert after.multipliers.value[0] == 2.0
        assert weights(how, after).tolist() == [1 + charged, 1.0]  # 2 (1 + 0.5 (8 - 0.25 - mean)), never below 0

    def test_without_damping_the_multiplier_is_the_weight(self):
        after = update(self.how, holding(6.0), five(6.0), NOTHING)
        assert weights(self.how, after)[0] == 1 + after.multipliers.value[0]

    def test_never_below_0(self):
        assert update(self.how, holding(10.0, 0.125), five(10.0), NOTHING).multipliers.value.tolist() == [0, 0]

    def test_at_most_the_upper_bound(self):
        how = rules(eta=0.5, stats_window_size=10.0, normalize_violation=False, max_multiplier=1.25)
        assert update(how, holding(6.0), five(6.0), NOTHING).multipliers.value.tolist() == [1.25, 0.0]

    def test_the_last_is_always_0(self):
        before = holding(6.0, converged=[True, True], threshold=[8.0, 100.0])
        assert update(self.how, before, five(6.0), NOTHING).multipliers.value.tolist() == [1.5, 0.0]

    def test_objectives_that_have_not_converged_have_none(self):
        before = holding(6.0, converged=[False, False], value=[0.0, 0.0])
        assert update(self.how, before, five(6.0), NOTHING).multipliers.value.tolist() == [0.0, 0.0]

    def test_a_predicted_change_counts_for_the_return(self):
        change = jnp.array([1.0, 5.0])
        after = update(self.how, holding(6.0), five(6.0)._replace(change=change), Absolute(0.25))
        assert after.multipliers.value.tolist() == [1.1875, 0.0]  # 1 + 0.25 (8 - 0.25 - 7)
        assert after.convergence.mean[0] == 6.0

    def test_relative_tolerance_is_of_the_threshold(self):
        after = update(self.how, holding(6.0), five(6.0), Relative(0.125))
        assert after.multipliers.value[0] == 1.25  # 1 + 0.25 (8 - 1 - 6)

    def test_tolerances_one_each(self):
        after = update(self.how, holding(6.0), five(6.0), (Absolute(1.0), Absolute(99.0)))
        assert after.multipliers.value[0] == 1.25

    def test_tolerances_with_time(self):
        after = update(self.how, holding(6.0, num_updates=3), five(6.0), Absolute(4.0) * Power(1.0))
        assert after.multipliers.value[0] == 1.25  # tau = 4 / 4 in the fourth update

    def test_in_deviations_of_an_episode(self):
        # Deviation 2 (as the episodes themselves show), tau = 0.5: eta is divided by 2.5.
        before = holding(7.0, slow_mean=[7.0, 0.0], variance=[4.0, 0.0])
        episodes = sample([5.0, 0.0], [9.0, 0.0], [5.0, 0.0], [9.0, 0.0])
        after = update(rules(eta=0.5, stats_window_size=10.0), before, episodes, Absolute(0.5))
        np.testing.assert_allclose(after.multipliers.value, [1 + 0.5 * 0.4 / 2.5 * (8 - 0.5 - 7), 0.0], rtol=1e-6)

    @settings(max_examples=15, deadline=None)
    @given(st.integers(0, 2**32 - 1), st.sampled_from([1 / 64, 32.0, 1024.0]))
    def test_normalized_violations_do_not_depend_on_the_units(self, seed, unit):
        rng = np.random.default_rng(seed)
        how = rules(eta=1.0, stats_window_size=20.0, patience=30.0)
        one, other = state(), state()
        for t in range(30):
            each = rng.normal([3.0 - 0.1 * t, 1.0], size=(BATCH, 2))
            one = update(how, one, sample(*each), Absolute(0.25))
            other = update(how, other, sample(*(unit * each)), Absolute(0.25 * unit))
        np.testing.assert_array_equal(one.convergence.converged, other.convergence.converged)
        np.testing.assert_allclose(one.multipliers.value, other.multipliers.value, rtol=1e-3, atol=1e-5)

    @settings(max_examples=30, deadline=None)
    @given(
        st.lists(st.floats(-20, 20, width=32), min_size=3, max_size=3),
        st.lists(st.floats(0, 3, width=32), min_size=3, max_size=3),
        st.floats(0.0, 10.0),
        st.booleans(),
    )
    def test_always_between_0_and_the_upper_bound(self, mean, value, eta, normalize):
        how = rules(eta=float(eta), stats_window_size=10.0, normalize_violation=normalize, max_multiplier=3.0)
        before = state(
            objectives=3, mean=mean, slow_mean=mean, num_episodes=1e6, converged=[True] * 3, threshold=[1.0] * 3,
            value=[*value[:2], 0.0],
        )  # fmt: skip
        after = np.asarray(update(how, before, sample(mean), NOTHING).multipliers.value)
        assert ((after >= 0) & (after <= [9.0, 3.0, 3.0])).all()
        assert after[2] == 0

    def test_at_the_threshold_the_multiplier_stays(self):
        before = holding(8.0, slow_mean=[8.0, 0.0])
        assert update(self.how, before, five(8.0), NOTHING).multipliers.value.tolist() == [1.0, 0.0]


class TestRates:
    def test_eta_by_the_number_of_converged_objectives(self):
        how = rules(eta=(100.0, 0.5, 0.25), stats_window_size=10.0, normalize_violation=False)
        assert update(how, holding(6.0), five(6.0), NOTHING).multipliers.value[0] == 1.5  # 1 + 0.5 * 0.5 * 2
        both = holding(6.0, converged=[True, True])
        assert update(how, both, five(6.0), NOTHING).multipliers.value[0] == 1.25

    def test_eta_switches_with_the_update_in_which_an_objective_converges(self):
        how = rules(eta=(100.0, 0.5, 0.25), stats_window_size=10.0, normalize_violation=False, patience=50.0)
        # The second has seen 45 calm episodes, and five more that change nothing.
        before = holding(6.0, num_stable=[0.0, 45.0], slow_mean=[8.0, 0.0])
        after = update(how, before, five(6.0), Absolute(1.0))
        assert after.convergence.converged.tolist() == [True, True]
        assert after.multipliers.value[0] == 1.125  # 1 + 0.25 * 0.5 * (8 - 1 - 6)

    def test_eta_with_time(self):
        how = rules(eta="2/n", stats_window_size=10.0, normalize_violation=False)
        assert update(how, holding(6.0, num_updates=3), five(6.0), NOTHING).multipliers.value[0] == 1.5  # eta = 2 / 4

    def test_beta_with_time(self):
        how = rules(beta=("1", "1/n"))
        assert weights(how, state(value=[3.0, 0.0], num_updates=3)).tolist() == [1.75, 0.25]  # 1 + 3 / 4

    def test_one_beta_for_all(self):
        assert weights(rules(beta=0.5), state(objectives=3, value=[2.0, 4.0, 0.0])).tolist() == [2.5, 2.5, 0.5]

    def test_simultaneous(self):
        how = rules(beta=(1.0, 0.5, 0.25))
        # 1 + 2 (0.5 + 0.25), 0.5 + 3 * 0.25, 0.25
        assert weights(how, state(objectives=3, value=[2.0, 3.0, 0.0])).tolist() == [2.5, 1.25, 0.25]

    @pytest.mark.parametrize(
        ("converged", "expected"),
        [
            ([False, False, False], [1.0, 0.0, 0.0]),
            ([True, False, False], [1.0, 0.5, 0.0]),  # 2 * 0.5
            ([True, True, False], [0.5, 0.75, 0.25]),  # 2 * 0.25, 3 * 0.25
            ([True, True, True], [0.5, 0.75, 0.25]),
        ],
    )
    def test_sequential(self, converged, expected):
        how = rules(beta=(1.0, 0.5, 0.25), sequential=True)
        got = weights(how, state(objectives=3, converged=converged, value=[2.0, 3.0, 0.0]))
        assert got.tolist() == expected

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"beta": (1.0, 1.0)}, "beta has 2 rates for 3 objectives; give one for all, or 3"),
            ({"eta": (1.0, 1.0, 1.0)}, "eta has 3 rates for 3 objectives; give one for all, or 4"),
        ],
    )
    def test_numbers_of_rates(self, changes, sentence):
        with pytest.raises(InputError, match=sentence):
            DualAscent(**changes).check(3)

    def test_fitting_numbers_of_rates(self):
        DualAscent(beta=(1.0, 1.0, 1.0), eta=(1.0, 1.0, 1.0, 1.0)).check(3)

    def test_always_0_before_convergence(self):
        rng = np.random.default_rng(0)
        how, now = rules(stats_window_size=20.0, patience=30.0), state(objectives=3)
        moved = False
        for _ in range(60):
            now = update(how, now, sample(*rng.normal(size=(BATCH, 3)).cumsum(axis=0)), NOTHING)
            value, converged = np.asarray(now.multipliers.value), np.asarray(now.convergence.converged)
            assert (value[~converged] == 0).all()
            moved |= bool((value > 0).any())
        assert moved


nonnegative = st.floats(0, 10, allow_subnormal=False)


class TestGradientWeights:
    @settings(max_examples=120, deadline=None)
    @given(
        st.integers(1, 6).flatmap(lambda m: st.lists(st.tuples(nonnegative, nonnegative), min_size=m, max_size=m)),
        st.integers(0, 2**32 - 1),
    )
    def test_the_sum_of_the_lagrangian_updates(self, rates, seed):
        """`sum_i beta_i (grad K_i + sum_{j<i} lambda_j grad K_j)` is `sum_i c_i grad K_i`."""
        beta, multipliers = np.array(rates).T
        gradients = np.random.default_rng(seed).normal(size=(len(beta), 4))
        updates = np.zeros(4)
        for i in range(len(beta)):
            lagrangian = gradients[i].copy()
            for j in range(i):
                lagrangian += multipliers[j] * gradients[j]
            updates += beta[i] * lagrangian
        np.testing.assert_allclose(gradient_weights(beta, multipliers) @ gradients, updates, rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("xp", [np, jnp])
    def test_by_hand(self, xp):
        # 1 + 2 (0.5 + 0.25), 0.5 + 3 * 0.25, and the last one's multiplier has no effect.
        got = gradient_weights(xp.asarray([1.0, 0.5, 0.25]), xp.asarray([2.0, 3.0, 9.0]))
        assert got.tolist() == [2.5, 1.25, 0.25]

    def test_without_multipliers_they_are_the_rates(self):
        beta = np.array([3.0, 2.0, 1.0])
        assert gradient_weights(beta, np.zeros(3)).tolist() == beta.tolist()

    def test_one_objective(self):
        assert gradient_weights(np.array([0.3]), np.array([7.0])).tolist() == [0.3]

    def test_precision_is_that_of_the_rates(self):
        assert gradient_weights(np.ones(2), np.ones(2)).dtype == np.float64
        assert gradient_weights(np.ones(2, np.float32), np.ones(2, np.float32)).dtype == np.float32


class TestDualAscent:
    @pytest.mark.parametrize("xp", [np, jnp])
    def test_by_hand(self, xp):
        # 1 + 0.5 (4 - 2) = 2; 1 + 0.5 (2 - 8) < 0; 0.5 - 0.5 = 0; the last stays 0.
        multipliers, required = xp.asarray([1.0, 1.0, 0.5, 0.0]), xp.asarray([4.0, 2.0, 1.0, 100.0])
        got = ascend(multipliers, 0.5, required, xp.asarray([2.0, 8.0, 2.0, 0.0]))
        assert got.tolist() == [2.0, 0.0, 0.0, 0.0]

    def test_rates_one_each(self):
        got = ascend(np.ones(3), np.array([1.0, 0.25, 9.0]), np.array([2.0, 2.0, 2.0]), np.zeros(3))
        assert got.tolist() == [3.0, 1.5, 0.0]

    @settings(max_examples=60, deadline=None)
    @given(
        st.integers(1, 6).flatmap(
            lambda m: st.lists(st.tuples(nonnegative, st.floats(-10, 10), st.floats(-10, 10)), min_size=m, max_size=m)
        ),
        nonnegative,
    )
    def test_never_negative_and_the_last_is_0(self, rows, rate):
        multipliers, required, returns = np.array(rows).T
        got = ascend(multipliers, rate, required, returns)
        assert got[-1] == 0
        for mine, (before, k, at) in zip(got[:-1], rows[:-1], strict=True):
            assert mine == max(0.0, before + rate * (k - at))

    def test_one_objective_has_no_multiplier(self):
        assert ascend(np.array([0.0]), 1.0, np.array([9.0]), np.array([0.0])).tolist() == [0.0]

    def test_stays_where_the_return_is_the_required_one(self):
        assert ascend(np.array([0.7, 0.0]), 5.0, np.array([3.0, 0.0]), np.array([3.0, 0.0])).tolist() == [
            0.7,
            0.0,
        ]


def test_metrics():
    now = dual_ascent.State(jnp.array([1.0, 0.0]), jnp.zeros(2))
    assert {name: value.tolist() for name, value in DualAscent().metrics(now, jnp.array([0.75, 0.25])).items()} == {
        "multiplier": [1.0, 0.0],
        "gradient_weight": [0.75, 0.25],
    }


@pytest.mark.parametrize(("setting", "value"), [("max_multiplier", -1.0), ("damping", -0.5), ("damping", float("nan"))])
def test_settings_out_of_range(setting, value):
    with pytest.raises(lexrl.InputError, match=f"{setting} is {value:g}; it must be 0 or more"):
        DualAscent(**{setting: value})
