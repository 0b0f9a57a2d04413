"""What the charts drawn by matplotlib share. Import this where you draw: matplotlib takes its time to import."""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from lexrl.colors import FAINT, INK
from lexrl.report import palette
from lexrl.report.numbers import format_tick, log_ticks
from lexrl.report.palette import Palette
from lexrl.report.panels import Panel, Series
from lexrl.report.picture import Picture, drawing, finish

MAX_COLUMNS = 3
"""Panels side by side; more go below."""


Plot = Callable[[Any, Series, int, bool], Any]
"""Draws a series from the axes, the number of its style and whether y is logarithmic; returns the legend's handle."""


def panels(title: str, x: str, shown: tuple[Panel, ...], styles: Palette, plot: Plot, log_x: bool) -> Picture:
    """Panels side by side under one title and above one legend."""
    count = max(len(shown), 1)
    across, down = min(count, MAX_COLUMNS), -(-count // MAX_COLUMNS)
    with drawing(4.6 * across + 0.4, 3.5 * down + 0.9) as figure:
        figure.suptitle(title, color=INK, fontsize=13, x=0.01, ha="left")
        handles: dict[str, Any] = {}
        for number, panel in enumerate(shown, 1):
            axes: Any = figure.add_subplot(down, across, number)
            plain(axes)
            axes.set_title(panel.title, fontsize=11, color=INK, loc="left")
            axes.set(xlabel=x, ylabel=panel.y)
            for series in panel.series:
                handles.setdefault(series.label, plot(axes, series, styles[series.label], panel.log))
            _scale(axes, panel, log_x)
        if handles:
            figure.legend(
                list(handles.values()), list(map(literal, handles)), loc="outside lower center", frameon=False,
                ncol=min(len(handles), 3 * across), fontsize=10,
            )  # fmt: skip
        return finish(figure)


def _scale(axes: Any, panel: Panel, log_x: bool) -> None:
    if log_x:
        axes.set_xscale("log")
        places = sorted({float(x) for series in panel.series for x in series.x if np.isfinite(x) and x > 0})
        axes.xaxis.set_major_locator(FixedLocator(places[:: -(-len(places) // 9) or 1]))
        axes.xaxis.set_minor_locator(NullLocator())
    known = any((np.nan_to_num(series.middle) > 0).any() for series in panel.series)
    if panel.log and known:  # without a positive value there is nothing to scale
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(FixedLocator(log_ticks(*axes.get_ylim())))
        axes.yaxis.set_minor_locator(NullLocator())
    short_ticks(axes)


def short_ticks(axes: Any) -> None:
    """Tick labels as on the page: 250k, 1M."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: format_tick(value)))


def plain(axes: Any) -> None:
    """Horizontal grid lines and a line at the bottom, nothing else."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.tick_params(colors=INK, length=3)
    axes.tick_params(axis="y", length=0, which="both")
    axes.grid(axis="y", color="#EAEAEA", lw=0.8)
    axes.set_axisbelow(True)


def style(number: int) -> dict[str, Any]:
    """Keywords of `plot` for a style of the palette."""
    numbers = [float(each) / 1.8 for each in palette.dash(number).split()]
    color = palette.LIGHT[palette.color(number)]
    marker = palette.marker(number)
    return {"color": color, "ls": (0, tuple(numbers)) if numbers else "-", "marker": marker, "ms": 6, "mec": "white"}


def positive(values: np.ndarray) -> np.ndarray:
    """NaN where a logarithmic axis has no place for a value."""
    return np.where(values > 0, values, np.nan)


def literal(label: str) -> str:
    """A label that matplotlib does not hide because it starts with an underscore."""
    return f" {label}" if label.startswith("_") else label
