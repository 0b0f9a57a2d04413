"""Learning curves: panels side by side, each line with its interval."""

import pathlib
from typing import Any, NamedTuple

from lexrl.report import figures, marks, markup, panels
from lexrl.report.chart import Chart
from lexrl.report.checked import Checked
from lexrl.report.marks import Axis
from lexrl.report.palette import Palette
from lexrl.report.panels import Panel


class Curves(NamedTuple):
    kind = "curves"
    name: str
    title: str
    caption: str
    x: str
    panels: tuple[Panel, ...]


def read(part: Checked) -> Curves:
    found = tuple(map(_read_panel, part.parts("panels", "panel")))
    return Curves(part.text("name", ""), part.text("title", ""), part.text("caption", ""), part.text("x"), found)


def _read_panel(part: Checked) -> Panel:
    return Panel(
        part.text("title", ""), part.text("y", ""), part.get("log", bool, False), panels.read_series(part),
        panels.read_series(part, "seeds"), panels.read_places(part, "events"), panels.read_places(part, "rules"),
    )  # fmt: skip


def write(section: Curves, folder: pathlib.Path) -> dict[str, Any]:
    return section._asdict() | {"panels": list(map(_write_panel, section.panels))}


def _write_panel(panel: Panel) -> dict[str, Any]:
    written = panel._asdict() | {"series": list(map(panels.write_series, panel.series))}
    written |= {"seeds": list(map(panels.write_series, panel.seeds))}
    return written | {"events": panels.write_places(panel.events), "rules": panels.write_places(panel.rules)}


def labels(section: Curves) -> list[str]:
    return panels.labels(section.panels)


def html(section: Curves, styles: Palette) -> str:
    known = labels(section)
    drawn = [panels.on_page(each, _across(section, each), known, styles, panels.lines) for each in section.panels]
    caption = markup.caption(section.name, section.title, section.caption, rows(section))
    return figures.figure(section.name, drawn, known, styles, caption)


def _across(section: Curves, panel: Panel) -> Axis:
    return Axis(section.x, marks.fit([series.x for series in (*panel.series, *panel.seeds)], False))


def figure(section: Curves, styles: Palette) -> Chart:
    known = labels(section)
    drawn = [panels.spec(each, _across(section, each), known, styles, panels.lines) for each in section.panels]
    return Chart(marks.together(section.title, drawn))


def rows(section: Curves) -> list[list[Any]]:
    found = [row for panel in section.panels for row in panels.rows(panel) if row[2] == "measured"]
    return [["panel", "label", "x", "middle", "low", "high"], *(row[:2] + row[3:] for row in found)]
