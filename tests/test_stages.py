"""Stages, with numbers worked out by hand.

Episodes here have one step, unless a test is about longer ones: a rollout of one step of eight environments is eight
episodes, which is enough to judge a block. With a budget of 32 updates and two objectives, every update is a block.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lexrl
from lexrl import stages
from lexrl.errors import InputError
from lexrl.schedules import OfRun
from lexrl.stages import Evidence, Stages
from lexrl.tolerance import Absolute

N = 8
ERROR = math.sqrt(1 / 8)
"""Standard error of the mean of eight episodes with variance 1."""


def even(**settings):
    """Stages of the same length, so that numbers can be worked out by hand."""
    return Stages(last_length=1.0, **settings)


def episodes(*means):
    """Returns of eight episodes, one column for each objective: its mean, half of them 1 below and half 1 above."""
    return np.stack([mean + np.tile([-1.0, 1.0], N // 2) for mean in means], axis=-1)


@jax.jit
def step(settings, state, n, reward, last, gamma, tolerance, silent, limits=jnp.inf):
    return settings.update(state, n, reward, last, gamma, tolerance, silent, limits)


def feed(settings, state, n, rows, *, tolerance=0.0, silent=(), gamma=1.0, limits=None):
    """One update with one-step episodes."""
    m = rows.shape[-1]
    quiet = np.isin(np.arange(m), list(silent))
    each = tuple(Absolute(float(one)) for one in np.broadcast_to(tolerance, m))
    reward = jnp.asarray(rows, jnp.float32)[None]
    limits = jnp.full(m, jnp.inf) if limits is None else jnp.array(limits)
    return step(settings, state, jnp.int32(n), reward, jnp.ones((1, N), bool), jnp.full(m, gamma), each, quiet, limits)


def run(settings, m, updates, rows=None, **more):
    """The stage after each update, and the last state."""
    state, seen = settings.init(m, N), []
    for n in range(1, updates + 1):
        state, _ = feed(settings, state, n, episodes(*[0.0] * m) if rows is None else rows(n), **more)
        seen.append(int(state.stage))
    return seen, state


def in_stage(stage, threshold, *, begin, m=None):
    """A state in the middle of a run: eight episodes seen, all with return 0, so that returns count from 0."""
    m = m or len(threshold)
    state = even(budget=1.0).init(m, N)
    kept = jnp.broadcast_to(jnp.asarray(threshold, jnp.float32), (2, m))
    one = state.recent._replace(episodes=jnp.float32(1e-6))
    return state._replace(stage=jnp.int32(stage), begin=jnp.float32(begin), threshold=kept, recent=one)


class TestLengths:
    def test_the_budget_is_divided_evenly(self):
        assert run(even(budget=12.0), 3, 15)[0] == [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]

    def test_the_fraction_that_is_over_before_an_update(self):
        settings = even(budget=12.0)
        state = settings.init(3, N)
        found = [float(settings.fraction(state, jnp.int32(n))) for n in (1, 2, 3, 4, 5, 9)]
        assert found == [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]

    def test_the_last_one_may_be_longer(self):
        """Three parts of four updates, two of which are the last stage's; then five parts of two."""
        assert run(Stages(last_length=2.0, budget=12.0), 2, 13)[0] == [0] * 3 + [1] * 10
        assert run(Stages(last_length=3.0, budget=10.0), 3, 10)[0] == [0, 1, 1, 2, 2, 2, 2, 2, 2, 2]

    @pytest.mark.parametrize("length", [0.0, -1.0, math.inf])
    def test_it_has_a_length(self, length):
        with pytest.raises(InputError, match=rf"^The last_length is {length:g}; it must be above 0 and finite\.$"):
            Stages(last_length=length)

    def test_a_longer_run_extends_the_last_stage(self):
        settings = even(budget=4.0)
        _, state = run(settings, 2, 9)
        assert float(state.begin) == 2.0
        assert float(settings.fraction(state, jnp.int32(4))) == 0.5
        assert float(settings.fraction(state, jnp.int32(10))) == 1.0

    def test_a_silent_objective_gives_its_time_to_the_others(self):
        """Silent for a quarter of its four updates, then for one more; ten are left for two stages of five."""
        seen, state = run(even(budget=12.0), 3, 12, silent=(0,))
        assert seen == [0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]
        assert float(state.begin) == 7.0

    def test_a_silent_last_objective_keeps_its_stage(self):
        seen, state = run(even(budget=8.0), 2, 8, silent=(1,))
        assert seen == [0, 0, 0, 1, 1, 1, 1, 1]
        assert float(state.begin) == 4.0

    def test_as_many_updates_as_objectives(self):
        assert run(even(budget=3.0), 3, 3)[0] == [1, 2, 2]


