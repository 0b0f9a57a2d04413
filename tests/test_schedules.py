"""Schedules: rates by hand, the same from Python and from JAX, and what the theorems may rely on."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexrl.errors import InputError
from lexrl.schedules import Constant, Linear, OfRun, Power, as_schedule, glie, vanishes_against

ALL = [
    Constant(0.05),
    Power(0.7),
    Power(0.5, scale=3.0),
    Power(0.0, scale=0.25),
    glie(100.0),
    Linear(1.0, 0.05, 100.0),
    Linear(0.0, 2.0, 7.0),
]


class TestRates:
    @pytest.mark.parametrize(
        ("schedule", "rates"),
        [
            (Constant(0.3), {1: 0.3, 1000: 0.3}),
            (Power(0.5), {1: 1.0, 4: 0.5, 16: 0.25}),
            (Power(1.0, scale=3.0), {1: 1.0, 3: 1.0, 4: 0.75, 30: 0.1}),  # never above 1
            (Power(0.0, scale=0.2), {1: 0.2, 9: 0.2}),
            (glie(), {1: 1.0, 2: 0.5, 10: 0.1}),
            (glie(10.0), {1: 1.0, 10: 1.0, 20: 0.5}),
            (Linear(1.0, 0.2, 4.0), {1: 0.8, 2: 0.6, 4: 0.2, 5: 0.2, 1000: 0.2}),  # 1 - 0.8 n / 4
            (Linear(0.0, 1.0, 10.0), {1: 0.1, 5: 0.5, 10: 1.0, 11: 1.0}),
        ],
        ids=str,
    )
    def test_by_hand(self, schedule, rates):
        for n, rate in rates.items():
            assert schedule(n) == pytest.approx(rate)
            assert float(schedule(jnp.array(n))) == pytest.approx(rate, rel=1e-6)

    rate = staticmethod(jax.jit(lambda schedule, n: schedule(n)))

    @settings(max_examples=50, deadline=None)
    @given(st.sampled_from(ALL), st.integers(1, 10**6))
    def test_python_and_jax_agree(self, schedule, n):
        assert float(self.rate(schedule, n)) == pytest.approx(schedule(n), rel=1e-5)

    @pytest.mark.parametrize("schedule", ALL, ids=str)
    def test_many_counts_at_once(self, schedule):
        counts = np.array([[1, 2, 3], [10, 100, 1000]])
        got = np.broadcast_to(schedule(jnp.array(counts)), counts.shape)
        np.testing.assert_allclose(got, [[schedule(int(n)) for n in row] for row in counts], rtol=1e-5)

    def test_new_numbers_do_not_compile_again(self):
        rate = jax.jit(lambda schedule, n: schedule(n))
        values = [float(rate(schedule, n)) for schedule in (Power(0.6), Power(0.7, 2.0), glie(5.0)) for n in (1, 50)]
        assert rate._cache_size() == 1
        assert len(set(values)) > 3
        assert jax.tree_util.tree_leaves(Linear(1.0, 0.05, 100.0)) == [1.0, 0.05, 100.0]

    def test_a_line_of_no_length_is_its_end(self):
        assert Linear(1.0, 0.25, 0.0)(1) == 0.25

    def test_a_line_of_no_length_is_its_end_in_jax(self):
        assert float(Linear(1.0, 0.25, 0.0)(jnp.array(1))) == 0.25


class TestVerdicts:
    @pytest.mark.parametrize(
        ("schedule", "robbins_monro", "vanishes"),
        [
            (Constant(0.01), False, False),  # the sum of squares diverges
            (Constant(0.0), False, True),  # the sum does not diverge
            (Power(1.0), True, True),
            (Power(0.51), True, True),
            (Power(0.5), False, True),  # the sum of squares is that of 1/n
            (Power(1.01), False, True),  # the sum converges
            (Power(0.0), False, False),
            (Power(0.7, scale=100.0), True, True),
            (Power(0.7, scale=0.0), False, True),
            (Power(0.0, scale=0.0), False, True),
            (glie(3.0), True, True),
            (Linear(1.0, 0.0, 10.0), False, True),  # 0 from the tenth use on
            (Linear(1.0, 0.05, 10.0), False, False),
            (Linear(0.0, 1.0, 10.0), False, False),
        ],
        ids=str,
    )
    def test_by_hand(self, schedule, robbins_monro, vanishes):
        assert schedule.robbins_monro() is robbins_monro
        assert schedule.vanishes() is vanishes


class TestReading:
    @pytest.mark.parametrize(
        ("text", "schedule"),
        [
            ("0.01", Constant(0.01)),
            (" 1e-3 ", Constant(0.001)),
            ("n^-0.7", Power(0.7)),
            ("2 n^-0.7", Power(0.7, 2.0)),
            ("2*n^-0.7", Power(0.7, 2.0)),
            ("n ^ - 1", Power(1.0)),
            ("100/n", Power(1.0, 100.0)),
            ("1e2 / n", Power(1.0, 100.0)),
            ("1 to 0.05 in 1e5", Linear(1.0, 0.05, 1e5)),
            ("0.005 to 0.0001", Linear(0.005, 0.0001, OfRun(1.0))),
            ("1 to 0.05 in 20%", Linear(1.0, 0.05, OfRun(0.2))),
            ("1 to 0.05 in 12.5 %", Linear(1.0, 0.05, OfRun(0.125))),
        ],
    )
    def test_text(self, text, schedule):
        assert as_schedule(text) == schedule

    @pytest.mark.parametrize("schedule", [*ALL, Linear(1.0, 0.1), Linear(1.0, 0.1, OfRun(0.3))], ids=str)
    def test_what_is_written_is_read_back(self, schedule):
        assert as_schedule(str(schedule)) == schedule

    def test_values(self):
        assert as_schedule(0.1) == Constant(0.1)
        assert as_schedule(Power(0.7)) == Power(0.7)

    @pytest.mark.parametrize(
        "text", ["", "fast", "-0.1", "n^0.7", "1/m", "1 to", "1 to 0 in", "1 to 0 in %", "1 in 9", "1 2"]
    )
    def test_unreadable(self, text):
        with pytest.raises(
            InputError, match=rf"^The schedule {re.escape(repr(text))} cannot be read; write a number, .n\^-0.7"
        ):
            as_schedule(text)

    @pytest.mark.parametrize("text", ["1.2.3", "./n", "n^-1..5"])
    def test_too_many_dots(self, text):
        with pytest.raises(InputError, match="cannot be read"):
            as_schedule(text)

    def test_whole_numbers(self):
        assert isinstance(as_schedule(1).value, float)

    def test_no_digits_are_lost(self):
        assert as_schedule(str(Constant(0.123456789))) == Constant(0.123456789)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Power(-0.5), "The exponent of a schedule n^-p is -0.5; it must be 0 or more."),
        (lambda: Power(float("nan")), "The exponent of a schedule n^-p is nan; it must be 0 or more."),
        (lambda: Power(0.5, -1.0), "The scale of a schedule is -1; it must be 0 or more."),
        (lambda: glie(-1.0), "The scale of a schedule is -1; it must be 0 or more."),
        (lambda: Linear(1.0, 0.0, -5.0), "The length of a linear schedule is -5; it must be 0 or more."),
    ],
)
def test_refused(make, sentence):
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value) == sentence


class TestDecay:
    @pytest.mark.parametrize(
        ("schedule", "exponent"),
        [
            (Constant(0.1), 0.0),
            (Constant(0.0), math.inf),
            (Power(0.7), 0.7),
            (Power(0.7, scale=100.0), 0.7),
            (Power(0.0, scale=0.5), 0.0),
            (Power(0.7, scale=0.0), math.inf),
            (glie(), 1.0),
            (Linear(1.0, 0.05, 10.0), 0.0),
            (Linear(1.0, 0.0, 10.0), math.inf),
        ],
        ids=str,
    )
    def test_by_hand(self, schedule, exponent):
        assert schedule.decay() == exponent

    @pytest.mark.parametrize("schedule", [*ALL, Constant(0.0), Linear(1.0, 0.0, 5.0)], ids=str)
    def test_it_is_what_the_rate_does(self, schedule):
        """From n to 4 n, far out, the rate falls by 4^-p."""
        assert (schedule.decay() > 0) == schedule.vanishes()
        if schedule.decay() < math.inf:
            assert schedule(4 * 10**6) / schedule(10**6) == pytest.approx(4 ** -schedule.decay())

    @pytest.mark.parametrize(
        ("a", "b", "verdict"),
        [
            (Power(0.7), Power(0.6), True),
            (Power(0.7, 9.0), Power(0.6, 0.1), True),  # only exponents count
            (Power(0.6), Power(0.6), False),
            (Power(0.6), Power(0.7), False),
            (Power(0.1 + 0.2), Power(0.3), False),  # the same but for rounding
            (Power(0.1), Constant(1.0), True),
            (Constant(0.1), Constant(1.0), False),
            (Constant(0.0), Constant(1.0), True),
            (Constant(0.0), Constant(0.0), False),
            (Constant(1.0), Constant(0.0), False),
            (Linear(1.0, 0.0, 10.0), Power(3.0), True),
        ],
    )
    def test_one_against_another(self, a, b, verdict):
        assert vanishes_against(a, b) is verdict


class TestFractions:
    def test_the_default_is_the_whole_run(self):
        assert Linear(1.0, 0.1) == as_schedule("1 to 0.1") == Linear(1.0, 0.1, OfRun(1.0))

    @pytest.mark.parametrize("n", [1, jnp.array(1)])
    def test_it_has_no_values_before_the_run_is_known(self, n):
        with pytest.raises(InputError, match=r"^The schedule '1 to 0.1 in 20%' lasts for a fraction of a run"):
            as_schedule("1 to 0.1 in 20%")(n)

    @pytest.mark.parametrize("fraction", [0.0, -0.1, 1.01, math.nan])
    def test_out_of_range(self, fraction):
        with pytest.raises(InputError, match=r"^The fraction of the run is .*; it must be above 0 and at most 1"):
            OfRun(fraction)

    def test_what_the_theorems_need_is_known(self):
        assert Linear(1.0, 0.0).vanishes()
        assert Linear(1.0, 0.1).decay() == 0
        assert Linear(0.1, 0.4).largest() == 0.4
