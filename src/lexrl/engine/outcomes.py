"""What becomes of a planned run: it starts, its worker is lost, it finishes, or it fails."""

import pathlib
from collections import Counter
from typing import Literal, NamedTuple

from lexrl import store

FAILURE = "failure.json"
"""In a run's folder: why it failed."""
MAX_DEATHS, MAX_LOST_NODES = 3, 10
"""A run that kills so many workers in a row, without a new checkpoint in between, or is lost with so many nodes, is
marked failed. A node that vanishes is rarely the fault of its run."""


class Outcome(NamedTuple):
    """What happened to a planned run."""

    folder: pathlib.Path
    state: Literal["started", "lost", "finished", "failed"]
    """`lost`: its worker died, and another one will resume it."""
    why: str = ""


class Deaths:
    """Counts the workers that each run killed, and the nodes that it was lost with, since its last checkpoint."""

    def __init__(self):
        self._workers, self._nodes = Counter[pathlib.Path](), Counter[pathlib.Path]()
        self._steps: dict[pathlib.Path, int] = {}

    def judge(self, folder: pathlib.Path, cause: str, with_node: bool = False) -> Outcome:
        """After the death of a worker, or of its whole node: the run is to be resumed, or it has failed."""
        steps = latest_step(folder)
        if steps > self._steps.get(folder, 0):
            self._workers[folder] = self._nodes[folder] = 0
        self._steps[folder] = steps
        deaths, most = (self._nodes, MAX_LOST_NODES) if with_node else (self._workers, MAX_DEATHS)
        deaths[folder] += 1
        if deaths[folder] < most:
            return Outcome(folder, "lost", cause)
        where = f"after step {steps:,}" if steps else "before its first checkpoint"
        what = f"It was lost with {most} nodes" if with_node else f"It killed {most} workers"
        why = f"{what}, the last one by {cause} {where}; is there enough memory?"
        store.write_json(store.inside(folder, FAILURE), {"why": why, "deaths": most})
        return Outcome(folder, "failed", why)


def latest_step(folder: pathlib.Path) -> int:
    """The step of the latest checkpoint; 0 if there is none."""
    return max((int(path.stem) for path in store.checkpoints(folder)[:1]), default=0)


def ended(folder: pathlib.Path) -> Outcome | None:
    """How a run ended, as its folder says; None if it did not."""
    if store.is_finished(folder):
        return Outcome(folder, "finished")
    if (folder / FAILURE).is_file():
        return Outcome(folder, "failed", str(store.read_json(folder / FAILURE).get("why")))
    return None
