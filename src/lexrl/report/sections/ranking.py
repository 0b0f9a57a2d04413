"""Which algorithm is better than which, and with what probability."""

import math
import pathlib
from typing import Any, NamedTuple

import numpy as np

from lexrl.colors import INK, mix
from lexrl.report import markup, palette, svg
from lexrl.report.checked import Checked, as_json
from lexrl.report.palette import Palette
from lexrl.report.picture import Picture, drawing, finish


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
        + "".join(f"<span class=who>{svg.swatch(label, styles)}{markup.safe(label)}</span>" for label in group)
        + f"</span>{' <small>undecided among these</small>' if len(group) > 1 else ''}"
        for group in section.classes
    )
    heads = "".join(f"<th scope=col><span>{markup.safe(label)}</span></th>" for label in section.labels)
    body = "".join(
        f"<tr><th scope=row>{svg.swatch(label, styles)}{markup.safe(label)}</th>"
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


def figure(section: Ranking, styles: Palette) -> Picture:
    """The matrix in shades, with the classes as the title."""
    from lexrl.report import canvas  # matplotlib takes its time to import

    count = len(section.labels)
    with drawing(0.72 * count + 2.6, 0.5 * count + 2.2) as figure:
        axes: Any = figure.add_subplot()
        order = "  >  ".join(", ".join(map(canvas.literal, group)) for group in section.classes)
        axes.set_title(f"{section.title}\n{order}", fontsize=11, color=INK, loc="left", wrap=True)
        for i, j in np.argwhere(np.isfinite(section.matrix) & ~np.eye(count, dtype=bool)).tolist():
            lead = float(np.clip(section.lead(i, j), -1, 1))
            color = mix(palette.LIGHT[0 if lead >= 0 else 1], 0.45 * abs(lead))
            axes.fill_between([j - 0.5, j + 0.5], i - 0.5, i + 0.5, color=color, lw=0)
            axes.text(j, i, f"{section.matrix[i, j]:.2f}", ha="center", va="center", color=INK, fontsize=9)
        axes.set(xlim=(-0.5, count - 0.5), ylim=(count - 0.5, -0.5))
        names = list(map(canvas.literal, section.labels))
        axes.set_xticks(range(count), names, rotation=35, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(count), names)
        axes.tick_params(length=0, colors=INK)
        axes.spines[:].set_visible(False)
        axes.set_xlabel("probability that the row is better than the column")
        return finish(figure)


def rows(section: Ranking) -> list[list[Any]]:
    rank = {label: i for i, group in enumerate(section.classes, 1) for label in group}
    found: list[list[Any]] = [["label", "class", "against", "probability better"]]
    for i, label in enumerate(section.labels):
        for j, other in enumerate(section.labels):
            if i != j:
                found.append([label, rank.get(label, ""), other, section.matrix[i, j]])
    return found
