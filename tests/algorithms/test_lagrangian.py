"""Multipliers of limits, with numbers worked out by hand, and what holds for any."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lexrl
from lexrl import PIDLagrangian, UnitFreeLagrangian
from lexrl.algorithms import lagrangian
from lexrl.algorithms.lagrangian import EndedEpisodes
from lexrl.schedules import Linear


def observed(rule, *batches, least=(-10.0,)):
    """After batches of (episodes, total of each limit)."""
    state = rule.init(len(least))
    for episodes, *total in batches:
        state = rule.update(state, jnp.float32(episodes), jnp.array(total), jnp.array(least))
    return state


class TestMean:
    def test_a_plain_mean_until_the_window_is_full(self):
        state = observed(PIDLagrangian(stats_window_size=100.0), (2, -30.0), (3, -20.0))
        assert state.num_episodes == 5
        np.testing.assert_allclose(state.mean, -50 / 5, rtol=1e-6)

    def test_then_it_forgets(self):
        """Window 2: after 10 episodes of -4, one of -8 counts half."""
        state = observed(PIDLagrangian(stats_window_size=2.0), (10, -40.0), (1, -8.0))
        np.testing.assert_allclose(state.mean, -6.0, rtol=1e-6)

    def test_episodes_at_once_count_as_one_by_one(self):
        """Two of -8 in a full window of 2: a quarter of the old is left."""
        state = observed(PIDLagrangian(stats_window_size=2.0), (10, -40.0), (2, -16.0))
        np.testing.assert_allclose(state.mean, 0.25 * -4 + 0.75 * -8, rtol=1e-6)

    def test_nothing_before_the_first_episode(self):
        """A limit that asks for at least 90 is not missed by 90 as long as nothing is known."""
        state = observed(PIDLagrangian(kp=1.0), (0, 0.0), (0, 0.0), least=(90.0,))
        assert state.num_updates == 2
        assert [float(part[0]) for part in (state.violation, state.integral, state.value)] == [0.0, 0.0, 0.0]


class TestMultipliers:
    def test_the_integral(self):
        """Missed by 5 for 4 of 100 episodes at eta 0.5: 0.5 * 0.04 * 5 = 0.1; then by (16 - 10) for 6 more: + 0.18."""
        rule = PIDLagrangian(ki=0.5, stats_window_size=100.0)
        state = observed(rule, (4, -60.0))
        np.testing.assert_allclose([state.violation[0], state.value[0]], [5.0, 0.1], rtol=1e-5)
        state = observed(rule, (4, -60.0), (6, -100.0))
        np.testing.assert_allclose([state.violation[0], state.value[0]], [6.0, 0.1 + 0.18], rtol=1e-5)

    def test_eta_falls_with_updates(self):
        """Updates without an episode pass the time, too: the third has 0.25 of the rate."""
        rule = PIDLagrangian(ki=Linear(1.0, 0.0, 4.0), stats_window_size=10.0)
        state = observed(rule, (0, 0.0), (0, 0.0), (1, -20.0))
        np.testing.assert_allclose(state.value, 0.25 * 0.1 * 10, rtol=1e-5)

    def test_never_below_zero(self):
        """Kept by 10 for 100 episodes at eta 1 would be -10; a price that was 0 begins to rise at once."""
        rule = PIDLagrangian(ki=1.0, stats_window_size=100.0)
        assert observed(rule, (100, 0.0)).integral == 0.0
        state = observed(rule, (100, 0.0), (100, -5000.0))
        assert state.violation > 0
        np.testing.assert_allclose(state.value, state.violation, rtol=1e-6)

    def test_never_above_the_upper_bound(self):
        rule = PIDLagrangian(ki=1.0, kp=1.0, stats_window_size=100.0, max_multiplier=7.0)
        state = observed(rule, (1000, -1e5))
        assert (state.integral, state.value) == (7.0, 7.0)
        # Nor is there more to be paid back than the ceiling: kept by 10 for a tenth of a window takes 1 off.
        state = rule.update(state._replace(mean=jnp.zeros(1)), jnp.float32(10), jnp.zeros(1), jnp.array([-10.0]))
        np.testing.assert_allclose(state.integral, 6.0, rtol=1e-5)

    def test_the_proportional_term(self):
        """Missed by 5: 0.5 * 5 on top of the integral's 0.05 * 0.04 * 5; kept by 5: off, down to 0."""
        rule = PIDLagrangian(ki=0.05, kp=0.5, stats_window_size=100.0)
        np.testing.assert_allclose(observed(rule, (4, -60.0)).value, 2.5 + 0.01, rtol=1e-5)
        assert observed(rule, (4, -20.0)).value == 0.0
        assert observed(rule, (4, -60.0)).integral < 0.011

    def test_the_derivative_term(self):
        """From 0 to missed by 5, then by 6: 2 * 5 and 2 * 1; a fall counts nothing."""
        rule = PIDLagrangian(ki=0.0, kd=2.0, stats_window_size=100.0)
        np.testing.assert_allclose(observed(rule, (4, -60.0)).value, 10.0, rtol=1e-5)
        np.testing.assert_allclose(observed(rule, (4, -60.0), (6, -100.0)).value, 2.0, rtol=1e-5)
        assert observed(rule, (4, -60.0), (6, -60.0)).value == 0.0

    def test_an_update_without_an_episode_keeps_them(self):
        """Short rollouts end few episodes: what was found at the last one holds until the next."""
        rule = PIDLagrangian(ki=0.5, kp=0.5, kd=2.0)
        once, more = observed(rule, (4, -60.0)), observed(rule, (4, -60.0), (0, 0.0), (0, 0.0))
        assert once.value > 10
        for name in ("mean", "num_episodes", "integral", "violation", "value"):
            np.testing.assert_array_equal(getattr(once, name), getattr(more, name))
        assert more.num_updates == 3

    def test_each_limit_has_its_own(self):
        rule = PIDLagrangian(ki=0.5, stats_window_size=100.0)
        state = observed(rule, (4, -60.0, 400.0), least=(-10.0, 90.0))
        np.testing.assert_allclose(state.value, [0.1, 0.0], rtol=1e-5)
        np.testing.assert_allclose(state.violation, [5.0, -10.0], rtol=1e-5)

    @settings(deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 9), st.floats(-50, 50)), max_size=12), st.floats(0, 3), st.floats(0, 3))
    def test_whatever_is_seen(self, batches, proportional, derivative):
        rule = PIDLagrangian(ki=3.0, kp=proportional, kd=derivative, stats_window_size=5.0, max_multiplier=8.0)
        state = observed(rule, *((n, n * each) for n, each in batches))
        assert 0 <= float(state.value[0]) <= 8
        assert 0 <= float(state.integral[0]) <= 8
        seen = [each for n, each in batches if n]
        if seen:
            assert min(seen) - 1e-3 <= float(state.mean[0]) <= max(seen) + 1e-3


