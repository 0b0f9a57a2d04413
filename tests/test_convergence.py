"""Return estimates, convergence and thresholds, with numbers worked out by hand."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lexrl
from lexrl import returns
from lexrl.convergence import Convergence, Sample, from_critic, from_episodes
from lexrl.tolerance import Absolute

NOTHING = Absolute(0.0)
update = jax.jit(lambda how, state, sample, tolerance: how.update(state, sample, tolerance)[0])


def sample(*returns, change=0.0):
    """Fresh episodes, each with its returns `[M]`."""
    each = np.array(returns, float)
    return Sample(
        jnp.float32(len(each)),
        jnp.array(each.sum(axis=0), jnp.float32),
        jnp.array((each**2).sum(axis=0), jnp.float32),
        change,
    )


def nothing(objectives):
    return Sample(jnp.float32(0), jnp.zeros(objectives), jnp.zeros(objectives))


def state(how=None, objectives=2, **given):
    """A state with some of its numbers set."""
    fresh = (how or Convergence()).init(objectives)
    kinds = {"converged": bool, "num_updates": jnp.int32}
    return fresh._replace(**{name: jnp.asarray(it, kinds.get(name, jnp.float32)) for name, it in given.items()})


class TestEstimates:
    def test_averages_by_hand(self):
        # One episode at a time, window 4. Plain means at first: 4, 6, 4, 4. The fifth counts 1/4: 4 + 8/4 = 6;
        # for the slow average the window is 16, and it is still a plain mean: 28 / 5.
        how, now = Convergence(stats_window_size=4.0), state(objectives=1)
        fast, slow = [], []
        for value in (4.0, 8.0, 0.0, 4.0, 12.0):
            now = update(how, now, sample([value]), NOTHING)
            fast.append(float(now.mean[0]))
            slow.append(float(now.slow_mean[0]))
        np.testing.assert_allclose(fast, [4, 6, 4, 4, 6], rtol=1e-5)
        np.testing.assert_allclose(slow, [4, 6, 4, 4, 5.6], rtol=1e-5)
        assert now.num_episodes == 5
        assert now.num_updates == 5

    def test_several_episodes_count_as_one_after_the_other(self):
        """Of alike episodes it makes no difference whether they come one by one."""
        how = Convergence(stats_window_size=4.0)
        full = state(objectives=1, mean=[1.0], slow_mean=[1.0], num_episodes=1000.0)
        together = update(how, full, sample([5.0], [5.0], [5.0]), NOTHING)
        one_by_one = functools.reduce(lambda now, _: update(how, now, sample([5.0]), NOTHING), range(3), full)
        np.testing.assert_allclose(together.mean, 5 - 4 * 0.75**3, rtol=1e-5)
        np.testing.assert_allclose(together.mean, one_by_one.mean, rtol=1e-5)
        np.testing.assert_allclose(together.slow_mean, one_by_one.slow_mean, rtol=1e-5)

    def test_without_episodes_nothing_moves(self):
        before = state(
            mean=[3.0, 1.0], slow_mean=[4.0, 1.0], variance=[1.0, 2.0], num_episodes=50.0, num_stable=[7.0, 0.0],
            converged=[True, False],
            threshold=[5.0, 1.0],
        )  # fmt: skip
        after = update(Convergence(patience=1e6, stats_window_size=1e6), before, nothing(2), NOTHING)
        for name in ("mean", "slow_mean", "variance", "num_episodes", "converged", "threshold"):
            np.testing.assert_array_equal(getattr(after, name), getattr(before, name), err_msg=name)

    def test_the_very_first_update_may_see_no_episode(self):
        after = update(Convergence(), state(), nothing(2), NOTHING)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(after))
        assert not after.converged.any()

    def test_variance_moves_towards_the_squared_distance(self):
        # Around the slow average 6: episodes with 4, 8, 4, 8 are 4 away in the square, as was known: nothing moves.
        before = state(objectives=1, mean=[6.0], slow_mean=[6.0], variance=[4.0], num_episodes=1000.0)
        assert update(Convergence(), before, sample([4.0], [8.0], [4.0], [8.0]), NOTHING).variance.tolist() == [4.0]

    def test_episodes_that_are_all_alike_have_no_variance(self):
        """`variance` is that of an episode's return, also after the first episodes."""
        after = update(Convergence(), state(objectives=1), sample([5.0], [5.0], [5.0]), NOTHING)
        np.testing.assert_allclose(after.variance, [0.0], atol=1e-4)

    def test_it_is_the_variance_wherever_the_returns_lie(self):
        rng, now = np.random.default_rng(0), state(objectives=1)
        for _ in range(20):
            now = update(Convergence(), now, sample(*(-50 + rng.normal(size=(16, 1)))), NOTHING)
        np.testing.assert_allclose(now.variance, [1.0], rtol=0.3)


