"""Which algorithm is better than which, and with what probability."""

import math
import pathlib
from typing import Any, NamedTuple

import numpy as np

from lexrl.colors import mix
from lexrl.report import markup, palette
from lexrl.report.chart import INK, Chart
from lexrl.report.checked import Checked, as_json
from lexrl.report.palette import Palette


class Ranking(NamedTuple):
    kind = "ranking"
    name: str
    title: str
    caption: str
    labels: tuple[str, ...]
    classes: tuple[tuple[str, ...], ...]
    """From best to worst; undecided within a class."""
    matrix: np.ndarray
    """`[labels, labels]`: the probability that the row is better than the column."""

    def lead(self, i: int, j: int) -> float:
        """P(i better than j) - P(i worse than j): 0 for equals."""
        over, under = float(self.matrix[i, j]), float(self.matrix[j, i])
        return over - under if math.isfinite(under) else 2 * over - 1


def read(part: Checked) -> Ranking:
    names = part.texts("labels")
    classes = []
    for group in part.get("classes", list):
        if not isinstance(group, list) or not set(map(str, group)) <= set(names):
            raise part.error("has 'classes' that are not lists of its labels")
        classes.append(tuple(map(str, group)))
    matrix = part.get("matrix", list)
    if len(matrix) != len(names) or not all(isinstance(row, list) and len(row) == len(names) for row in matrix):
        raise part.error(f"has a 'matrix' that is not {len(names)} by {len(names)}")
    numbers = np.array([[part.as_number("matrix", each) for each in row] for row in matrix])
    heading = part.text("name", ""), part.text("title", ""), part.text("caption", "")
    return Ranking(*heading, names, tuple(classes), numbers.reshape(len(names), len(names)))


def write(section: Ranking, folder: pathlib.Path) -> dict[str, Any]:
    return section._asdict() | {
        "labels": list(section.labels),
        "classes": list(map(list, section.classes)),
        "matrix": list(map(as_json, section.matrix)),
    }


def labels(section: Ranking) -> list[str]:
    return list(section.labels)


def html(section: Ranking, styles: Palette) -> str:
    """The classes as steps, and the matrix of probabilities as a table with shades."""
    steps = "".join(
        "<li><span class=class>"
        + "".join(f"<span class=who>{palette.swatch(label, styles)}{markup.safe(label)}</span>" for label in group)
        + f"</span>{' <small>undecided among these</small>' if len(group) > 1 else ''}"
        for group in section.classes
    )
    heads = "".join(f"<th scope=col><span>{markup.safe(label)}</span></th>" for label in section.labels)
    body = "".join(
        f"<tr><th scope=row>{palette.swatch(label, styles)}{markup.safe(label)}</th>"
        + "".join(_probability(section, i, j) for j in range(len(section.labels)))
        + "</tr>"
        for i, label in enumerate(section.labels)
    )
    return (
        f"<figure class=ranking data-name='{markup.safe(section.name)}'>"
        f"<ol class=classes aria-label='From best to worst'>{steps}</ol>"
        f"{markup.scrollable('Probability that the row is better than the column')}"
        f"<table class=matrix><thead><tr><th scope=col><small>row better than column</small></th>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
        f"{markup.caption(section.name, section.title, section.caption, rows(section))}</figure>"
    )


def _probability(section: Ranking, i: int, j: int) -> str:
    value = section.matrix[i, j]
    if i == j or not math.isfinite(value):
        return f"<td class=none>{'·' if i == j else '–'}</td>"
    lead = section.lead(i, j)
    return f"<td class={'over' if lead >= 0 else 'under'} style='--p:{round(abs(lead) * 45)}%'>{value:.2f}</td>"


def figure(section: Ranking, styles: Palette) -> Chart:
    """The matrix in shades, with the classes as the title."""
    count, names = len(section.labels), list(section.labels)
    rows = [
        {"row": names[i], "column": names[j], "text": f"{section.matrix[i, j]:.2f}",
         "lead": float(np.clip(section.lead(i, j), -1, 1))}
        for i, j in np.argwhere(np.isfinite(section.matrix) & ~np.eye(count, dtype=bool)).tolist()
    ]  # fmt: skip
    order = "  >  ".join(", ".join(group) for group in section.classes)
    axis = {"title": None, "domain": False, "ticks": False, "labelExpr": "datum.label", "labelLimit": 300}
    places: dict[str, Any] = {
        "x": {"field": "column", "type": "nominal", "sort": names, "scale": {"domain": names},
              "axis": axis | {"orient": "top", "labelAngle": -35}},
        "y": {"field": "row", "type": "nominal", "sort": names, "scale": {"domain": names}, "axis": axis},
    }  # fmt: skip
    shade = {"type": "linear", "domain": [-1, 0, 1], "range": [mix(palette.LIGHT[1], 0.45), "#ffffff",
             mix(palette.LIGHT[0], 0.45)]}  # fmt: skip
    color = {"field": "lead", "type": "quantitative", "scale": shade, "legend": None}
    return Chart(
        {
            "title": {"text": section.title, "subtitle": [order, "probability that the row is better than the column"]},
            "width": {"step": 46},
            "height": {"step": 30},
            "data": {"values": rows},
            "encoding": places,
            "layer": [
                {"mark": "rect", "encoding": {"color": color}},
                {"mark": {"type": "text", "color": INK}, "encoding": {"text": {"field": "text", "type": "nominal"}}},
            ],
        }
    )


def rows(section: Ranking) -> list[list[Any]]:
    rank = {label: i for i, group in enumerate(section.classes, 1) for label in group}
    found: list[list[Any]] = [["label", "class", "against", "probability better"]]
    for i, label in enumerate(section.labels):
        for j, other in enumerate(section.labels):
            if i != j:
                found.append([label, rank.get(label, ""), other, section.matrix[i, j]])
    return found
