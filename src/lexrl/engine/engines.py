"""The engines, as one value: which kind, and how many workers."""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from lexrl import locks, store
from lexrl.backend import num_cores
from lexrl.engine import processes
from lexrl.engine.processes import FAILURE
from lexrl.errors import InputError, require_whole
from lexrl.runs import execute, record
from lexrl.runs.pipeline import last
from lexrl.runs.run import Run


class Outcome(NamedTuple):
    """How a planned run ended."""

    folder: pathlib.Path
    state: Literal["finished", "failed"]
    why: str = ""


@dataclasses.dataclass(frozen=True)
class Engine:
    """Executes planned runs.

    `here` is this process, one run after the other, each on all cores. `processes` are workers on this machine, for
    what one program cannot do together: different algorithms, environments stepped from Python. A worker that dies has
    its run resumed by another; a run that kills three workers is marked failed, and the others go on.
    """

    kind: str = "here"
    """`here` or `processes`."""
    workers: int | None = None
    """How many processes, each with its share of the cores; by default one for each core."""

    def __post_init__(self):
        if self.kind not in ("here", "processes"):
            raise InputError(f"There is no engine {self.kind!r}; there are 'here' and 'processes'.")
        require_whole(**({} if self.workers is None else {"workers": self.workers}))

    def execute(
        self, runs: Mapping[pathlib.Path, Run], observe: Callable[[Outcome], object] | None = None
    ) -> list[Outcome]:
        """Execute every run in its folder, unless it is finished there; an outcome for each, in the order given.

        `observe` is called with each outcome as it comes.
        """
        found: dict[pathlib.Path, Outcome] = {}

        def note(outcome: Outcome) -> None:
            found[outcome.folder] = outcome
            if observe is not None:
                observe(outcome)

        waiting = []
        for folder, run in runs.items():
            if _is_done(folder, run):
                note(Outcome(folder, "finished"))
            else:
                waiting.append(folder)
        if self.kind == "here":
            for folder in waiting:
                note(_execute_here(folder, runs[folder]))
        else:
            for folder in waiting:
                _begin(folder, runs[folder])
            size = min(self.workers or num_cores(), max(1, len(waiting)))
            for folder, why in processes.perform(waiting, size):
                note(Outcome(folder, "failed" if why else "finished", why))
        return [found[folder] for folder in runs]


def _is_done(folder: pathlib.Path, run: Run) -> bool:
    """Whether the run is finished in its folder; an error if that holds another run."""
    if not store.is_run(folder):
        return False
    if store.read_identity(folder).hash != record.hash_of(run):
        raise InputError(f"The folder {str(folder)!r} holds a run with other settings; give another folder.")
    return store.is_finished(folder)


def _begin(folder: pathlib.Path, run: Run) -> None:
    """Write what a worker needs; an error for a run that cannot be read from its folder."""
    if not store.is_run(folder):
        with locks.hold(folder):
            record.begin(folder, run)
    record.read(folder)
    (folder / FAILURE).unlink(missing_ok=True)


def _execute_here(folder: pathlib.Path, run: Run) -> Outcome:
    try:
        last(execute(run, folder))
    except InputError as error:
        return Outcome(folder, "failed", str(error))
    return Outcome(folder, "finished")