class TestWhatChangesWithinAStage:
    def test_the_next_objective_fades_out(self):
        settings = even(preview=0.5)
        found = [float(settings.next_weight(jnp.float32(part))) for part in (0.0, 0.3, 0.6, 1.0)]
        np.testing.assert_allclose(found, [0.5, 0.25, 0.0, 0.0], atol=1e-6)

    def test_the_learning_rate_falls_in_a_straight_line(self):
        settings = Stages(initial_rate=3.0, final_rate=1.0, critic_initial_rate=2.0, critic_final_rate=0.0)
        rates = np.array([settings.rates(jnp.float32(part)) for part in (0.0, 0.5, 1.0)])
        assert rates.tolist() == [[3.0, 2.0], [2.0, 1.0], [1.0, 0.0]]

    def test_the_entropy_coefficient(self):
        """Constant for half of a stage, at its final value from 90 % on; 0 at the end of the last one."""
        settings = even(initial_ent_coef=0.5, final_ent_coef=0.1, budget=4.0)
        early, late = settings.init(2, N), settings.init(2, N)._replace(stage=jnp.int32(1))
        parts = [jnp.float32(part) for part in (0.0, 0.5, 0.7, 0.9, 1.0)]
        np.testing.assert_allclose(
            [settings.entropy(early, x, jnp.bool_(False)) for x in parts], [0.5, 0.5, 0.3, 0.1, 0.1], rtol=1e-6
        )
        found = [settings.entropy(late, jnp.float32(part), jnp.bool_(False)) for part in (0.0, 0.35, 0.7, 1.0)]
        np.testing.assert_allclose(found, [0.5, 0.25, 0.0, 0.0], atol=1e-6)

    def test_the_entropy_coefficient_where_slack_may_be_used(self):
        """It falls to a fiftieth, between 15 % and 60 % of a stage; half of the way is the square root of that."""
        settings = even(slack_ent_coef=2.0, budget=4.0)
        state = settings.init(2, N)._replace(stage=jnp.int32(1))
        found = [settings.entropy(state, jnp.float32(part), jnp.bool_(True)) for part in (0.0, 0.15, 0.375, 0.6, 1.0)]
        np.testing.assert_allclose(found, [2.0, 2.0, 2.0 / 50**0.5, 0.04, 0.04], rtol=1e-5)


