"""Order expressions: reading and writing them, applying them to signals, and every complaint."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexrl import order as orders
from lexrl import tolerance as tol
from lexrl.errors import InputError
from lexrl.order import Objective, Order, as_order, parse
from lexrl.tolerance import Absolute, Relative, Sum
from lexrl.types import Box, Discrete, EnvSpec, Spec

SIGNALS = ("reward", "cost", "energy")


class TestReading:
    @pytest.mark.parametrize(
        ("text", "objectives"),
        [
            ("max reward", [Objective("reward", 1)]),
            ("min cost > max reward", [Objective("cost", -1), Objective("reward", 1)]),
            ("  min   cost>max reward ", [Objective("cost", -1), Objective("reward", 1)]),
            ("min cost\n  > max reward", [Objective("cost", -1), Objective("reward", 1)]),
            ("min cost ±0.01 > max r", [Objective("cost", -1, Absolute(0.01)), Objective("r", 1)]),
            ("min cost +- 0.01", [Objective("cost", -1, Absolute(0.01))]),
            ("min cost±5%", [Objective("cost", -1, Relative(0.05))]),
            ("max r ± 0.01 + 5%", [Objective("r", 1, Sum((Absolute(0.01), Relative(0.05))))]),
            ("max r +-0.01+5%", [Objective("r", 1, Sum((Absolute(0.01), Relative(0.05))))]),
            ("max a.b_c-d/2", [Objective("a.b_c-d/2", 1)]),
            ("cost <= 10 > max reward", [Objective("cost", -1, None, 10.0), Objective("reward", 1)]),
            ("cost<=10>max reward", [Objective("cost", -1, None, 10.0), Objective("reward", 1)]),
            ("reward >= -2.5e1 > min cost", [Objective("reward", 1, None, -25.0), Objective("cost", -1)]),
            ("min cost > reward>=.5", [Objective("cost", -1), Objective("reward", 1, None, 0.5)]),
            ("cost <= 10 ±5% > max r", [Objective("cost", -1, Relative(0.05), 10.0), Objective("r", 1)]),
            ("cost <= +1 +- 1", [Objective("cost", -1, Absolute(1.0), 1.0)]),
            ("max minimum > min maximum", [Objective("minimum", 1), Objective("maximum", -1)]),
        ],
    )
    def test_text(self, text, objectives):
        assert parse(text) == Order(tuple(objectives))

    def test_an_order_passes_as_it_is(self):
        order = parse("min cost > max reward")
        assert parse(order) is order
        assert as_order(order, SIGNALS) is order

    def test_names_and_signs(self):
        order = parse("min cost ±0.1 > max reward > min energy")
        assert order.names == ("cost", "reward", "energy")
        assert order.signs.tolist() == [-1.0, 1.0, -1.0]
        assert order.signs.dtype == np.float32

    def test_writing(self):
        text = "min collision ±0.01 > max arrived ±5% > min energy ±0.5 + 2% > max speed"
        assert str(parse(text)) == text
        assert str(parse(text.replace("±", "+-"))) == text


# Numbers of few digits, as people write them.
amounts = st.none() | st.integers(0, 9999).map(lambda k: k / 1000)
shares = st.none() | st.integers(0, 999).map(lambda k: (k / 10) / 100)
names = st.text(st.sampled_from("abcxyz_ABC0189.-/:"), min_size=1, max_size=8)


def written(amount, share):
    if amount is None:
        return None if share is None else Relative(share)
    return Absolute(amount) if share is None else Absolute(amount) + Relative(share)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(names, st.sampled_from([1, -1]), amounts, shares, st.none() | st.integers(-999, 999)),
        min_size=1,
        max_size=6,
        unique_by=lambda one: one[0],
    )
)
def test_what_is_written_is_read_back(rows):
    order = Order(
        tuple(
            Objective(name, sign, written(amount, share), None if limit is None else limit / 10)
            for name, sign, amount, share, limit in rows
        )
    )
    assert parse(str(order)) == order
    assert parse(str(order).replace("±", "+-").replace(" > ", ">")) == order


@pytest.mark.parametrize("text", ["min cost ±1000000", "min cost ±0.123456789"])
def test_any_tolerance_is_read_back(text):
    assert parse(str(parse(text))) == parse(text)


class TestApplying:
    VALUES = np.arange(24, dtype=np.float32).reshape(2, 4, 3)  # batch axes 2 x 4, three signals

    def test_columns(self):
        assert parse("min cost > max reward").columns(SIGNALS).tolist() == [1, 0]
        assert parse("max energy").columns(list(SIGNALS)).tolist() == [2]

    @pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
    def test_select_order_and_sign(self, xp):
        order = parse("min energy > max reward")
        assert order.apply(xp.array([1.0, 2.0, 3.0]), SIGNALS).tolist() == [-3.0, 1.0]
        got = order.apply(xp.array(self.VALUES), SIGNALS)
        assert isinstance(got, np.ndarray if xp is np else jnp.ndarray)
        assert got.shape == (2, 4, 2)
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got[..., 0], -self.VALUES[..., 2])
        np.testing.assert_array_equal(got[..., 1], self.VALUES[..., 0])

    def test_precision_is_kept(self):
        assert parse("min cost").apply(np.array([0.0, 1 / 3, 0.0]), SIGNALS).tolist() == [-1 / 3]

    @pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
    def test_back_to_the_users_signs(self, xp):
        order = parse("min cost > max reward")
        rewards = order.apply(xp.array(self.VALUES), SIGNALS)
        np.testing.assert_array_equal(order.unsigned(rewards), self.VALUES[..., [1, 0]])

    @pytest.mark.parametrize(
        ("text", "gamma", "discounts"),
        [
            ("min cost > max reward", 0.9, (0.9, 0.9, 0.9)),
            ("min cost > max reward", (0.5, 0.9), (0.9, 0.5, 0.5)),
            ("max speed > min cost", (0.5, 0.9), (0.5, 0.9, 0.5)),
            ("max speed", (1.0,), (1.0, 1.0, 1.0)),
        ],
    )
    def test_discounts_of_the_signals(self, text, gamma, discounts):
        """Nobody looks at a signal outside the order; it has the first objective's."""
        assert parse(text).discounts(gamma, ("reward", "cost", "speed")) == discounts

    def test_spec(self):
        spec = EnvSpec(Box((4,)), Discrete(2), SIGNALS, 500)
        ordered = Spec(Box((4,)), Discrete(2), ("cost", "reward"), 500, (-1, 1))
        assert parse("min cost > max reward").spec(spec) == ordered
        with pytest.raises(InputError, match="'speed'"):
            parse("max speed").spec(spec)


