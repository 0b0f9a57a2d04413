"""Charts as small SVG for a page: whole without JavaScript, and in the colours of the page's style.

Only classes are named here (`k0` to `k8` for the colours); how they look by day, by night and on paper is in `STYLE`.
"""

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl.report import looks
from lexrl.report.form import Front, Lines, Panel, Points, Series
from lexrl.report.looks import Looks

WIDTH, HEIGHT = 460, 300
TOP, RIGHT, BOTTOM = 26, 14, 46
LARGEST = 1e290
"""No axis goes further: there the arithmetic ends."""
MOST = 240
"""Points of a line that are drawn: more cannot be seen."""


class Axis(NamedTuple):
    """From values to places."""

    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[float, ...]

    def at(self, values: Any) -> np.ndarray:
        """Places of values; those without one are NaN, and those beyond an end are put there."""
        values = np.asarray(values, dtype=float)
        low, high = self.low, self.high
        if self.log:
            values = np.log10(np.where(values > 0, values, np.nan))
            low, high = math.log10(low), math.log10(high)
        share = np.clip((values - low) / (high - low), 0, 1)
        return self.start + share * (self.end - self.start)

    def told(self) -> list[Any]:
        """For the page's script."""
        return [self.low, self.high, self.start, self.end, int(self.log)]


class Chart(NamedTuple):
    """A drawing, and what the page's script needs to answer a pointer."""

    svg: str
    data: dict[str, Any]


def short(value: float, digits: int = 4) -> str:
    """A number on an axis: 250k, 1M, 0.05."""
    size = abs(value)
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= factor * 0.9995:
            return f"{value / factor:.{digits}g}{letter}".replace("-", "−")
    text = f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e") if 0 < size < 1e-4 else f"{value:.{digits}g}"
    return text.replace("-", "−")


def lines(section: Lines, panel: Panel, look: Looks) -> Chart:
    """One panel of curves or of scaling."""
    across = _axis([series.x for series in panel.series], section.scaling)
    if section.scaling:
        across = _at_values(across, panel)
    fits = [series.fit[1] for series in panel.series if series.fit is not None]
    bounds = [each for series in panel.series for each in (series.low, series.high)]
    upright = _axis([*(series.middle for series in panel.series), *fits], panel.log, bounds)
    across, upright = _placed(across, upright)
    draw = _scaled if section.scaling else _curve
    drawn = [
        f"<g class='s k{looks.colour(look[each.label])}' data-l='{_safe(each.label)}'>"
        f"{draw(each, across, upright, look)}</g>"
        for each in reversed(panel.series)
    ]
    ends = ", ".join(f"{each.label} {_last(each.middle)}" for each in panel.series)
    label = f"{panel.title or panel.y}: {panel.y} against {section.x}. At the right end: {ends}."
    data = {"x": across.told(), "y": upright.told(), "s": [_told(series) for series in panel.series]}
    return Chart(_svg(label, _frame(across, upright, section.x, panel.y) + "".join(drawn)), data)


def front(section: Front, look: Looks) -> Chart:
    """A curve, and each learner's seeds as points with their median as a larger one."""
    all_points = (section.curve, *section.points)
    across = _axis([each.x for each in all_points], False)
    upright = _axis([each.y for each in all_points], False)
    across, upright = _placed(across, upright)
    curve = _path(across.at(section.curve.x), upright.at(section.curve.y))
    drawn = [f"<g class='s exact' data-l='{_safe(section.curve.label)}'><path class=m d='{curve}'/></g>"]
    for points in section.points:
        number = look[points.label]
        small = _markers(across.at(points.x), upright.at(points.y), number, 0.6)
        middle = _middle(points)
        large = "" if middle is None else _markers(across.at([middle[0]]), upright.at([middle[1]]), number, 1.35)
        drawn.append(
            f"<g class='s k{looks.colour(number)}' data-l='{_safe(points.label)}'><path class=seed d='{small}'/>"
            f"<path class=big d='{large}'/></g>"
        )
    told = ", ".join(f"{each.label} at {_pair(_middle(each))}" for each in section.points)
    label = f"{section.y} against {section.x}: {section.curve.label}, and the learners' medians: {told}."
    data = {"x": across.told(), "y": upright.told(), "p": [_told_points(each) for each in section.points],
            "c": _told_points(section.curve)}  # fmt: skip
    return Chart(_svg(label, _frame(across, upright, section.x, section.y) + "".join(drawn)), data)


def key(label: str, look: Looks) -> str:
    """A piece of a line, as in the chart: for legends and tables."""
    if label not in look:
        return "<svg class='swatch exact' viewBox='0 0 28 12' aria-hidden=true><path class=m d='M1 6h26'/></svg>"
    number = look[label]
    marker = f"M14 6{looks.outline(number)}"
    return (
        f"<svg class='swatch k{looks.colour(number)}' viewBox='0 0 28 12' aria-hidden=true>"
        f"<path class=m{_dashed(number)} d='M1 6h26'/><path class=end d='{marker}'/></svg>"
    )


