"""The charts of experiments as files, drawn by matplotlib in the same colours as on the page."""

from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from lexrl.colors import FAINT, INK, mix
from lexrl.report import looks
from lexrl.report.form import Front, Lines, Panel, Ranking, Series
from lexrl.report.inline import short
from lexrl.report.looks import Looks
from lexrl.report.plots import Picture

ROW = 3
"""Panels side by side; more go below."""


def drawn(section: Lines | Front | Ranking, look: Looks) -> Picture:
    """A section's chart."""
    with matplotlib.rc_context({"text.parse_math": False}):  # a dollar in a label is a dollar
        if isinstance(section, Lines):
            figure = _lines(section, look)
        elif isinstance(section, Front):
            figure = _front(section, look)
        else:
            figure = _ranking(section)
    figure.draw_without_rendering()  # the layout is found once: found anew it would differ a little, and so the bytes
    figure.set_layout_engine("none")
    return Picture(figure)


def _lines(section: Lines, look: Looks) -> Figure:
    count = max(len(section.panels), 1)
    across, down = min(count, ROW), -(-count // ROW)
    figure = Figure(figsize=(4.6 * across + 0.4, 3.5 * down + 0.9), layout="constrained")
    figure.suptitle(section.title, color=INK, fontsize=13, x=0.01, ha="left")
    handles: dict[str, Any] = {}
    for number, panel in enumerate(section.panels, 1):
        axes: Any = figure.add_subplot(down, across, number)
        _plain(axes)
        axes.set_title(panel.title, fontsize=11, color=INK, loc="left")
        axes.set(xlabel=section.x, ylabel=panel.y)
        for series in panel.series:
            draw = _scaled if section.scaling else _curve
            handles.setdefault(series.label, draw(axes, series, look[series.label], panel.log))
        _scales(axes, panel, section.scaling)
    if handles:
        figure.legend(
            list(handles.values()), list(map(_literal, handles)), loc="outside lower center", frameon=False,
            ncol=min(len(handles), 3 * across), fontsize=10,
        )  # fmt: skip
    return figure


def _scales(axes: Any, panel: Panel, scaling: bool) -> None:
    if scaling:
        axes.set_xscale("log")
        places = sorted({float(x) for series in panel.series for x in series.x if np.isfinite(x) and x > 0})
        axes.xaxis.set_major_locator(FixedLocator(places[:: -(-len(places) // 9) or 1]))
        axes.xaxis.set_minor_locator(NullLocator())
    known = any((np.nan_to_num(series.middle) > 0).any() for series in panel.series)
    if panel.log and known:  # where nothing is known there is nothing to be scaled
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(FixedLocator(looks.log_ticks(*axes.get_ylim())))
        axes.yaxis.set_minor_locator(NullLocator())
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def _curve(axes: Any, series: Series, number: int, log: bool) -> Any:
    colour = looks.LIGHT[looks.colour(number)]
    middle, low, high = (_positive(each) if log else each for each in (series.middle, series.low, series.high))
    axes.fill_between(series.x, low, high, color=colour, alpha=0.15, lw=0)
    known = np.flatnonzero(np.isfinite(middle))
    every = [int(known[-1])] if known.size else []
    return axes.plot(series.x, middle, lw=1.8, markevery=every, clip_on=False, **_style(number))[0]


def _scaled(axes: Any, series: Series, number: int, log: bool) -> Any:
    style = _style(number)
    middle = _positive(series.middle)
    whiskers = np.abs(np.stack([series.middle - series.low, series.high - series.middle]))
    whiskers = np.where(np.isfinite(whiskers), whiskers, 0)
    axes.errorbar(series.x, middle, whiskers, fmt="none", ecolor=style["color"], elinewidth=1.4, alpha=0.7)
    axes.plot(series.x, middle, **style | {"ls": "none"})
    line = (series.x, middle) if series.fit is None else series.fit
    axes.plot(*line, lw=1.5, **style | {"marker": None})
    return axes.plot([], [], lw=1.5, **style)[0]


def _front(section: Front, look: Looks) -> Figure:
    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    axes: Any = figure.add_subplot()
    _plain(axes)
    axes.set_title(section.title, fontsize=13, color=INK, loc="left")
    axes.set(xlabel=section.x, ylabel=section.y)
    axes.plot(section.curve.x, section.curve.y, color=INK, lw=2, label=_literal(section.curve.label))
    for points in section.points:
        style = _style(look[points.label]) | {"ls": "none"}
        axes.plot(points.x, points.y, alpha=0.35, **style | {"ms": 5})
        known = np.isfinite(points.x) & np.isfinite(points.y)
        middle = [np.median(each[known]) if known.any() else np.nan for each in (points.x, points.y)]
        axes.plot(*([each] for each in middle), label=_literal(points.label), **style | {"ms": 10})
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    figure.legend(loc="outside right upper", frameon=False, fontsize=10)
    return figure


def _ranking(section: Ranking) -> Figure:
    """How probable it is that the row is better than the column, in shades, with the classes as a title."""
    count = len(section.labels)
    figure = Figure(figsize=(0.72 * count + 2.6, 0.5 * count + 2.2), layout="constrained")
    axes: Any = figure.add_subplot()
    order = "  >  ".join(", ".join(map(_literal, group)) for group in section.classes)
    axes.set_title(f"{section.title}\n{order}", fontsize=11, color=INK, loc="left", wrap=True)
    for i in range(count):
        for j in range(count):
            value = section.matrix[i, j]
            if i != j and np.isfinite(value):
                lead = float(np.clip(section.lead(i, j), -1, 1))
                colour = mix(looks.LIGHT[0 if lead >= 0 else 1], 0.45 * abs(lead))
                axes.fill_between([j - 0.5, j + 0.5], i - 0.5, i + 0.5, color=colour, lw=0)
                axes.text(j, i, f"{value:.2f}", ha="center", va="center", color=INK, fontsize=9)
    axes.set(xlim=(-0.5, count - 0.5), ylim=(count - 0.5, -0.5))
    names = list(map(_literal, section.labels))
    axes.set_xticks(range(count), names, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(count), names)
    axes.tick_params(length=0, colors=INK)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("probability that the row is better than the column")
    return figure


def _style(number: int) -> dict[str, Any]:
    numbers = [float(each) / 1.8 for each in looks.dash(number).split()]
    colour = looks.LIGHT[looks.colour(number)]
    marker = looks.marker(number)
    return {"color": colour, "ls": (0, tuple(numbers)) if numbers else "-", "marker": marker, "ms": 6, "mec": "white"}


def _positive(values: np.ndarray) -> np.ndarray:
    """Powers of ten have no place for what is not above 0."""
    return np.where(values > 0, values, np.nan)


def _literal(label: str) -> str:
    """A label that matplotlib does not hide for an underscore in front."""
    return f" {label}" if label.startswith("_") else label


def _plain(axes: Any) -> None:
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.tick_params(colors=INK, length=3)
    axes.tick_params(axis="y", length=0, which="both")
    axes.grid(axis="y", color="#EAEAEA", lw=0.8)
    axes.set_axisbelow(True)
