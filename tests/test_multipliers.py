"""Multipliers and weights, with numbers worked out by hand."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from lexrl.errors import InputError
from lexrl.multipliers import Multipliers, State
from lexrl.stages import Progress

SETTINGS = Multipliers(initial_multiplier=2.0, step_size=3.0, decay=8.0, max_multiplier=100.0)


def progress(
    stage=2, fraction=0.5, violation=(0.0, 0.0, 0.0), renewed=0.2, time=0.05, ended=False, at_limit=(False,) * 3
):
    flags = {"improved": jnp.bool_(False), "ended": jnp.bool_(ended), "found": jnp.bool_(True)}
    return Progress(
        stage=jnp.int32(stage),
        fraction=jnp.float32(fraction),
        violation=jnp.array(violation),
        at_limit=jnp.array(at_limit),
        renewed=jnp.float32(renewed),
        time=jnp.float32(time),
        block=jnp.int32(0),
        block_ended=jnp.bool_(False),
        slack=jnp.zeros(len(violation), bool),
        returns=jnp.zeros(len(violation)),
        threshold=jnp.zeros(len(violation)),
        **flags,
    )


def moved(log=(0.0, 1.0, 0.0), **where):
    return np.asarray(after(log, **where).log)


def after(log=(0.0, 1.0, 0.0), **where):
    return SETTINGS.update(State(jnp.array(log), jnp.zeros((17, 3)), jnp.zeros(3)), progress(**where), jnp.ones(3))


class TestMoves:
    def test_it_rises_by_the_violation_as_the_evidence_is_renewed(self):
        """3 x 0.5 x 0.2, and 3 x 1 x 0.2."""
        np.testing.assert_allclose(moved(violation=(0.5, 1.0, 0.0)), [0.3, 1.6, 0.0], rtol=1e-6)

    def test_it_falls_with_time_while_nothing_is_violated(self):
        """8 x 0.05, whether evidence came in or not."""
        for renewed in (0.0, 0.2):
            np.testing.assert_allclose(moved(renewed=renewed), [-0.4, 0.6, 0.0], rtol=1e-6)

    def test_one_rises_while_the_other_falls(self):
        np.testing.assert_allclose(moved(violation=(0.0, 0.5, 0.0)), [-0.4, 1.3, 0.0], rtol=1e-6)

    @pytest.mark.parametrize("fraction", [0.75, 0.9, 1.0])
    def test_it_does_not_fall_in_the_last_quarter(self, fraction):
        np.testing.assert_array_equal(moved(fraction=fraction), [0.0, 1.0, 0.0])
        np.testing.assert_allclose(moved(fraction=fraction, violation=(1.0, 0.0, 0.0)), [0.6, 1.0, 0.0], rtol=1e-6)

    def test_unused_slack_lowers_it_faster_and_to_the_end(self):
        np.testing.assert_allclose(moved(violation=(-1.0, -0.5, 0.0)), [-0.6, 0.6, 0.0], rtol=1e-6)
        np.testing.assert_allclose(moved(violation=(-1.0, -0.5, 0.0), fraction=0.8), [-0.6, 0.7, 0.0], rtol=1e-6)

    def test_it_stops_at_the_largest(self):
        top = math.log(100.0)
        found = moved(log=(top - 0.1, 0.0, 0.0), violation=(1.0, 0.0, 0.0))
        np.testing.assert_allclose(found[0], top, rtol=1e-6)
        np.testing.assert_allclose(moved(log=(top, 0.0, 0.0))[0], top - 0.4, rtol=1e-6)  # and comes down again

    def test_an_objective_whose_stage_ends_gets_its_first(self):
        np.testing.assert_allclose(
            moved(log=(0.5, 9.0, 9.0), stage=1, fraction=0.9, ended=True), [0.5, math.log(2.0), 0.0], rtol=1e-6
        )

    def test_those_after_the_stage_have_none(self):
        np.testing.assert_array_equal(moved(log=(3.0, 3.0, 3.0), stage=0), [0.0, 0.0, 0.0])

    def test_how_many_updates_a_stage_has_does_not_matter(self):
        """Falling by 1/10 of a stage ten times, or by 1/40 forty times."""
        ends = []
        for count in (10, 40):
            state = SETTINGS.init(3)
            for i in range(count):
                state = SETTINGS.update(state, progress(fraction=i / count, time=1 / count, renewed=0.0), jnp.ones(3))
            ends.append(np.asarray(state.log))
        np.testing.assert_allclose(ends[0], ends[1], atol=0.41)  # a step of the coarser one may cross the quarter
        np.testing.assert_allclose(ends[1], [-6.0, -6.0, 0.0], rtol=1e-5)


class TestAtALimit:
    LIMITED = (True, False, False)

    def test_a_quarter_of_the_step_in_either_direction(self):
        """3 x 0.25 x 0.2 x violation, and nothing decays."""
        for violation in (0.5, -0.5, 0.0):
            found = moved(violation=(violation, 0.0, 0.0), at_limit=self.LIMITED)
            np.testing.assert_allclose(found, [0.15 * violation, 0.6, 0.0], rtol=1e-6, atol=1e-7)

    def test_it_leads_by_the_violation(self):
        state = after(violation=(0.5, 0.5, 0.0), at_limit=self.LIMITED)
        np.testing.assert_allclose(state.lead, [5.0, 0.0, 0.0])
        weights = SETTINGS.weights(state, jnp.int32(2), jnp.float32(0.0))
        np.testing.assert_allclose(weights, [math.exp(0.075 + 5.0), math.exp(1.3), 1.0], rtol=1e-5)
        np.testing.assert_allclose(
            SETTINGS.metrics(state, jnp.int32(2), weights)["multiplier"][0], math.exp(5.075), rtol=1e-5
        )

    def test_it_does_not_fall_out_of_reach(self):
        found = moved(log=(math.log(0.01), math.log(0.01), 0.0), violation=(-1.0, -1.0, 0.0), at_limit=self.LIMITED)
        np.testing.assert_allclose(found[:2], [math.log(0.01), math.log(0.01) - 0.6], rtol=1e-5)


class TestWeights:
    @pytest.mark.parametrize(
        ("stage", "expected"),
        [(0, [1.0, 0.5, 0.25, 0.125]), (1, [3.0, 1.0, 0.5, 0.25]), (3, [3.0, 0.5, 4.0, 1.0])],
    )
    def test_multipliers_before_previews_after(self, stage, expected):
        state = State(jnp.log(jnp.array([3.0, 0.5, 4.0, 7.0])), jnp.zeros((17, 4)), jnp.zeros(4))
        np.testing.assert_allclose(SETTINGS.weights(state, jnp.int32(stage), jnp.float32(0.5)), expected, rtol=1e-6)

    def test_no_preview(self):
        state = State(jnp.log(jnp.array([3.0, 0.5, 4.0])), jnp.zeros((17, 3)), jnp.zeros(3))
        np.testing.assert_allclose(SETTINGS.weights(state, jnp.int32(1), jnp.float32(0.0)), [3.0, 1.0, 0.0], rtol=1e-6)

    def test_metrics_show_the_multipliers_in_use(self):
        state = State(jnp.log(jnp.array([3.0, 0.5, 4.0])), jnp.zeros((17, 3)), jnp.zeros(3))
        shown = SETTINGS.metrics(state, jnp.int32(1), jnp.array([3.0, 1.0, 0.0]))
        np.testing.assert_allclose(shown["multiplier"], [3.0, 0.0, 0.0], rtol=1e-6)
        np.testing.assert_array_equal(shown["gradient_weight"], [3.0, 1.0, 0.0])


@pytest.mark.parametrize(
    ("name", "value"), [("initial_multiplier", 0.0), ("max_multiplier", -1.0), ("initial_multiplier", float("nan"))]
)
def test_bad_input(name, value):
    with pytest.raises(InputError, match=rf"{name} is {value:g}; it must be above 0"):
        Multipliers(**{name: value})
