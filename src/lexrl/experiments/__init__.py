"""The paper's experiments, one file each: `runs(size)` says what is run, `summarise(done)` what came of it.

root/runs/...                         the runs, shared by all experiments of a size
root/EXPERIMENT/experiment.json       what is shown: curves, tables, rankings, claims
root/EXPERIMENT/figures/...           pictures
"""

import fnmatch
import os
import pathlib
import platform
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from lexrl import store
from lexrl.errors import InputError
from lexrl.experiments import pb_settings, policies, safety, scaling, schedule, slack, speeds
from lexrl.experiments.schedule import Finished, Job
from lexrl.report import form
from lexrl.runs import Result
from lexrl.runs.versions import versions

Size = Literal["smoke", "laptop", "paper"]


class Experiment(Protocol):
    """A file of this package."""

    TITLE: str
    QUESTION: str

    def runs(self, size: str) -> list[Job]: ...
    def summarise(self, done: Sequence[Finished]) -> list[dict[str, Any]]: ...


EXPERIMENTS: dict[str, Any] = {
    "scaling": scaling,
    "safety": safety,
    "slack": slack,
    "pb-settings": pb_settings,
    "policies": policies,
}


class Event(NamedTuple):
    """Something that happened while an experiment ran."""

    job: Job
    result: Result | None
    """So far; None: the job could not be run."""
    over: bool
    why: str = ""


def perform(planned: Sequence[Job], root: pathlib.Path) -> Iterator[Event]:
    """Run what is not finished; a run that cannot be is told, and the others go on."""
    for job in planned:
        try:
            if schedule.is_finished(root, job):
                continue
            watch, result = speeds.Watch(job), None
            for result in schedule.perform(root, job):
                watch.see(int(result.steps[-1]))
                yield Event(job, result, over=False)
            watch.keep()
            yield Event(job, result, over=True)
        except InputError as error:
            yield Event(job, None, over=True, why=str(error))


def plan(names: Sequence[str], size: Size, only: Sequence[str] = ()) -> list[Job]:
    """The runs of some experiments, each once; only those whose names match one of the patterns, if there are any."""
    every = {job.name: job for name in names for job in EXPERIMENTS[name].runs(size)}
    for pattern in only:
        if not fnmatch.filter(every, pattern):
            raise InputError(
                f"No run is called {pattern!r}; there are {len(every)}, such as {', '.join(list(every)[:3])}: try "
                "'*ldqn*', or --dry-run for all names."
            )
    return [job for name, job in every.items() if not only or any(fnmatch.fnmatch(name, each) for each in only)]


def write(name: str, size: Size, root: pathlib.Path, why: dict[str, str] | None = None) -> pathlib.Path:
    """Write what an experiment shows, from the runs that are finished; gives its folder.

    `why` tells, by a job's name, why it could not be run.
    """
    experiment: Experiment = EXPERIMENTS[name]
    all_of_them = experiment.runs(size)
    done, missing = schedule.collect(root, all_of_them)
    if not done:
        raise InputError(f"No run of the experiment {name!r} is finished in {str(root)!r}: there is nothing to show.")
    folder = root / name
    sections = sorted(experiment.summarise(done), key=lambda section: section["kind"] != "claims")  # answers first
    content = {
        "format": form.FORMAT,
        "experiment": name,
        "place": list(EXPERIMENTS).index(name),
        "size": size,
        "title": experiment.TITLE,
        "question": experiment.QUESTION,
        "command": f"lexrl experiment {name} --size {size}",
        "begun": min(one.found.about["begun"] for one in done),
        "seconds": round(sum(one.summary["seconds"] for one in done), 1),
        "versions": versions(),
        "machine": {"cores": os.cpu_count(), "system": platform.platform()},
        "commit": ", ".join(sorted({one.found.about.get("commit", "") for one in done} - {""})),
        "runs": _runs(all_of_them, done, missing | (why or {})),
        "sections": [_with_files(section, folder) for section in sections],
    }
    store.write_json(folder / form.FILE, content)
    return folder


def _runs(all_of_them: Sequence[Job], done: Sequence[Finished], missing: dict[str, str]) -> list[dict[str, Any]]:
    """Every run, with its state."""
    by_name = {one.job.name: one for one in done}
    rows = []
    for job in all_of_them:
        one = by_name.get(job.name)
        stopped = [] if one is None else list(one.summary["stopped"].values())
        rows.append(
            {
                "folder": f"../{schedule.RUNS}/{job.name}",
                "label": job.label,
                "seeds": job.seeds,
                "steps": job.steps,
                "seconds": None if one is None else one.summary["seconds"],
                "state": "missing" if one is None else "failed" if stopped else "finished",
                "why": missing.get(job.name, " ".join(stopped)),
            }
        )
    return rows


def _with_files(section: dict[str, Any], folder: pathlib.Path) -> dict[str, Any]:
    """The section, its pictures written to files."""
    if section["kind"] != "pictures":
        return section
    pictures = []
    for picture in section["pictures"]:
        file = f"figures/{picture['name']}.png"
        store.write_bytes(folder / file, picture["png"])
        pictures.append({"file": file, "alt": picture["alt"], "label": picture["label"]})
    return section | {"pictures": pictures}