class TestTolerances:
    def test_nothing_written_leaves_the_default(self):
        order = parse("min cost > max reward")
        assert order.tolerances(Absolute(0.5)) == Absolute(0.5)
        assert order.tolerances((Absolute(0.5), Relative(0.1))) == (Absolute(0.5), Relative(0.1))

    def test_what_is_written_goes_first(self):
        order = parse("min cost ±0.01 > max reward > min energy ±5%")
        assert order.tolerances(Absolute(0.5)) == (Absolute(0.01), Absolute(0.5), Relative(0.05))
        default = (Absolute(1.0), Absolute(2.0), Absolute(3.0))
        assert order.tolerances(default) == (Absolute(0.01), Absolute(2.0), Relative(0.05))

    def test_a_written_zero_is_a_tolerance(self):
        assert parse("min cost ±0 > max reward").tolerances(Absolute(0.5)) == (Absolute(0.0), Absolute(0.5))

    @pytest.mark.parametrize("text", ["min cost > max reward > min energy", "min cost ±1 > max reward > min energy"])
    def test_one_for_each_objective(self, text):
        with pytest.raises(InputError, match="3"):
            parse(text).tolerances((Absolute(0.0), Absolute(0.0)))


class TestLimits:
    def test_signed_as_the_objectives_are(self):
        order = parse("cost <= 10 > max energy > reward >= 3")
        assert order.limits().tolist() == [-10.0, np.inf, 3.0]
        assert order.limits().dtype == np.float64
        assert order.limited
        assert not parse("min cost > max reward").limited
        assert order.signs.tolist() == [-1.0, 1.0, 1.0]

    def test_a_limit_is_a_direction(self):
        assert as_order("cost <= 10 > max reward", SIGNALS) == parse("cost <= 10 > max reward")

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            (
                "min cost <= 10 > max r",
                "'min cost <= 10' in the order 'min cost <= 10 > max r' has a direction and a limit; write either "
                "'min cost' or 'cost <= 10'.",
            ),
            (
                "cost <= 10 > cost >= 20 > max r",
                "No return satisfies both 'cost >= 20' and 'cost <= 10'; name 'cost' once.",
            ),
            (
                "cost <= 10 > cost >= 5",
                "The order 'cost <= 10 > cost >= 5' names 'cost' twice; name each objective once.",
            ),
            ("cost <= 1e999", "The limit in 'cost <= 1e999' is infinite; write a finite number."),
        ],
    )
    def test_refused(self, text, sentence):
        with pytest.raises(InputError) as caught:
            parse(text)
        assert str(caught.value) == sentence

    @pytest.mark.parametrize("text", ["cost < 10", "cost <= ten", "cost <=", "<= 10", "10 >= cost", "cost <= nan"])
    def test_unreadable(self, text):
        with pytest.raises(InputError, match="cannot be read"):
            parse(text)


