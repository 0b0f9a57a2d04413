"""Experiments as chapters of a page: their charts, tables and answers, what was run, and the numbers to take along.

document(title, folders)    the whole page
write_figures(folder)       its charts as PNG and SVG files
write_data(folder)          its numbers as CSV files
"""

import base64
import datetime
import html
import io
import json
import math
import pathlib
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

import PIL.Image

from lexrl import store
from lexrl.errors import InputError
from lexrl.report import charts, form, inline, looks, reader, tidy
from lexrl.report.form import (
    Cell,
    Claims,
    Experiment,
    Front,
    Lines,
    Panel,
    Pictures,
    Ranking,
    Run,
    Section,
    Table,
    Text,
)
from lexrl.report.looks import Looks
from lexrl.report.script import SCRIPT, STYLE
from lexrl.report.stats import Interval

EMBEDDED = 400_000
"""Characters of CSV that a page holds for one section; what is longer is in the folder `data` only."""
LARGE, WIDEST = 40_000, 720
"""A picture of more bytes than this is made smaller for the page, to this many pixels across."""

below = reader.below


def document(title: str, folders: Sequence[pathlib.Path], rest: str = "", style: str = "") -> str:
    """A page of experiments, each a chapter; those that cannot be read are told on top.

    Args:
        title: of the page, if it has more than one chapter.
        folders: each with an `experiment.json`.
        rest: HTML that comes after the chapters.
        style: CSS that the rest needs.
    """
    found, failed = [], []
    for folder in folders:
        try:
            found.append(reader.read(folder))
        except InputError as error:
            failed.append(str(error))
    if not found and not rest:
        raise InputError(failed[0] if failed else "There is no experiment to report.")
    found.sort(key=lambda each: each.place)
    look = looks.assigned([form.labels(each.sections) for each in found])
    anchors = _anchors(found)
    alone = len(found) == 1 and not rest
    chapters = [
        _chapter(each, look, anchor, "h1" if alone else "h2") for each, anchor in zip(found, anchors, strict=True)
    ]
    title = found[0].title if alone else title
    head = "" if alone else f"<header class=cover><h1>{_safe(title)}</h1><p class=lead>{_cover(found)}</p></header>"
    notes = "".join(f"<p class=notice><b>Left out:</b> {_rich(sentence)}</p>" for sentence in failed)
    text = (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{_safe(title)}</title>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<link rel=icon href='data:,'><style>{style}{STYLE}</style></head><body><div class=book>"
        f"{_contents(found, anchors)}<main>{head}{notes}{''.join(chapters)}{rest}</main></div>"
        f"<script>{SCRIPT}</script></body></html>"
    )
    return text.encode(errors="replace").decode()  # JSON can hold halves of letters, which no file can


def runs_of(folder: pathlib.Path) -> set[pathlib.Path]:
    """The folders of an experiment's runs; none of one that cannot be read."""
    try:
        return {(folder / run.folder).resolve() for run in reader.read(folder).runs}
    except InputError:
        return set()


def write_figures(folder: pathlib.Path) -> list[pathlib.Path]:
    """Every chart of an experiment as `figures/NAME.png` and `figures/NAME.svg`."""
    experiment = reader.read(folder)
    look = looks.assigned([form.labels(experiment.sections)])
    written = []
    for section in experiment.sections:
        if isinstance(section, Lines | Front | Ranking):
            picture = charts.drawn(section, look)
            for kind, content in (("png", picture.png), ("svg", picture.svg)):
                written.append(folder / "figures" / f"{section.name}.{kind}")
                store.write_bytes(written[-1], content)
    return written


def write_data(folder: pathlib.Path) -> list[pathlib.Path]:
    """The numbers of every section of an experiment as `data/NAME.csv`."""
    written = []
    for section in reader.read(folder).sections:
        if not isinstance(section, Text | Pictures):
            written.append(folder / "data" / f"{section.name}.csv")
            store.write_bytes(written[-1], tidy.csv_text(section).encode())
    return written


def _anchors(experiments: Sequence[Experiment]) -> list[str]:
    """A name for each chapter, to link to."""
    names: list[str] = []
    for each in experiments:
        base = form.plain(f"{each.name} {each.size}") or "experiment"
        names.append(base if base not in names else f"{base}-{len(names) + 1}")
    return names


def _cover(experiments: Sequence[Experiment]) -> str:
    done = [(each, run) for each in experiments for run in each.runs if run.state == "finished"]
    runs = {(each.folder.parent, run.folder): run for each, run in done}  # some are shared
    seconds = sum((run.seconds for run in runs.values() if math.isfinite(run.seconds)), 0.0)
    sizes = ", ".join(f"{size} size" for size in dict.fromkeys(each.size for each in experiments) if size)
    many = f"{_count(len(experiments), 'experiment')}, {_count(len(runs), 'run')}, {_duration(seconds)} of computing."
    return _safe(f"{sizes}: {many}" if sizes else many)


