"""The paper's experiments, one file each: `runs(size)` says what is run, `summarize(results)` what the report shows.

root/runs/...                         the runs, shared by all experiments of a size
root/EXPERIMENT/experiment.json       what the report shows: curves, tables, rankings, claims
root/EXPERIMENT/figures/...           images

An experiment is a module and a line in `lexrl.catalog.EXPERIMENTS`.
"""

import fnmatch
import os
import pathlib
import platform
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from rich.console import Console

from lexrl import catalog, store
from lexrl.engine import Engine
from lexrl.errors import InputError
from lexrl.experiments import schedule, speeds
from lexrl.experiments.schedule import Finished, Job
from lexrl.report import page
from lexrl.report.experiment import FILE, FORMAT
from lexrl.runs import Result
from lexrl.runs.record import versions

Size = Literal["smoke", "laptop", "paper"]


@runtime_checkable
class Experiment(Protocol):
    """A module with an experiment."""

    QUESTION: str

    def runs(self, size: str) -> list[Job]: ...
    def summarize(self, results: Sequence[Finished]) -> list[Any]:
        """Sections, as `lexrl.report.sections` defines them."""
        ...


class JobEvent(NamedTuple):
    """What happened while an experiment ran."""

    job: Job
    result: Result | None
    """So far; None if the job failed."""
    over: bool
    why: str = ""


def names() -> list[str]:
    """The names of all experiments."""
    return list(catalog.EXPERIMENTS)


def find(name: str) -> Experiment:
    """The experiment of a name."""
    return catalog.find(catalog.EXPERIMENTS, name, "experiment").load()


def perform(planned: Sequence[Job], root: pathlib.Path) -> Iterator[JobEvent]:
    """Run the jobs that are not finished; a job that fails is reported, and the others continue."""
    for job in planned:
        try:
            if schedule.is_finished(root, job):
                continue
            watch, result = speeds.Stopwatch(job), None
            for result in schedule.perform(root, job):
                watch.lap(int(result.steps[-1]))
                yield JobEvent(job, result, over=False)
            watch.save()
            yield JobEvent(job, result, over=True)
        except InputError as error:
            yield JobEvent(job, None, over=True, why=str(error))


def perform_on(
    engine: Engine, planned: Sequence[Job], root: pathlib.Path, console: Console | None = None
) -> dict[str, str]:
    """Run the jobs that are not finished on an engine; by name, why those that failed did."""
    jobs, runs, why = {}, {}, {}
    for job in planned:
        try:
            if not schedule.is_finished(root, job):
                place = schedule.place(root, job)
                jobs[place], runs[place] = job, job.run()
        except InputError as error:
            why[job.name] = str(error)
    outcomes = engine.execute(runs, console=console)
    return why | {jobs[one.folder].name: one.why for one in outcomes if one.state == "failed"}


def plan(names: Sequence[str], size: Size, only: Sequence[str] = ()) -> list[Job]:
    """The jobs of some experiments, each once; with `only`, those whose names match one of its patterns."""
    every = {job.name: job for name in names for job in find(name).runs(size)}
    for pattern in only:
        if not fnmatch.filter(every, pattern):
            raise InputError(
                f"No run matches {pattern!r}; there are {len(every)}, such as {', '.join(list(every)[:3])}: try "
                "'*ldqn*', or --dry-run to list all names."
            )
    return [job for name, job in every.items() if not only or any(fnmatch.fnmatch(name, each) for each in only)]


def write(name: str, size: Size, root: pathlib.Path, why: dict[str, str] | None = None) -> pathlib.Path:
    """Write what the report shows of an experiment, from the jobs that are finished; returns its folder.

    `why` says, by a job's name, why it failed.
    """
    experiment = find(name)
    jobs = experiment.runs(size)
    results, missing = schedule.collect(root, jobs)
    if not results:
        raise InputError(f"No run of the experiment {name!r} in {str(root)!r} is finished; run it first.")
    folder = root / name
    sections = sorted(experiment.summarize(results), key=lambda section: section.kind != "claims")  # answers first
    content = {
        "format": FORMAT,
        "experiment": name,
        "position": names().index(name),
        "size": size,
        "title": catalog.EXPERIMENTS[name].title,
        "question": experiment.QUESTION,
        "command": f"lexrl experiment {name} --size {size}",
        "begun": min(one.found.about["begun"] for one in results),
        "seconds": round(sum(one.summary["seconds"] for one in results), 1),
        "versions": versions(),
        "machine": {"cores": os.cpu_count(), "system": platform.platform()},
        "commit": ", ".join(sorted({one.found.about.get("commit", "") for one in results} - {""})),
        "runs": _runs(jobs, results, missing | (why or {})),
        "sections": [page.write(section, folder) for section in sections],
    }
    store.write_json(folder / FILE, content)
    return folder


def _runs(jobs: Sequence[Job], results: Sequence[Finished], missing: dict[str, str]) -> list[dict[str, Any]]:
    """Every job, with its state."""
    by_name = {one.job.name: one for one in results}
    rows = []
    for job in jobs:
        one = by_name.get(job.name)
        stopped = [] if one is None else list(one.summary["stopped"].values())
        rows.append(
            {
                "folder": f"../{schedule.RUNS}/{job.name}",
                "label": job.label,
                "seeds": job.seeds,
                "total_timesteps": job.total_timesteps,
                "seconds": None if one is None else one.summary["seconds"],
                "state": "missing" if one is None else "failed" if stopped else "finished",
                "why": missing.get(job.name, " ".join(stopped)),
            }
        )
    return rows
