"""A table whose columns can be sorted."""

import pathlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from lexrl.report import markup, palette
from lexrl.report.checked import Checked
from lexrl.report.palette import Palette
from lexrl.report.stats import format_value


class Cell(NamedTuple):
    """A text, and the number that it is sorted by."""

    text: str
    value: float | None = None


class Table(NamedTuple):
    kind = "table"
    name: str
    title: str
    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def number(value: float | int) -> Cell:
    return Cell(format_value(value), float(value))


def read(part: Checked) -> Table:
    heads, found = part.texts("heads"), []
    for index, row in enumerate(part.get("rows", list), 1):
        if not isinstance(row, list) or len(row) != len(heads):
            raise part.error(f"has a row {index} without one cell for each of its {len(heads)} heads")
        found.append(tuple(_read_cell(part, index, each) for each in row))
    return Table(part.text("name", ""), part.text("title", ""), part.text("caption", ""), heads, tuple(found))


def _read_cell(part: Checked, row: int, found: Any) -> Cell:
    if isinstance(found, str):
        return Cell(found)
    if isinstance(found, dict):
        inside = Checked(part.path, f"a cell in row {row} of {part.where}", found)
        value = inside.as_number("value", found.get("value"))
        return Cell(inside.text("text"), value)
    return number(part.as_number("rows", found))


def write(section: Table, folder: pathlib.Path) -> dict[str, Any]:
    written = [[each.text if each.value is None else _write_cell(each) for each in row] for row in section.rows]
    return section._asdict() | {"heads": list(section.heads), "rows": written}


def _write_cell(cell: Cell) -> dict[str, Any]:
    return {"value": cell.value if cell.value == cell.value else None, "text": cell.text}


def labels(section: Table) -> list[str]:
    return []


def html(section: Table, styles: Palette) -> str:
    numeric = [all(row[i].value is not None for row in section.rows) for i in range(len(section.heads))]
    heads = "".join(
        f"<th scope=col{' class=number' if is_number else ''}>{markup.safe(head)}</th>"
        for head, is_number in zip(section.heads, numeric, strict=True)
    )
    body = "".join(
        f"<tr>{''.join(_cell(cell, i == 0, numeric[i], styles) for i, cell in enumerate(row))}</tr>"
        for row in section.rows
    )
    return (
        f"<figure class=tabular data-name='{markup.safe(section.name)}'>"
        f"{markup.scrollable(section.title or section.name)}"
        f"<table class=sortable><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
        f"{markup.caption(section.name, section.title, section.caption, rows(section))}</figure>"
    )


def _cell(cell: Cell, first: bool, numeric: bool, styles: Palette) -> str:
    if not first or numeric:
        return markup.cell(cell.text, cell.value, numeric)
    swatch = palette.swatch(cell.text, styles) if cell.text in styles else ""
    return f"<th scope=row{markup.sort_value(cell.value)}>{swatch}{markup.rich(cell.text)}</th>"


def figure(section: Table, styles: Palette) -> None:
    return None


def rows(section: Table) -> list[list[Any]]:
    """A column of numbers that are shown as other texts becomes two."""
    double = [any(_has_words(row[i]) for row in section.rows) for i in range(len(section.heads))]
    found = [_spread(section.heads, [f"{head} as shown" for head in section.heads], double)]
    for row in section.rows:
        numbers = [cell.text if cell.value is None else cell.value for cell in row]
        found.append(_spread(numbers, [cell.text for cell in row], double))
    return found


def _has_words(cell: Cell) -> bool:
    """Whether it shows more than its number."""
    return cell.value is not None and cell.text != format_value(cell.value)


def _spread(first: Iterable[Any], second: Iterable[Any], double: Iterable[bool]) -> list[Any]:
    return [each for a, b, both in zip(first, second, double, strict=True) for each in ((a, b) if both else (a,))]
