"""The exact trade-off between two objectives as a curve, and what each seed reached as points."""

import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl.report import figures, marks, markup
from lexrl.report.chart import INK, Chart, Spec
from lexrl.report.checked import Checked, as_json
from lexrl.report.marks import Axis, Frame
from lexrl.report.palette import Palette


class Points(NamedTuple):
    label: str
    x: np.ndarray
    y: np.ndarray
    seeds: tuple[int, ...] = ()
    """Of each point; empty: they are counted from 0."""

    def numbers(self) -> Sequence[int]:
        return self.seeds or range(len(self.x))

    def median(self) -> tuple[float, float] | None:
        known = np.isfinite(self.x) & np.isfinite(self.y)
        return (float(np.median(self.x[known])), float(np.median(self.y[known]))) if known.any() else None


class Front(NamedTuple):
    kind = "front"
    name: str
    title: str
    caption: str
    x: str
    y: str
    curve: Points
    points: tuple[Points, ...]
    """One for each algorithm: a point for each seed."""


def read(part: Checked) -> Front:
    curve = read_points(part.part("curve"))
    points = tuple(map(read_points, part.parts("points", "point")))
    heading = part.text("name", ""), part.text("title", ""), part.text("caption", "")
    return Front(*heading, part.text("x"), part.text("y"), curve, points)


def read_points(part: Checked) -> Points:
    x, y = part.numbers("x"), part.numbers("y")
    if len(x) != len(y):
        raise part.error(f"has {len(x)} numbers in 'x' and {len(y)} in 'y'")
    seeds = tuple(int(seed) for seed in part.numbers("seeds")) if part.content.get("seeds") else ()
    if len(seeds) not in (0, len(x)):
        raise part.error(f"has {len(seeds)} numbers in 'seeds' where {len(x)} are needed")
    return Points(part.text("label"), x, y, seeds)


def write(section: Front, folder: pathlib.Path) -> dict[str, Any]:
    points = list(map(write_points, section.points))
    return section._asdict() | {"curve": write_points(section.curve), "points": points}


def write_points(points: Points) -> dict[str, Any]:
    written: dict[str, Any] = {"label": points.label, "x": as_json(points.x), "y": as_json(points.y)}
    return written | ({"seeds": list(points.seeds)} if points.seeds else {})


def labels(section: Front) -> list[str]:
    return [points.label for points in section.points]


def html(section: Front, styles: Palette) -> str:
    caption = markup.caption(section.name, section.title, section.caption, rows(section))
    medians = ", ".join(f"{each.label} at {_pair(each.median())}" for each in section.points)
    words = f"{section.y} against {section.x}: {section.curve.label}, and the medians: {medians}."
    panel = figures.DescribedChart(_spec(section, styles, ""), words)
    return figures.figure(section.name, [panel], [section.curve.label, *labels(section)], styles, caption)


def _spec(section: Front, styles: Palette, title: str) -> Spec:
    """Seeds as small markers, their median as a large one."""
    everything = (section.curve, *section.points)
    across = Axis(section.x, marks.fit([each.x for each in everything], False))
    upright = Axis(section.y, marks.fit([each.y for each in everything], False))
    frame = Frame(across, upright, tuple(labels(section)), styles)
    curve = [_row(section.curve.label, "curve", *pair) for pair in zip(section.curve.x, section.curve.y, strict=True)]
    found = [[row for row in curve if None not in (row["x"], row["y"])], *map(seed_rows, section.points)]
    found += [[_row(points.label, "median", *median)] for points in section.points if (median := points.median())]
    layers = [
        marks.plain_line(frame, "curve", INK, 2.4),
        marks.points(frame, "datum.kind === 'seed'", 30, 0.45),
        marks.points(frame, "datum.kind === 'median'", 130),
    ]
    return marks.panel(title, frame, [row for rows in found for row in rows], layers)


def seed_rows(points: Points) -> list[marks.Row]:
    """A row for each seed that has a place."""
    found = zip(points.numbers(), points.x, points.y, strict=True)
    rows = [_row(points.label, "seed", x, y) | {"seed": seed} for seed, x, y in found]
    return [row for row in rows if None not in (row["x"], row["y"])]


def _row(label: str, kind: str, x: float, y: float) -> marks.Row:
    return {"label": label, "kind": kind, "x": marks.number(x), "y": marks.number(y)}


def _pair(median: tuple[float, float] | None) -> str:
    return "no place" if median is None else f"{median[0]:.3g}, {median[1]:.3g}"


def figure(section: Front, styles: Palette) -> Chart:
    return Chart(_spec(section, styles, section.title))


def rows(section: Front) -> list[list[Any]]:
    found: list[list[Any]] = [["label", "what", "number", section.x, section.y]]
    for what, points in (("curve", section.curve), *(("seed", each) for each in section.points)):
        found += [[points.label, what, i, x, y] for i, (x, y) in enumerate(zip(points.x, points.y, strict=True))]
    return found
