"""How something grows with size: points with intervals and fitted power laws, on logarithmic axes."""

import pathlib
from typing import Any, NamedTuple

import numpy as np

from lexrl.report import axes, markup, panels, svg
from lexrl.report.axes import Axis
from lexrl.report.checked import Checked
from lexrl.report.palette import Palette
from lexrl.report.panels import Panel, Series
from lexrl.report.picture import Picture
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
    charts = [
        panels.chart(panel, section.x, _across(panel), styles, _svg)._replace(below=_exponents(panel, styles))
        for panel in section.panels
    ]
    caption = markup.caption(section.name, section.title, section.caption, rows(section))
    return svg.figure(section.name, charts, labels(section), styles, caption)


def _across(panel: Panel) -> Axis:
    """The x axis, with ticks at the sizes that were measured if there are few of them."""
    values = [series.x for series in panel.series]
    across = axes.fit(values, True)
    places = np.unique(axes.drawable(values, True))
    return across._replace(ticks=tuple(places.tolist())) if 2 <= len(places) <= 9 else across


def _svg(series: Series, across: Axis, upright: Axis, number: int) -> str:
    x, middle = across.at(series.x), upright.at(series.middle)
    low, high = upright.bound(series.low), upright.bound(series.high)
    line = (x, middle) if series.fit is None else (across.at(series.fit[0]), upright.at(series.fit[1]))
    return (
        f"<path class=bar d='{svg.bars(x, low, high)}'/>"
        f"<path class='m thin'{svg.dashes(number)} d='{svg.line(*line)}'/>"
        f"<path class=end d='{svg.markers(x, middle, number)}'/>"
    )


def _exponents(panel: Panel, styles: Palette) -> str:
    """A table of the fitted exponents, under the chart."""
    fitted = [(series.label, series.exponent) for series in panel.series if series.exponent is not None]
    if not fitted:
        return ""
    body = "".join(
        f"<tr><th scope=row>{svg.swatch(label, styles)}{markup.safe(label)}</th>"
        f"{markup.cell(str(Interval(*exponent)), exponent[0])}</tr>"
        for label, exponent in fitted
    )
    heads = "<th scope=col>series</th><th scope=col>exponent [95 % interval]</th>"
    return (
        f"{markup.scrollable(f'Exponents, {panel.title}')}<table class='sortable small'><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def figure(section: Scaling, styles: Palette) -> Picture:
    from lexrl.report import canvas  # matplotlib takes its time to import

    def plot(axes: Any, series: Series, number: int, log: bool) -> Any:
        style = canvas.style(number)
        middle = canvas.positive(series.middle)
        whiskers = np.abs(np.stack([series.middle - series.low, series.high - series.middle]))
        whiskers = np.where(np.isfinite(whiskers), whiskers, 0)
        axes.errorbar(series.x, middle, whiskers, fmt="none", ecolor=style["color"], elinewidth=1.4, alpha=0.7)
        axes.plot(series.x, middle, **style | {"ls": "none"})
        line = (series.x, middle) if series.fit is None else series.fit
        axes.plot(*line, lw=1.5, **style | {"marker": None})
        return axes.plot([], [], lw=1.5, **style)[0]

    return canvas.panels(section.title, section.x, section.panels, styles, plot, log_x=True)


def rows(section: Scaling) -> list[list[Any]]:
    found = [row for panel in section.panels for row in panels.rows(panel)]
    return [["panel", "label", "what", "x", "middle", "low", "high"], *found]