def _curve(series: Series, across: Axis, upright: Axis, look: Looks) -> str:
    number = look[series.label]
    keep = _kept(len(series.x))
    x, middle = across.at(series.x[keep]), upright.at(series.middle[keep])
    low, high = (_clear(bound[keep], upright) for bound in (series.low, series.high))
    known = np.isfinite(middle)
    end = _markers(x[known][-1:], middle[known][-1:], number)
    return (
        f"<path class=b d='{_band(x, low, high)}'/><path class=m{_dashed(number)} d='{_path(x, middle)}'/>"
        f"<path class=end d='{end}'/>"
    )


def _scaled(series: Series, across: Axis, upright: Axis, look: Looks) -> str:
    number = look[series.label]
    x, middle = across.at(series.x), upright.at(series.middle)
    low, high = (_clear(bound, upright) for bound in (series.low, series.high))
    bars = "".join(
        f"M{_n(a)} {_n(b)}V{_n(c)}" for a, b, c in zip(x, low, high, strict=True) if np.isfinite([a, b, c]).all()
    )
    line = (x, middle) if series.fit is None else (across.at(series.fit[0]), upright.at(series.fit[1]))
    return (
        f"<path class=bar d='{bars}'/><path class='m thin'{_dashed(number)} d='{_path(*line)}'/>"
        f"<path class=end d='{_markers(x, middle, number)}'/>"
    )


def _axis(values: Sequence[np.ndarray], log: bool, bounds: Sequence[np.ndarray] = ()) -> Axis:
    """An axis for all values, and for the bounds as far as they do not make the values small."""
    known = _known(values, log)
    if not known.size:
        known = _known(bounds, log)
    if not known.size:
        known = np.array([1.0, 10.0] if log else [0.0, 1.0])
    low, high = float(known.min()), float(known.max())
    around = _known(bounds, log)
    if around.size:
        room = (high - low) or abs(high) or 1.0
        outer = (low / 10, high * 10) if log else (low - room / 2, high + room / 2)
        low = min(low, max(float(around.min()), outer[0]))
        high = max(high, min(float(around.max()), outer[1]))
    return _log_axis(low, high) if log else _even_axis(low, high)


def _known(values: Sequence[np.ndarray], log: bool) -> np.ndarray:
    found = np.concatenate([np.asarray(each, dtype=float).ravel() for each in values] or [np.zeros(0)])
    return found[(np.abs(found) < LARGEST) & ((found > 1 / LARGEST) if log else True)]


