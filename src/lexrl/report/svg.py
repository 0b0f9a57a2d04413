"""Pieces of the SVG charts on a page, which are complete without JavaScript.

Only classes are named here (`k0` to `k8` for the colors); `assets/style.css` says what they look like in light mode, in
dark mode and in print.
"""

import html
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl.report import palette
from lexrl.report.axes import HEIGHT, WIDTH, coordinate
from lexrl.report.palette import Palette

MAX_POINTS = 240
"""Points of a line that are drawn: more would not be visible."""


class Chart(NamedTuple):
    """A drawing, and the numbers that the page's script shows at the pointer."""

    svg: str
    data: dict[str, Any]
    title: str = ""
    below: str = ""
    """HTML under the chart."""


def chart(label: str, inside: str) -> str:
    """An SVG element; `label` is what a screen reader says."""
    return (
        f"<svg class=chart viewBox='0 0 {WIDTH} {HEIGHT}' role=img aria-label='{html.escape(label, quote=True)}'>"
        f"{inside}<path class=cross d=''/></svg>"
    )


def group(label: str, number: int, inside: str) -> str:
    """What belongs to one label, in its color."""
    return f"<g class='s k{palette.color(number)}' data-l='{html.escape(label, quote=True)}'>{inside}</g>"


def figure(name: str, charts: Sequence[Chart], labels: Sequence[str], styles: Palette, caption: str) -> str:
    """Charts side by side under one legend, with their numbers for the page's script."""
    keys = "".join(
        f"<li class=key data-l='{html.escape(label, quote=True)}'>{swatch(label, styles)}{html.escape(label)}"
        for label in labels
    )
    panels = "".join(
        f"<div class=panel>{f'<h4>{html.escape(each.title)}</h4>' if each.title else ''}"
        f"<div class=plot>{each.svg}</div>{each.below}</div>"
        for each in charts
    )
    data = json.dumps([each.data for each in charts], separators=(",", ":")).replace("<", "\\u003c")
    return (
        f"<figure class='charts of{min(len(charts), 3)}' data-name='{html.escape(name, quote=True)}'>"
        f"<ul class=legend aria-label=Legend>{keys}</ul>"
        f"<div class=panels>{panels}</div>{caption}"
        f"<script type=application/json class=numbers>{data}</script></figure>"
    )


def swatch(label: str, styles: Palette) -> str:
    """A short piece of a label's line, for legends and tables."""
    if label not in styles:
        return "<svg class='swatch exact' viewBox='0 0 28 12' aria-hidden=true><path class=m d='M1 6h26'/></svg>"
    number = styles[label]
    marker = f"M14 6{palette.outline(number)}"
    return (
        f"<svg class='swatch k{palette.color(number)}' viewBox='0 0 28 12' aria-hidden=true>"
        f"<path class=m{dashes(number)} d='M1 6h26'/><path class=end d='{marker}'/></svg>"
    )


def line(x: np.ndarray, y: np.ndarray) -> str:
    """A path with gaps where there is no value; a single point is a dot."""
    return "".join(
        "M" + "L".join(f"{coordinate(a)} {coordinate(b)}" for a, b in piece) + ("h0" if len(piece) == 1 else "")
        for piece in _pieces(x, y)
    )


def band(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    """The area between two lines."""
    return "".join(
        "M" + "L".join(f"{coordinate(a)} {coordinate(b)}" for a, b, _ in piece)
        + "L" + "L".join(f"{coordinate(a)} {coordinate(c)}" for a, _, c in reversed(piece)) + "z"
        for piece in _pieces(x, low, high) if len(piece) > 1
    )  # fmt: skip


def bars(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    """A vertical bar at each point."""
    return "".join(
        f"M{coordinate(a)} {coordinate(b)}V{coordinate(c)}"
        for a, b, c in zip(x, low, high, strict=True)
        if np.isfinite([a, b, c]).all()
    )


def markers(x: Iterable[float], y: Iterable[float], number: int, size: float = 1.0) -> str:
    shape = palette.outline(number, size)
    return "".join(
        f"M{coordinate(a)} {coordinate(b)}{shape}"
        for a, b in zip(x, y, strict=True)
        if math.isfinite(a) and math.isfinite(b)
    )


def dashes(number: int) -> str:
    """The attribute for a style's dash pattern."""
    dash = palette.dash(number)
    return f" stroke-dasharray='{dash}'" if dash else ""


def thinned(count: int) -> np.ndarray:
    """Indices of the points of a line that are drawn: the first, the last, and enough in between."""
    return np.unique(np.linspace(0, count - 1, min(count, MAX_POINTS)).round().astype(int))


def _pieces(*columns: np.ndarray) -> list[list[tuple[float, ...]]]:
    """Rows without a NaN, split where there is one."""
    pieces: list[list[tuple[float, ...]]] = [[]]
    for row in zip(*(column.tolist() for column in columns), strict=True):
        if all(map(math.isfinite, row)):
            pieces[-1].append(row)
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]