class TestSamples:
    def test_from_episodes(self):
        gamma, last = jnp.array([0.5]), jnp.array([[False, True], [True, True]])
        _, episode_stats = returns.track_episodes(
            returns.init_tracker(2, 1), jnp.array([[[1.0], [2.0]], [[4.0], [8.0]]]), last, gamma
        )
        got = from_episodes(episode_stats)  # 1 + 4/2, 2, and 8
        assert (got.num_episodes, got.total.tolist(), got.squares.tolist()) == (3, [13.0], [9.0 + 4.0 + 64.0])

    def test_from_critic(self):
        value = jnp.array([[[1.0, 10.0], [2.0, 20.0]], [[3.0, 30.0], [4.0, 40.0]]])
        got = from_critic(value, jnp.array([[True, False], [False, True]]))
        assert (got.num_episodes, got.total.tolist(), got.squares.tolist()) == (2, [5.0, 50.0], [17.0, 1700.0])


BATCH = 10


def play(how, now, batches, *columns):
    """Batches of ten alike episodes; each column says the t-th batch's return of an objective."""
    trail = []
    for t in range(batches):
        now = update(how, now, sample(*[[column(t) for column in columns]] * BATCH), NOTHING)
        trail.append(now)
    return trail


def constant(_):
    return 5.0


def ramp(t):
    return float(t)


class TestConvergence:
    how = Convergence(stats_window_size=100.0, patience=200.0)

    def test_an_objective_without_trend_converges_after_its_patience(self):
        trail = play(self.how, state(), 40, constant, ramp)
        assert [bool(now.converged[0]) for now in trail] == [False] * 29 + [
            True
        ] * 11  # 200 episodes after the first 100
        assert not trail[-1].converged[1]

    def test_the_second_does_not_converge_before_the_first(self):
        trail = play(self.how, state(), 60, ramp, constant)
        assert not any(now.converged.any() for now in trail)
        assert trail[-1].num_stable[1] == 0  # it is not its turn

    def test_then_both_converge(self):
        trail = play(self.how, state(), 400, lambda t: float(min(t, 50)), constant)
        at = [[bool(flag) for flag in now.converged] for now in trail]
        assert [False, True] not in at
        assert at[-1] == [True, True]
        first = at.index([True, True])
        assert first > 50 + 20
        assert at.index([True, False]) + 20 <= first  # only then the second's patience begins

    @settings(max_examples=20, deadline=None)
    @given(st.integers(0, 2**32 - 1))
    def test_always_in_order_and_never_undone(self, seed):
        rng = np.random.default_rng(seed)
        how, now, before = Convergence(stats_window_size=20.0, patience=30.0), state(objectives=3), np.zeros(3, bool)
        for _ in range(40):
            now = update(how, now, sample(*rng.normal(size=(BATCH, 3)).cumsum(axis=0)), NOTHING)
            converged = np.asarray(now.converged)
            assert (converged >= before).all()
            assert (converged[1:] <= converged[:-1]).all()
            before = converged

    def test_a_trend_starts_the_patience_anew(self):
        trail = play(self.how, state(objectives=1), 60, lambda t: float(t >= 10) * 5)
        stable = [float(now.num_stable[0]) for now in trail]
        assert 0.0 in stable[10:]
        assert trail[-1].num_episodes > 200


