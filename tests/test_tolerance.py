"""Tolerances: what each kind keeps, by hand; how they compose; what is refused."""

import math
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexrl import lex, schedules
from lexrl import tolerance as tol
from lexrl.errors import InputError
from lexrl.tolerance import Absolute, Estimates, Evidence, Moment, Relative, Rounding, Sum


def kept(tolerance, *rows, **moment):
    """The actions left by a tolerance, from one row of values for each objective."""
    allowed = lex.admissible(np.array(rows), tol.slack(tolerance, Moment(**moment)))
    return set(np.flatnonzero(allowed).tolist())


class TestAbsolute:
    def test_by_hand(self):
        assert kept(Absolute(0.5), [2.0, 1.5, 1.0]) == {0, 1}  # 2 - 0.5 = 1.5 is the threshold
        assert kept(Absolute(0.0), [2.0, 1.5, 2.0]) == {0, 2}
        assert kept(Absolute(math.inf), [2.0, -1e9, 1.0]) == {0, 1, 2}

    def test_the_sign_of_the_values_does_not_matter(self):
        assert kept(Absolute(0.5), [-2.0, -2.5, -3.0]) == {0, 1}


class TestRelative:
    def test_by_hand(self):
        assert kept(Relative(0.25), [4.0, 3.0, 2.5]) == {0, 1}  # a quarter of 4 is 1: the threshold is 3

    def test_negative_values_use_their_size(self):
        # A quarter of |-4| is 1: the threshold is -5. Without the bars it would be -3, above the best.
        assert kept(Relative(0.25), [-4.0, -5.0, -5.5]) == {0, 1}

    def test_nothing_where_the_best_is_zero(self):
        assert kept(Relative(0.5), [0.0, -0.001]) == {0}

    def test_the_share_is_of_the_best_left(self):
        # Action 2's 100 is out of the race: 10 % of 1, not of 100.
        assert kept((Absolute(0.0), Relative(0.1)), [1.0, 1.0, 0.0], [1.0, 0.5, 100.0]) == {0}


