"""A page of experiments, each a chapter made of sections: a single HTML file that needs nothing else.

`KINDS` is the only list of the kinds of sections; `add_kind` adds one from another package.
"""

import contextlib
import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from lexrl.errors import InputError
from lexrl.report import chapter, experiment, markup, palette, run_folder, verdict_grid
from lexrl.report.chart import Chart
from lexrl.report.checked import Checked, brief
from lexrl.report.experiment import Experiment
from lexrl.report.palette import Palette
from lexrl.report.picture import Picture
from lexrl.report.sections import claims, curves, front, images, plane, ranking, scaling, table, text
from lexrl.report.verdict_grid import JudgedRun


@runtime_checkable
class Kind(Protocol):
    """A file of `sections`; a section is a NamedTuple with a `kind`, a `name` and a `title`."""

    def read(self, part: Checked) -> Any: ...
    def write(self, section: Any, folder: pathlib.Path) -> dict[str, Any]: ...
    def labels(self, section: Any) -> list[str]: ...
    def html(self, section: Any, styles: Palette) -> str: ...
    def figure(self, section: Any, styles: Palette) -> Chart | Picture | None: ...
    def rows(self, section: Any) -> list[list[Any]]: ...


KINDS: dict[str, Kind] = {
    "text": text,
    "curves": curves,
    "table": table,
    "ranking": ranking,
    "scaling": scaling,
    "front": front,
    "plane": plane,
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
    judged: tuple[JudgedRun, ...] = ()
    """Those of its runs that have a verdict."""

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
    return Chapter(found, tuple(sections), tuple(_judged(found)))


def _judged(found: Experiment) -> list[JudgedRun]:
    """The verdicts of an experiment's runs; a run that cannot be read has none, and the chapter says so elsewhere."""
    runs = []
    for row in found.runs:
        with contextlib.suppress(InputError):
            name = "/".join(part for part in pathlib.PurePath(row.folder).parts if part not in ("..", "runs"))
            title = row.label if name == row.label else f"{row.label} ({name})"
            runs += verdict_grid.judged([(title, "", run_folder.read(found.folder / row.folder))])
    return runs


def write(section: Any, folder: pathlib.Path) -> dict[str, Any]:
    """A section as it goes into `experiment.json`; files that belong to it go to the folder."""
    return {"kind": section.kind} | KINDS[section.kind].write(section, folder)


class Part(NamedTuple):
    """A chapter about something else than an experiment."""

    anchor: str
    title: str
    html: str


def document(
    title: str, folders: Sequence[pathlib.Path], parts: Sequence[Part] = (), first: str = "", failed: Sequence[str] = ()
) -> str:
    """A page of experiments and other chapters; what cannot be read is named at the top.

    Args:
        title: of the page, if it has more than one chapter.
        folders: each with an `experiment.json`.
        parts: after the experiments.
        first: HTML before all chapters.
        failed: what could not be read elsewhere.
    """
    found, failed = [], list(failed)
    for folder in folders:
        try:
            found.append(read(folder))
        except InputError as error:
            failed.append(str(error))
    if not found and not parts:
        raise InputError(failed[0] if failed else "There is no experiment to report.")
    found.sort(key=lambda each: each.experiment.position)
    styles = palette.assign([each.labels() for each in found])
    anchors = _anchors(found)
    alone = len(found) == 1 and not parts
    title = found[0].experiment.title if alone else title
    cover = chapter.cover([each.experiment for each in found]) if found else ""
    body = [
        "<div class=book>", _contents(found, anchors, parts), "<main>",
        "" if alone else f"<header class=cover><h1>{markup.safe(title)}</h1><p class=lead>{cover}</p></header>",
        *(f"<p class=notice><b>Left out:</b> {markup.rich(sentence)}</p>" for sentence in failed), first,
        *(_chapter(*each, styles, "h1" if alone else "h2") for each in zip(found, anchors, strict=True)),
        *(f"<article class=chapter id='{part.anchor}'>{part.html}</article>" for part in parts), "</main></div>",
    ]  # fmt: skip
    page = markup.document(title, "".join(body))
    return page.encode(errors="replace").decode()  # JSON may hold lone surrogates, which no file can


def _chapter(found: Chapter, anchor: str, styles: Palette, heading: str) -> str:
    sections = []
    for number, section in enumerate(found.sections, 1):
        head = f"<h3>{markup.safe(section.title)}</h3>" if section.title else ""
        sections.append(f"<section id='{anchor}-{number}'>{head}{html(section, styles)}</section>")
    verdicts = verdict_grid.block(found.judged, "h3")
    return chapter.html(found.experiment, verdicts, sections, anchor, heading)


def html(section: Any, styles: Palette) -> str:
    """What the page shows of a section, without its title."""
    return KINDS[section.kind].html(section, styles)


def _contents(chapters: Sequence[Chapter], anchors: Sequence[str], parts: Sequence[Part]) -> str:
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
    items += [f"<li><a href='#{part.anchor}'>{markup.safe(part.title)}</a>" for part in parts]
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
