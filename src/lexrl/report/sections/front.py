"""The exact trade-off between two objectives as a curve, and what each seed reached as points."""

import pathlib
from typing import Any, NamedTuple

import numpy as np

from lexrl.colors import INK
from lexrl.report import axes, markup, svg
from lexrl.report.checked import Checked, as_json
from lexrl.report.palette import Palette
from lexrl.report.picture import Picture, drawing, finish


class Points(NamedTuple):
    label: str
    x: np.ndarray
    y: np.ndarray

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
    curve = _read_points(part.part("curve"))
    points = tuple(map(_read_points, part.parts("points", "point")))
    heading = part.text("name", ""), part.text("title", ""), part.text("caption", "")
    return Front(*heading, part.text("x"), part.text("y"), curve, points)


def _read_points(part: Checked) -> Points:
    x, y = part.numbers("x"), part.numbers("y")
    if len(x) != len(y):
        raise part.error(f"has {len(x)} numbers in 'x' and {len(y)} in 'y'")
    return Points(part.text("label"), x, y)


def write(section: Front, folder: pathlib.Path) -> dict[str, Any]:
    points = list(map(_write_points, section.points))
    return section._asdict() | {"curve": _write_points(section.curve), "points": points}


def _write_points(points: Points) -> dict[str, Any]:
    return {"label": points.label, "x": as_json(points.x), "y": as_json(points.y)}


def labels(section: Front) -> list[str]:
    return [points.label for points in section.points]


def html(section: Front, styles: Palette) -> str:
    caption = markup.caption(section.name, section.title, section.caption, rows(section))
    legend = [section.curve.label, *labels(section)]
    return svg.figure(section.name, [_chart(section, styles)], legend, styles, caption)


def _chart(section: Front, styles: Palette) -> svg.Chart:
    """Seeds as small markers, their median as a large one."""
    everything = (section.curve, *section.points)
    across = axes.fit([each.x for each in everything], False)
    upright = axes.fit([each.y for each in everything], False)
    across, upright = axes.place(across, upright)
    curve = svg.line(across.at(section.curve.x), upright.at(section.curve.y))
    drawn = [f"<g class='s exact' data-l='{markup.safe(section.curve.label)}'><path class=m d='{curve}'/></g>"]
    for points in section.points:
        number, median = styles[points.label], points.median()
        small = svg.markers(across.at(points.x), upright.at(points.y), number, 0.6)
        large = svg.markers(across.at([median[0]]), upright.at([median[1]]), number, 1.35) if median else ""
        inside = f"<path class=seed d='{small}'/><path class=big d='{large}'/>"
        drawn.append(svg.group(points.label, number, inside))
    medians = ", ".join(f"{each.label} at {_pair(each.median())}" for each in section.points)
    label = f"{section.y} against {section.x}: {section.curve.label}, and the medians: {medians}."
    data = {"x": across.as_json(), "y": upright.as_json(), "p": [_data(each) for each in section.points],
            "c": _data(section.curve)}  # fmt: skip
    return svg.Chart(svg.chart(label, axes.draw(across, upright, section.x, section.y) + "".join(drawn)), data)


def _data(points: Points) -> dict[str, Any]:
    """For the page's script."""
    return {"l": points.label, "x": as_json(points.x, 4), "m": as_json(points.y, 4)}


def _pair(median: tuple[float, float] | None) -> str:
    return "no place" if median is None else f"{median[0]:.3g}, {median[1]:.3g}"


def figure(section: Front, styles: Palette) -> Picture:
    from lexrl.report import canvas  # matplotlib takes its time to import

    with drawing(7.2, 4.8) as figure:
        axes: Any = figure.add_subplot()
        canvas.plain(axes)
        axes.set_title(section.title, fontsize=13, color=INK, loc="left")
        axes.set(xlabel=section.x, ylabel=section.y)
        axes.plot(section.curve.x, section.curve.y, color=INK, lw=2, label=canvas.literal(section.curve.label))
        for points in section.points:
            style = canvas.style(styles[points.label]) | {"ls": "none"}
            axes.plot(points.x, points.y, alpha=0.35, **style | {"ms": 5})
            x, y = points.median() or (np.nan, np.nan)
            axes.plot([x], [y], label=canvas.literal(points.label), **style | {"ms": 10})
        canvas.short_ticks(axes)
        figure.legend(loc="outside right upper", frameon=False, fontsize=10)
        return finish(figure)


def rows(section: Front) -> list[list[Any]]:
    found: list[list[Any]] = [["label", "what", "number", section.x, section.y]]
    for what, points in (("curve", section.curve), *(("seed", each) for each in section.points)):
        found += [[points.label, what, i, x, y] for i, (x, y) in enumerate(zip(points.x, points.y, strict=True))]
    return found
