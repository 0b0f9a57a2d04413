"""How something grows with size: points with intervals and fitted power laws, on logarithmic axes."""

import pathlib
from typing import Any, NamedTuple

import numpy as np

from lexrl.report import figures, marks, markup, palette, panels
from lexrl.report.chart import Chart, Spec
from lexrl.report.checked import Checked
from lexrl.report.marks import Axis, Frame
from lexrl.report.palette import Palette
from lexrl.report.panels import Panel
from lexrl.report.stats import Interval


class Scaling(NamedTuple):
    kind = "scaling"
    name: str
    title: str
    caption: str
    x: str
    y: str
    panels: tuple[Panel, ...]


def read(part: Checked) -> Scaling:
    y = part.text("y")
    found = tuple(
        Panel(each.text("title", ""), y, True, panels.read_series(each)) for each in part.parts("panels", "panel")
    )
    return Scaling(part.text("name", ""), part.text("title", ""), part.text("caption", ""), part.text("x"), y, found)


def write(section: Scaling, folder: pathlib.Path) -> dict[str, Any]:
    written = [
        {"title": panel.title, "series": [panels.write_series(series) for series in panel.series]}
        for panel in section.panels
    ]
    return section._asdict() | {"panels": written}


def labels(section: Scaling) -> list[str]:
    return panels.labels(section.panels)


def html(section: Scaling, styles: Palette) -> str:
    known = labels(section)
    drawn = [
        panels.on_page(each, _across(section, each), known, styles, _layers)._replace(below=_exponents(each, styles))
        for each in section.panels
    ]
    caption = markup.caption(section.name, section.title, section.caption, rows(section))
    return figures.figure(section.name, drawn, known, styles, caption)


def _across(section: Scaling, panel: Panel) -> Axis:
    """The x axis, with ticks at the sizes that were measured if there are few of them."""
    values = [series.x for series in panel.series]
    places = np.unique(marks.drawable(values, True))
    ticks = tuple(places.tolist()) if 2 <= len(places) <= 9 else ()
    return Axis(section.x, marks.fit(values, True), True, ticks)


def _layers(frame: Frame, panel: Panel) -> list[Spec]:
    """Points with their intervals, and the fitted line, or without one a line through the points."""
    fitted = any(series.fit is not None for series in panel.series)
    return [
        *marks.whiskers(frame, "line"),
        marks.line(frame, "fit" if fitted else "line", 1.6),
        marks.points(frame, "datum.kind === 'line'", 60),
    ]


def figure(section: Scaling, styles: Palette) -> Chart:
    known = labels(section)
    drawn = [panels.spec(each, _across(section, each), known, styles, _layers) for each in section.panels]
    return Chart(marks.together(section.title, drawn))


def _exponents(panel: Panel, styles: Palette) -> str:
    """A table of the fitted exponents, under the chart."""
    fitted = [(series.label, series.exponent) for series in panel.series if series.exponent is not None]
    if not fitted:
        return ""
    body = "".join(
        f"<tr><th scope=row>{palette.swatch(label, styles)}{markup.safe(label)}</th>"
        f"{markup.cell(str(Interval(*exponent)), exponent[0])}</tr>"
        for label, exponent in fitted
    )
    heads = "<th scope=col>series</th><th scope=col>exponent [95 % interval]</th>"
    return (
        f"{markup.scrollable(f'Exponents, {panel.title}')}<table class='sortable small'><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def rows(section: Scaling) -> list[list[Any]]:
    found = [row for panel in section.panels for row in panels.rows(panel)]
    return [["panel", "label", "what", "x", "middle", "low", "high"], *found]
