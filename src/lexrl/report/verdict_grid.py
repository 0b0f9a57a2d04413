"""The verdicts of runs on a page: one grid of seeds and objectives, to be read first; then sentences."""

from collections.abc import Sequence
from typing import NamedTuple

from lexrl.report import markup
from lexrl.report.markup import safe
from lexrl.report.run_folder import RunFolder
from lexrl.verdict import PHRASES, SYMBOLS, Status, Verdict


class JudgedRun(NamedTuple):
    """A run with its verdict, and what the page calls it."""

    title: str
    anchor: str
    """Of its part of the page; empty if it has none."""
    verdict: Verdict


def judged(runs: Sequence[tuple[str, str, RunFolder]]) -> list[JudgedRun]:
    """Those of titles, anchors and runs that have a verdict."""
    return [JudgedRun(title, anchor, found) for title, anchor, one in runs if (found := one.verdict) is not None]


def block(runs: Sequence[JudgedRun], heading: str = "h2") -> str:
    """All verdicts in one grid for each set of seeds; nothing if there is none."""
    if not runs:
        return ""
    marks = ", ".join(f"{_mark(status)} {PHRASES[status]}" for status in SYMBOLS)
    groups = [
        [one for one in runs if one.verdict.seeds == seeds] for seeds in dict.fromkeys(r.verdict.seeds for r in runs)
    ]
    return (
        f"<section class=verdicts aria-label='Verdicts'><{heading}>Was the priority kept?</{heading}>"
        f"<p class=caption>{marks}; a row for each objective that has something to keep, a column for each seed; at "
        f"95 % for all seeds and objectives of a run together.</p>{''.join(map(_grid, groups))}</section>"
    )


def details(one: RunFolder) -> str:
    """Everything that the verdict of a run says."""
    if (verdict := one.verdict) is None:
        return ""
    rows = "".join(f"<li>{_mark(status)} {markup.rich(text)}</li>" for status, text in verdict.lines())
    found = "".join(
        f"<tr><td class=number>{finding.seed}</td><td>{_mark(finding.status)} {safe(finding)}</td></tr>"
        for finding in verdict.findings
    )
    heads = "<tr><th scope=col>seed</th><th scope=col>finding</th></tr>"
    table = f"<table><thead>{heads}</thead><tbody>{found}</tbody></table>"
    every = f"<details><summary>Every finding</summary>{markup.scrollable('Findings')}{table}</div></details>"
    return f"<ul class=verdict>{rows}</ul>{every if verdict.findings else ''}"


def _grid(runs: Sequence[JudgedRun]) -> str:
    seeds = runs[0].verdict.seeds
    heads = "".join(f"<th scope=col aria-label='seed {seed}'>{seed}</th>" for seed in seeds)
    return (
        f"{markup.scrollable('Verdicts by seed')}<table style='--seeds:{len(seeds)}'><thead><tr>"
        "<th scope=col class=what>run</th><th scope=col class=what>objective</th>"
        f"{heads}<th scope=col class=what>in words</th></tr></thead>"
        f"{''.join(map(_of_run, runs))}</table></div>"
    )


def _of_run(one: JudgedRun) -> str:
    """A group of rows, one for each objective that has something to keep."""
    verdict = one.verdict
    names = [name for name in verdict.objectives if any(f.objective == name for f in verdict.findings)] or [""]
    title = f"<a href='#{safe(one.anchor)}'>{safe(one.title)}</a>" if one.anchor else safe(one.title)
    head = f"<th scope=rowgroup rowspan={len(names)}>{_mark(verdict.status)} {title}</th>"
    words = f"<td class=words rowspan={len(names)}>{safe(verdict.sentence)}</td>"
    rows = [
        f"<tr>{head if i == 0 else ''}<th scope=row>{safe(name)}</th>"
        f"{''.join(_cell(verdict, seed, name) for seed in verdict.seeds)}{words if i == 0 else ''}</tr>"
        for i, name in enumerate(names)
    ]
    return f"<tbody>{''.join(rows)}</tbody>"


def _cell(verdict: Verdict, seed: int, objective: str) -> str:
    status = verdict.of_objective(seed, objective)
    if status is None:
        return "<td class=none><span aria-label='nothing to compare with'>–</span></td>"
    own = [one for one in verdict.findings if (one.seed, one.objective, one.status) == (seed, objective, status)]
    return f"<td class={status} title='{safe(own[0])}'>{_mark(status)}</td>"


def _mark(status: Status | str | None) -> str:
    """The symbol of a status, which is read aloud as its word."""
    if status is None:
        return ""
    return f"<span class='mark {status}' role=img aria-label='{PHRASES[status]}'>{SYMBOLS[status]}</span>"
