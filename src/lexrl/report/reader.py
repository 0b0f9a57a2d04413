"""Reads what an experiment left, and checks it.

Whatever is not as it must be is one sentence with the file's name and the place in it.
"""

import dataclasses
import math
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from lexrl import store
from lexrl.errors import InputError
from lexrl.report.form import (
    ANSWERS,
    FILE,
    FORMAT,
    PICTURES,
    STATES,
    Cell,
    Claim,
    Claims,
    Experiment,
    Front,
    Lines,
    Panel,
    Pictures,
    Points,
    Ranking,
    Run,
    Section,
    Series,
    Shown,
    Table,
    Text,
    plain,
    shown,
)


def below(folder: pathlib.Path) -> list[pathlib.Path]:
    """The folder itself and those in it, as far as they hold an experiment."""
    return sorted(path.parent for path in folder.rglob(FILE) if path.is_file())


def read(folder: pathlib.Path) -> Experiment:
    """The experiment in a folder, or a sentence on what is wrong with it."""
    path = folder / FILE
    if not path.is_file():
        raise InputError(f"There is no file {str(path)!r}; give a folder that `lexrl experiment` left.")
    content = store.read_json(path)
    if "format" not in content or "experiment" not in content:
        raise InputError(f"The file {str(path)!r} is from another program; give one that `lexrl experiment` left.")
    if content["format"] != FORMAT:
        raise InputError(
            f"The file {str(path)!r} has format {content['format']!r}, and this lexrl reads {FORMAT}; "
            "use the version that wrote it."
        )
    whole = _Part(path, "it", content)
    runs = [_run(part) for part in whole.parts("runs", "run")]
    return Experiment(
        folder=folder,
        place=whole.number("place", 0.0),
        name=whole.text("experiment"),
        size=whole.text("size", ""),
        title=whole.text("title"),
        question=whole.text("question", ""),
        command=whole.text("command", ""),
        begun=whole.text("begun", ""),
        seconds=whole.number("seconds", math.nan),
        commit=whole.text("commit", ""),
        versions=whole.mapping("versions"),
        machine=whole.mapping("machine"),
        runs=tuple(sorted(runs, key=lambda run: STATES.index(run.state))),
        sections=_sections(whole),
    )


