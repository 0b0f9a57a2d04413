"""A section's numbers as CSV: one row for each thing that was measured."""

import csv
import io
import math
from collections.abc import Iterable
from typing import Any

from lexrl.report.form import Cell, Claims, Front, Lines, Ranking, Section, Table, shown

Row = list[Any]


def csv_text(section: Section) -> str:
    """The numbers of a section, with a header; nothing for a section that has none."""
    rows = _rows(section)
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_written(each) for each in row] for row in rows)
    return text.getvalue().encode(errors="replace").decode()


def _rows(section: Section) -> list[Row]:
    if isinstance(section, Lines):
        return _lines(section)
    if isinstance(section, Table):
        return _table(section)
    if isinstance(section, Ranking):
        return _ranking(section)
    if isinstance(section, Front):
        return _front(section)
    if isinstance(section, Claims):
        return [["claim", "seen", "numbers"], *([row.claim, row.seen, row.numbers] for row in section.rows)]
    return []


def _lines(section: Lines) -> list[Row]:
    """Curves: panel, label, x and three values; a scaling has fits and exponents between them."""
    rows: list[Row] = [["panel", "label", "what", "x", "middle", "low", "high"]]
    for panel in section.panels:
        for series in panel.series:
            start = [panel.title or panel.y, series.label]
            measured = zip(series.x, series.middle, series.low, series.high, strict=True)
            rows += [[*start, "measured", *row] for row in measured]
            if series.fit is not None:
                rows += [[*start, "fit", x, y, "", ""] for x, y in zip(*series.fit, strict=True)]
            if series.exponent is not None:
                rows.append([*start, "exponent", "", *series.exponent])
    return rows if section.scaling else [row[:2] + row[3:] for row in rows]


def _table(section: Table) -> list[Row]:
    """Where a column has numbers that are shown as texts, both."""
    double = [any(_worded(row[i]) for row in section.rows) for i in range(len(section.heads))]
    rows: list[Row] = [_spread(section.heads, [f"{head} as shown" for head in section.heads], double)]
    for row in section.rows:
        numbers = [cell.text if cell.value is None else cell.value for cell in row]
        rows.append(_spread(numbers, [cell.text for cell in row], double))
    return rows


def _worded(cell: Cell) -> bool:
    """Does it show more than its number?"""
    return cell.value is not None and cell.text != shown(cell.value)


def _spread(first: Iterable[Any], second: Iterable[Any], double: Iterable[bool]) -> Row:
    return [each for a, b, both in zip(first, second, double, strict=True) for each in ((a, b) if both else (a,))]


def _ranking(section: Ranking) -> list[Row]:
    rank = {label: i for i, group in enumerate(section.classes, 1) for label in group}
    rows: list[Row] = [["label", "class", "against", "probability better"]]
    for i, label in enumerate(section.labels):
        for j, other in enumerate(section.labels):
            if i != j:
                rows.append([label, rank.get(label, ""), other, section.matrix[i, j]])
    return rows


def _front(section: Front) -> list[Row]:
    rows: list[Row] = [["label", "what", "number", section.x, section.y]]
    for what, points in (("curve", section.curve), *(("seed", each) for each in section.points)):
        rows += [[points.label, what, i, x, y] for i, (x, y) in enumerate(zip(points.x, points.y, strict=True))]
    return rows


def _written(value: Any) -> Any:
    """Numbers to ten digits, and nothing where there is none."""
    if not isinstance(value, float):
        return value
    return f"{value:.10g}" if math.isfinite(value) else ""