class TestEvidence:
    def test_mean_variance_and_doubt(self):
        """1, 1, 3, 3: mean 2, variance 1, two standard errors 1."""
        found = Evidence(jnp.float32(4), jnp.full((2, 1), 8.0), jnp.full((2, 1), 20.0))
        for value, expected in ((found.mean(), 2.0), (found.variance(), 1.0), (found.doubt(), 1.0)):
            np.testing.assert_array_equal(value, np.full((2, 1), expected))

    def test_nothing_is_0_and_not_nan(self):
        nothing = even(budget=1.0).init(2, N).recent
        assert not np.asarray([nothing.mean(), nothing.variance(), nothing.doubt()]).any()

    def test_large_returns_keep_their_variance(self):
        """Counted from the first ones: in single precision, 1e6 squared would swallow a variance of 1."""
        _, state = run(even(budget=32.0), 2, 5, lambda n: episodes(1e6, -1e6))
        np.testing.assert_allclose(state.recent.variance(), np.ones((2, 2)), rtol=1e-5)
        np.testing.assert_allclose(state.variance, np.ones((2, 2)), rtol=1e-5)
        shown = even(budget=32.0).metrics(state)
        np.testing.assert_allclose(shown["return_estimate"], [1e6, -1e6], rtol=1e-6)

    def test_old_episodes_are_forgotten(self):
        """From 100 episodes on each update keeps at least nine tenths: 104 become 100 before 8 more come in."""
        _, state = run(even(budget=64.0), 2, 13)
        assert float(state.recent.episodes) == 104
        state, progress = feed(even(budget=64.0), state, 14, episodes(0.0, 0.0))
        np.testing.assert_allclose(state.recent.episodes, 108.0)
        np.testing.assert_allclose(progress.renewed, 8 / 108)

    def test_discounted_and_as_it_is(self):
        """Two steps, the reward in the second: half of it discounted, all of it undiscounted."""
        settings = even(budget=32.0)
        reward = jnp.zeros((2, N, 2)).at[1, :, 0].set(6.0)
        last = jnp.zeros((2, N), bool).at[1].set(True)
        state, _ = step(
            settings,
            settings.init(2, N),
            jnp.int32(1),
            reward,
            last,
            jnp.full(2, 0.5),
            Absolute(0.0),
            np.zeros(2, bool),
        )
        np.testing.assert_array_equal(state.origin, [[3.0, 0.0], [6.0, 0.0]])

    def test_an_episode_over_several_rollouts(self):
        settings = even(budget=64.0)
        state, never = settings.init(2, N), jnp.zeros((1, N), bool)
        for n, last in ((1, never), (2, never), (3, ~never)):
            reward = jnp.full((1, N, 2), float(n))
            state, _ = step(
                settings, state, jnp.int32(n), reward, last, jnp.full(2, 0.5), Absolute(0.0), np.zeros(2, bool)
            )
            assert float(state.recent.episodes) == (N if n == 3 else 0)
        np.testing.assert_allclose(state.origin, [[1 + 2 / 2 + 3 / 4] * 2, [6.0] * 2])


class TestEpisodesThatNeverEnd:
    @pytest.mark.parametrize(("budget", "updates"), [(16.0, 1), (64.0, 4), (2.0, 1)])
    def test_they_are_cut_into_segments_an_eighth_of_a_stage_long(self, budget, updates):
        settings = even(budget=budget)
        state, reward = settings.init(2, N), jnp.ones((4, N, 2)) * jnp.array([1.0, -2.0])
        for n in range(1, updates + 1):
            assert float(state.recent.episodes) == 0
            state, _ = step(
                settings, state, jnp.int32(n), reward, jnp.zeros((4, N), bool), jnp.ones(2), Absolute(0.0),
                np.zeros(2, bool),
            )  # fmt: skip
        assert float(state.recent.episodes) == N
        np.testing.assert_array_equal(state.origin, np.array([[1.0, -2.0]] * 2) * 4 * updates)