class TestThresholds:
    def test_follows_then_holds(self):
        how = Convergence(stats_window_size=100.0, patience=200.0)
        trail = play(how, state(objectives=1), 60, lambda t: 5.0 if t < 30 else 1.0)
        for now in trail[:20]:
            np.testing.assert_array_equal(now.threshold, now.mean)
        assert trail[-1].mean[0] < 2
        assert all(now.threshold[0] == 5.0 for now in trail)  # it converged at 5 and holds

    def test_follows_down_as_well_before(self):
        trail = play(Convergence(stats_window_size=100.0, patience=200.0), state(objectives=1), 30, lambda t: -float(t))
        np.testing.assert_array_equal([now.threshold for now in trail], [now.mean for now in trail])
        assert trail[-1].threshold[0] < -10

    def test_then_only_rises(self):
        values = [5.0] * 30 + [1.0] * 60 + [9.0] * 150 + [2.0] * 30
        trail = play(
            Convergence(stats_window_size=100.0, patience=200.0), state(objectives=1), len(values), lambda t: values[t]
        )
        thresholds = np.array([float(now.threshold[0]) for now in trail])
        assert (np.diff(thresholds) >= 0).all()
        assert thresholds[80] == 5.0
        assert 8.0 < thresholds[-1] <= 9.0  # what was found to be possible is now held

    def test_rises_to_the_slow_average_by_hand(self):
        before = state(objectives=1, mean=[10.0], slow_mean=[10.0], num_episodes=1e6, converged=[True], threshold=[8.0])
        assert update(Convergence(), before, sample([10.0]), NOTHING).threshold.tolist() == [10.0]
        before = state(objectives=1, mean=[10.0], slow_mean=[6.0], num_episodes=1e6, converged=[True], threshold=[8.0])
        assert update(Convergence(), before, sample([6.0]), NOTHING).threshold.tolist() == [8.0]


class TestNoConvergenceBelowAThreshold:
    """The first has converged and must keep 8; the second has been stable for 45 of 50 episodes."""

    how = Convergence(stats_window_size=10.0, patience=50.0)

    def after(self, slow_mean):
        before = state(
            mean=[6.0, 0.0], slow_mean=[slow_mean, 0.0], num_episodes=1e6, converged=[True, False],
            threshold=[8.0, 0.0], num_stable=[0.0, 45.0],
        )  # fmt: skip
        return update(self.how, before, sample(*[[6.0, 0.0]] * 5), Absolute(1.0))

    def test_the_second_converges_while_the_first_keeps_its_threshold(self):
        assert self.after(8.0).converged.tolist() == [True, True]

    def test_none_converges_while_a_more_important_one_is_below_its_threshold(self):
        assert self.after(6.0).converged.tolist() == [True, False]


class TestActive:
    @pytest.mark.parametrize(
        ("converged", "expected"),
        [
            ([False, False, False], [True, False, False]),
            ([True, False, False], [False, True, False]),
            ([True, True, False], [False, False, True]),
            ([True, True, True], [False, False, True]),
        ],
    )
    def test_sequential(self, converged, expected):
        now = state(objectives=3, converged=converged)
        assert Convergence(sequential=True).active(now).tolist() == expected
        assert Convergence().active(now).tolist() == [True] * 3


def test_progress():
    """What the multipliers are told: deviation 2, tolerance 0.5."""
    before = state(
        mean=[7.0, 0.0], slow_mean=[7.0, 0.0], variance=[4.0, 0.0], num_episodes=1e6, converged=[True, False],
        threshold=[8.0, 0.0], num_updates=3,
    )  # fmt: skip
    episodes = sample([5.0, 0.0], [9.0, 0.0], change=jnp.array([0.25, 0.0]))
    _, progress = jax.jit(lambda now: Convergence(stats_window_size=10.0).update(now, episodes, Absolute(0.5)))(before)
    assert progress.converged.tolist() == [True, False]
    np.testing.assert_allclose(progress.required, [7.5, -0.5], rtol=1e-6)
    np.testing.assert_allclose(progress.return_estimate, [7.25, 0.0], rtol=1e-6)
    np.testing.assert_allclose(progress.scale, [2.5, 0.5], rtol=1e-6)
    assert (progress.num_episodes, progress.stats_window_size, progress.num_updates) == (2, 10, 4)


def test_metrics():
    now = state(mean=[6.0, 0.0], threshold=[8.0, 0.0], converged=[True, False])
    assert {name: value.tolist() for name, value in Convergence().metrics(now).items()} == {
        "return_estimate": [6.0, 0.0],
        "threshold": [8.0, 0.0],
        "converged": [1.0, 0.0],
    }


@pytest.mark.parametrize(
    ("setting", "value", "least"),
    [("stats_window_size", 0.5, 1), ("stats_window_size", float("nan"), 1), ("patience", -1.0, 0)],
)
def test_settings_out_of_range(setting, value, least):
    with pytest.raises(lexrl.InputError, match=f"{setting} is {value:g}; it must be {least} or more"):
        Convergence(**{setting: value})
