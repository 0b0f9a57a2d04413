"""Panels of lines with intervals, which sections of several kinds have."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl.report import marks
from lexrl.report.chart import FAINT, Spec
from lexrl.report.checked import Checked, as_json
from lexrl.report.figures import DescribedChart
from lexrl.report.marks import Axis, Frame
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
    seeds: tuple[Series, ...] = ()
    """Drawn thin, behind the others and without a legend."""
    events: tuple[tuple[float, str], ...] = ()
    """Places on the x axis, and what happened there."""
    rules: tuple[tuple[float, str], ...] = ()
    """Values on the y axis, and what they are."""


Layers = Callable[[Frame, Panel], list[Spec]]
"""From the axes and styles of a panel to what is drawn."""


def read_series(panel: Checked, key: str = "series") -> tuple[Series, ...]:
    return tuple(map(_read, panel.parts(key, "series"))) if key in panel.content else ()


def read_places(panel: Checked, key: str) -> tuple[tuple[float, str], ...]:
    """Numbers with a word each."""
    if key not in panel.content:
        return ()
    return tuple((part.number("at"), part.text("text")) for part in panel.parts(key, "place"))


def write_places(places: Sequence[tuple[float, str]]) -> list[dict[str, Any]]:
    return [{"at": at, "text": text} for at, text in places]


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
    for series in (*panel.series, *panel.seeds):
        start = [panel.title or panel.y, series.label]
        measured = zip(series.x, series.middle, series.low, series.high, strict=True)
        found += [[*start, "measured", *row] for row in measured]
        if series.fit is not None:
            found += [[*start, "fit", x, y, "", ""] for x, y in zip(*series.fit, strict=True)]
        if series.exponent is not None:
            found.append([*start, "exponent", "", *series.exponent])
    return found


def spec(panel: Panel, across: Axis, labels: Sequence[str], styles: Palette, layers: Layers) -> Spec:
    """One panel; the x axis is given, the y axis shows all lines and fits."""
    lines = (*panel.series, *panel.seeds)
    fits = [series.fit[1] for series in lines if series.fit is not None]
    bounds = [each for series in lines for each in (series.low, series.high)]
    shown = [*(series.middle for series in lines), *fits, np.array([at for at, _ in panel.rules])]
    upright = Axis(panel.y, marks.fit(shown, panel.log, bounds), panel.log)
    frame = Frame(across, upright, tuple(labels), styles)
    rows = [
        row
        for kind, group in (("seed", panel.seeds), ("line", panel.series))
        for series in group
        for row in _rows(series, kind, frame)
    ]
    return marks.panel(panel.title, frame, rows, layers(frame, panel))


def lines(frame: Frame, panel: Panel) -> list[Spec]:
    """Every line with its interval as a band and a marker at its end; seeds thin, events and rules marked."""
    return [
        marks.band(frame, "line"),
        *([marks.plain_line(frame, "seed", FAINT, 0.8, 0.45)] if panel.seeds else []),
        *marks.events(frame, panel.events),
        marks.line(frame, "line"),
        *marks.rules(frame, panel.rules),
        marks.points(frame, "datum.end", 60),
    ]


def describe(panel: Panel, x_title: str) -> str:
    """What a screen reader says."""
    ends = ", ".join(f"{each.label} {_last(each.middle)}" for each in panel.series)
    marked = "".join(f" {text} at {at:.3g}." for at, text in (*panel.events, *panel.rules))
    return f"{panel.title or panel.y}: {panel.y} against {x_title}. At the right end: {ends}.{marked}"


def on_page(panel: Panel, across: Axis, labels: Sequence[str], styles: Palette, layers: Layers) -> DescribedChart:
    return DescribedChart(spec(panel, across, labels, styles, layers), describe(panel, across.title))


def _rows(series: Series, kind: str, frame: Frame) -> list[marks.Row]:
    """The points of a line that are known, and its fit; `piece` counts the pieces between gaps."""
    keep, log = marks.thinned(len(series.x)), frame.y.log
    x, middle, low, high = (
        np.asarray(values, float)[keep] for values in (series.x, series.middle, series.low, series.high)
    )
    start, end = (marks.in_domain(bound, frame.y.domain, log) for bound in (low, high))
    known = _is_drawn(middle, log) & _is_drawn(x, frame.x.log)
    piece = np.cumsum(~known)
    last = np.flatnonzero(known)[-1:]
    alone = known & ~np.roll(known, 1) & ~np.roll(known, -1)
    rows = []
    for i in np.flatnonzero(known):
        values = zip(("x", "y", "low", "high", "from", "to"), (x, middle, low, high, start, end), strict=True)
        row = {"label": series.label, "kind": kind} | {name: marks.number(each[i]) for name, each in values}
        rows.append(row | {"piece": int(piece[i]), "end": bool(kind == "line" and (i in last or alone[i]))})
    if series.fit is not None:
        pairs = zip(*series.fit, strict=True)
        rows += [{"label": series.label, "kind": "fit", "x": marks.number(a), "y": marks.number(b)} for a, b in pairs]
    return rows


def _is_drawn(values: np.ndarray, log: bool) -> np.ndarray:
    """Whether an axis can show each value."""
    with np.errstate(invalid="ignore"):
        return (np.abs(values) < marks.LARGEST) & ((values > 1 / marks.LARGEST) if log else True)


def _last(values: np.ndarray) -> str:
    known = values[np.isfinite(values)]
    return f"{known[-1]:.3g}" if known.size else "unknown"
