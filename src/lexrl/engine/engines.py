"""The engines, as one value: which kind, and with how many workers."""

import contextlib
import dataclasses
import pathlib
import reprlib
from collections.abc import Callable, Generator, Mapping
from typing import Any

from rich.console import Console

from lexrl import locks, store
from lexrl.backend import num_cores
from lexrl.engine import board, processes, ray, worker
from lexrl.engine.outcomes import FAILURE, Outcome
from lexrl.errors import InputError, require_whole
from lexrl.runs import execute, record
from lexrl.runs.pipeline import last
from lexrl.runs.run import Run

KINDS = ("here", "processes", "ray")


@dataclasses.dataclass(frozen=True)
class Engine:
    """Executes planned runs.

    `here` is this process, one run after the other, each on all cores. `processes` are workers on this machine, for
    what one program cannot do together: different algorithms, environments stepped from Python. `ray` are tasks on a
    Ray cluster whose nodes see the same folders. The same plan leaves the same numbers on each of them.

    A worker that dies, or is lost with its node, has its run resumed by another; a run that kills three workers in a
    row, or is lost with ten nodes, is marked failed, and the others go on.
    """

    kind: str = "here"
    """`here`, `processes` or `ray`."""
    workers: int | None = None
    """How many runs at once, each with its share of the cores; by default one for each core."""
    address: str | None = None
    """Of a Ray cluster, as in `auto` or `10.0.0.1:6379`; by default a local one is started."""

    def __post_init__(self):
        if self.kind not in KINDS:
            raise InputError(f"There is no engine {self.kind!r}; there are 'here', 'processes' and 'ray'.")
        require_whole(**({} if self.workers is None else {"workers": self.workers}))
        if self.address is not None and self.kind != "ray":
            raise InputError(f"An address is for the engine 'ray', and this is {self.kind!r}.")
        if self.address is not None and (not isinstance(self.address, str) or not self.address.strip()):
            raise InputError(f"The address of a Ray cluster is {self.address!r}; give one such as 'auto'.")
        if self.kind == "ray":
            ray.require()

    def execute(
        self,
        runs: Mapping[pathlib.Path, Run],
        observe: Callable[[Outcome], object] | None = None,
        console: Console | None = None,
    ) -> list[Outcome]:
        """Execute every run in its folder, unless it is finished there; an outcome for each, in the order given.

        `observe` is called with what happens to the runs. A table of them all is shown on the console, if there is one.
        """
        _require_runs(runs)
        waiting = [folder for folder, run in runs.items() if not _is_done(folder, run)]
        found = {folder: Outcome(folder, "finished") for folder in runs if folder not in waiting}
        for outcome in found.values():
            _tell(observe, outcome)
        with (
            contextlib.nullcontext() if console is None else board.shown(runs, waiting, console) as show,
            contextlib.closing(self._perform({folder: runs[folder] for folder in waiting})) as happening,
        ):
            for outcome in happening:
                found[outcome.folder] = outcome
                _tell(show, outcome)
                _tell(observe, outcome)
        return [found[folder] for folder in runs]

    def _perform(self, runs: Mapping[pathlib.Path, Run]) -> Generator[Outcome]:
        """What happens to runs that are not finished."""
        if not runs:
            return
        if self.kind == "here":
            for folder, run in runs.items():
                yield Outcome(folder, "started")
                yield _execute_here(folder, run)
            return
        ready = []
        for folder, run in runs.items():
            if why := _begin(folder, run):
                yield Outcome(folder, "failed", why)
            else:
                ready.append(folder)
        if self.kind == "ray":
            yield from ray.perform(ready, self.workers, self.address)
        else:
            yield from processes.perform(ready, min(self.workers or num_cores(), max(1, len(ready))))


def _require_runs(runs: Any) -> None:
    """Refuse what is not a plan of runs."""
    if not isinstance(runs, Mapping):
        raise InputError(f"The runs are {reprlib.repr(runs)}; give them by folder, as in {{path: lexrl.plan(...)}}.")
    for folder, run in runs.items():
        if not isinstance(folder, pathlib.Path):
            raise InputError(f"The folder of a run is {folder!r}; give a pathlib.Path.")
        if not isinstance(run, Run):
            raise InputError(f"In {str(folder)!r} there is to be {reprlib.repr(run)}; give a run that is planned.")


def _tell(observe: Callable[[Outcome], object] | None, outcome: Outcome) -> None:
    if observe is not None:
        observe(outcome)


def _is_done(folder: pathlib.Path, run: Run) -> bool:
    """Whether the run is finished in its folder; an error if that holds another run."""
    if not store.is_run(folder):
        return False
    if store.read_identity(folder).hash != record.hash_of(run):
        raise InputError(f"The folder {str(folder)!r} holds a run with other settings; give another folder.")
    return store.is_finished(folder)


def _begin(folder: pathlib.Path, run: Run) -> str:
    """Write what a worker needs; who else works in the folder, if somebody does.

    A run that cannot be read from its folder is an error.
    """
    try:
        if folder.is_dir():
            locks.require_free(folder)
        with locks.hold(folder):
            if not store.is_run(folder):
                record.begin(folder, run)
            store.inside(folder, FAILURE).unlink(missing_ok=True)
    except locks.InUse as error:
        return str(error)
    record.read(folder)
    return ""


def _execute_here(folder: pathlib.Path, run: Run) -> Outcome:
    (folder / FAILURE).unlink(missing_ok=True)
    try:
        why = worker.recorded(folder, lambda: last(execute(run, folder)))
    except locks.InUse as error:
        why = str(error)
    return Outcome(folder, "failed" if why else "finished", why)
