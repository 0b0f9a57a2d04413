"""A small linear program, solved in rational numbers: no tolerance, no rounding.

    max c . w    over w >= 0,  A w = b

by the simplex method with Bland's rule, which never goes round in circles. Meant for a handful of rows. A program that
differs from one that was solved by some more columns is started from the basis of that.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

Vector = list[Fraction]
ZERO, ONE = Fraction(0), Fraction(1)


class Optimum(NamedTuple):
    """A vertex that is optimal, and the dual that proves it."""

    weights: Vector
    duals: Vector
    value: Fraction
    basis: tuple[int, ...]
    """Places of the weights that may be positive."""


def maximize(
    costs: Sequence[Fraction], rows: Sequence[Vector], right: Sequence[Fraction], start: Sequence[int] = ()
) -> Optimum | None:
    """The optimum; None where no `w` satisfies the rows. The program must be bounded. `start` is a basis to begin with,
    if it turns out to be one."""
    count, width = len(rows), len(costs)
    signs = [ONE if b >= 0 else -ONE for b in right]
    table, basis = _from_basis(rows, right, signs, start)
    if any(row[-1] < 0 or (row[-1] > 0 and basis[k] >= width) for k, row in enumerate(table)):
        table, basis = _from_basis(rows, right, signs, ())
        _pivot_all(table, basis, [ZERO] * width + [-ONE] * count, width + count)
    if any(table[k][-1] != 0 for k in range(count) if basis[k] >= width):
        return None
    for k in range(count):  # an artificial variable that is 0 leaves if anything can take its place
        column = next((j for j in range(width) if table[k][j] != 0), None)
        if basis[k] >= width and column is not None:
            _pivot(table, basis, k, column)
    padded = [*costs, *([ZERO] * count)]
    _pivot_all(table, basis, padded, width)
    weights = [ZERO] * (width + count)
    for k, column in enumerate(basis):
        weights[column] = table[k][-1]
    # The columns of the artificial variables hold the inverse of the basis.
    duals = [signs[j] * sum((padded[basis[k]] * table[k][width + j] for k in range(count)), ZERO) for j in range(count)]
    value = sum((c * w for c, w in zip(costs, weights, strict=False)), ZERO)
    return Optimum(weights[:width], duals, value, tuple(column for column in basis if column < width))


def _from_basis(
    rows: Sequence[Vector], right: Sequence[Fraction], signs: Vector, start: Sequence[int]
) -> tuple[list[Vector], list[int]]:
    """The tableau with the columns `start` in its basis, and artificial variables where these do not fill it."""
    count, width = len(rows), len(rows[0])
    table = [
        [*(sign * a for a in row), *(ONE if k == j else ZERO for j in range(count)), sign * b]
        for k, (row, b, sign) in enumerate(zip(rows, right, signs, strict=True))
    ]
    basis = list(range(width, width + count))
    for column in start:
        free = next((k for k in range(count) if basis[k] >= width and table[k][column] != 0), None)
        if free is not None:
            _pivot(table, basis, free, column)
    return table, basis


def _pivot_all(table: list[Vector], basis: list[int], costs: Vector, width: int) -> None:
    """Pivot until no column among the first `width` has a positive reduced cost."""
    while True:
        entering = next((j for j in range(width) if _reduced(table, basis, costs, j) > 0), None)
        if entering is None:
            return
        ratios = [(row[-1] / row[entering], basis[k], k) for k, row in enumerate(table) if row[entering] > 0]
        _pivot(table, basis, min(ratios)[2], entering)


def _reduced(table: list[Vector], basis: list[int], costs: Vector, column: int) -> Fraction:
    if column in basis:
        return ZERO
    return costs[column] - sum((costs[basis[k]] * row[column] for k, row in enumerate(table) if row[column]), ZERO)


def _pivot(table: list[Vector], basis: list[int], row: int, column: int) -> None:
    scale = table[row][column]
    table[row] = [entry / scale for entry in table[row]]
    for k, other in enumerate(table):
        if k != row and other[column] != 0:
            factor = other[column]
            table[k] = [a - factor * b if b else a for a, b in zip(other, table[row], strict=True)]
    basis[row] = column
