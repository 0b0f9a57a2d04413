"""How long runs take: measured while they run, and remembered, so that a plan can say what is to come.

What this machine has measured is kept in the user's cache; `speeds.json` beside this file is what ours has.
"""

import json
import pathlib
import re
import time
from collections.abc import Sequence
from typing import Any

from lexrl import store
from lexrl.backend import cache_folder
from lexrl.experiments.schedule import Job

SHORT = 2.0
"""Seconds; what takes less is mostly the time between parts."""
SHIPPED = pathlib.Path(__file__).with_name("speeds.json")


class Watch:
    """Measures a job: the time to its first result, and the steps a second after it."""

    def __init__(self, job: Job):
        self.job = job
        self.begun = time.monotonic()
        self.first: tuple[float, int] | None = None
        self.last: tuple[float, int] | None = None

    def see(self, steps: int) -> None:
        """A result has come."""
        self.last = (time.monotonic(), steps)
        self.first = self.first or self.last

    def keep(self) -> None:
        """Remember what was measured, if it was long enough to say something."""
        if self.first is None or self.last is None or self.last[0] - self.first[0] < SHORT:
            return
        seconds, steps = self.last[0] - self.first[0], self.last[1] - self.first[1]
        speed = steps * self.job.seeds / seconds
        start = max(0.0, self.first[0] - self.begun - self.first[1] * self.job.seeds / speed)
        known = _read(_own())
        known[self.job.name] = {"speed": round(speed), "start": round(start, 1)}
        store.write_json(_own(), known)


def estimate(job: Job) -> float | None:
    """Seconds a job will take, by what was measured before; None if nothing was.

    A job that was never run is thought to be as slow as the slowest whose name differs in its numbers alone.
    """
    known = _read(SHIPPED) | _read(_own())
    alike = [each for name, each in known.items() if _kind(name) == _kind(job.name)]
    found = known.get(job.name) or min(alike, key=lambda each: each["speed"], default=None)
    if found is None:
        return None
    return found["start"] + job.steps * job.seeds / found["speed"]


def total(jobs: Sequence[Job]) -> tuple[float, int]:
    """Seconds of all jobs that can be estimated, and how many cannot."""
    each = [estimate(job) for job in jobs]
    return sum((one for one in each if one is not None), 0.0), sum(one is None for one in each)


def _kind(name: str) -> str:
    return re.sub(r"[\d.]+", "#", name)


def _own() -> pathlib.Path:
    return cache_folder() / "speeds.json"


def _read(path: pathlib.Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