def _contents(experiments: Sequence[Experiment], anchors: Sequence[str]) -> str:
    """Links to all chapters and sections; a sticky column where there is room."""
    items = []
    for each, anchor in zip(experiments, anchors, strict=True):
        inner = [
            f"<li><a href='#{anchor}-{number}'>{_safe(section.title)}</a>"
            for number, section in enumerate(each.sections, 1)
            if section.title
        ]
        inner.append(f"<li><a href='#{anchor}-run'>What was run</a>")
        items.append(f"<li><a href='#{anchor}'>{_safe(each.title)}</a><ol>{''.join(inner)}</ol>")
    return (
        "<nav class=contents aria-label=Contents><details open><summary>Contents</summary>"
        f"<ol>{''.join(items)}</ol></details></nav>"
    )


def _chapter(experiment: Experiment, look: Looks, anchor: str, level: str) -> str:
    parts = [
        f"<article class=chapter id='{anchor}'><header><p class=kicker>{_kicker(experiment)}</p>",
        f"<{level} class=title>{_safe(experiment.title)}</{level}>",
        f"<p class=lead>{_rich(experiment.question)}</p></header>",
        _notice(experiment, anchor),
    ]
    if not experiment.sections:
        parts.append("<p>There are no results yet.</p>")
    for number, section in enumerate(experiment.sections, 1):
        parts.append(_section(section, look, f"{anchor}-{number}"))
    return "".join([*parts, _what_was_run(experiment, f"{anchor}-run"), "</article>"])


def _kicker(experiment: Experiment) -> str:
    """The facts in a line: size, runs, time, day, commit."""
    facts = [f"{experiment.size} size" if experiment.size else "", _count(len(experiment.runs), "run")]
    if math.isfinite(experiment.seconds):
        facts.append(_duration(experiment.seconds))
    facts += [
        _day(experiment.begun),
        f"{'commits' if ',' in experiment.commit else 'commit'} {experiment.commit}" if experiment.commit else "",
    ]
    return " <span aria-hidden=true>·</span> ".join(_safe(fact) for fact in facts if fact)


def _notice(experiment: Experiment, anchor: str) -> str:
    """Says on top that runs are missing."""
    if not experiment.broken:
        return ""
    names = list(dict.fromkeys(run.label for run in experiment.broken))
    some = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return (
        f"<p class=notice role=note><b>{len(experiment.broken)} of {_count(len(experiment.runs), 'run')} "
        f"did not finish</b> ({_safe(some)}); the rest is shown. <a href='#{anchor}-run'>Which and why</a></p>"
    )


def _section(section: Section, look: Looks, anchor: str) -> str:
    head = f"<h3>{_safe(section.title)}</h3>" if section.title else ""
    if isinstance(section, Text):
        body = "".join(f"<p>{_rich(each)}</p>" for each in section.paragraphs)
    elif isinstance(section, Lines | Front):
        body = _figure(section, look)
    elif isinstance(section, Table):
        body = _table(section, look)
    elif isinstance(section, Ranking):
        body = _ranking(section, look)
    elif isinstance(section, Claims):
        body = _claims(section)
    else:
        body = _pictures(section)
    return f"<section id='{anchor}'>{head}{body}</section>"


def _figure(section: Lines | Front, look: Looks) -> str:
    """Charts side by side under one legend; their numbers again for the page's script."""
    if isinstance(section, Front):
        drawn = [(inline.front(section, look), "", "")]
        labels = [section.curve.label, *(points.label for points in section.points)]
    else:
        drawn = [(inline.lines(section, panel, look), panel.title, _exponents(panel, look)) for panel in section.panels]
        labels = list(dict.fromkeys(series.label for panel in section.panels for series in panel.series))
    keys = "".join(f"<li class=key data-l='{_safe(label)}'>{inline.key(label, look)}{_safe(label)}" for label in labels)
    panels = "".join(
        f"<div class=panel>{f'<h4>{_safe(title)}</h4>' if title else ''}<div class=plot>{chart.svg}</div>{below}</div>"
        for chart, title, below in drawn
    )
    data = json.dumps([chart.data for chart, _, _ in drawn], separators=(",", ":")).replace("<", "\\u003c")
    return (
        f"<figure class='charts of{min(len(drawn), 3)}' data-name='{section.name}'>"
        f"<ul class=legend aria-label='What is drawn'>{keys}</ul>"
        f"<div class=panels>{panels}</div>{_caption(section)}"
        f"<script type=application/json class=numbers>{data}</script></figure>"
    )