def followed(rule, *batches, least=(-10.0,)):
    """After batches of episodes, each a list of (sum of the objective, sum of the limited signal)."""
    state = rule.init(len(least))
    for batch in batches:
        sums = jnp.array(batch, jnp.float32).reshape(-1, 1 + len(least))
        ended = EndedEpisodes(jnp.float32(len(sums)), sums.sum(axis=0), (sums**2).sum(axis=0))
        state = rule.follow(state, ended, jnp.array(least))
    return state


class TestUnitFree:
    RULE = UnitFreeLagrangian(PIDLagrangian(ki=0.5, kp=1.0, stats_window_size=100.0))

    def test_violations_are_in_standard_deviations(self):
        """Costs of 12 and 16: mean 14, deviation 2, violated by 4, which are 2; the integral gains 0.5 * 0.02 * 2."""
        state = followed(self.RULE, [(3.0, -12.0), (9.0, -16.0)])
        np.testing.assert_allclose(state.unit, [3.0, 2.0], rtol=1e-5)
        np.testing.assert_allclose(state.value, [2.02], rtol=1e-5)
        np.testing.assert_allclose(state.violation, [4.0], rtol=1e-5)
        np.testing.assert_allclose(self.RULE.weights(state), [1 / 3, 2.02 / 2], rtol=1e-5)

    def test_what_it_remembers_follows_the_unit(self):
        """After two more episodes, of 0: mean 7, deviation 7.14."""
        state = followed(self.RULE, [(3.0, -12.0), (9.0, -16.0)], [(6.0, 0.0), (6.0, 0.0)])
        np.testing.assert_allclose(state.inner.mean * state.unit[1:], [-7.0], rtol=1e-5)
        np.testing.assert_allclose(state.violation, [-3.0], rtol=1e-5)

    def test_episodes_that_are_all_alike_have_the_unit_1(self):
        state = followed(self.RULE, [(500.1, -0.3)] * 7, [(500.1, -0.3)] * 3)
        assert state.unit.tolist() == [1.0, 1.0]

    @pytest.mark.parametrize("power", [-20, 7, 20])
    def test_units_do_not_matter(self, power):
        """Powers of two, so that everything is exact."""
        random = np.random.default_rng(0)
        batches = [np.stack([random.normal(5, 3, 4), random.normal(-12, 6, 4)], axis=1) for _ in range(5)]
        one = followed(self.RULE, *batches)
        other = followed(
            self.RULE, *(each * 2.0 ** np.array([-power, power]) for each in batches), least=(-10.0 * 2.0**power,)
        )
        np.testing.assert_array_equal(one.value, other.value)
        np.testing.assert_array_equal(one.violation * 2.0**power, other.violation)


