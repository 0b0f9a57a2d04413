"""Ray tasks on a cluster, or on a local one: each resumes the run in a folder that all machines see.

The folder is all that a task needs, and all that is left of it. Ray retries nothing by itself: a task whose worker or
node is lost is sent again, as the next attempt, and the one before may not write any more (`locks.new_attempt`). An
error in Python is not repeated; it is in the run's folder.
"""

import contextlib
import importlib
import importlib.util
import os
import pathlib
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from lexrl import backend, locks, memory, store
from lexrl.engine import worker
from lexrl.engine.outcomes import FAILURE, Deaths, Outcome, ended
from lexrl.errors import InputError

WAIT, STOP = 1.0, 60.0
"""Seconds between two looks at the tasks, and until those that were asked to stop are left alone."""
ANSWER = 10.0
"""Seconds that a cluster has to answer."""
MAX_CALLS = 20
"""Runs of one worker process, which keeps JAX and what was compiled; it is then replaced, with all its memory."""
STORE = 100_000_000
"""Bytes of the object store of a local cluster: only texts pass through it."""


def require() -> None:
    """Raise an error if Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise InputError("The engine 'ray' needs Ray, which is not installed: pip install 'lexrl[ray]'.")


def perform(folders: Sequence[pathlib.Path], workers: int | None, address: str | None) -> Iterator[Outcome]:
    """Have the runs in the folders executed; yields what happens to them."""
    with _connected(address) as ray, _interrupts() as interrupts:
        tasks = _Tasks(ray, folders, workers)
        try:
            while (tasks.waiting or tasks.busy) and not interrupts:
                yield from tasks.start()
                yield from tasks.look()
        finally:
            tasks.stop()
        if interrupts and (tasks.waiting or tasks.busy):
            raise KeyboardInterrupt


class _Tasks:
    """Runs that wait, and those that a task of Ray's is busy with."""

    def __init__(self, ray: Any, folders: Sequence[pathlib.Path], workers: int | None):
        self.ray, self.deaths = ray, Deaths()
        self.size, self.cores = _sizes(ray, len(folders), workers)
        self.task = ray.remote(num_cpus=self.cores, max_retries=0, max_calls=MAX_CALLS)(_task)
        self.given = {path.resolve(): path for path in folders}
        self.waiting = deque(self.given)
        self.busy: dict[Any, tuple[pathlib.Path, int]] = {}

    def start(self) -> Iterator[Outcome]:
        """Send as many runs as there is room for."""
        while self.waiting and len(self.busy) < self.size:
            folder = self.waiting.popleft()
            attempt = locks.new_attempt(folder)
            self.busy[self.task.remote(str(folder), attempt, self.cores, memory.is_unlimited())] = folder, attempt
            yield Outcome(self.given[folder], "started")

    def look(self) -> Iterator[Outcome]:
        """Wait a little for a task to end."""
        for ref in self.ray.wait(list(self.busy), timeout=WAIT)[0]:
            folder, attempt = self.busy.pop(ref)
            outcome = _judge(self.ray, ref, folder, self.deaths)
            if outcome.state == "lost":
                self.waiting.appendleft(folder)
            else:
                locks.end_attempt(folder, attempt)
            yield outcome._replace(folder=self.given[folder])

    def stop(self) -> None:
        """Ask tasks to stop, each with a checkpoint; what does not answer may not write any more."""
        _stop(self.ray, list(self.busy))
        for folder, attempt in self.busy.values():
            locks.end_attempt(folder, attempt)


def _task(name: str, attempt: int, cores: int, force: bool) -> str:
    """What a Ray worker does; why the run failed, or an empty text."""
    folder = pathlib.Path(name)
    if not store.is_run(folder):
        return f"There is no run in {name!r} on {socket.gethostname()}; all nodes must see the same folder."
    os.environ.setdefault("MPLCONFIGDIR", str(backend.cache_folder() / "matplotlib"))
    backend.configure(num_devices=cores)
    try:
        return worker.work(folder, attempt, force)
    except locks.InUse as error:
        return str(error)


