"""Worker processes on this machine, each with cores of its own; one run at a time.

A worker is `python -m lexrl.engine.worker FOLDER`, a fresh process that resumes the run in a folder. It ends with code
0, or writes why it could not into the folder (`failure.json`). Any other end is a death: killed, or out of memory.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lexrl import memory, store
from lexrl.backend import num_cores

FAILURE = "failure.json"
"""In a run's folder: why it failed."""
MAX_DEATHS = 3
"""A run that kills so many workers is marked failed."""
WAIT, STOP = 0.05, 60.0
"""Seconds between two looks at the workers, and until one that was asked to stop is killed."""


class Worker(NamedTuple):
    process: subprocess.Popen[bytes]
    folder: pathlib.Path
    place: int
    """Which share of the cores is its own."""


def perform(folders: Sequence[pathlib.Path], workers: int) -> Iterator[tuple[pathlib.Path, str]]:
    """Have the runs in the folders executed; each folder when it is done, with why it failed or an empty text."""
    waiting, deaths = deque(folders), Counter[pathlib.Path]()
    busy: list[Worker] = []
    try:
        while waiting or busy:
            while waiting and len(busy) < workers and (not busy or _has_room(waiting[0])):
                place = min(set(range(workers)) - {worker.place for worker in busy})
                busy.append(_start(waiting.popleft(), place, workers))
            time.sleep(WAIT)
            ended = [worker for worker in busy if worker.process.poll() is not None]
            busy = [worker for worker in busy if worker not in ended]
            judged = [(worker.folder, _judge(worker, deaths)) for worker in ended]
            waiting.extendleft(folder for folder, why in judged if why is None)  # another one resumes it
            yield from ((folder, why) for folder, why in judged if why is not None)
    finally:
        _stop(busy)


def _judge(worker: Worker, deaths: Counter[pathlib.Path]) -> str | None:
    """Why a run failed, an empty text if it did not, and None if it is to be resumed."""
    folder, code = worker.folder, worker.process.returncode
    if store.is_finished(folder):
        return ""
    if (folder / FAILURE).is_file():
        return str(store.read_json(folder / FAILURE).get("why"))
    deaths[folder] += 1
    if deaths[folder] < MAX_DEATHS:
        return None
    cause = signal.Signals(-code).name if code < 0 else f"code {code}"
    steps = [int(path.stem) for path in store.checkpoints(folder)[:1]]
    where = f"after step {steps[0]}" if steps else "before its first checkpoint"
    why = f"It killed {MAX_DEATHS} workers, the last one by {cause} {where}; is there enough memory?"
    store.write_json(store.inside(folder, FAILURE), {"why": why, "deaths": MAX_DEATHS})
    return why


def _has_room(folder: pathlib.Path) -> bool:
    """Whether another worker fits into memory: one needs about half a gigabyte before it begins."""
    free = memory.available()
    return free is None or free > 10**9


def _start(folder: pathlib.Path, place: int, workers: int) -> Worker:
    cores = _share(place, workers)
    command = [sys.executable, "-m", "lexrl.engine.worker", str(folder), ",".join(map(str, cores))]
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
