"""The verdicts of runs on a page: a grid of seeds and objectives for each run, then sentences."""

from collections.abc import Sequence

from lexrl.report import markup
from lexrl.report.markup import safe
from lexrl.report.run_folder import RunFolder
from lexrl.verdict import PHRASES, SYMBOLS, Status, Verdict


def block(runs: Sequence[RunFolder]) -> list[str]:
    """The verdicts of all runs that have one, to be read first; empty if none has."""
    judged = [(one, verdict) for one in runs if (verdict := one.verdict) is not None]
    if not judged:
        return []
    marks = ", ".join(f"{SYMBOLS[status]} {PHRASES[status]}" for status in SYMBOLS)
    return [
        "<section class=verdicts aria-label='Verdicts'><h2>Was the priority kept?</h2>",
        f"<p class=lead>{marks}; at 95 % for all seeds and objectives of a run together.</p>",
        *(_of_run(one, verdict) for one, verdict in judged),
        "</section>",
    ]


def details(one: RunFolder) -> str:
    """Everything that the verdict of a run says."""
    if (verdict := one.verdict) is None:
        return ""
    rows = "".join(f"<li>{_mark(status)} {markup.rich(text)}</li>" for status, text in verdict.lines())
    found = "".join(
        f"<tr><td class=number>{finding.seed}</td><td>{_mark(finding.status)} {safe(finding)}</td></tr>"
        for finding in verdict.findings
    )
    table = f"<table><thead><tr><th>seed</th><th>finding</th></tr></thead><tbody>{found}</tbody></table>"
    every = f"<details><summary>Every finding</summary>{markup.scrollable('Findings')}{table}</div></details>"
    return f"<ul class=verdict>{rows}</ul>{every if verdict.findings else ''}"


def _of_run(one: RunFolder, verdict: Verdict) -> str:
    """A row for each objective that has something to keep, a column for each seed."""
    judged = [name for name in verdict.objectives if any(f.objective == name for f in verdict.findings)]
    heads = "".join(f"<th scope=col>{seed}</th>" for seed in verdict.seeds)
    rows = "".join(
        f"<tr><th scope=row>{safe(name)}</th>{''.join(_cell(verdict, seed, name) for seed in verdict.seeds)}</tr>"
        for name in judged
    )
    table = (
        f"{markup.scrollable(f'Verdicts of {one.title}')}<table class=grid>"
        f"<thead><tr><th scope=col>seed</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
    title = f"<a href='#{safe(one.path.name)}'>{safe(one.title)}</a>"
    return f"<h3>{_mark(verdict.status)} {title}: {safe(verdict.sentence)}</h3>{table if judged else ''}"


def _cell(verdict: Verdict, seed: int, objective: str) -> str:
    status = verdict.of_objective(seed, objective)
    if status is None:
        return "<td class=none><span aria-label='nothing to compare with'>–</span></td>"
    own = [one for one in verdict.findings if (one.seed, one.objective, one.status) == (seed, objective, status)]
    return f"<td class={status} title='{safe(own[0])}'>{_mark(status)}</td>"


def _mark(status: Status | None) -> str:
    """The symbol of a status, which is read aloud as its word."""
    if status is None:
        return ""
    return f"<span class='mark {status}' role=img aria-label='{PHRASES[status]}'>{SYMBOLS[status]}</span>"