def _judge(ray: Any, ref: Any, folder: pathlib.Path, deaths: Deaths) -> Outcome:
    """What became of a run whose task ended."""
    lost = ray.exceptions
    try:
        why = ray.get(ref)
        return ended(folder) or Outcome(folder, "failed", why)
    except lost.TaskCancelledError:
        return Outcome(folder, "lost", "it was canceled")
    except lost.RayTaskError as error:  # before the run began: lexrl is not installed there, or another version
        why = f"A Ray worker could not begin ({type(error.cause or error).__name__}: {error.cause or error})."
        why = " ".join(why.split())
        store.write_json(store.inside(folder, FAILURE), {"why": why})
        return Outcome(folder, "failed", why)
    except lost.RayError as error:
        with_node = isinstance(error, lost.NodeDiedError | lost.LocalRayletDiedError)
        return ended(folder) or deaths.judge(folder, type(error).__name__, with_node)


def _sizes(ray: Any, num_runs: int, workers: int | None) -> tuple[int, int]:
    """How many runs at once, and the cores of each."""
    each = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    if not any(each):
        raise InputError("The Ray cluster has no CPU for a run; start a node with some.")
    size = max(1, min(workers or sum(each), num_runs))
    return size, max(1, min(max(each), sum(each) // size))


@contextlib.contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Ray, connected to a cluster: the one at an address, the one this process is connected to, or a local one."""
    require()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere unless the user wants it
    ray = importlib.import_module("ray")
    if ray.is_initialized():
        yield ray
        return
    _require_answer(address)
    local = {"num_cpus": backend.num_cores(), "include_dashboard": False, "object_store_memory": STORE}
    try:
        ray.init(
            **({"address": address} if address else {"address": "local"} | local), log_to_driver=False,
            logging_level="ERROR", configure_logging=False,
        )  # fmt: skip
    except (ConnectionError, ValueError, RuntimeError, OSError, TimeoutError) as error:
        where = f"the Ray cluster at {address!r}" if address else "a local Ray cluster"
        raise InputError(f"It was not possible to connect to {where} ({_first_line(error)}).") from None
    try:
        with _quiet():
            yield ray
    except (ConnectionError, ray.exceptions.RaySystemError) as error:
        raise InputError(f"The Ray cluster was lost ({_first_line(error)}); the same command continues.") from None
    finally:
        ray.shutdown()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Ray prints what became of workers to the standard output, between results, although it was asked not to."""
    inner: Any = importlib.import_module("ray._private.worker")
    before = inner.print_to_stdstream
    inner.print_to_stdstream = lambda *_, **__: None
    try:
        yield
    finally:
        inner.print_to_stdstream = before


@contextlib.contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Every Ctrl-C so far, beside what is done about it: an exception is lost if it is raised in a destructor, of which
    Ray has many."""
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread() or not callable(
        before := signal.getsignal(signal.SIGINT)
    ):
        yield seen
        return

    def note(number: int, frame: Any) -> None:
        seen.append(number)
        before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


def _require_answer(address: str | None) -> None:
    """Raise an error if there is no answer from HOST:PORT: Ray itself would try for minutes."""
    host, _, port = (address or "").rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        return  # no such address: Ray knows what is meant, as by `auto`
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER).close()
    except (OSError, OverflowError, UnicodeError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or _first_line(error)
        raise InputError(f"There is no answer from a Ray cluster at {address!r} ({why}).") from None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


def _stop(ray: Any, busy: list[Any]) -> None:
    """Ask tasks to stop, each with a checkpoint."""
    with contextlib.suppress(Exception):  # the cluster may be gone
        for ref in busy:
            ray.cancel(ref, force=False)
        until = time.monotonic() + STOP
        while busy and time.monotonic() < until:
            _, busy = ray.wait(busy, num_returns=len(busy), timeout=WAIT)
