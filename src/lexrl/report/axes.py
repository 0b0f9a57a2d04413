"""Axes of the charts on a page: which values they show, where their ticks are, and how they are drawn."""

import html
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl.report.numbers import format_tick, log_ticks

WIDTH, HEIGHT = 460, 300
TOP, RIGHT, BOTTOM = 26, 14, 46
LARGEST = 1e290
"""Larger values are not drawn: computing with them would overflow."""


class Axis(NamedTuple):
    """A linear or logarithmic map from values to coordinates."""

    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[float, ...]

    def at(self, values: Any) -> np.ndarray:
        """Coordinates of values, clipped to the axis; NaN for a value that a logarithmic axis does not have."""
        values = np.asarray(values, dtype=float)
        low, high = self.low, self.high
        if self.log:
            values = np.log10(np.where(values > 0, values, np.nan))
            low, high = math.log10(low), math.log10(high)
        share = np.clip((values - low) / (high - low), 0, 1)
        return self.start + share * (self.end - self.start)

    def bound(self, values: np.ndarray) -> np.ndarray:
        """Coordinates of an interval's bound; on a logarithmic axis one at or below 0 is at its lower end."""
        if self.log:
            values = np.where(np.isfinite(values) & (values <= 0), self.low, values)
        return self.at(values)

    def as_json(self) -> list[Any]:
        """For the page's script."""
        return [self.low, self.high, self.start, self.end, int(self.log)]

    def names(self) -> list[str]:
        """The ticks as text, with as many digits as it takes to tell them apart."""
        names: list[str] = []
        for digits in range(4, 10):
            names = [format_tick(tick, digits) for tick in self.ticks]
            if len(set(names)) == len(names):
                break
        return names


def fit(values: Sequence[np.ndarray], log: bool, bounds: Sequence[np.ndarray] = ()) -> Axis:
    """An axis that shows all values, and their interval bounds unless these would dwarf the values."""
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


def place(across: Axis, upright: Axis) -> tuple[Axis, Axis]:
    """Both axes with their coordinates in a chart, leaving room for the tick labels."""
    left = 16 + 7.2 * max(map(len, upright.names()), default=1)
    return across._replace(start=left, end=WIDTH - RIGHT), upright._replace(start=HEIGHT - BOTTOM, end=TOP)


def draw(across: Axis, upright: Axis, x: str, y: str) -> str:
    """Grid lines, ticks with their labels, and the titles of both axes, as SVG."""
    left, base = across.start, upright.start
    grid = "".join(f"M{coordinate(left)} {coordinate(at)}H{WIDTH - RIGHT}" for at in upright.at(upright.ticks))
    parts = [
        f"<path class=grid d='{grid}'/>",
        f"<path class=axis d='M{coordinate(left)} {coordinate(base)}H{WIDTH - RIGHT}'/>",
    ]
    for at, tick in zip(upright.at(upright.ticks), upright.names(), strict=True):
        parts.append(f"<text class=ty x={coordinate(left - 8)} y={coordinate(at + 4)}>{tick}</text>")
    for at, tick in zip(across.at(across.ticks), across.names(), strict=True):
        parts.append(f"<path class=axis d='M{coordinate(at)} {coordinate(base)}v4'/>")
        parts.append(f"<text class=tx x={coordinate(at)} y={coordinate(base + 18)}>{tick}</text>")
    center = coordinate((left + WIDTH - RIGHT) / 2)
    scale = " (log scale)" if upright.log else ""
    parts.append(f"<text class=name x={center} y={HEIGHT - 8}>{html.escape(x, quote=True)}</text>")
    parts.append(f"<text class='name up' x=4 y=13>{html.escape(y, quote=True)}{scale}</text>")
    return "".join(parts)


def coordinate(value: float | int) -> str:
    """A coordinate, to a tenth of a unit."""
    return f"{value:.1f}".removesuffix(".0")


def _linear(low: float, high: float) -> Axis:
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


def _log(low: float, high: float) -> Axis:
    if high <= low * 1.0001:
        low, high = low / 2, high * 2
    edge = (high / low) ** 0.05
    low, high = low / edge, high * edge
    return Axis(low, high, 0, 1, True, log_ticks(low, high))
