"""Panels of lines with intervals, which sections of several kinds have."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl.report import axes, svg
from lexrl.report.axes import Axis
from lexrl.report.checked import Checked, as_json
from lexrl.report.palette import Palette

Row = list[Any]


class Series(NamedTuple):
    """A line with its interval; NaN where there is no value."""

    label: str
    x: np.ndarray
    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray
    exponent: tuple[float, float, float] | None = None
    """Of a fitted power law: its value and the ends of its interval."""
    fit: tuple[np.ndarray, np.ndarray] | None = None
    """The fitted line: x and y."""


class Panel(NamedTuple):
    """One chart of several side by side."""

    title: str
    y: str
    log: bool
    series: tuple[Series, ...]


Draw = Callable[[Series, Axis, Axis, int], str]
"""From a series, the two axes and the number of its style to SVG."""


def read_series(panel: Checked) -> tuple[Series, ...]:
    return tuple(map(_read, panel.parts("series", "series")))


def _read(part: Checked) -> Series:
    x = part.numbers("x")
    exponent = fit = None
    if part.content.get("exponent") is not None:
        inside = part.part("exponent")
        exponent = (inside.number("value"), inside.number("low", math.nan), inside.number("high", math.nan))
    if part.content.get("fit") is not None:
        inside = part.part("fit")
        fit = (inside.numbers("x"), inside.numbers("y", len(inside.numbers("x"))))
    middle = part.get("middle", list)
    if len(middle) != len(x):
        raise part.error(f"has {len(middle)} numbers in 'middle' where {len(x)} are needed")
    middle, low, high = (part.numbers(key, len(x)) for key in ("middle", "low", "high"))
    return Series(part.text("label"), x, middle, low, high, exponent, fit)


def write_series(series: Series) -> dict[str, Any]:
    written: dict[str, Any] = {"label": series.label, "x": as_json(series.x)}
    for key, values in (("middle", series.middle), ("low", series.low), ("high", series.high)):
        written[key] = as_json(values, digits=5)
    if series.exponent is not None:
        written["exponent"] = dict(zip(("value", "low", "high"), as_json(np.array(series.exponent)), strict=True))
    if series.fit is not None:
        written["fit"] = {"x": as_json(series.fit[0]), "y": as_json(series.fit[1])}
    return written


def labels(panels: Sequence[Panel]) -> list[str]:
    return list(dict.fromkeys(series.label for panel in panels for series in panel.series))


def rows(panel: Panel) -> list[Row]:
    """Panel, label, what, x, and three values, as they go to CSV."""
    found: list[Row] = []
    for series in panel.series:
        start = [panel.title or panel.y, series.label]
        measured = zip(series.x, series.middle, series.low, series.high, strict=True)
        found += [[*start, "measured", *row] for row in measured]
        if series.fit is not None:
            found += [[*start, "fit", x, y, "", ""] for x, y in zip(*series.fit, strict=True)]
        if series.exponent is not None:
            found.append([*start, "exponent", "", *series.exponent])
    return found


def chart(panel: Panel, x_title: str, across: Axis, styles: Palette, draw: Draw) -> svg.Chart:
    """One panel as SVG; the x axis is given, the y axis shows all middles and fits."""
    fits = [series.fit[1] for series in panel.series if series.fit is not None]
    bounds = [each for series in panel.series for each in (series.low, series.high)]
    upright = axes.fit([*(series.middle for series in panel.series), *fits], panel.log, bounds)
    across, upright = axes.place(across, upright)
    drawn = [
        svg.group(each.label, styles[each.label], draw(each, across, upright, styles[each.label]))
        for each in reversed(panel.series)
    ]
    ends = ", ".join(f"{each.label} {_last(each.middle)}" for each in panel.series)
    label = f"{panel.title or panel.y}: {panel.y} against {x_title}. At the right end: {ends}."
    data = {"x": across.as_json(), "y": upright.as_json(), "s": [_data(series) for series in panel.series]}
    return svg.Chart(svg.chart(label, axes.draw(across, upright, x_title, panel.y) + "".join(drawn)), data, panel.title)


def _data(series: Series) -> dict[str, Any]:
    """For the page's script."""
    keep = svg.thinned(len(series.x))
    data: dict[str, Any] = {
        "l": series.label,
        "x": as_json(series.x[keep], 8),
        "m": as_json(series.middle[keep], 4),
    }
    if np.isfinite(series.low).any() or np.isfinite(series.high).any():
        data |= {"a": as_json(series.low[keep], 4), "b": as_json(series.high[keep], 4)}
    return data


def _last(values: np.ndarray) -> str:
    known = values[np.isfinite(values)]
    return f"{known[-1]:.3g}" if known.size else "unknown"