def _exponents(panel: Panel, look: Looks) -> str:
    """The fitted powers under a panel of a scaling."""
    fitted = [(series.label, series.exponent) for series in panel.series if series.exponent is not None]
    if not fitted:
        return ""
    rows = "".join(
        f"<tr><th scope=row>{inline.key(label, look)}{_safe(label)}</th>"
        f"{_cell(Cell(str(Interval(*exponent)), exponent[0]), False, False, look)}</tr>"
        for label, exponent in fitted
    )
    heads = "<th scope=col>series</th><th scope=col>exponent [95 % interval]</th>"
    return (
        f"{_wide(f'Exponents, {panel.title}')}<table class='sortable small'><thead><tr>{heads}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _table(section: Table, look: Looks) -> str:
    numeric = [all(row[i].value is not None for row in section.rows) for i in range(len(section.heads))]
    heads = "".join(
        f"<th scope=col{' class=number' if is_number else ''}>{_safe(head)}</th>"
        for head, is_number in zip(section.heads, numeric, strict=True)
    )
    rows = "".join(
        f"<tr>{''.join(_cell(cell, i == 0, numeric[i], look) for i, cell in enumerate(row))}</tr>"
        for row in section.rows
    )
    return (
        f"<figure class=tabular data-name='{section.name}'>{_wide(section.title or section.name)}"
        f"<table class=sortable><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        f"{_caption(section)}</figure>"
    )


def _wide(label: str) -> str:
    """The beginning of a part that scrolls to the side where the screen is narrow, by keys too."""
    return f"<div class=wide tabindex=0 role=region aria-label='{_safe(label)}'>"


def _cell(cell: Cell, first: bool, numeric: bool, look: Looks) -> str:
    value = "" if cell.value is None or not math.isfinite(cell.value) else f" data-v='{cell.value:.10g}'"
    if first and not numeric:
        key = inline.key(cell.text, look) if cell.text in look else ""
        return f"<th scope=row{value}>{key}{_rich(cell.text)}</th>"
    found = re.fullmatch(r"(\S+) (\[.*\])", cell.text)
    text = f"{_safe(found[1])} <small>{_safe(found[2])}</small>" if found else _rich(cell.text)
    return f"<td{' class=number' if numeric else ''}{value}>{text}</td>"


def _ranking(section: Ranking, look: Looks) -> str:
    """The classes as steps, and how sure each comparison is as a table with shades."""
    steps = "".join(
        "<li><span class=class>"
        + "".join(f"<span class=who>{inline.key(label, look)}{_safe(label)}</span>" for label in group)
        + f"</span>{' <small>undecided among these</small>' if len(group) > 1 else ''}"
        for group in section.classes
    )
    heads = "".join(f"<th scope=col><span>{_safe(label)}</span></th>" for label in section.labels)
    rows = "".join(
        f"<tr><th scope=row>{inline.key(label, look)}{_safe(label)}</th>"
        + "".join(_chance(section, i, j) for j in range(len(section.labels)))
        + "</tr>"
        for i, label in enumerate(section.labels)
    )
    return (
        f"<figure class=ranking data-name='{section.name}'>"
        f"<ol class=classes aria-label='From best to worst'>{steps}</ol>"
        f"{_wide('How probable it is that the row is better than the column')}"
        f"<table class=matrix><thead><tr><th scope=col><small>row better than column</small></th>{heads}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>{_caption(section)}</figure>"
    )


def _chance(section: Ranking, i: int, j: int) -> str:
    value = section.matrix[i, j]
    if i == j or not math.isfinite(value):
        return f"<td class=none>{'·' if i == j else '–'}</td>"
    lead = section.lead(i, j)
    return f"<td class={'over' if lead >= 0 else 'under'} style='--p:{round(abs(lead) * 45)}%'>{value:.2f}</td>"


def _claims(section: Claims) -> str:
    rows = "".join(
        f"<tr><th scope=row>{_rich(row.claim)}</th><td>{_answer(row.seen)}</td><td>{_rich(row.numbers)}</td></tr>"
        for row in section.rows
    )
    heads = "".join(f"<th scope=col>{head}</th>" for head in ("What the paper says", "Seen here", "Numbers"))
    return (
        f"<figure class='tabular claims'><table class=sortable><thead><tr>{heads}</tr></thead>"
        f"<tbody>{rows}</tbody></table>{_caption(section)}</figure>"
    )


def _answer(word: str) -> str:
    """A word in its colour, with a sign in front."""
    return f"<span class='answer {word.split()[0]}'>{word}</span>"


def _caption(section: Lines | Front | Table | Ranking | Claims) -> str:
    caption = "" if isinstance(section, Claims) else section.caption
    text = f"<span>{_rich(caption)}</span>" if caption else ""
    return f"<figcaption>{text}{_download(section)}</figcaption>"


def _download(section: Lines | Front | Table | Ranking | Claims) -> str:
    content = tidy.csv_text(section)
    if len(content) > EMBEDDED:
        return f"<span class=csv>data: <code>data/{section.name}.csv</code></span>"
    address = "data:text/csv;charset=utf-8," + urllib.parse.quote(content, safe=",;:/?@$!*()-_.~+=[]|")
    name = section.title or section.name
    return (
        f"<a class=csv download='{section.name}.csv' href='{address}' aria-label='Data of {_safe(name)} as CSV'>"
        "data (CSV)</a>"
    )


def _pictures(section: Pictures) -> str:
    shown = []
    for each in section.pictures:
        label = f"<figcaption>{_safe(each.label)}</figcaption>" if each.label else ""
        try:
            picture = f"<img alt='{_safe(each.alt)}' src='{_embedded(each.file)}'>"
        except InputError as error:
            picture = f"<p class=absent>{_safe(error)}</p>"
        shown.append(f"<figure class=picture>{picture}{label}</figure>")
    caption = f"<p class=caption>{_rich(section.caption)}</p>" if section.caption else ""
    return f"<div class=pictures>{''.join(shown)}</div>{caption}"


def _embedded(path: pathlib.Path) -> str:
    """A picture as an address; a large one is made smaller, and the folder keeps the original."""
    if not path.is_file():
        raise InputError(f"The picture {path.name!r} is missing.")
    kind, content = form.PICTURES[path.suffix.lower()], path.read_bytes()
    if kind == "png" and len(content) > LARGE:
        try:
            content = min(_smaller(content), content, key=len)
        except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError):
            raise store.Damaged(f"The picture {path.name!r} is damaged.") from None
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def _smaller(content: bytes) -> bytes:
    with PIL.Image.open(io.BytesIO(content)) as picture:
        image = picture.convert("RGB")
    image.thumbnail((WIDEST, 2 * WIDEST))
    buffer = io.BytesIO()
    image.quantize(128).save(buffer, "png", optimize=True)
    return buffer.getvalue()