class TestRounding:
    def test_by_hand(self):
        # To halves: 1.3 and 1.25 and 1.7 round to 1.5 (halves go up), 1.2 to 1.0.
        assert kept(Rounding(0.5), [1.3, 1.25, 1.7, 1.2]) == {0, 1, 2}

    def test_halves_go_up_below_zero_too(self):
        # To whole numbers: -0.5 goes up to 0, as -0.25 and 0.25 do; -0.75 goes to -1.
        assert kept(Rounding(1.0), [0.25, -0.25, -0.5, -0.75]) == {0, 1, 2}

    def test_near_in_value_is_not_enough(self):
        # 0.5 rounds to 1 and 0.4375 to 0, though only 1/16 lies between; 1.4375 rounds to 1 and lies far away.
        assert kept(Rounding(1.0), [0.5, 0.4375]) == {0}
        assert kept(Rounding(1.0), [0.5, 1.4375]) == {0, 1}

    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(st.integers(-64, 64).map(lambda k: k / 16), min_size=1, max_size=8),
        st.sampled_from([0.125, 0.25, 0.5, 1.0, 2.0]),
    )
    def test_keeps_exactly_what_rounds_like_the_best(self, values, step):
        nearest = [math.floor(value / step + 0.5) for value in values]  # exact: all are multiples of 1/16
        assert kept(Rounding(step), values) == {a for a, one in enumerate(nearest) if one == max(nearest)}

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.floats(-100, 100), min_size=1, max_size=6), st.floats(0.01, 10))
    def test_any_step(self, values, step):
        """Away from the halves, where floating point is free to fall on either side."""
        scaled = [value / step + 0.5 for value in values]
        if any(abs(one - round(one)) < 1e-6 for one in scaled):
            return
        nearest = [math.floor(one) for one in scaled]
        assert kept(Rounding(step), values) == {a for a, one in enumerate(nearest) if one == max(nearest)}

    def test_step_zero_compares_exactly(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert kept(Rounding(0.0), [1.0, 1.0, 0.999]) == {0, 1}


class TestEvidence:
    VALUES = np.array([[1.0, 0.75, 0.0], [2.0, 1.25, 9.0], [0.0, 1.0, 0.0]])
    ERRORS = np.array([[0.06, 0.08, 4.0], [0.1, 0.1, 8.0], [1.0, 1.0, 1.0]])

    def kept(self, evidence=None, tolerance=0.0, span=(0.0, 0.0, 0.0), scale=(1.0, 1.0, 0.0), errors=ERRORS):
        known = Estimates(errors, np.array(span), np.array(scale))
        walk = lex.levels(self.VALUES, tol.slack(tol.as_tolerance(tolerance), Moment(1, known), evidence or Evidence()))
        return [set(np.flatnonzero(one).tolist()) for one in walk.sets[1:]]

    def test_pairs_by_hand(self):
        # Objective 1: 0 and 1 differ by 0.25, and sqrt(0.06^2 + 0.08^2) = 0.1: three of them. The large error of 2 lets
        # in 2 itself, and nothing else. Objective 2: 9 is far above the others, but its error is 8.
        assert self.kept() == [{0, 1, 2}, {0, 1, 2}, {1}]
        assert self.kept(Evidence(2.0))[0] == {0, 2}

    def test_the_resolution_is_a_share_of_the_range(self):
        sure = np.full((3, 3), 1e-6)
        assert self.kept(errors=sure) == [{0}, {0}, {0}]
        assert self.kept(Evidence(3.0, 0.05), span=(5.0, 0.0, 0.0), errors=sure)[0] == {0, 1}  # 0.25 of 5

    def test_the_scale_multiplies_evidence_and_tolerance(self):
        sure = np.full((3, 3), 1e-6)
        assert self.kept(tolerance=0.5, errors=sure)[0] == {0, 1}
        assert self.kept(tolerance=0.5, errors=sure, scale=(0.4, 1.0, 0.0))[0] == {0}

    def test_the_last_objective_takes_its_best(self):
        assert self.kept(errors=np.full((3, 3), np.inf)) == [{0, 1, 2}, {0, 1, 2}, {1}]
        np.testing.assert_array_equal(lex.gives_way(3), [1, 1, 0])
        np.testing.assert_array_equal(lex.gives_way(1), [0])

    @pytest.mark.parametrize("power", [-20, 20])
    def test_units_do_not_matter(self, power):
        rng, unit = np.random.default_rng(0), np.float32(2.0**power)
        q, errors = rng.normal(size=(200, 2, 5)).astype(np.float32), rng.random((200, 2, 5)).astype(np.float32)

        def allowed(unit):
            known = Estimates(unit * errors, unit * np.ones(2, np.float32), np.array([0.7, 0.0], np.float32))
            return lex.admissible(
                unit * q, tol.slack(Absolute(float(unit) * 0.1), Moment(1, known), Evidence(0.3, 0.1))
            )

        np.testing.assert_array_equal(allowed(np.float32(1.0)), allowed(unit))

    def test_the_exact_set_is_inside_the_learned_one(self):
        """Means of 50 draws of 3 actions that tie: three standard errors separate a pair with probability 0.0027."""
        rng, n = np.random.default_rng(1), 4000
        draws = rng.normal(size=(n, 1, 3, 50))
        q = np.concatenate([draws.mean(axis=-1), np.zeros((n, 1, 3))], axis=1)
        error = np.concatenate([draws.std(axis=-1, ddof=1) / np.sqrt(50), np.ones((n, 1, 3))], axis=1)
        known = Estimates(error, np.zeros(2), lex.gives_way(2))
        sets = lex.levels(q, tol.slack(Absolute(0.0), Moment(1, known), Evidence(3.0, 0.0))).sets
        lost = 1 - sets[:, 1].all(axis=-1).mean()
        assert lost <= 2 * 0.0027 + 4 * np.sqrt(0.0054 / n), "two pairs with the best one, and four standard errors"
        assert lost > 0, "three standard errors are not infinitely many"

    def test_read(self):
        assert tol.as_evidence("none") is None
        assert tol.as_evidence(None) is None
        assert tol.as_evidence("2.5") == Evidence(2.5)
        assert tol.as_evidence(4) == Evidence(4.0)
        with pytest.raises(InputError, match="write a number of standard errors, or 'none'"):
            tol.as_evidence("much")

    def test_of_returns(self):
        found = tol.of_returns((Absolute(0.5), Relative(0.1)), np.array([3.0, -20.0]), 1)
        np.testing.assert_array_equal(found, [0.5, 2.0])


class TestComposition:
    def test_sum_by_hand(self):
        # 0.5 + a quarter of 4 = 1.5: the threshold is 2.5.
        assert kept(Absolute(0.5) + Relative(0.25), [4.0, 2.5, 2.25]) == {0, 1}
        # Where the best is 0 the relative part is nothing and the absolute part still works.
        assert kept(Absolute(0.5) + Relative(0.25), [0.0, -0.5, -0.75]) == {0, 1}

    def test_sum_of_three(self):
        three = Absolute(0.5) + Relative(0.25) + Absolute(1.0)
        assert kept(three, [4.0, 1.5, 1.25]) == {0, 1}  # 0.5 + 1 + 1 = 2.5

    def test_schedule_by_hand(self):
        # n^-0.5 at 1, 4, 16 is 1, 1/2, 1/4.
        shrinking = Absolute(1.0) * schedules.Power(0.5)
        values = [1.0, 0.75, 0.5, 0.0]
        assert kept(shrinking, values, time=1) == {0, 1, 2, 3}
        assert kept(shrinking, values, time=4) == {0, 1, 2}
        assert kept(shrinking, values, time=16) == {0, 1}
        assert kept(shrinking, values) == {0, 1, 2, 3}  # time starts at 1

    def test_schedule_of_a_sum(self):
        # (1 + a half of 4) / 2 = 1.5, while 1 + (a half of 4) / 2 = 2.
        assert kept((Absolute(1.0) + Relative(0.5)) * schedules.Power(0.5), [4.0, 2.5, 2.0], time=4) == {0, 1}
        assert kept(Absolute(1.0) + Relative(0.5) * schedules.Power(0.5), [4.0, 2.0, 1.75], time=4) == {0, 1}

    def test_one_for_each_objective(self):
        # Objective 1 may give up 1, objective 2 nothing; the other way round action 0 is alone at once.
        rows = [2.0, 1.0, 0.0], [0.0, 1.0, 2.0]
        assert kept((Absolute(1.0), Absolute(0.0)), *rows) == {1}
        assert kept((Absolute(0.0), Absolute(1.0)), *rows) == {0}
        assert kept((Absolute(1.0), Absolute(1.0)), *rows) == {0, 1}

    def test_one_for_all_objectives(self):
        assert kept(Absolute(1.0), [2.0, 1.0, 0.0], [0.0, 1.0, 2.0]) == {0, 1}

    def test_text(self):
        assert str(Absolute(0.01)) == "0.01"
        assert str(Relative(0.05)) == "5%"
        assert str(Absolute(0.01) + Relative(0.05)) == "0.01 + 5%"
        assert str(Rounding(0.5)) == "rounded to 0.5"
        assert str(Absolute(1.0) * schedules.Power(0.3)) == "(1) x (n^-0.3)"
        assert str(Evidence()) == "4 standard errors, at least 0.1% of the range"


class TestTraced:
    """The floats are leaves: they can be arguments of a compiled function, one by one or many at once."""

    @pytest.mark.parametrize(
        ("tolerance", "floats"),
        [
            (Absolute(0.1), [0.1]),
            (Relative(0.2), [0.2]),
            (Rounding(0.5), [0.5]),
            (Evidence(2.0, 0.1), [2.0, 0.1]),
            (Absolute(0.1) + Relative(0.2), [0.1, 0.2]),
            (Absolute(0.1) * schedules.Power(0.3, 2.0), [0.1, 0.3, 2.0]),
            ((Absolute(0.1), Relative(0.2)), [0.1, 0.2]),
        ],
        ids=str,
    )
    def test_floats_are_leaves(self, tolerance, floats):
        assert jax.tree_util.tree_leaves(tolerance) == floats
        assert all(isinstance(leaf, float) for leaf in jax.tree_util.tree_leaves(tolerance))

    def test_compiled_once_for_all_values_and_times(self):
        @jax.jit
        def allowed(q, tolerance, time):
            return lex.admissible(q, tol.slack(tolerance, Moment(time)))

        q = np.array([[1.0, 0.75, 0.5, 0.0], [0.0, 1.0, 2.0, 3.0]], np.float32)
        seen = set()
        for amount, scale, time in [(0.0, 0.0, 1), (0.25, 0.0, 1), (0.0, 0.5, 7), (1.0, 0.0, 16), (1.0, 0.25, 1)]:
            tolerance = (Absolute(amount) * schedules.Power(0.5) + Relative(scale), Rounding(0.5))
            got = allowed(jnp.array(q), tolerance, jnp.array(time))
            expected = lex.admissible(q, tol.slack(tolerance, Moment(time)))
            np.testing.assert_array_equal(got, expected)
            seen.add(np.asarray(got).tobytes())
        assert allowed._cache_size() == 1
        assert len(seen) > 1

    @pytest.mark.parametrize("schedule", [schedules.Power(0.5), schedules.Linear(1.0, 0.0, 2.0)], ids=str)
    def test_traced_schedule_at_a_fixed_time(self, schedule):
        levels = jax.jit(lambda q, tolerance: lex.admissible(q, tol.slack(tolerance)))
        assert levels(jnp.array([[1.0, 0.5]]), Absolute(1.0) * schedule).tolist() == [True, True]


class TestReading:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("0.01", Absolute(0.01)),
            (" 3 ", Absolute(3.0)),
            (".5", Absolute(0.5)),
            ("1e-3", Absolute(0.001)),
            ("5%", Relative(0.05)),
            ("5 %", Relative(0.05)),
            ("0", Absolute(0.0)),
            ("0.01 + 5%", Sum((Absolute(0.01), Relative(0.05)))),
            ("5%+0.01", Sum((Relative(0.05), Absolute(0.01)))),
        ],
    )
    def test_text(self, text, value):
        assert tol.parse(text) == value
        assert tol.as_tolerance(text) == value

    @pytest.mark.parametrize("text", ["", "much", "5%%", "%", "0.01 +", "1 2", "5% of best", "nan"])
    def test_unreadable(self, text):
        with pytest.raises(InputError, match=f"{re.escape(repr(text))} cannot be read; write a number, '5%' or"):
            tol.parse(text)

    @pytest.mark.parametrize("text", ["1.2.3", ".", "0.1 + ..5%"])
    def test_too_many_dots(self, text):
        with pytest.raises(InputError, match="cannot be read"):
            tol.parse(text)

    @pytest.mark.parametrize("text", ["1e+6", "1E+06", "1000000", "2e+1%"])
    def test_large_numbers_are_read_back(self, text):
        assert tol.parse(str(tol.parse(text))) == tol.parse(text)

    def test_no_digits_are_lost(self):
        assert tol.parse(str(Absolute(0.123456789))) == Absolute(0.123456789)

    def test_values(self):
        assert tol.as_tolerance(0.5) == Absolute(0.5)
        assert tol.as_tolerance(Relative(0.1)) == Relative(0.1)
        assert tol.as_tolerance([0.5, "5%", Rounding(1.0)]) == (Absolute(0.5), Relative(0.05), Rounding(1.0))
        assert tol.as_tolerance(("0.5",)) == (Absolute(0.5),)
        assert tol.as_tolerance(np.array([0.5, 0.0])) == (Absolute(0.5), Absolute(0.0))

    def test_whole_numbers(self):
        assert jax.tree_util.tree_leaves(tol.as_tolerance([0, 1])) == [0.0, 1.0]
        assert all(isinstance(leaf, float) for leaf in jax.tree_util.tree_leaves(tol.as_tolerance([0, 1])))


class TestRefused:
    @pytest.mark.parametrize(
        ("make", "sentence"),
        [
            (lambda: Absolute(-0.1), "The absolute tolerance is -0.1; it must be 0 or more."),
            (lambda: Absolute(math.nan), "The absolute tolerance is nan; it must be 0 or more."),
            (lambda: Relative(-0.05), "The relative tolerance is -0.05; it must be 0 or more."),
            (lambda: Rounding(-1.0), "The rounding step is -1; it must be 0 or more."),
            (lambda: Evidence(-2.0), "The number of standard errors is -2; it must be 0 or more."),
            (lambda: Evidence(2.0, -1.0), "The resolution is -1; it must be 0 or more."),
            (lambda: tol.parse("-0.1"), "The absolute tolerance is -0.1; it must be 0 or more."),
            (lambda: tol.parse("0.1 + -5%"), "The relative tolerance is -0.05; it must be 0 or more."),
            (lambda: tol.as_tolerance([0.0, -1.0]), "The absolute tolerance is -1; it must be 0 or more."),
        ],
    )
    def test_negative(self, make, sentence):
        with pytest.raises(InputError) as caught:
            make()
        assert str(caught.value) == sentence
