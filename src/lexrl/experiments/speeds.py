"""How long jobs take: measured while they run and kept, so that a plan can give an estimate.

Measurements of this machine are in the user's cache; `speeds.json` beside this file has ours.
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
"""Seconds; in a shorter run the time between chunks dominates."""
SHIPPED = pathlib.Path(__file__).with_name("speeds.json")


class Stopwatch:
    """Measures a job: the time to its first result, and the steps per second after it."""

    def __init__(self, job: Job):
        self.job = job
        self.begun = time.monotonic()
        self.first: tuple[float, int] | None = None
        self.last: tuple[float, int] | None = None

    def lap(self, steps: int) -> None:
        """A result has arrived."""
        self.last = (time.monotonic(), steps)
        self.first = self.first or self.last

    def save(self) -> None:
        """Keep the measurement if the job ran long enough."""
        if self.first is None or self.last is None or self.last[0] - self.first[0] < SHORT:
            return
        seconds, steps = self.last[0] - self.first[0], self.last[1] - self.first[1]
        speed = steps * self.job.seeds / seconds
        start = max(0.0, self.first[0] - self.begun - self.first[1] * self.job.seeds / speed)
        known = _read(_own())
        known[self.job.name] = {"speed": round(speed), "start": round(start, 1)}
        store.write_json(_own(), known)


def estimate(job: Job) -> float | None:
    """Seconds that a job will take, from earlier measurements; None if there are none.

    A job without a measurement counts as slow as the slowest whose name differs only in numbers.
    """
    known = _read(SHIPPED) | _read(_own())
    alike = [each for name, each in known.items() if _kind(name) == _kind(job.name)]
    found = known.get(job.name) or min(alike, key=lambda each: each["speed"], default=None)
    if found is None:
        return None
    return found["start"] + job.total_timesteps * job.seeds / found["speed"]


def total(jobs: Sequence[Job]) -> tuple[float, int]:
    """Seconds of all jobs that have an estimate, and how many have none."""
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