def _even_axis(low: float, high: float) -> Axis:
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        pad = abs(high) / 10 or 1.0
        low, high = low - pad, high + pad
    size = (high - low) / 5.5
    power = 10.0 ** math.floor(math.log10(size))
    step = next(each * power for each in (1, 2, 2.5, 5, 10) if each * power >= size * 0.999)
    if 0 < low < 0.35 * high:
        low = 0.0
    edge = 0.04 * (high - low)
    low, high = (low if low == 0 else low - edge), high + edge
    ticks = [round(i * step, 12) for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    return Axis(low, high, 0, 1, False, tuple(ticks))


def _log_axis(low: float, high: float) -> Axis:
    if high <= low * 1.0001:
        low, high = low / 2, high * 2
    edge = (high / low) ** 0.05
    low, high = low / edge, high * edge
    return Axis(low, high, 0, 1, True, looks.log_ticks(low, high))


def _at_values(across: Axis, panel: Panel) -> Axis:
    """With ticks where something was measured, if that is at few places."""
    places = np.unique(_known([series.x for series in panel.series], True))
    return across._replace(ticks=tuple(places.tolist())) if 2 <= len(places) <= 9 else across


def _placed(across: Axis, upright: Axis) -> tuple[Axis, Axis]:
    """With room for the names of the ticks."""
    left = 16 + 7.2 * max(map(len, _names(upright)), default=1)
    return across._replace(start=left, end=WIDTH - RIGHT), upright._replace(start=HEIGHT - BOTTOM, end=TOP)


def _names(axis: Axis) -> list[str]:
    """Of the ticks: with as many digits as it takes to tell them apart."""
    names: list[str] = []
    for digits in range(4, 10):
        names = [short(tick, digits) for tick in axis.ticks]
        if len(set(names)) == len(names):
            break
    return names


def _frame(across: Axis, upright: Axis, x: str, y: str) -> str:
    """Lines and names of the ticks, and of the axes."""
    left, floor = across.start, upright.start
    grid = "".join(f"M{_n(left)} {_n(at)}H{WIDTH - RIGHT}" for at in upright.at(upright.ticks))
    parts = [
        f"<path class=grid d='{grid}'/>",
        f"<path class=axis d='M{_n(left)} {_n(floor)}H{WIDTH - RIGHT}'/>",
    ]
    for at, tick in zip(upright.at(upright.ticks), _names(upright), strict=True):
        parts.append(f"<text class=ty x={_n(left - 8)} y={_n(at + 4)}>{tick}</text>")
    for at, tick in zip(across.at(across.ticks), _names(across), strict=True):
        parts.append(f"<path class=axis d='M{_n(at)} {_n(floor)}v4'/>")
        parts.append(f"<text class=tx x={_n(at)} y={_n(floor + 18)}>{tick}</text>")
    parts.append(f"<text class=name x={_n((left + WIDTH - RIGHT) / 2)} y={HEIGHT - 8}>{_safe(x)}</text>")
    parts.append(f"<text class='name up' x=4 y=13>{_safe(y)}{' (log scale)' if upright.log else ''}</text>")
    return "".join(parts)


def _svg(label: str, inside: str) -> str:
    return (
        f"<svg class=chart viewBox='0 0 {WIDTH} {HEIGHT}' role=img aria-label='{_safe(label)}'>{inside}"
        "<path class=cross d=''/></svg>"
    )


def _path(x: np.ndarray, y: np.ndarray) -> str:
    """A line that is broken where there is no value; what stands alone is a dot."""
    return "".join(
        "M" + "L".join(f"{_n(a)} {_n(b)}" for a, b in piece) + ("h0" if len(piece) == 1 else "")
        for piece in _pieces(x, y)
    )


def _band(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    return "".join(
        "M" + "L".join(f"{_n(a)} {_n(b)}" for a, b, _ in piece)
        + "L" + "L".join(f"{_n(a)} {_n(c)}" for a, _, c in reversed(piece)) + "z"
        for piece in _pieces(x, low, high) if len(piece) > 1
    )  # fmt: skip


def _pieces(*columns: np.ndarray) -> list[list[tuple[float, ...]]]:
    """Rows without a NaN, in runs."""
    pieces: list[list[tuple[float, ...]]] = [[]]
    for row in zip(*(column.tolist() for column in columns), strict=True):
        if all(map(math.isfinite, row)):
            pieces[-1].append(row)
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _clear(bound: np.ndarray, upright: Axis) -> np.ndarray:
    """Places of a bound; one at or below 0 is at the floor of a logarithmic axis."""
    if upright.log:
        bound = np.where(np.isfinite(bound) & (bound <= 0), upright.low, bound)
    return upright.at(bound)


def _markers(x: Iterable[float], y: Iterable[float], number: int, size: float = 1.0) -> str:
    shape = looks.outline(number, size)
    return "".join(
        f"M{_n(a)} {_n(b)}{shape}" for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)
    )


def _kept(count: int) -> np.ndarray:
    """The points of a line that are drawn: the first, the last, and enough between."""
    return np.unique(np.linspace(0, count - 1, min(count, MOST)).round().astype(int))


def _told(series: Series) -> dict[str, Any]:
    keep = _kept(len(series.x))
    told: dict[str, Any] = {"l": series.label, "x": _rounded(series.x[keep], 8), "m": _rounded(series.middle[keep])}
    if np.isfinite(series.low).any() or np.isfinite(series.high).any():
        told |= {"a": _rounded(series.low[keep]), "b": _rounded(series.high[keep])}
    return told


def _told_points(points: Points) -> dict[str, Any]:
    return {"l": points.label, "x": _rounded(points.x), "m": _rounded(points.y)}


def _rounded(values: np.ndarray, digits: int = 4) -> list[float | int | None]:
    """With as many digits as are shown; whole numbers without a point, since that is shorter."""
    found = [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values.tolist()]
    return [int(each) if each is not None and each.is_integer() and abs(each) < 1e15 else each for each in found]


def _middle(points: Points) -> tuple[float, float] | None:
    known = np.isfinite(points.x) & np.isfinite(points.y)
    return (float(np.median(points.x[known])), float(np.median(points.y[known]))) if known.any() else None


def _pair(middle: tuple[float, float] | None) -> str:
    return "no place" if middle is None else f"{middle[0]:.3g}, {middle[1]:.3g}"


def _last(values: np.ndarray) -> str:
    known = values[np.isfinite(values)]
    return f"{known[-1]:.3g}" if known.size else "unknown"


def _dashed(number: int) -> str:
    dash = looks.dash(number)
    return f" stroke-dasharray='{dash}'" if dash else ""


def _n(value: float | int) -> str:
    """A place, to a tenth of a unit."""
    return f"{value:.1f}".removesuffix(".0")


def _safe(text: str) -> str:
    return html.escape(text, quote=True)
