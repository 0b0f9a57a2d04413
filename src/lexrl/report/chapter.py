"""The frame of an experiment's chapter: its heading, what is missing, and what was run."""

import math
from collections.abc import Sequence

from lexrl.report import markup
from lexrl.report.experiment import Experiment, RunRow
from lexrl.report.markup import answer, count, day, duration, rich, safe, scrollable
from lexrl.report.numbers import format_tick


def html(experiment: Experiment, verdicts: str, sections: Sequence[str], anchor: str, heading: str) -> str:
    """A chapter from the HTML of its verdicts and its sections; `heading` is the tag of its title."""
    parts = [
        f"<article class=chapter id='{anchor}'><header><p class=kicker>{_kicker(experiment)}</p>",
        f"<{heading} class=title>{safe(experiment.title)}</{heading}>",
        f"<p class=lead>{rich(experiment.question)}</p></header>",
        _notice(experiment, anchor),
        verdicts,
        *(sections or ["<p>There are no results yet.</p>"]),
        _what_was_run(experiment, f"{anchor}-run"),
        "</article>",
    ]
    return "".join(parts)


def cover(experiments: Sequence[Experiment]) -> str:
    """One line about all experiments; runs that several of them share count once."""
    done = [(each, run) for each in experiments for run in each.runs if run.state == "finished"]
    runs = {(each.folder.parent, run.folder): run for each, run in done}
    seconds = sum((run.seconds for run in runs.values() if math.isfinite(run.seconds)), 0.0)
    sizes = ", ".join(f"{size} size" for size in dict.fromkeys(each.size for each in experiments) if size)
    many = f"{count(len(experiments), 'experiment')}, {count(len(runs), 'run')}, {duration(seconds)} of computing."
    return safe(f"{sizes}: {many}" if sizes else many)


def _kicker(experiment: Experiment) -> str:
    """The facts in a line: size, runs, time, date, commit."""
    facts = [f"{experiment.size} size" if experiment.size else "", count(len(experiment.runs), "run")]
    if math.isfinite(experiment.seconds):
        facts.append(duration(experiment.seconds))
    facts += [
        day(experiment.begun),
        f"{'commits' if ',' in experiment.commit else 'commit'} {experiment.commit}" if experiment.commit else "",
    ]
    return " <span aria-hidden=true>·</span> ".join(safe(fact) for fact in facts if fact)


def _notice(experiment: Experiment, anchor: str) -> str:
    """A warning on top if runs are missing."""
    missing = experiment.unfinished
    if not missing:
        return ""
    names = list(dict.fromkeys(run.label for run in missing))
    some = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return (
        f"<p class=notice role=note><b>{len(missing)} of {count(len(experiment.runs), 'run')} "
        f"did not finish</b> ({safe(some)}); the rest is shown. <a href='#{anchor}-run'>Which and why</a></p>"
    )


def _what_was_run(experiment: Experiment, anchor: str) -> str:
    """The command, all runs, versions and machine; the list of runs is open if some did not finish."""
    missing = len(experiment.unfinished)
    state = f"{missing} not finished" if missing else "all finished"
    facts = {"begun": experiment.begun, "commit": experiment.commit}
    if math.isfinite(experiment.seconds):
        facts["time"] = duration(experiment.seconds)
    command = f"<pre><code>{safe(experiment.command)}</code></pre>" if experiment.command else ""
    listed = "".join(map(_run, experiment.runs))
    heads = "".join(f"<th scope=col>{head}</th>" for head in ("Run", "State", "Seeds", "Steps", "Time"))
    return (
        f"<section id='{anchor}' class=run><h3>What was run</h3>{command}"
        f"<details{' open' if missing else ''}><summary>{count(len(experiment.runs), 'run')}, {state}</summary>"
        f"{scrollable('Runs')}<table class='sortable runs'><thead><tr>{heads}</tr></thead>"
        f"<tbody>{listed}</tbody></table></div></details>"
        "<details><summary>Versions and machine</summary><div class=facts>"
        f"{markup.facts('Run', facts)}{markup.facts('Versions', experiment.versions)}"
        f"{markup.facts('Machine', experiment.machine)}"
        "</div></details></section>"
    )


def _run(run: RunRow) -> str:
    command = f"<code>{safe(run.command)}</code>" if run.command else ""
    why = f"<p class=why>{rich(run.why)}</p>" if run.why else ""
    seconds = "–" if not math.isfinite(run.seconds) else duration(run.seconds)
    value = f" data-v='{run.seconds:.6g}'" if math.isfinite(run.seconds) else ""
    return (
        f"<tr><th scope=row>{safe(run.label)} <small>{safe(run.folder)}</small>{why}{command}</th>"
        f"<td>{answer(run.state)}</td><td class=number data-v='{run.seeds}'>{run.seeds:,}</td>"
        f"<td class=number data-v='{run.total_timesteps}'>{format_tick(float(run.total_timesteps))}</td>"
        f"<td class=number{value}>{seconds}</td></tr>"
    )
