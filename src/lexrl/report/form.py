"""What an experiment leaves in `experiment.json`: the parts of a chapter, with names and types."""

import dataclasses
import math
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

FILE = "experiment.json"
FORMAT = 1
STATES = ("failed", "missing", "finished")
"""Of a run, in the order in which they are told."""
ANSWERS = ("yes", "no", "not decidable")
PICTURES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".svg": "svg+xml", ".webp": "webp"}
"""The pictures that a page can hold, by the ending of their names."""


@dataclasses.dataclass(frozen=True)
class Series:
    """A line with its interval; NaN where there is no value."""

    label: str
    x: np.ndarray
    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray
    exponent: tuple[float, float, float] | None = None
    """Of a fitted power, with its interval: value, low, high."""
    fit: tuple[np.ndarray, np.ndarray] | None = None


@dataclasses.dataclass(frozen=True)
class Panel:
    title: str
    y: str
    log: bool
    series: tuple[Series, ...]


@dataclasses.dataclass(frozen=True)
class Text:
    title: str
    paragraphs: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Lines:
    """Panels side by side: learning curves, or with `scaling` points and fitted powers on logarithmic axes."""

    name: str
    title: str
    caption: str
    x: str
    panels: tuple[Panel, ...]
    scaling: bool = False


@dataclasses.dataclass(frozen=True)
class Cell:
    """What is shown, and what it is sorted by."""

    text: str
    value: float | None = None


@dataclasses.dataclass(frozen=True)
class Table:
    name: str
    title: str
    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclasses.dataclass(frozen=True)
class Ranking:
    name: str
    title: str
    caption: str
    labels: tuple[str, ...]
    classes: tuple[tuple[str, ...], ...]
    """From best to worst; undecided within each."""
    matrix: np.ndarray
    """`[labels, labels]`: how probable it is that the row is better than the column."""

    def lead(self, i: int, j: int) -> float:
        """How much more probable it is that i is better than j than that it is worse: 0 for equals, too."""
        over, under = float(self.matrix[i, j]), float(self.matrix[j, i])
        return over - under if math.isfinite(under) else 2 * over - 1


@dataclasses.dataclass(frozen=True)
class Points:
    label: str
    x: np.ndarray
    y: np.ndarray


@dataclasses.dataclass(frozen=True)
class Front:
    name: str
    title: str
    caption: str
    x: str
    y: str
    curve: Points
    points: tuple[Points, ...]


@dataclasses.dataclass(frozen=True)
class Claim:
    claim: str
    seen: str
    numbers: str


@dataclasses.dataclass(frozen=True)
class Claims:
    name: str
    title: str
    rows: tuple[Claim, ...]


@dataclasses.dataclass(frozen=True)
class Shown:
    """One of several pictures."""

    file: pathlib.Path
    alt: str
    label: str


@dataclasses.dataclass(frozen=True)
class Pictures:
    title: str
    caption: str
    pictures: tuple[Shown, ...]


Section = Text | Lines | Table | Ranking | Front | Claims | Pictures


@dataclasses.dataclass(frozen=True)
class Run:
    folder: str
    label: str
    seeds: int
    steps: int
    seconds: float
    command: str
    state: str
    why: str


@dataclasses.dataclass(frozen=True)
class Experiment:
    folder: pathlib.Path
    place: float
    """Chapters are in this order."""
    name: str
    size: str
    title: str
    question: str
    command: str
    begun: str
    seconds: float
    commit: str
    versions: Mapping[str, Any]
    machine: Mapping[str, Any]
    runs: tuple[Run, ...]
    """Those that failed first."""
    sections: tuple[Section, ...]

    @property
    def broken(self) -> tuple[Run, ...]:
        """The runs that are not finished."""
        return tuple(run for run in self.runs if run.state != "finished")


def plain(text: str) -> str:
    """A name that is safe as a file's and as an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-")


def shown(value: float) -> str:
    """A number for people: four digits, with commas between thousands."""
    if not math.isfinite(value):
        return "–"
    if float(value).is_integer() and abs(value) < 1e12:
        return f"{int(value):,}"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def labels(sections: Sequence[Section]) -> list[str]:
    """What is drawn in the charts, in order of appearance."""
    found: list[str] = []
    for section in sections:
        if isinstance(section, Lines):
            found += [series.label for panel in section.panels for series in panel.series]
        elif isinstance(section, Front):
            found += [points.label for points in section.points]
    for section in sections:
        if isinstance(section, Ranking):
            found += section.labels
    return list(dict.fromkeys(found))