class TestThresholds:
    SETTINGS = even(budget=32.0)

    def after_stage_one(self, means):
        """Blocks 1 to 16 of the first objective; the origin is the mean of the first."""
        return run(self.SETTINGS, 2, 16, lambda n: episodes(means.get(n, 10.0), 5.0))[1]

    def test_the_lower_bound_of_the_best_block_of_the_last_quarter(self):
        state = self.after_stage_one({3: 99.0, 12: 98.0, 14: 12.0})
        assert int(state.stage) == 1
        np.testing.assert_allclose(state.origin[:, 0] + state.threshold[:, 0], 12 - 2 * ERROR, rtol=1e-6)
        assert not state.found  # in the new stage

    def test_what_the_same_policy_gave_to_the_others_is_where_they_start(self):
        state = self.after_stage_one({14: 12.0})
        np.testing.assert_allclose(state.origin[:, 1] + state.threshold[:, 1], 5 - 2 * ERROR, rtol=1e-6)

    def test_too_few_episodes_are_no_evidence(self):
        """One episode an update: five of them make a block. The sixteenth alone is none, so recent ones stand in."""
        settings = even(budget=32.0)
        state, kept = settings.init(2, 1), []
        for n in range(1, 17):
            reward, last = jnp.array([[[7.0 + n % 2, 5.0]]]), jnp.ones((1, 1), bool)
            state, progress = step(
                settings, state, jnp.int32(n), reward, last, jnp.ones(2), Absolute(0.0), np.zeros(2, bool)
            )
            kept += [n] if bool(progress.improved) else []
        assert kept == [15, 16]  # at first 7.6 - 2 sqrt(.24 / 5) = 7.16, by five; then 7.5 - 2 sqrt(.25 / 16), by all
        assert int(state.stage) == 1
        np.testing.assert_allclose(state.origin[:, 0] + state.threshold[:, 0], 7.25, rtol=1e-6)

    @pytest.mark.parametrize(
        ("means", "expected"),
        [
            ((4.0, 7.0, 0.0), (4 - 2 * ERROR, 7 - 2 * ERROR)),  # both hold, both rise
            ((1.5, 7.0, 0.0), (2.0, 7 - 2 * ERROR)),  # 1.5 may be 2: it holds, and is no higher bound
            ((1.0, 7.0, 0.0), (2.0, 3.0)),  # 1 + .7 < 2: what the second gained was bought
            ((4.0, 1.0, 0.0), (4 - 2 * ERROR, 3.0)),  # the second does not hold, which stops nobody before it
        ],
    )
    def test_they_rise_only_while_more_important_ones_hold(self, means, expected):
        settings = even(budget=48.0)
        state, _ = feed(settings, in_stage(2, (2.0, 3.0, 0.0), begin=32), 33, episodes(*means))
        np.testing.assert_allclose(state.threshold[:, :2], [expected] * 2, rtol=1e-5)
        assert not np.asarray(state.threshold[:, 2]).any()

    def test_a_block_with_slack(self):
        """1 + .7 is within the slack of .5: it holds."""
        settings = even(budget=48.0)
        state, _ = feed(
            settings, in_stage(2, (2.0, 3.0, 0.0), begin=32), 33, episodes(1.0, 7.0, 0.0), tolerance=(0.5, 0.0, 0.0)
        )
        np.testing.assert_allclose(state.threshold[0, :2], (2.0, 7 - 2 * ERROR), rtol=1e-5)

    def test_they_are_shown_in_the_units_of_the_returns(self):
        state = self.after_stage_one({})
        shown = self.SETTINGS.metrics(state)
        assert float(shown["stage"]) == 2.0
        np.testing.assert_allclose(shown["return_estimate"], [10.0, 5.0], rtol=1e-6)
        # The second has none yet.
        np.testing.assert_allclose(shown["threshold"], [10 - 2 * ERROR, 5.0], rtol=1e-6)


class TestBestAndFound:
    """The last quarter of stage 2 of 2, updates 29 to 32 of 32: the first objective must keep 3."""

    SETTINGS = even(budget=32.0)

    def judged(self, means, begin=13):
        state, told = in_stage(1, (3.0, 0.0), begin=16), []
        for n, pair in enumerate(means, begin + 16):
            state, progress = feed(self.SETTINGS, state, n, episodes(*pair))
            told.append((bool(progress.improved), bool(progress.found)))
        return told, state

    def test_before_the_last_quarter_nothing_is_kept(self):
        assert self.judged([(5.0, 1.0)] * 4, begin=9)[0] == [(False, False)] * 4

    def test_a_policy_that_loses_is_kept_only_until_one_does_not(self):
        told, state = self.judged([(0.0, 9.0), (3.0, 1.0), (0.0, 8.0), (3.0, 0.5)])
        assert told == [(True, False), (True, True), (False, True), (False, True)]
        np.testing.assert_allclose(state.best[:, 1], 1 - 2 * ERROR, rtol=1e-5)

    def test_a_better_one_replaces_it(self):
        told, state = self.judged([(3.0, 1.0), (3.0, 2.0), (2.5, 4.0)])
        assert told == [(True, True)] * 3  # 2.5 + .7 may be 3
        np.testing.assert_allclose(state.best[:, 1], 4 - 2 * ERROR, rtol=1e-5)

    def test_a_stage_that_found_nothing_leaves_the_thresholds_alone(self):
        """Stage 2 of 3: the first objective never keeps its 3, so the second gets no better threshold than it had."""
        settings, state = even(budget=48.0), in_stage(1, (3.0, 1.5, -4.0), begin=16)
        for n in range(29, 33):
            state, progress = feed(settings, state, n, episodes(0.0, 9.0, 2.0))
        assert bool(progress.ended)
        assert not bool(progress.found)
        assert int(state.stage) == 2
        np.testing.assert_array_equal(state.threshold, [[3.0, 1.5, -4.0]] * 2)