@dataclasses.dataclass(frozen=True)
class _Part:
    """A piece of the file, and where it is: what is asked of it is of the right kind, or a sentence says so."""

    path: pathlib.Path
    where: str
    content: Mapping[str, Any]

    def wrong(self, why: str) -> store.Damaged:
        return store.Damaged(f"The file {str(self.path)!r} is damaged: {self.where} {why}.")

    def get(self, key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """What stands under a key; one that is not there, or null, is an error unless there is a default."""
        found = self.content.get(key)
        found = default if found is None else found
        if found is None:
            raise self.wrong(f"has no {key!r}")
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise self.wrong(f"has a {key!r} that cannot be {_brief(found)}")
        return found

    def text(self, key: str, default: str | None = None) -> str:
        return self.get(key, str, default)

    def mapping(self, key: str) -> Mapping[str, Any]:
        return self.get(key, dict, {})

    def number(self, key: str, default: float | None = None) -> float:
        return self.as_number(key, self.get(key, (int, float), default))

    def whole(self, key: str, default: int | None = None) -> int:
        return self.get(key, int, default)

    def texts(self, key: str) -> tuple[str, ...]:
        found = self.get(key, list)
        if not all(isinstance(each, str) for each in found):
            raise self.wrong(f"has {key!r} that are not all texts")
        return tuple(found)

    def numbers(self, key: str, length: int | None = None) -> np.ndarray:
        """Numbers, NaN for null; as many as they must be, or, if they may be left out, none."""
        found = self.get(key, list, None if length is None else [])
        if length is not None and not found:
            return np.full(length, np.nan)
        if length is not None and len(found) != length:
            raise self.wrong(f"has {len(found)} numbers in {key!r} where {length} are needed")
        return np.array([self.as_number(key, each) for each in found], dtype=float)

    def parts(self, key: str, what: str) -> "list[_Part]":
        found = self.get(key, list)
        inside = "" if self.where == "it" else f" of {self.where}"
        places = [f"{what} {i}{inside}" for i in range(1, len(found) + 1)]
        for place, each in zip(places, found, strict=True):
            if not isinstance(each, dict):
                raise dataclasses.replace(self, where=place).wrong(f"cannot be {_brief(each)}")
        return [_Part(self.path, place, each) for place, each in zip(places, found, strict=True)]

    def part(self, key: str) -> "_Part":
        return _Part(self.path, f"{key!r} of {self.where}", self.get(key, dict))

    def as_number(self, key: str, found: Any) -> float:
        if found is None:
            return math.nan
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self.wrong(f"has {_brief(found)} in {key!r} where a number is needed")
        try:
            return float(found)
        except OverflowError:
            raise self.wrong(f"has a number in {key!r} that is too large") from None


def _sections(whole: _Part) -> tuple[Section, ...]:
    sections, names = [], set()
    for part in whole.parts("sections", "section"):
        kind = part.text("kind")
        if kind not in READERS:
            raise part.wrong(f"has the unknown kind {_brief(kind)}; known are {', '.join(READERS)}")
        part = dataclasses.replace(part, where=f"{part.where} ({kind})")
        section = READERS[kind](part)
        if not isinstance(section, Text | Pictures):
            section = dataclasses.replace(section, name=_unused(section.name or section.title or kind, names))
        sections.append(section)
    return tuple(sections)


def _unused(wanted: str, names: set[str]) -> str:
    """A name for files that no section before has; the names that are taken grow by it."""
    base = plain(wanted) or "section"
    number, name = 1, base
    while name in names:
        number += 1
        name = f"{base}-{number}"
    names.add(name)
    return name


def _run(part: _Part) -> Run:
    state = part.text("state")
    if state not in STATES:
        raise part.wrong(f"has the unknown state {_brief(state)}; known are {', '.join(STATES)}")
    return Run(
        part.text("folder"), part.text("label"), part.whole("seeds", 0), part.whole("steps", 0),
        part.number("seconds", math.nan), part.text("command", ""), state, part.text("why", ""),
    )  # fmt: skip


def _heading(part: _Part) -> tuple[str, str, str]:
    return part.text("name", ""), part.text("title", ""), part.text("caption", "")


def _text(part: _Part) -> Text:
    paragraphs = re.split(r"\n\s*\n", part.text("text"))
    return Text(part.text("title", ""), tuple(each.strip() for each in paragraphs if each.strip()))


def _curves(part: _Part) -> Lines:
    panels = tuple(
        Panel(
            each.text("title", ""), each.text("y", ""), each.get("log", bool, False),
            tuple(map(_series, each.parts("series", "series"))),
        )
        for each in part.parts("panels", "panel")
    )  # fmt: skip
    return Lines(*_heading(part), part.text("x"), panels)


def _scaling(part: _Part) -> Lines:
    y = part.text("y")
    panels = tuple(
        Panel(each.text("title", ""), y, True, tuple(map(_series, each.parts("series", "series"))))
        for each in part.parts("panels", "panel")
    )
    return Lines(*_heading(part), part.text("x"), panels, scaling=True)


def _series(part: _Part) -> Series:
    x = part.numbers("x")
    exponent = fit = None
    if part.content.get("exponent") is not None:
        inside = part.part("exponent")
        exponent = (inside.number("value"), inside.number("low", math.nan), inside.number("high", math.nan))
    if part.content.get("fit") is not None:
        inside = part.part("fit")
        fit = (inside.numbers("x"), inside.numbers("y", len(inside.numbers("x"))))
    middle = part.get("middle", list)
    if len(middle) != len(x):
        raise part.wrong(f"has {len(middle)} numbers in 'middle' where {len(x)} are needed")
    middle, low, high = (part.numbers(key, len(x)) for key in ("middle", "low", "high"))
    return Series(part.text("label"), x, middle, low, high, exponent, fit)


def _table(part: _Part) -> Table:
    heads, rows = part.texts("heads"), []
    for number, row in enumerate(part.get("rows", list), 1):
        if not isinstance(row, list) or len(row) != len(heads):
            raise part.wrong(f"has a row {number} without one cell for each of its {len(heads)} heads")
        rows.append(tuple(_cell(part, number, each) for each in row))
    return Table(*_heading(part), heads, tuple(rows))


def _cell(part: _Part, number: int, found: Any) -> Cell:
    if isinstance(found, str):
        return Cell(found)
    if isinstance(found, dict):
        inside = _Part(part.path, f"a cell in row {number} of {part.where}", found)
        value = inside.as_number("value", found.get("value"))
        return Cell(inside.text("text"), value)
    value = part.as_number("rows", found)
    return Cell(shown(value), value)


def _ranking(part: _Part) -> Ranking:
    labels = part.texts("labels")
    classes = []
    for group in part.get("classes", list):
        if not isinstance(group, list) or not set(map(str, group)) <= set(labels):
            raise part.wrong("has 'classes' that are not lists of its labels")
        classes.append(tuple(map(str, group)))
    matrix = part.get("matrix", list)
    if len(matrix) != len(labels) or not all(isinstance(row, list) and len(row) == len(labels) for row in matrix):
        raise part.wrong(f"has a 'matrix' that is not {len(labels)} by {len(labels)}")
    numbers = [[part.as_number("matrix", each) for each in row] for row in matrix]
    return Ranking(*_heading(part), labels, tuple(classes), np.array(numbers).reshape(len(labels), len(labels)))


def _front(part: _Part) -> Front:
    curve = _points(part.part("curve"))
    points = tuple(map(_points, part.parts("points", "point")))
    return Front(*_heading(part), part.text("x"), part.text("y"), curve, points)


def _points(part: _Part) -> Points:
    x, y = part.numbers("x"), part.numbers("y")
    if len(x) != len(y):
        raise part.wrong(f"has {len(x)} numbers in 'x' and {len(y)} in 'y'")
    return Points(part.text("label"), x, y)


def _claims(part: _Part) -> Claims:
    rows = []
    for each in part.parts("rows", "row"):
        if each.text("seen") not in ANSWERS:
            raise each.wrong(f"has the unknown answer {_brief(each.text('seen'))}; known are {', '.join(ANSWERS)}")
        rows.append(Claim(each.text("claim"), each.text("seen"), each.text("numbers", "")))
    return Claims(part.text("name", ""), part.text("title", ""), tuple(rows))


def _pictures(part: _Part) -> Pictures:
    folder, pictures = part.path.parent, []
    for each in part.parts("pictures", "picture"):
        file = folder / each.text("file")
        if not file.resolve().is_relative_to(folder.resolve()):
            raise each.wrong(f"names the file {_brief(each.text('file'))}, which is outside the experiment's folder")
        if file.suffix.lower() not in PICTURES:
            raise each.wrong(f"names the file {_brief(each.text('file'))}, which is no picture that a page can hold")
        pictures.append(Shown(file, each.text("alt"), each.text("label", "")))
    return Pictures(part.text("title", ""), part.text("caption", ""), tuple(pictures))


READERS = {
    "text": _text, "curves": _curves, "table": _table, "ranking": _ranking, "scaling": _scaling, "front": _front,
    "claims": _claims, "pictures": _pictures,
}  # fmt: skip


def _brief(found: Any) -> str:
    """What was found, on one line, and not too long."""
    text = repr(found)
    return text if len(text) <= 60 else f"{text[:57]}..."
