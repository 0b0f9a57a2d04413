"""A page of experiments, each a chapter made of sections: a single HTML file that needs nothing else.

`KINDS` is the only list of the kinds of sections; `add_kind` adds one from another package.
"""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from lexrl.errors import InputError
from lexrl.report import chapter, experiment, markup, palette
from lexrl.report.checked import Checked, brief
from lexrl.report.experiment import Experiment
from lexrl.report.palette import Palette
from lexrl.report.picture import Picture
from lexrl.report.sections import claims, curves, front, images, ranking, scaling, table, text


@runtime_checkable
class Kind(Protocol):
    """A file of `sections`; a section is a NamedTuple with a `kind`, a `name` and a `title`."""

    def read(self, part: Checked) -> Any: ...
    def write(self, section: Any, folder: pathlib.Path) -> dict[str, Any]: ...
    def labels(self, section: Any) -> list[str]: ...
    def html(self, section: Any, styles: Palette) -> str: ...
    def figure(self, section: Any, styles: Palette) -> Picture | None: ...
    def rows(self, section: Any) -> list[list[Any]]: ...


KINDS: dict[str, Kind] = {
    "text": text,
    "curves": curves,
    "table": table,
    "ranking": ranking,
    "scaling": scaling,
    "front": front,
    "claims": claims,
    "images": images,
}


def add_kind(name: str, kind: Kind) -> None:
    """Add a kind of section, usually a module: `add_kind("histogram", my_package.histogram)`."""
    if KINDS.get(name, kind) is not kind:
        raise InputError(f"There is a kind of section called {name!r} already; choose another name.")
    KINDS[name] = kind


class Chapter(NamedTuple):
    """An experiment and its sections."""

    experiment: Experiment
    sections: tuple[Any, ...]

    def labels(self) -> list[str]:
        """What is drawn, in order of appearance."""
        found = [label for section in self.sections for label in KINDS[section.kind].labels(section)]
        return list(dict.fromkeys(found))


def read(folder: pathlib.Path) -> Chapter:
    """The experiment in a folder with its sections; those that have data get names for their files."""
    found = experiment.read(folder)
    sections, names = [], set()
    for part in found.sections:
        kind = part.text("kind")
        if kind not in KINDS:
            raise part.error(f"has the unknown kind {brief(kind)}; known are {', '.join(KINDS)}")
        section = KINDS[kind].read(dataclasses.replace(part, where=f"{part.where} ({kind})"))
        if KINDS[kind].rows(section):
            section = section._replace(name=_unused(section.name or section.title or kind, names))
        sections.append(section)
    return Chapter(found, tuple(sections))


def write(section: Any, folder: pathlib.Path) -> dict[str, Any]:
    """A section as it goes into `experiment.json`; files that belong to it go to the folder."""
    return {"kind": section.kind} | KINDS[section.kind].write(section, folder)


def document(title: str, folders: Sequence[pathlib.Path], rest: str = "", style: str = "") -> str:
    """A page of experiments; those that cannot be read are named at the top.

    Args:
        title: of the page, if it has more than one chapter.
        folders: each with an `experiment.json`.
        rest: HTML after the chapters.
        style: CSS for the rest.
    """
    found, failed = [], []
    for folder in folders:
        try:
            found.append(read(folder))
        except InputError as error:
            failed.append(str(error))
    if not found and not rest:
        raise InputError(failed[0] if failed else "There is no experiment to report.")
    found.sort(key=lambda each: each.experiment.position)
    styles = palette.assign([each.labels() for each in found])
    anchors = _anchors(found)
    alone = len(found) == 1 and not rest
    title = found[0].experiment.title if alone else title
    cover = chapter.cover([each.experiment for each in found])
    body = [
        "<div class=book>", _contents(found, anchors), "<main>",
        "" if alone else f"<header class=cover><h1>{markup.safe(title)}</h1><p class=lead>{cover}</p></header>",
        *(f"<p class=notice><b>Left out:</b> {markup.rich(sentence)}</p>" for sentence in failed),
        *(_chapter(*each, styles, "h1" if alone else "h2") for each in zip(found, anchors, strict=True)),
        rest, "</main></div>", f"<script>{markup.asset('script.js')}</script>",
    ]  # fmt: skip
    page = markup.document(title, style + markup.style(), "".join(body))
    return page.encode(errors="replace").decode()  # JSON may hold lone surrogates, which no file can


def _chapter(found: Chapter, anchor: str, styles: Palette, heading: str) -> str:
    sections = []
    for number, section in enumerate(found.sections, 1):
        head = f"<h3>{markup.safe(section.title)}</h3>" if section.title else ""
        inside = KINDS[section.kind].html(section, styles)
        sections.append(f"<section id='{anchor}-{number}'>{head}{inside}</section>")
    return chapter.html(found.experiment, sections, anchor, heading)


def _contents(chapters: Sequence[Chapter], anchors: Sequence[str]) -> str:
    """Links to all chapters and sections; a sticky column on a wide screen."""
    items = []
    for each, anchor in zip(chapters, anchors, strict=True):
        inner = [
            f"<li><a href='#{anchor}-{number}'>{markup.safe(section.title)}</a>"
            for number, section in enumerate(each.sections, 1)
            if section.title
        ]
        inner.append(f"<li><a href='#{anchor}-run'>What was run</a>")
        items.append(f"<li><a href='#{anchor}'>{markup.safe(each.experiment.title)}</a><ol>{''.join(inner)}</ol>")
    return (
        "<nav class=contents aria-label=Contents><details open><summary>Contents</summary>"
        f"<ol>{''.join(items)}</ol></details></nav>"
    )


def _anchors(chapters: Sequence[Chapter]) -> list[str]:
    """A name for each chapter, to link to."""
    names: list[str] = []
    for each in chapters:
        base = markup.file_name(f"{each.experiment.name} {each.experiment.size}") or "experiment"
        names.append(base if base not in names else f"{base}-{len(names) + 1}")
    return names


def _unused(wanted: str, names: set[str]) -> str:
    """A file name that is not among the names yet; it is added to them."""
    base = markup.file_name(wanted) or "section"
    number, name = 1, base
    while name in names:
        number += 1
        name = f"{base}-{number}"
    names.add(name)
    return name