class TestViolation:
    """Sixteen episodes with mean 9 and variance 1 (doubt 0.5) against a threshold of 10: 0.5 is beyond doubt, and the
    unit is the doubt plus a twentieth of the standard deviation."""

    def violation(self, mean=9.0, threshold=10.0, tolerance=0.0, both=True):
        settings = even(budget=32.0)
        before = Evidence(jnp.float32(8), jnp.full((2, 2), 8 * mean), jnp.full((2, 2), 8 * (mean**2 + 1)))
        kept = jnp.array([[threshold, 0.0], [threshold if both else -99.0, 0.0]])
        state = in_stage(1, (0.0, 0.0), begin=16)._replace(recent=before, threshold=kept, variance=jnp.ones((2, 2)))
        return feed(settings, state, 20, episodes(mean, mean), tolerance=tolerance)[1].violation

    def test_beyond_doubt(self):
        np.testing.assert_allclose(self.violation(), [0.5 / 0.55, 0.0], rtol=1e-5)

    def test_within_doubt(self):
        np.testing.assert_array_equal(self.violation(mean=9.6), [0.0, 0.0])

    def test_at_most_1(self):
        np.testing.assert_array_equal(self.violation(mean=2.0), [1.0, 0.0])

    def test_above_the_threshold_is_what_is_wanted(self):
        np.testing.assert_array_equal(self.violation(mean=20.0), [0.0, 0.0])

    def test_slack_that_is_not_used_is_negative(self):
        """Half a doubt above `k - tau`; only the discounted return counts."""
        np.testing.assert_allclose(self.violation(mean=9.0, tolerance=1.25), [-0.25 / 0.55, 0.0], rtol=1e-4)
        np.testing.assert_array_equal(self.violation(mean=9.0, tolerance=3.0), [-1.0, 0.0])

    def test_slack_that_is_exceeded(self):
        np.testing.assert_allclose(self.violation(mean=9.0, tolerance=0.25), [0.25 / 0.55, 0.0], rtol=1e-4)

    def test_a_cost_that_comes_late(self):
        """Discounted it is nothing; undiscounted it is what the threshold excludes."""
        settings = even(budget=32.0)
        state = in_stage(1, (-1.0, 0.0), begin=16)
        rows = jnp.stack([jnp.zeros((N, 2)), jnp.asarray(episodes(-9.0, 0.0), jnp.float32)])
        last = jnp.array([[False], [True]]) & jnp.ones((2, N), bool)
        for tolerance, expected in ((Absolute(0.0), 1.0), (Absolute(0.5), -1.0)):
            _, progress = step(
                settings, state, jnp.int32(17), rows, last, jnp.full(2, 0.01), tolerance, np.zeros(2, bool)
            )
            assert float(progress.violation[0]) == expected