class TestAsOrder:
    def test_checked_against_the_signals(self):
        assert as_order("min cost > max reward", SIGNALS) == parse("min cost > max reward")

    def test_a_single_signal_needs_no_order(self):
        assert as_order(None, ("reward",)) == parse("max reward")

    @pytest.mark.parametrize("text", [None, "", "  "])
    def test_several_signals_do(self, text):
        with pytest.raises(InputError) as caught:
            as_order(text, SIGNALS)
        assert str(caught.value) == (
            "An order is needed, as in 'min cost > max reward': say which of the signals 'reward', 'cost', 'energy' "
            "matter, the most important first."
        )

    @pytest.mark.parametrize("order", ["min cost > max rewrad", parse("max rewrad")])
    def test_unknown_name_lists_the_names(self, order):
        with pytest.raises(InputError) as caught:
            as_order(order, SIGNALS)
        assert str(caught.value) == (
            "The order names 'rewrad', but the signals here are 'reward', 'cost', 'energy': pick among those."
        )

    @pytest.mark.parametrize("text", ["cost > max reward", "max reward > cost", "max reward > cost ±5%"])
    def test_missing_direction(self, text):
        with pytest.raises(
            InputError, match="does not say which way 'cost' is good: 'min cost' or 'max cost'"
        ) as caught:
            as_order(text, SIGNALS)
        assert repr(text) in str(caught.value)

    @pytest.mark.parametrize(
        "text", ["cost > max reward", "cots > max reward", "cost±5%", "min cost > max", "min cost > max cost"]
    )
    def test_every_complaint_lists_the_names(self, text):
        with pytest.raises(InputError) as caught:
            as_order(text, SIGNALS)
        assert all(repr(name) in str(caught.value) for name in SIGNALS)

    def test_a_signal_may_be_called_min(self):
        assert as_order("min min > max b", ("min", "b")) == parse("min min > max b")


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("", "The order is empty; write objectives by importance, as in 'min cost > max reward'."),
            (" \n", "The order is empty; write objectives by importance, as in 'min cost > max reward'."),
            ("min a > max a", "The order 'min a > max a' names 'a' twice; name each objective once."),
            (
                "min b > min a > max b > max a",
                "The order 'min b > min a > max b > max a' names 'a', 'b' twice; name each objective once.",
            ),
            (
                "cost > max reward",
                "'cost' in the order 'cost > max reward' cannot be read; write 'min NAME', 'max NAME' or a limit "
                "as in 'NAME <= 10', with a tolerance as in '±0.01' or '±5%'.",
            ),
            (
                "min cost >",
                "An empty place in the order 'min cost >' cannot be read; write 'min NAME', 'max NAME' or a limit "
                "as in 'NAME <= 10', with a tolerance as in '±0.01' or '±5%'.",
            ),
            (
                "min a > > max b",
                "An empty place in the order 'min a > > max b' cannot be read; write 'min NAME', 'max NAME' or a limit "
                "as in 'NAME <= 10', with a tolerance as in '±0.01' or '±5%'.",
            ),
            ("min a ±x", "The tolerance 'x' cannot be read; write a number, '5%' or '0.01 + 5%'."),
            ("min a ±", "The tolerance '' cannot be read; write a number, '5%' or '0.01 + 5%'."),
            ("min a ±-1", "The absolute tolerance is -1; it must be 0 or more."),
            ("min a ±-1%", "The relative tolerance is -0.01; it must be 0 or more."),
        ],
    )
    def test_sentence(self, text, sentence):
        with pytest.raises(InputError) as caught:
            parse(text)
        assert str(caught.value) == sentence

    @pytest.mark.parametrize(
        "text", ["> max a", "max", "maximise a", "Max a", "max two words", "max a, min b", "min a 5%"]
    )
    def test_unreadable(self, text):
        with pytest.raises(InputError, match="cannot be read; write 'min NAME', 'max NAME' or a limit"):
            parse(text)

    def test_unknown_names_in_columns(self):
        with pytest.raises(InputError, match="names 'x', but the signals here are 'a', 'b'"):
            parse("max a > min x").columns(["a", "b"])


def test_module_reads_what_the_tolerances_write():
    """The two grammars are one: a sum of tolerances stands in an order as it stands alone."""
    for text in ("0.01", "5%", "0.01 + 5%"):
        assert orders.parse(f"max a ±{text}").objectives[0].tolerance == tol.parse(text)
