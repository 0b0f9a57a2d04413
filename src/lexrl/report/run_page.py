"""Runs and exact solutions on a page: what they reached, how they compare, and how to repeat them."""

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lexrl import store
from lexrl.report import learning_curves, markup, page, palette, run_folder, stats, verdict_grid
from lexrl.report.learning_curves import Learned
from lexrl.report.markup import safe
from lexrl.report.run_folder import RankedRun, RunFolder, rank_runs
from lexrl.report.sections.front import Points
from lexrl.report.sections.plane import Plane
from lexrl.report.sections.table import Cell, Table

FILES = (("episode.gif", "An episode."), ("map.png", "What was learned."))


class Shown(NamedTuple):
    """A run, and what it measured while it learned."""

    found: RunFolder
    learned: Learned | None


def read(folder: pathlib.Path) -> Shown:
    """A run with everything that its part of the page needs."""
    one = run_folder.read(folder)
    one.verdict  # noqa: B018  an error here leaves out this run, later it would spoil the page
    if not (one.path / store.METRICS).is_file():
        return Shown(one, None)
    objectives = [str(objective) for objective in one.objectives]
    names = [objective.name for objective in one.objectives]
    return Shown(one, Learned(*one.metrics(), objectives, names, one.about["seeds"]))


def comparisons(finished: Sequence[RunFolder]) -> list[str]:
    """For each order and environment: the plane of the first two objectives, and a table if there are several runs."""
    parts, kinds = [], list(dict.fromkeys((one.objectives, one.env_name) for one in finished))
    for number, (order, env) in enumerate(kinds, 1):
        same = rank_runs([one for one in finished if (one.objectives, one.env_name) == (order, env)])
        sections = [_plane(same, f"plane-{number}")] if len(order) > 1 else []
        sections += [_ranked(same, f"comparison-{number}")] if len(same) > 1 else []
        if not sections:  # one run with one objective has nothing to be compared with
            continue
        where = f" on {env}" if len([one for one in kinds if one[0] == order]) > 1 else ""
        parts.append(f"<section><h2>{safe(' > '.join(map(str, order)) + where)}</h2>")
        styles = palette.assign([page.KINDS[section.kind].labels(section) for section in sections])
        parts += [page.html(section, styles) for section in sections]
        parts.append("</section>")
    return parts


def _titles(same: Sequence[RankedRun]) -> list[str]:
    """A title for each run, without the order, which is the same."""
    each = run_folder.titles([row.run for row in same])
    return [title.replace(f": {row.run.about['order']}", "") for title, row in zip(each, same, strict=True)]


def _plane(same: Sequence[RankedRun], name: str) -> Plane:
    order = same[0].run.objectives
    points = tuple(
        Points(title, row.run.final[:, 0], row.run.final[:, 1], tuple(row.run.about["seeds"]))
        for title, row in zip(_titles(same), same, strict=True)
    )
    caption = "Policies on fresh episodes: every seed small, their mean large with its 95 % intervals."
    return Plane(name, "Final returns", caption, f"{order[0]} per episode", f"{order[1]} per episode", points)


def _ranked(same: Sequence[RankedRun], name: str) -> Table:
    order = same[0].run.objectives
    rows = tuple(
        (
            Cell(title),
            Cell(str(row.rank), float(row.rank)),
            *(_cell(stats.mean(row.run.final[:, i])) for i in range(len(order))),
            Cell(row.compared),
        )
        for title, row in zip(_titles(same), same, strict=True)
    )
    heads = ("run", "class", *(f"{i + 1}. {objective}" for i, objective in enumerate(order)), "against the one above")
    caption = "Policies on fresh episodes: mean of the seeds, with its 95 % interval."
    return Table(name, "Comparison", caption, heads, rows)


def _cell(interval: stats.Interval) -> Cell:
    return Cell(str(interval), float(interval.middle))