class TestLimits:
    """Two objectives, a block an update; the first is enough at -5."""

    SETTINGS, LIMITS = even(budget=32.0), (-5.0, math.inf)

    def test_the_stage_ends_when_a_block_is_surely_there(self):
        """-4.5 - 2 / sqrt(8) < -5; -4.2 - 2 / sqrt(8) > -5."""
        means = {1: -9.0, 2: -4.5, 3: -4.2}
        seen, state = run(self.SETTINGS, 2, 3, lambda n: episodes(means[n], 0.0), limits=self.LIMITS)
        assert seen == [0, 0, 1]
        np.testing.assert_allclose(state.origin[:, 0] + state.threshold[:, 0], -5.0, rtol=1e-6)
        assert state.at_limit.tolist() == [True, False]
        assert float(state.begin) == 3.0

    def test_a_limit_out_of_reach_is_a_direction(self):
        seen, state = run(self.SETTINGS, 2, 16, lambda n: episodes(-9.0, 0.0), limits=self.LIMITS)
        free_seen, free = run(self.SETTINGS, 2, 16, lambda n: episodes(-9.0, 0.0))
        assert seen == free_seen == [0] * 15 + [1]
        np.testing.assert_array_equal(state.threshold[:, 0], free.threshold[:, 0])
        assert not state.at_limit[0]

    def test_a_stage_does_not_end_while_a_more_important_one_is_lost(self):
        settings, state = even(budget=48.0), in_stage(1, (2.0, 0.0, 0.0), begin=16)
        limits = (math.inf, 1.0, math.inf)
        lost, _ = feed(settings, state, 20, episodes(0.0, 9.0, 0.0), limits=limits)
        kept, _ = feed(settings, state, 20, episodes(2.0, 9.0, 0.0), limits=limits)
        assert (int(lost.stage), int(kept.stage)) == (1, 2)
        np.testing.assert_array_equal(kept.threshold[:, 1], [1.0, 1.0])

    def test_thresholds_rise_to_the_limit_and_no_further(self):
        state, _ = feed(self.SETTINGS, in_stage(1, (-8.0, 0.0), begin=16), 20, episodes(-6.0, 0.0), limits=self.LIMITS)
        np.testing.assert_allclose(state.threshold[:, 0], -6 - 2 * ERROR, rtol=1e-6)
        assert not state.at_limit[0]
        state, _ = feed(self.SETTINGS, state, 21, episodes(-1.0, 0.0), limits=self.LIMITS)
        np.testing.assert_array_equal(state.threshold[:, 0], [-5.0, -5.0])
        assert state.at_limit[0]

    @pytest.mark.parametrize(("mean", "expected"), [(-5.5, 0.5), (-4.75, -0.25), (-9.0, 1.0), (9.0, -1.0)])
    def test_it_is_held_from_both_sides_in_standard_deviations(self, mean, expected):
        before = Evidence(jnp.float32(8), jnp.full((2, 2), 8 * mean), jnp.full((2, 2), 8 * (mean**2 + 1)))
        state = in_stage(1, (-5.0, 0.0), begin=16)._replace(recent=before, variance=jnp.ones((2, 2)))
        state = state._replace(at_limit=jnp.array([True, False]))
        _, progress = feed(self.SETTINGS, state, 20, episodes(mean, 0.0), limits=self.LIMITS)
        np.testing.assert_allclose(progress.violation, [expected, 0.0], rtol=1e-4)

    def test_with_a_tolerance(self):
        state = in_stage(1, (-5.0, 0.0), begin=16)._replace(at_limit=jnp.array([True, False]))
        state = state._replace(variance=jnp.ones((2, 2)))
        _, progress = feed(self.SETTINGS, state, 20, episodes(-6.0, 0.0), limits=self.LIMITS, tolerance=1.25)
        # The running variance has just begun to move: 1 + (0 or 1 - 1) / 20.
        np.testing.assert_allclose(progress.violation[0], -0.25, rtol=1e-4)

    def test_limits_are_on_undiscounted_returns(self):
        """Two steps, the cost in the second: discounted it is next to nothing."""
        rows = jnp.zeros((2, N, 2)).at[1, :, 0].set(-9.0)
        last = jnp.zeros((2, N), bool).at[1].set(True)
        limits, quiet = jnp.array(self.LIMITS), np.zeros(2, bool)
        state, _ = step(
            self.SETTINGS, self.SETTINGS.init(2, N), jnp.int32(1), rows, last, jnp.full(2, 0.01), Absolute(0.0), quiet,
            limits,
        )  # fmt: skip
        assert int(state.stage) == 0
        np.testing.assert_array_equal(state.origin, [[-9.0, 0.0]] * 2)

    def test_the_last_stage_goes_on_exploring_at_a_limit(self):
        settings = even(initial_ent_coef=0.5, final_ent_coef=0.1, budget=4.0)
        state = in_stage(1, (-5.0, 0.0), begin=2)
        free, limited = (
            settings.entropy(state._replace(at_limit=jnp.array([at, False])), jnp.float32(1.0), jnp.bool_(False))
            for at in (False, True)
        )
        np.testing.assert_allclose([free, limited], [0.0, 0.1], atol=1e-7)


