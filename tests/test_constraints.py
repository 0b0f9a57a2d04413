"""Limits as people write them: what is read, what is refused and with which words, and what learners make of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lexrl
from lexrl.algorithms import lagrangian
from lexrl.constraints import (
    ChanceConstraint,
    ConvexSet,
    Limit,
    TargetBox,
    as_chance_constraints,
    as_limits,
    as_target_set,
)
from lexrl.order import parse
from lexrl.types import Discrete, EnvSpec, Spec

ENV = EnvSpec(Discrete(2), Discrete(2), ("reward", "cost", "energy"), 9)
SPEC = Spec(*ENV)
NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)


def said(read, given, *parts):
    """One sentence, with all of these parts in their order."""
    with pytest.raises(lexrl.InputError) as error:
        read(given)
    sentence, at = str(error.value), 0
    assert sentence.endswith(".")
    for part in parts:
        assert part in sentence[at:], (part, sentence)
        at = sentence.index(part, at)


class TestLimits:
    @pytest.mark.parametrize(
        ("text", "name", "side", "bound"),
        [
            ("cost <= 10", "cost", -1, 10.0),
            ("reward>=90", "reward", 1, 90.0),
            ("  cost   <=  -2.5 ", "cost", -1, -2.5),
            ("cost <= 1e-3", "cost", -1, 1e-3),
            ("time_at_risk-2 >= +.5", "time_at_risk-2", 1, 0.5),
        ],
    )
    def test_one(self, text, name, side, bound):
        assert as_limits(text) == (Limit(name, side, bound),)

    @pytest.mark.parametrize(
        "several",
        [
            "cost <= 10, energy <= 3",
            ["cost <= 10", "energy <= 3"],
            ("cost <= 10", Limit("energy", -1, 3.0)),
            [Limit("cost", -1, 10.0), "energy <= 3"],
        ],
    )
    def test_several(self, several):
        assert as_limits(several) == (Limit("cost", -1, 10.0), Limit("energy", -1, 3.0))

    def test_both_sides_of_a_signal(self):
        assert len(as_limits("cost >= 3, cost <= 5")) == 2
        assert len(as_limits("cost >= 3, cost <= 3")) == 2

    @pytest.mark.parametrize(
        "text", ["cost >= 5, cost <= 3", "cost <= 3, cost >= 5", "cost <= 3, energy <= 1, cost >= 5"]
    )
    def test_nothing_is_both(self, text):
        said(as_limits, text, "No return satisfies both 'cost >= 5' and 'cost <= 3'", "change one")

    @pytest.mark.parametrize(
        "text",
        ["", " ", "cost", "cost < 10", "cost = 10", "cost <= ten", "<= 10", "cost <= 10 or so", "cost <= 1.2.3",
         "two words <= 3", "cost <= 10 with 0.9", "cost <= nan", "cost <= inf", "10 >= cost <= 3", "cost <= 10,"],
    )  # fmt: skip
    def test_what_cannot_be_read(self, text):
        said(as_limits, text, "cannot be read", "as in 'cost <= 10'")

    @pytest.mark.parametrize("empty", [[], ()])
    def test_none(self, empty):
        said(as_limits, empty, "There is no limit", "'cost <= 10'")
        said(as_chance_constraints, empty, "There is no chance constraint", "'cost <= 10 with 0.95'")

    @pytest.mark.parametrize("other", [10, 3.5, None, {"cost": 10}, [10]])
    def test_something_else(self, other):
        said(as_limits, other, "is no limit", "'cost <= 10'")
        said(as_chance_constraints, other, "is no chance constraint", "'cost <= 10 with 0.95'")

    def test_bounds_are_data(self):
        """A bound is a leaf, so that a new one does not compile again; names and sides are structure."""
        assert jax.tree.leaves(as_limits("cost <= 10, energy >= 3")) == [10.0, 3.0]
        kinds = [jax.tree.structure(as_limits(text)) for text in ("cost <= 1", "cost <= 2", "cost >= 1", "energy <= 1")]
        assert kinds[0] == kinds[1]
        assert kinds[0] not in kinds[2:]

    @given(NAMES, st.sampled_from([-1, 1]), NUMBERS)
    def test_read_back(self, name, side, bound):
        one = Limit(name, side, bound)
        assert as_limits(str(one)) == (one,)


class TestChances:
    @pytest.mark.parametrize("text", ["cost <= 10 with 0.95", " cost<=10   with .95 ", "cost <= 1e1 with 9.5e-1"])
    def test_one(self, text):
        assert as_chance_constraints(text) == (ChanceConstraint(Limit("cost", -1, 10.0), 0.95),)

    def test_several(self):
        found = as_chance_constraints("cost <= 10 with 0.95, reward >= 3 with 0.5")
        assert [str(one) for one in found] == ["cost <= 10 with 0.95", "reward >= 3 with 0.5"]
        assert as_chance_constraints(found) == found

    @pytest.mark.parametrize(
        ("probability", "shown"), [("0", "0"), ("1", "1"), ("95", "95"), ("-0.5", "-0.5"), ("1.01", "1.01")]
    )
    def test_no_probability(self, probability, shown):
        said(as_chance_constraints, f"cost <= 10 with {probability}", f"is {shown};", "between 0 and 1")

    @pytest.mark.parametrize("text", ["cost <= 10", "cost <= 10 with", "with 0.95", "cost <= 10 with 95%", "0.95", ""])
    def test_what_cannot_be_read(self, text):
        said(as_chance_constraints, text, "cannot be read", "write it as in 'cost <= 10")

    @given(NAMES, st.sampled_from([-1, 1]), NUMBERS, st.floats(1e-9, 1 - 1e-9))
    def test_read_back(self, name, side, bound, probability):
        one = ChanceConstraint(Limit(name, side, bound), probability)
        assert as_chance_constraints(str(one)) == (one,)


class TestBoxes:
    def test_read(self):
        box = as_target_set("reward in 90..350,  cost in -.5 .. 10 ")
        assert box == TargetBox(("reward", "cost"), (90.0, -0.5), (350.0, 10.0))
        assert str(box) == "reward in 90..350, cost in -0.5..10"

    @pytest.mark.parametrize("text", ["cost in 0..0", "cost in 1.5..2.5", "cost in -3..-1"])
    def test_edges(self, text):
        assert str(as_target_set(text)) == text

    def test_an_empty_interval(self):
        said(as_target_set, "reward in 1..2, cost in 5..3", "is empty", "'cost'", "above 5 and below 3")

    def test_a_signal_twice(self):
        said(as_target_set, "cost in 0..1, reward in 0..1, cost in 2..3", "names 'cost' twice")

    @pytest.mark.parametrize(
        "text", ["cost", "cost in 3", "cost in 3..", "cost 0..3", "in 0..3", "cost in 0-3", "cost <= 3", "cost in a..b"]
    )
    def test_what_cannot_be_read(self, text):
        said(as_target_set, text, "cannot be read", "NAME in LOW..HIGH")

    @pytest.mark.parametrize("text", ["", "cost in 0..3,", ",cost in 0..3"])
    def test_an_empty_place(self, text):
        said(as_target_set, text, "An empty place in the box", "NAME in LOW..HIGH")

    @pytest.mark.parametrize("other", [3, None, ("cost", 0, 3)])
    def test_something_else(self, other):
        said(as_target_set, other, "is no set of returns", "project")

    def test_other_sets_pass(self):
        class Ball:
            names = ("reward", "cost")

            def project(self, point):
                return point / jnp.maximum(1.0, jnp.linalg.norm(point))

        ball = Ball()
        assert isinstance(ball, ConvexSet)
        assert as_target_set(ball) is ball

    def test_the_nearest_point(self):
        box = as_target_set("reward in 1..2, cost in -1..0")
        for point, nearest in (([0, 0], [1, 0]), ([1.5, -0.5], [1.5, -0.5]), ([9, -9], [2, -1])):
            np.testing.assert_array_equal(box.project(jnp.array(point, jnp.float32)), nearest)

    @given(st.lists(st.tuples(NAMES, NUMBERS, NUMBERS), min_size=1, max_size=4, unique_by=lambda one: one[0]))
    def test_read_back(self, sides):
        names, low, high = zip(*((name, min(a, b), max(a, b)) for name, a, b in sides), strict=True)
        box = TargetBox(names, low, high)
        assert as_target_set(str(box)) == box


class TestWhatAlgorithmsMakeOfThem:
    def test_sides_undo_the_orders_sign(self):
        """Rewards of either direction give back the signal the user wrote the limit about, times the turn."""
        signals = np.array([7.0, 3.0, 2.0], np.float32)  # reward, cost, energy
        for text in ("min cost > max reward > min energy", "max energy > min reward > max cost"):
            order = parse(text)
            rewards = order.apply(signals, ENV.signals)
            rows = lagrangian.constraint_weights(("cost", "reward", "cost"), (-1, 1, 1), order.spec(ENV))
            np.testing.assert_array_equal(rows @ rewards, [-3.0, 7.0, 3.0])
            assert np.count_nonzero(rows) == 3

    def test_without_an_order_nothing_is_turned(self):
        np.testing.assert_array_equal(lagrangian.constraint_weights(("cost",), (-1,), SPEC), [[0, -1, 0]])

    def test_unknown_signals(self):
        said(
            lambda names: lagrangian.constraint_weights(names, (1,), SPEC),
            ("risk",),
            "names 'risk'",
            "'reward', 'cost', 'energy'",
        )

    def test_what_is_asked_for(self):
        """Signed like the rows: both of 'reward at least 90' and 'cost at most 10' are kept by more."""
        np.testing.assert_array_equal(lagrangian.lower_bounds(as_limits("cost <= 10, reward >= 90")), [-10.0, 90.0])

    @pytest.mark.parametrize("order", ["min cost > max reward", "max reward > min cost"])
    def test_aim(self, order):
        spec = parse(order).spec(ENV)
        row = lagrangian.objective_weights("RCPO", ["cost"], spec)
        assert row[spec.objectives.index("reward")] == 1.0
        assert row.sum() == 1.0

    def test_several_to_improve(self):
        weights = lambda names: lagrangian.objective_weights("RCPO", names, SPEC)  # noqa: E731
        said(weights, ["cost"], "RCPO optimizes the one objective", "there is 'reward', 'energy'", "all but one")

    def test_none_to_improve(self):
        names = ["reward", "cost", "energy"]
        weights = lambda names: lagrangian.objective_weights("VaR-AC", names, SPEC)  # noqa: E731
        said(weights, names, "VaR-AC", "there is none", "all but one")
