"""Pieces of Vega-Lite specifications: axes, the styles of labels, and the layers that charts are made of.

Rows of a chart have the same fields everywhere: `label`, `kind` (what the row is), `x` and `y` with the bounds `low`,
`high` (of y) and `left`, `right` (of x), and `piece`, which is different on the two sides of a gap. What the pointer
shows are these fields and nothing else.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl.report import palette
from lexrl.report.chart import FAINT, INK, PAPER, Spec
from lexrl.report.palette import Palette

WIDTH, HEIGHT = 390, 220
MAX_COLUMNS = 3
"""Panels side by side in a file; more go below."""
MAX_POINTS = 240
"""Points of a line that are drawn: more would not be visible."""
Row = dict[str, Any]
LARGEST = 1e290
"""Larger values are not drawn: computing with them would overflow."""
Domain = tuple[float, float]


class Axis(NamedTuple):
    """What an axis shows."""

    title: str
    domain: Domain
    log: bool = False
    ticks: tuple[float, ...] = ()
    """Where there are to be ticks; empty: at round numbers."""

    def channel(self, field: str = "", **more: Any) -> Spec:
        """The encoding of a field on this axis."""
        ticks = self.ticks or (log_ticks(*self.domain) if self.log else ())
        scale: Spec = {"type": "log" if self.log else "linear", "domain": list(self.domain), "nice": False}
        scale |= {} if self.log else {"zero": False}
        about: Spec = {"title": None if more.pop("untitled", False) else f"{self.title}"}
        if ticks:
            about["values"] = list(ticks)
        return {"field": field, "type": "quantitative", "scale": scale, "axis": about, **more}

    def across(self, field: str = "x") -> Spec:
        return self.channel(field)

    def upright(self, field: str = "y") -> Spec:
        """Without a title: the chart's subtitle is where the eye looks for it."""
        return self.channel(field, untitled=True)


class Frame(NamedTuple):
    """What the layers of a chart share."""

    x: Axis
    y: Axis
    labels: tuple[str, ...]
    """In the order of the legend."""
    styles: Palette

    def scale(self, of: Any) -> Spec:
        """The encoding of labels by a property of their styles."""
        known = [label for label in self.labels if label in self.styles]
        drawn = {"domain": known, "range": [of(self.styles[label]) for label in known]}
        return {"field": "label", "type": "nominal", "scale": drawn}

    @property
    def color(self) -> Spec:
        return self.scale(palette.variable)


def band(frame: Frame, kind: str) -> Spec:
    """The area between `low` and `high`."""
    return {
        "transform": [{"filter": f"datum.kind === '{kind}' && datum.from !== null && datum.to !== null"}],
        "mark": {"type": "area", "clip": True, "fillOpacity": 0.13},
        "encoding": {
            "x": frame.x.across(), "y": frame.y.upright("from"), "y2": {"field": "to"},
            "color": frame.color, "detail": {"field": "piece"},
        },
    }  # fmt: skip


def line(frame: Frame, kind: str, width: float | int = 2.0) -> Spec:
    """A line through the points of each label, in its color and dashes."""
    return {
        "transform": [{"filter": f"datum.kind === '{kind}'"}],
        "mark": {"type": "line", "clip": True, "strokeWidth": width, "strokeJoin": "round"},
        "encoding": {
            "x": frame.x.across(), "y": frame.y.upright(), "color": frame.color,
            "strokeDash": frame.scale(palette.dashes), "detail": {"field": "piece"}, "order": {"field": "i"},
        },
    }  # fmt: skip


def plain_line(
    frame: Frame, kind: str, color: str, width: float | int, opacity: float = 1.0, dash: Any = (1, 0)
) -> Spec:
    """A line that has no label of its own in the legend."""
    return {
        "transform": [{"filter": f"datum.kind === '{kind}'"}],
        "mark": {
            "type": "line", "clip": True, "strokeWidth": width, "color": color, "opacity": opacity,
            "strokeDash": list(dash),
        },
        "encoding": {
            "x": frame.x.across(), "y": frame.y.upright(), "detail": [{"field": "label"}, {"field": "piece"}],
            "order": {"field": "i"},
        },
    }  # fmt: skip


def points(frame: Frame, where: str, size: float | int, opacity: float = 1.0) -> Spec:
    """Markers of the rows for which an expression holds."""
    return {
        "transform": [{"filter": where}],
        "mark": {
            "type": "point", "filled": True, "size": size, "opacity": opacity, "stroke": PAPER, "strokeWidth": 0.8,
        },
        "encoding": {
            "x": frame.x.across(), "y": frame.y.upright(), "color": frame.color,
            "shape": frame.scale(palette.shape),
        },
    }  # fmt: skip


def whiskers(frame: Frame, kind: str) -> list[Spec]:
    """The intervals of y, and of x where there are some."""
    mark = {"type": "rule", "clip": True, "strokeWidth": 1.6, "opacity": 0.8}
    upright = {"x": frame.x.across(), "y": frame.y.upright("from"), "y2": {"field": "to"}, "color": frame.color}
    across = {"y": frame.y.upright(), "x": frame.x.across("left"), "x2": {"field": "right"}, "color": frame.color}
    return [
        {"transform": [{"filter": f"datum.kind === '{kind}' && datum.from !== null && datum.to !== null"}],
         "mark": mark, "encoding": upright},
        {"transform": [{"filter": f"datum.kind === '{kind}' && isNumber(datum.left) && isNumber(datum.right)"}],
         "mark": mark, "encoding": across},
    ]  # fmt: skip