class TestBadInput:
    @pytest.mark.parametrize(("budget", "m"), [(1.0, 2), (4.0, 5)])
    def test_fewer_updates_than_objectives(self, budget, m):
        sentence = rf"^The number of updates is {budget:g}, fewer than the {m} objectives, .* train for more steps"
        with pytest.raises(InputError, match=sentence):
            even(budget=budget).check(m)
        even(budget=budget).check(1)
        even(budget=float(m)).check(m)

    def test_in_a_run(self):
        with pytest.raises(InputError, match=r"The number of updates is 1, fewer than the 2 objectives"):
            lexrl.train(lexrl.LPPO(), lexrl.CartSafe(), "min cost > max reward", seeds=1, total_timesteps=1000)

    @pytest.mark.parametrize(
        ("given", "expected"), [(100, 100.0), ("1e3", 1000.0), ("50%", OfRun(0.5)), (OfRun(), OfRun(1.0))]
    )
    def test_a_budget_may_be_text(self, given, expected):
        assert Stages(budget=given).budget == expected

    @pytest.mark.parametrize("text", ["long", "-3", "50 % of it", ""])
    def test_text_that_cannot_be_read(self, text):
        with pytest.raises(InputError, match=rf"^The length '{text}' cannot be read; write a number"):
            Stages(budget=text)

    def test_a_budget_that_is_not_known_yet(self):
        state = Stages().init(2, N)
        with pytest.raises(InputError, match=r"known only in training; give the number of updates, as in"):
            Stages().fraction(state, jnp.int32(1))

    @pytest.mark.parametrize(
        "name",
        [
            "preview",
            "initial_ent_coef",
            "final_ent_coef",
            "slack_ent_coef",
            "initial_rate",
            "final_rate",
            "critic_initial_rate",
            "critic_final_rate",
        ],
    )
    def test_negative_numbers(self, name):
        with pytest.raises(InputError, match=rf"^The {name} is -1; it must be 0 or more"):
            Stages(**{name: -1.0})


def test_units_do_not_matter():
    """Returns times a power of 2, thresholds and tolerances with them: the same judgement, bit for bit."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, N, 3)) + rng.normal(size=(40, 1, 3))
    scale = 2.0 ** np.array([-20.0, 7.0, 20.0])

    def judged(factor):
        settings, told = even(budget=40.0), []
        state = settings.init(3, N)
        for n, one in enumerate(rows.astype(np.float32), 1):
            state, progress = feed(settings, state, n, one * factor, tolerance=(0.25, 0.0, 0.5) * factor)
            told.append(progress._replace(returns=progress.returns / factor, threshold=progress.threshold / factor))
        return told, state

    (plain, one), (scaled, other) = judged(np.ones(3)), judged(scale)
    jax.tree.map(np.testing.assert_array_equal, plain, scaled)
    np.testing.assert_array_equal(one.threshold * scale, other.threshold)
    assert any(bool(progress.improved) for progress in plain)
    assert max(float(progress.violation.max()) for progress in plain) > 0
    assert stages.NUM_BLOCKS == 16