def _what_was_run(experiment: Experiment, anchor: str) -> str:
    """Commands, versions, machine and every run; open if some did not finish."""
    broken = len(experiment.broken)
    state = f"{broken} not finished" if broken else "all finished"
    facts = {"begun": experiment.begun, "commit": experiment.commit}
    if math.isfinite(experiment.seconds):
        facts["time"] = _duration(experiment.seconds)
    command = f"<pre><code>{_safe(experiment.command)}</code></pre>" if experiment.command else ""
    listed = "".join(map(_run, experiment.runs))
    heads = "".join(f"<th scope=col>{head}</th>" for head in ("Run", "State", "Seeds", "Steps", "Time"))
    return (
        f"<section id='{anchor}' class=run><h3>What was run</h3>{command}"
        f"<details{' open' if broken else ''}><summary>{_count(len(experiment.runs), 'run')}, {state}</summary>"
        f"{_wide('Runs')}<table class='sortable runs'><thead><tr>{heads}</tr></thead>"
        f"<tbody>{listed}</tbody></table></div></details>"
        "<details><summary>Versions and machine</summary><div class=facts>"
        f"{_facts('Run', facts)}{_facts('Versions', experiment.versions)}{_facts('Machine', experiment.machine)}"
        "</div></details></section>"
    )


def _run(run: Run) -> str:
    command = f"<code>{_safe(run.command)}</code>" if run.command else ""
    why = f"<p class=why>{_rich(run.why)}</p>" if run.why else ""
    seconds = "–" if not math.isfinite(run.seconds) else _duration(run.seconds)
    value = f" data-v='{run.seconds:.6g}'" if math.isfinite(run.seconds) else ""
    return (
        f"<tr><th scope=row>{_safe(run.label)} <small>{_safe(run.folder)}</small>{why}{command}</th>"
        f"<td>{_answer(run.state)}</td><td class=number data-v='{run.seeds}'>{run.seeds:,}</td>"
        f"<td class=number data-v='{run.steps}'>{inline.short(float(run.steps))}</td>"
        f"<td class=number{value}>{seconds}</td></tr>"
    )


def _facts(title: str, facts: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<dt>{_safe(key)}</dt><dd>{_safe(value if isinstance(value, str) else json.dumps(value))}</dd>"
        for key, value in facts.items()
        if value not in ("", None)
    )
    return f"<div><h4>{title}</h4><dl>{rows}</dl></div>" if rows else ""


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _day(begun: str) -> str:
    """The day of a moment as people write it; anything else as it stands."""
    try:
        moment = datetime.datetime.fromisoformat(begun)
    except ValueError:
        return begun
    return f"{moment.day} {moment:%B %Y}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _rich(text: str) -> str:
    """Text with `code` in it."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", _safe(text))


def _safe(text: object) -> str:
    return html.escape(str(text), quote=True)
