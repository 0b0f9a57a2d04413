"""Checkpoints of a run: every agent, every environment in the middle of its episode, and the curves so far.

A run that was killed continues from the latest one that is intact, and ends with the same bits as one that was not.
"""

import contextlib
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lexrl import store
from lexrl.runs import trees
from lexrl.runs.observers import Snapshot, Start
from lexrl.runs.run import Run
from lexrl.runs.versions import versions

MAX_SHARE = 0.05
"""Of the time, at most, is spent on writing checkpoints."""


class Checkpoint(NamedTuple):
    """Where a run stopped."""

    arrays: dict[str, np.ndarray]
    """The train states, flattened."""
    steps: np.ndarray
    metrics: dict[str, np.ndarray]
    seconds: float
    """Training time so far."""

    def rebuild(self, template: Any) -> Any:
        """The train states in the structure of a template."""
        return trees.rebuild(template, self.arrays, "train_state/")


@contextlib.contextmanager
def observe(run: Run, start: Start) -> Iterator[Callable[[Snapshot], None]]:
    """Write checkpoints while a run is executed, and one at once when it is interrupted."""
    folder = start.folder
    assert folder is not None
    kept, ended, took = start.step, -float("inf"), 0.0
    latest: Snapshot | None = None

    def keep(snapshot: Snapshot) -> None:
        nonlocal kept, ended, took
        started = time.monotonic()
        save(folder, snapshot)
        kept, ended = int(snapshot.result.steps[-1]), time.monotonic()
        took = ended - started

    def see(snapshot: Snapshot) -> None:
        nonlocal latest
        latest = snapshot
        unfinished = snapshot.result.steps[-1] < run.total_timesteps
        if unfinished and time.monotonic() - ended >= took / MAX_SHARE:
            keep(snapshot)

    try:
        yield see
    except (GeneratorExit, KeyboardInterrupt):
        if latest is not None and latest.result.steps[-1] > kept:
            keep(latest)
        raise


def save(folder: pathlib.Path, snapshot: Snapshot) -> None:
    """Write a checkpoint, and the curves so far."""
    result = snapshot.result
    arrays = trees.flatten(snapshot.train_states, "train_state/") | {
        f"metrics/{name}": values for name, values in result.metrics.items()
    }
    about = {
        "seconds": result.seconds,
        "steps": result.steps.tolist(),
        "metrics": list(result.metrics),
        "versions": versions(),
    }
    store.write_checkpoint(folder, int(result.steps[-1]), arrays, about)
    store.write_csv(folder / store.METRICS, result.table())


def latest(folder: pathlib.Path) -> tuple[Checkpoint | None, list[str]]:
    """The latest checkpoint that is intact (None: there is none), and what the user should know about it."""
    notes = []
    for path in store.checkpoints(folder):
        try:
            arrays, about = store.read_arrays(path)
        except store.Damaged as error:
            notes.append(f"{error} The one before it is used.")
            continue
        if about["versions"] != versions():
            notes.append(
                f"The checkpoint was written by {_listed(about['versions'])}, this is {_listed(versions())}: the "
                "numbers may differ in their last digits."
            )
        metrics = {name: arrays[f"metrics/{name}"] for name in about["metrics"]}
        return Checkpoint(arrays, np.array(about["steps"]), metrics, about["seconds"]), notes
    return None, notes


def _listed(found: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in found.items())
