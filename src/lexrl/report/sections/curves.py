"""Learning curves: panels side by side, each line with its interval."""

import pathlib
from typing import Any, NamedTuple

import numpy as np

from lexrl.report import axes, markup, palette, panels, svg
from lexrl.report.axes import Axis
from lexrl.report.checked import Checked
from lexrl.report.palette import Palette
from lexrl.report.panels import Panel, Series
from lexrl.report.picture import Picture


class Curves(NamedTuple):
    kind = "curves"
    name: str
    title: str
    caption: str
    x: str
    panels: tuple[Panel, ...]


def read(part: Checked) -> Curves:
    found = tuple(
        Panel(each.text("title", ""), each.text("y", ""), each.get("log", bool, False), panels.read_series(each))
        for each in part.parts("panels", "panel")
    )
    return Curves(part.text("name", ""), part.text("title", ""), part.text("caption", ""), part.text("x"), found)


def write(section: Curves, folder: pathlib.Path) -> dict[str, Any]:
    written = [
        panel._asdict() | {"series": [panels.write_series(series) for series in panel.series]}
        for panel in section.panels
    ]
    return section._asdict() | {"panels": written}


def labels(section: Curves) -> list[str]:
    return panels.labels(section.panels)


def html(section: Curves, styles: Palette) -> str:
    charts = [
        panels.chart(panel, section.x, axes.fit([series.x for series in panel.series], False), styles, _svg)
        for panel in section.panels
    ]
    caption = markup.caption(section.name, section.title, section.caption, rows(section))
    return svg.figure(section.name, charts, labels(section), styles, caption)


def _svg(series: Series, across: Axis, upright: Axis, number: int) -> str:
    """The interval as a band, the line, and a marker at its end."""
    keep = svg.thinned(len(series.x))
    x, middle = across.at(series.x[keep]), upright.at(series.middle[keep])
    low, high = upright.bound(series.low[keep]), upright.bound(series.high[keep])
    known = np.isfinite(middle)
    end = svg.markers(x[known][-1:], middle[known][-1:], number)
    return (
        f"<path class=b d='{svg.band(x, low, high)}'/>"
        f"<path class=m{svg.dashes(number)} d='{svg.line(x, middle)}'/><path class=end d='{end}'/>"
    )


def figure(section: Curves, styles: Palette) -> Picture:
    from lexrl.report import canvas  # matplotlib takes its time to import

    def plot(axes: Any, series: Series, number: int, log: bool) -> Any:
        values = (series.middle, series.low, series.high)
        middle, low, high = map(canvas.positive, values) if log else values
        axes.fill_between(series.x, low, high, color=palette.LIGHT[palette.color(number)], alpha=0.15, lw=0)
        known = np.flatnonzero(np.isfinite(middle))
        every = [int(known[-1])] if known.size else []
        return axes.plot(series.x, middle, lw=1.8, markevery=every, clip_on=False, **canvas.style(number))[0]

    return canvas.panels(section.title, section.x, section.panels, styles, plot, log_x=False)


def rows(section: Curves) -> list[list[Any]]:
    found = [row for panel in section.panels for row in panels.rows(panel) if row[2] == "measured"]
    return [["panel", "label", "x", "middle", "low", "high"], *(row[:2] + row[3:] for row in found)]
