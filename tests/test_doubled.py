"""Arithmetic with twice the digits, against fractions."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from lexrl import doubled
from lexrl.doubled import Doubled

RNG = np.random.default_rng(0)


def numbers(n):
    """Numbers of very different sizes, with digits beyond those of a double."""
    high = RNG.normal(size=n) * 2.0 ** RNG.integers(-40, 40, n)
    return doubled.add(doubled.exactly(high), doubled.exactly(high * RNG.normal(size=n) * 2.0**-54))


def fractions(values):
    return [doubled.as_fraction(values[k]) for k in range(len(values.hi))]


@pytest.mark.parametrize("name", ["add", "subtract", "product"])
def test_operations(name):
    a, b = numbers(200), numbers(200)
    exact = {"add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "product": lambda x, y: x * y}[name]
    found = getattr(doubled, name)(a, b)
    for x, y, z in zip(fractions(a), fractions(b), fractions(found), strict=True):
        assert abs(z - exact(x, y)) <= Fraction(2.0**-100) * (abs(x) + abs(y) if name != "product" else abs(x * y))


def test_an_expectation_keeps_its_digits_where_it_cancels():
    matrix = sp.csr_array(sp.random(30, 50, density=0.4, random_state=0))
    matrix = sp.csr_array(sp.vstack([matrix, sp.csr_array((2, 50))]))  # two rows without an entry
    values = numbers(50)
    exact = fractions(values)
    for rows in (None, np.array([31, 3, 3, 17])):
        found = doubled.expectation(matrix, values, rows)
        for k, row in enumerate(range(32) if rows is None else rows):
            entries = matrix[[row]].tocoo()
            terms = [Fraction(p) * exact[j] for p, j in zip(entries.data.tolist(), entries.coords[1], strict=True)]
            error = abs(doubled.as_fraction(found[k]) - sum(terms))
            assert error <= Fraction(doubled.PRECISION) * sum(map(abs, terms))


def test_sums_of_stored_entries():
    matrix = sp.csr_array(sp.random(20, 20, density=0.3, random_state=1))
    paid = RNG.normal(size=matrix.nnz)
    found = doubled.row_sums(matrix, paid, np.arange(20))
    for row in range(20):
        part = slice(matrix.indptr[row], matrix.indptr[row + 1])
        exact = sum(Fraction(p) * Fraction(r) for p, r in zip(matrix.data[part], paid[part], strict=True))
        assert abs(doubled.as_fraction(found[row]) - exact) < Fraction(1, 2**95)


def test_powers_of_two_change_no_digit():
    matrix, values = sp.csr_array(sp.random(20, 20, density=0.5, random_state=2)), numbers(20)
    once = doubled.expectation(matrix, values)
    scaled = doubled.expectation(matrix, Doubled(values.hi * 2.0**30, values.lo * 2.0**30))
    np.testing.assert_array_equal(once.hi * 2.0**30, scaled.hi)
    np.testing.assert_array_equal(once.lo * 2.0**30, scaled.lo)


def test_fractions_there_and_back():
    third = doubled.from_fraction(Fraction(1, 3))
    assert abs(doubled.as_fraction(third) - Fraction(1, 3)) < Fraction(1, 2**106)
