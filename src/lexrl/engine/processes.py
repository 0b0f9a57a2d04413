"""Worker processes on this machine, each with cores of its own; one run at a time.

A worker is `python -m lexrl.engine.worker`, a fresh process that resumes the run in a folder.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lexrl import locks, memory
from lexrl.backend import num_cores
from lexrl.engine.outcomes import Deaths, Outcome, ended
from lexrl.engine.worker import FORCE, IN_USE

WAIT, STOP = 0.05, 60.0
"""Seconds between two looks at the workers, and until one that was asked to stop is killed."""


class Worker(NamedTuple):
    process: subprocess.Popen[bytes]
    folder: pathlib.Path
    place: int
    """Which share of the cores is its own."""


def perform(folders: Sequence[pathlib.Path], workers: int) -> Iterator[Outcome]:
    """Have the runs in the folders executed; yields what happens to them."""
    waiting, deaths = deque(folders), Deaths()
    busy: list[Worker] = []
    try:
        while waiting or busy:
            while waiting and len(busy) < workers and (not busy or _has_room()):
                place = min(set(range(workers)) - {worker.place for worker in busy})
                busy.append(_start(waiting.popleft(), place, workers))
                yield Outcome(busy[-1].folder, "started")
            time.sleep(WAIT)
            over = [worker for worker in busy if worker.process.poll() is not None]
            busy = [worker for worker in busy if worker not in over]
            outcomes = [_judge(worker, deaths) for worker in over]
            waiting.extendleft(one.folder for one in outcomes if one.state == "lost")  # another one resumes it
            yield from outcomes
    finally:
        _stop(busy)


def _judge(worker: Worker, deaths: Deaths) -> Outcome:
    """What became of a run whose worker ended."""
    folder, code = worker.folder, worker.process.returncode
    if code == IN_USE:
        return Outcome(folder, "failed", str(locks.in_use(folder)))
    cause = signal.Signals(-code).name if code < 0 else f"code {code}"
    return ended(folder) or deaths.judge(folder, cause)


def _has_room() -> bool:
    """Whether another worker fits into memory: one needs about half a gigabyte before it begins."""
    free = memory.available()
    return free is None or free > 10**9


def _start(folder: pathlib.Path, place: int, workers: int) -> Worker:
    cores = ",".join(map(str, _share(place, workers)))
    command = [sys.executable, "-m", "lexrl.engine.worker", str(folder), cores, str(os.getpid())]
    command += [FORCE] if memory.is_unlimited() else []
    with (folder / "worker.log").open("ab") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    return Worker(process, folder, place)


def _share(place: int, workers: int) -> list[int]:
    """The cores of a worker: dealt out in turn; shared where there are more workers than cores."""
    own = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else list(range(num_cores()))
    return own[place % len(own) :: workers] or [own[place % len(own)]]


def _stop(busy: Sequence[Worker]) -> None:
    """Ask workers to stop, each with a checkpoint."""
    for worker in busy:
        worker.process.terminate()
    for worker in busy:
        try:
            worker.process.wait(STOP)
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()
