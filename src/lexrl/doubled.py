"""Numbers of twice the usual precision: unevaluated sums `hi + lo` of two doubles, about 32 digits.

Sums and products of doubles have errors that are doubles themselves (Knuth 1969, Dekker 1971); keeping them is all that
is done. Plain NumPy, so it is the same on every machine, and multiplying by a power of two changes no digit.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from lexrl.lex import Arr

PRECISION = 2.0**-98
"""Relative error of an expectation, whatever its number of terms; `2^-104` for a single operation."""
_SPLITTER = 2.0**27 + 1
_CHUNK = 2**17
"""Terms that are summed at a time: few enough to stay in the processor's cache."""


class Doubled(NamedTuple):
    """An array of numbers `hi + lo`, where `lo` is at most half a unit in the last place of `hi`."""

    hi: Arr
    lo: Arr

    def __getitem__(self, index: Any) -> "Doubled":  # type: ignore[override]  # arrays, not fields
        return Doubled(self.hi[index], self.lo[index])

    def __neg__(self) -> "Doubled":
        return Doubled(-self.hi, -self.lo)


def exactly(values: Arr) -> Doubled:
    """Doubles as they are."""
    return Doubled(np.asarray(values, float), np.zeros_like(values, float))


def add(a: Doubled, b: Doubled) -> Doubled:
    """`a + b`."""
    high, low = _two_sum(a.hi, b.hi)
    more, least = _two_sum(a.lo, b.lo)
    high, low = _fast_two_sum(high, low + more)
    return Doubled(*_fast_two_sum(high, low + least))


def subtract(a: Doubled, b: Doubled) -> Doubled:
    """`a - b`."""
    return add(a, -b)


def times(a: Doubled, factor: Arr) -> Doubled:
    """`a * factor`, with a plain double."""
    high, low = _two_product(a.hi, np.asarray(factor, float))
    return Doubled(*_fast_two_sum(high, low + a.lo * factor))


def product(a: Doubled, b: Doubled) -> Doubled:
    """`a * b`."""
    high, low = _two_product(a.hi, b.hi)
    return Doubled(*_fast_two_sum(high, low + (a.hi * b.lo + a.lo * b.hi)))


def quotient(a: Doubled, b: Doubled) -> Doubled:
    """`a / b`."""
    high = a.hi / b.hi
    rest = subtract(a, times(b, high))
    return Doubled(*_fast_two_sum(high, rest.hi / b.hi))


def total(terms: Doubled) -> Doubled:
    """The sum along the last axis, pair by pair."""
    while terms.hi.shape[-1] > 1:
        half = terms.hi.shape[-1] // 2
        odd = terms[..., 2 * half :]
        terms = add(terms[..., :half], terms[..., half : 2 * half])
        terms = Doubled(*(np.concatenate(pair, axis=-1) for pair in zip(terms, odd, strict=True)))
    return terms[..., 0] if terms.hi.shape[-1] else exactly(np.zeros(terms.hi.shape[:-1]))


def expectation(matrix: Any, values: Doubled, rows: Int[np.ndarray, " n"] | None = None) -> Doubled:
    """`matrix @ values` for a CSR matrix, or for some of its rows."""
    rows = np.arange(matrix.shape[0]) if rows is None else rows
    starts, lengths = matrix.indptr[rows], matrix.indptr[rows + 1] - matrix.indptr[rows]
    high, low = np.zeros(len(rows)), np.zeros(len(rows))
    for part in _chunks(lengths):
        weights, where = _rectangle(matrix, starts[part], lengths[part])
        high[part], low[part] = total(times(values[matrix.indices[where]], weights))
    return Doubled(high, low)


def mean(matrix: Any, values: Doubled, rows: Int[np.ndarray, " n"] | None = None) -> Doubled:
    """`matrix @ values` with rows that sum to 1 to the last digit: what rounding left over in the sums is divided out;
    rows without an entry give 0."""
    rows = np.arange(matrix.shape[0]) if rows is None else rows
    return per_weight(expectation(matrix, values, rows), weights_of(matrix, rows))


def mean_of_entries(matrix: Any, entries: Float[np.ndarray, " nonzeros"], rows: Int[np.ndarray, " n"]) -> Doubled:
    """`sum_k matrix[row, k] * entries[row, k]`, likewise."""
    return per_weight(row_sums(matrix, entries, rows), weights_of(matrix, rows))


def weights_of(matrix: Any, rows: Int[np.ndarray, " n"]) -> Doubled:
    """What the entries of some rows sum to: 1, but for rounding."""
    return row_sums(matrix, np.ones(matrix.nnz), rows)


def per_weight(sums: Doubled, weights: Doubled) -> Doubled:
    """Sums over rows as means; 0 for rows without an entry."""
    if ((weights.hi == 1) & (weights.lo == 0)).all():
        return sums
    return quotient(sums, Doubled(np.where(weights.hi == 0, 1.0, weights.hi), weights.lo))


def row_sums(matrix: Any, entries: Float[np.ndarray, " nonzeros"], rows: Int[np.ndarray, " n"]) -> Doubled:
    """`sum_k matrix[row, k] * entries[row, k]` for some rows, with the entries in the order of the stored ones."""
    starts, lengths = matrix.indptr[rows], matrix.indptr[rows + 1] - matrix.indptr[rows]
    high, low = np.zeros(len(rows)), np.zeros(len(rows))
    for part in _chunks(lengths):
        weights, where = _rectangle(matrix, starts[part], lengths[part])
        high[part], low[part] = total(times(exactly(entries[where]), weights))
    return Doubled(high, low)


def as_fraction(value: Doubled) -> Fraction:
    """A single number, exactly."""
    return Fraction(float(value.hi)) + Fraction(float(value.lo))


def from_fraction(value: Fraction) -> Doubled:
    """The nearest pair of doubles."""
    high = float(value)
    return Doubled(np.float64(high), np.float64(float(value - Fraction(high))))


def _chunks(lengths: Int[np.ndarray, " n"]) -> Iterator[Int[np.ndarray, " part"]]:
    """Rows of similar length together, few enough at a time; rows without an entry are left out."""
    by_length = np.argsort(lengths, kind="stable")
    at = int(np.searchsorted(lengths[by_length], 1))
    while at < len(by_length):
        window = by_length[at : at + _CHUNK // int(lengths[by_length[at]]) + 1]
        fits = np.searchsorted(np.arange(1, len(window) + 1) * lengths[window], _CHUNK, "right")
        part = window[: max(1, int(fits))]
        at += len(part)
        yield part


def _rectangle(matrix: Any, starts: Any, lengths: Any) -> tuple[Arr, Arr]:
    """Rows filled up with zeros to the same length: the weights, and the places of the stored entries."""
    width = np.arange(int(lengths.max()))
    inside = width < lengths[:, None]
    where = np.where(inside, starts[:, None] + width, 0)
    return np.where(inside, matrix.data[where], 0.0), where


def _two_sum(a: Arr, b: Arr) -> tuple[Arr, Arr]:
    high = a + b
    part = high - a
    return high, (a - (high - part)) + (b - part)


def _fast_two_sum(a: Arr, b: Arr) -> tuple[Arr, Arr]:
    """For `|a| >= |b|`."""
    high = a + b
    return high, b - (high - a)


def _two_product(a: Arr, b: Arr) -> tuple[Arr, Arr]:
    high = a * b
    (a1, a2), (b1, b2) = _split(a), _split(b)
    return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2


def _split(a: Arr) -> tuple[Arr, Arr]:
    big = _SPLITTER * a
    high = big - (big - a)
    return high, a - high
