"""Final returns in the plane of the first two objectives: every seed, and their mean with its intervals."""

import pathlib
from typing import Any, NamedTuple

import numpy as np

from lexrl.report import figures, marks, markup, stats
from lexrl.report.chart import Chart, Spec
from lexrl.report.checked import Checked
from lexrl.report.marks import Axis, Frame
from lexrl.report.palette import Palette
from lexrl.report.sections.front import Points, read_points, seed_rows, write_points


class Plane(NamedTuple):
    kind = "plane"
    name: str
    title: str
    caption: str
    x: str
    y: str
    points: tuple[Points, ...]
    """One for each algorithm or run: a point for each seed."""


def read(part: Checked) -> Plane:
    points = tuple(map(read_points, part.parts("points", "point")))
    heading = part.text("name", ""), part.text("title", ""), part.text("caption", "")
    return Plane(*heading, part.text("x"), part.text("y"), points)


def write(section: Plane, folder: pathlib.Path) -> dict[str, Any]:
    return section._asdict() | {"points": list(map(write_points, section.points))}


def labels(section: Plane) -> list[str]:
    return [points.label for points in section.points]


def html(section: Plane, styles: Palette) -> str:
    caption = markup.caption(section.name, section.title, section.caption, rows(section))
    means = ", ".join(f"{each.label} at {_mean(each.x)}, {_mean(each.y)}" for each in section.points)
    chart = figures.DescribedChart(
        _spec(section, styles, ""), f"{section.y} against {section.x}, means of the seeds: {means}."
    )
    return figures.figure(section.name, [chart], labels(section), styles, caption)


def figure(section: Plane, styles: Palette) -> Chart:
    return Chart(_spec(section, styles, section.title))


def _spec(section: Plane, styles: Palette, title: str) -> Spec:
    centers = [_center(points) for points in section.points]
    x, y = ([np.array(stats.mean(values)[1:]) for values in column] for column in _columns(section))
    across = Axis(section.x, marks.fit(_columns(section)[0], False, x))
    upright = Axis(section.y, marks.fit(_columns(section)[1], False, y))
    frame = Frame(across, upright, tuple(labels(section)), styles)
    found = [row for points in section.points for row in seed_rows(points)]
    layers = [
        *marks.whiskers(frame, "mean"),
        marks.points(frame, "datum.kind === 'seed'", 30, 0.45),
        marks.points(frame, "datum.kind === 'mean'", 130),
    ]
    return marks.panel(title, frame, found + [row for row in centers if None not in (row["x"], row["y"])], layers)


def _columns(section: Plane) -> tuple[list[np.ndarray], list[np.ndarray]]:
    return [points.x for points in section.points], [points.y for points in section.points]


def _center(points: Points) -> marks.Row:
    """The mean of the seeds with its 95 % intervals."""
    (x, left, right), (y, low, high) = (map(marks.number, stats.mean(values)) for values in (points.x, points.y))
    interval = {"left": left, "right": right, "low": low, "high": high, "from": low, "to": high}
    return {"label": points.label, "kind": "mean", "x": x, "y": y} | interval


def _mean(values: np.ndarray) -> str:
    return str(stats.mean(values))


def rows(section: Plane) -> list[list[Any]]:
    found: list[list[Any]] = [["label", "seed", section.x, section.y]]
    for points in section.points:
        found += [[points.label, *row] for row in zip(points.numbers(), points.x, points.y, strict=True)]
    return found