def events(frame: Frame, places: Sequence[tuple[float, str]]) -> list[Spec]:
    """Vertical lines with a word each, at the top."""
    if not places:
        return []
    data = {"values": [{"x": x, "text": text} for x, text in places]}
    text = {"type": "text", "align": "left", "baseline": "top", "dx": 4, "color": FAINT, "fontSize": 11}
    return [
        {"data": data, "mark": {"type": "rule", "color": FAINT, "strokeDash": [3, 3]},
         "encoding": {"x": frame.x.across()}},
        {"data": data, "mark": text, "encoding": {"x": frame.x.across(), "y": {"value": 0}, "text": {"field": "text"}}},
    ]  # fmt: skip


def rules(frame: Frame, values: Sequence[tuple[float, str]]) -> list[Spec]:
    """Horizontal lines with a word each, at the right."""
    if not values:
        return []
    data = {"values": [{"y": y, "text": text} for y, text in values]}
    text = {"type": "text", "align": "right", "baseline": "bottom", "dy": -3, "color": INK, "fontSize": 11}
    return [
        {"data": data, "mark": {"type": "rule", "color": INK, "strokeDash": [6, 4], "clip": True},
         "encoding": {"y": frame.y.upright()}},
        {"data": data, "mark": text,
         "encoding": {"y": frame.y.upright(), "x": {"value": "width"}, "text": {"field": "text"}}},
    ]  # fmt: skip


def panel(title: str, frame: Frame, rows: Sequence[Row], layers: Sequence[Spec]) -> Spec:
    """A chart, or one panel of several."""
    words = f"{frame.y.title}{' (log scale)' if frame.y.log else ''}"
    small = {"text": words, "color": FAINT, "fontSize": 12, "fontWeight": "normal"}
    return {
        "title": {"text": title, "subtitle": words} if title else small,
        "width": WIDTH,
        "height": HEIGHT,
        "data": {"values": [{"i": i, **row} for i, row in enumerate(rows)]},
        "layer": list(layers),
        "usermeta": {"x": frame.x.title, "y": frame.y.title},
    }


def together(title: str, panels: Sequence[Spec]) -> Spec:
    """Panels side by side under one title and above one legend."""
    heading = {"text": title, "fontSize": 16, "offset": 14}
    return {"title": heading, "concat": list(panels), "columns": MAX_COLUMNS, "spacing": 28}


def thinned(count: int) -> np.ndarray:
    """Indices of the points of a line that are drawn: the first, the last, and enough in between."""
    return np.unique(np.linspace(0, count - 1, min(count, MAX_POINTS)).round().astype(int))


def in_domain(values: np.ndarray, domain: Domain, log: bool) -> np.ndarray:
    """Bounds of intervals as they are drawn: on a logarithmic axis one at or below 0 is at its lower end."""
    return np.where(np.isfinite(values), np.clip(values, *domain), np.nan) if log else values


def number(value: float | int) -> float | int | None:
    """A number as JSON has it, to five digits; null where there is none."""
    if not np.isfinite(value) or abs(value) >= LARGEST:
        return None
    short = float(f"{value:.5g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def fit(values: Sequence[np.ndarray], log: bool, bounds: Sequence[np.ndarray] = ()) -> Domain:
    """The ends of an axis that shows all values, and their interval bounds unless these would dwarf the values."""
    known = drawable(values, log)
    if not known.size:
        known = drawable(bounds, log)
    if not known.size:
        known = np.array([1.0, 10.0] if log else [0.0, 1.0])
    low, high = float(known.min()), float(known.max())
    around = drawable(bounds, log)
    if around.size:
        room = (high - low) or abs(high) or 1.0
        outer = (low / 10, high * 10) if log else (low - room / 2, high + room / 2)
        low = min(low, max(float(around.min()), outer[0]))
        high = max(high, min(float(around.max()), outer[1]))
    return _log(low, high) if log else _linear(low, high)


def drawable(values: Sequence[np.ndarray], log: bool) -> np.ndarray:
    """All values that an axis can show, in one array."""
    found = np.concatenate([np.asarray(each, dtype=float).ravel() for each in values] or [np.zeros(0)])
    return found[(np.abs(found) < LARGEST) & ((found > 1 / LARGEST) if log else True)]


def _linear(low: float, high: float) -> Domain:
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        pad = abs(high) / 10 or 1.0
        low, high = low - pad, high + pad
    if 0 < low < 0.35 * high:
        low = 0.0
    edge = 0.04 * (high - low)
    return (low if low == 0 else low - edge), high + edge


def _log(low: float, high: float) -> Domain:
    if high <= low * 1.0001:
        low, high = low / 2, high * 2
    edge = (high / low) ** 0.05
    return low / edge, high * edge


def log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Round numbers between two positive ones for a logarithmic axis: three to seven where possible."""
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        ticks = [each * 10.0**power for power in decades for each in steps if low <= each * 10.0**power <= high]
        if len(ticks) >= 3:
            break
    return tuple(ticks[:: math.ceil(len(ticks) / 7) or 1])