def html(shown: Shown, title: str) -> str:
    """A run: its verdict, learning curves, what it reached, an episode if there is a video, and how to repeat it."""
    one = shown.found
    parts = [f"<header><h2 class=title>{safe(title)}</h2></header>"]
    if one.summary is None:
        parts.append("<p class=notice><b>This run is not finished.</b></p>")
    else:
        parts += [verdict_grid.details(one)]
        parts += [f"<p class=notice><b>{safe(sentence)}</b></p>" for sentence in one.summary["stopped"].values()]
    sections: list[Any] = [] if shown.learned is None else list(learning_curves.sections(shown.learned))
    sections += [] if one.summary is None else [_returns(one)]
    styles = palette.assign([[learning_curves.MEDIAN, learning_curves.THRESHOLD]])
    parts += [f"<section><h3>{safe(each.title)}</h3>{page.html(each, styles)}</section>" for each in sections]
    parts += [_image(one.path / name, caption) for name, caption in FILES]
    return "".join([*parts, _repeat(one)])


def _returns(one: RunFolder) -> Table:
    rows = []
    for i, objective in enumerate(one.objectives):
        values = one.final[:, i]
        worst, best = sorted((values.min(), values.max()), key=lambda value: objective.sign * value)
        extremes = (Cell(f"{value:.4g}", float(value)) for value in (worst, best))
        rows.append((Cell(f"{i + 1}. {objective}"), _cell(stats.mean(values)), *extremes))
    heads = ("objective", "mean of seeds [95 % interval]", "worst seed", "best seed")
    return Table("final", "What was learned", "Policies on fresh episodes.", heads, tuple(rows))


def _repeat(one: RunFolder) -> str:
    """Settings, environment, versions and commit."""
    seconds = "" if one.summary is None else f", {one.summary['seconds']:g} s"
    about = {key: one.about.get(key) for key in ("begun", "commit")}
    facts = {"Run": about, "Versions": one.about.get("versions"), "Machine": one.about.get("machine")}
    tables = "".join(markup.facts(title, part) for title, part in facts.items() if isinstance(part, Mapping))
    settings = {"algorithm": one.about.get("algorithm"), "env": one.env}
    command = one.about.get("command")  # none for a run that was begun from Python
    return (
        "<section class=run><h3>How to repeat it</h3>"
        f"<p>{markup.count(len(one.about['seeds']), 'seed')} x {one.total_timesteps:,} steps{seconds}</p>"
        f"{f'<pre><code>{safe(command)}</code></pre>' if command else ''}<details><summary>Settings and environment"
        f"</summary><pre>{safe(json.dumps(settings, indent=1))}</pre></details>"
        f"<details><summary>Versions, machine and commit</summary><div class=facts>{tables}</div></details></section>"
    )


def solution(place: pathlib.Path) -> tuple[str, str]:
    """An exact solution: its title, and its returns and pictures."""
    path = place / "solution.json"
    found = store.read_json(path)
    kinds = {"env": str, "order": str, "gamma": float | list[float], "returns": dict[str, float], "command": str}
    store.require(path, found, kinds)
    rows = tuple((Cell(name), Cell(f"{value:.6g}", float(value))) for name, value in found["returns"].items())
    table = Table("returns", "Returns", "", ("objective", f"J, gamma {found['gamma']}"), rows)
    title = f"{found['env']}, solved exactly: {found['order']}"
    parts = [
        f"<header><h2 class=title>{safe(title)}</h2></header>",
        page.html(table, {}),
        _image(place / "critical-slack.png", "What a slack on the first objective buys of the second, exactly."),
        _image(place / "map.png", "The optimum."),
        f"<section class=run><h3>How to repeat it</h3><pre><code>{safe(found['command'])}</code></pre></section>",
    ]
    return title, "".join(parts)


def _image(path: pathlib.Path, caption: str) -> str:
    if not path.is_file():
        return ""
    address = markup.image(path.suffix.removeprefix("."), path.read_bytes())
    shown = f"<img alt='{safe(caption)}' src='{address}'><figcaption>{safe(caption)}</figcaption>"
    return f"<section><figure class=shot>{shown}</figure></section>"
