"""What an experiment leaves in `experiment.json`: what was run, and the sections of its chapter."""

import math
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from lexrl import store
from lexrl.errors import InputError, names_path
from lexrl.report.checked import Checked, brief

FILE = "experiment.json"
FORMAT = 2
STATES = ("failed", "missing", "finished")
"""Of a run, in the order in which runs are listed."""


class RunRow(NamedTuple):
    """A run of an experiment."""

    folder: str
    label: str
    seeds: int
    total_timesteps: int
    seconds: float
    command: str
    state: str
    why: str


class Experiment(NamedTuple):
    """A chapter of the page, its sections not yet read."""

    folder: pathlib.Path
    position: float
    """Chapters are sorted by it."""
    name: str
    size: str
    title: str
    question: str
    command: str
    begun: str
    seconds: float
    commit: str
    versions: Mapping[str, Any]
    machine: Mapping[str, Any]
    runs: tuple[RunRow, ...]
    """Those that failed first."""
    sections: tuple[Checked, ...]

    @property
    def unfinished(self) -> tuple[RunRow, ...]:
        return tuple(run for run in self.runs if run.state != "finished")


def below(folder: pathlib.Path) -> list[pathlib.Path]:
    """The folders of experiments in a folder, itself included."""
    return sorted(path.parent for path in folder.rglob(FILE) if path.is_file())


def read(folder: pathlib.Path) -> Experiment:
    """Read the experiment in a folder."""
    path = folder / FILE
    if not path.is_file():
        raise InputError(f"There is no file {str(path)!r}; give a folder that `lexrl experiment` wrote.")
    content = store.read_json(path)
    if "format" not in content or "experiment" not in content:
        raise InputError(f"The file {str(path)!r} is from another program; give one that `lexrl experiment` wrote.")
    if content["format"] != FORMAT:
        raise InputError(
            f"The file {str(path)!r} has format {content['format']!r}, and this lexrl reads {FORMAT}; "
            "use the version that wrote it."
        )
    whole = Checked(path, "it", content)
    runs = [_read_run(part) for part in whole.parts("runs", "run")]
    return Experiment(
        folder=folder,
        position=whole.number("position", 0.0),
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
        sections=tuple(whole.parts("sections", "section")),
    )


def run_folders(folder: pathlib.Path) -> set[pathlib.Path]:
    """The folders of an experiment's runs; empty if its file is damaged."""
    try:
        return {(folder / run.folder).resolve() for run in read(folder).runs}
    except InputError:
        return set()


def _read_run(part: Checked) -> RunRow:
    state = part.text("state")
    if state not in STATES:
        raise part.error(f"has the unknown state {brief(state)}; known are {', '.join(STATES)}")
    if not names_path(folder := part.text("folder")):
        raise part.error(f"has {brief(folder)} for 'folder', which is not valid")
    return RunRow(
        folder, part.text("label"), part.integer("seeds", 0), part.integer("total_timesteps", 0),
        part.number("seconds", math.nan), part.text("command", ""), state, part.text("why", ""),
    )  # fmt: skip