class TestMetrics:
    def test_per_objective(self):
        """Columns of the order: the limit's own objective has its price, the others 0."""
        state = observed(PIDLagrangian(ki=0.5, stats_window_size=100.0), (4, -60.0))
        told = lagrangian.metrics(state, jnp.array([[0.0, 1.0, 0.0]]))
        np.testing.assert_allclose(told["multiplier"], [0.0, 0.1, 0.0], rtol=1e-5)
        np.testing.assert_allclose(told["violation"], [0.0, 5.0, 0.0], rtol=1e-5)

    def test_two_limits_on_one_objective(self):
        """Mean cost 2, to be in 3..5: below by 1, within the upper one by 3. What counts is the worst, not the sum."""
        state = observed(PIDLagrangian(ki=1.0, stats_window_size=100.0), (10, 20.0, -20.0), least=(3.0, -5.0))
        told = lagrangian.metrics(state, jnp.array([[-1.0], [1.0]]))
        np.testing.assert_allclose(told["violation"], [1.0], rtol=1e-5)
        np.testing.assert_allclose(told["multiplier"], [0.1], rtol=1e-5)

    def test_kept(self):
        state = observed(PIDLagrangian(), (4, -20.0))
        np.testing.assert_allclose(lagrangian.metrics(state, jnp.array([[1.0]]))["violation"], [-5.0], rtol=1e-5)


@pytest.mark.parametrize(
    ("setting", "value", "least"),
    [
        ("kp", -1.0, 0),
        ("kd", -0.5, 0),
        ("stats_window_size", 0.5, 1),
        ("max_multiplier", -1.0, 0),
        ("stats_window_size", float("nan"), 1),
    ],
)
def test_settings_out_of_range(setting, value, least):
    with pytest.raises(lexrl.InputError, match=f"{setting} is {value}; it must be {least} or more"):
        PIDLagrangian(**{setting: value})


def test_ki_is_named():
    with pytest.raises(lexrl.InputError, match="The ki is -1"):
        PIDLagrangian(ki=-1)
