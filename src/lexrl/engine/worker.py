"""A worker resumes the run in a folder; `python -m lexrl.engine.worker FOLDER CORES PARENT` is one on its own cores.

It leaves a finished run, or a file that says why it failed. Any other end is a death: killed, or out of memory.
"""

import contextlib
import os
import pathlib
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

FORCE = "--force"
STOPPED, IN_USE = 130, 3
"""The codes of a worker that was asked to stop, and left a checkpoint; and of one that found another in its folder."""


def work(folder: pathlib.Path, attempt: int = 0, force: bool = False) -> str:
    """Resume the run in a folder, with `force` although it does not seem to fit into memory; why it failed, or an empty
    text."""
    from lexrl import locks
    from lexrl.runs import resume

    with locks.as_attempt(attempt):
        return recorded(folder, lambda: resume(folder, progress=False, force=force))


def recorded(folder: pathlib.Path, execute: Callable[[], object]) -> str:
    """Execute the run in a folder. Why it failed is written into the folder, and returned; else an empty text.

    A folder that somebody else works in is an error, and nothing is written.
    """
    from lexrl import locks, store
    from lexrl.engine.outcomes import FAILURE
    from lexrl.errors import InputError

    try:
        execute()
        return ""
    except locks.InUse:
        raise
    except InputError as error:
        why, details = str(error), {}
    except Exception as error:
        why, details = f"{type(error).__name__}: {error}", {"traceback": traceback.format_exc()}
    with contextlib.suppress(OSError), locks.hold(folder):  # a full disk cannot hold it
        store.write_json(store.inside(folder, FAILURE), {"why": why} | details)
    return why


def main(folder: pathlib.Path, cores: list[int], force: bool) -> int:
    """Resume the run on some of the cores; the code to exit with."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, cores)
    from lexrl import backend, locks

    backend.configure(num_devices=len(cores))
    try:
        return 1 if work(folder, force=force) else 0
    except locks.InUse as error:
        print(error, file=sys.stderr)
        return IN_USE
    except KeyboardInterrupt:
        return STOPPED


def _stop(*_: Any) -> None:
    raise KeyboardInterrupt


def _stop_without(parent: int) -> None:
    """Stop when the process that started this one is gone: without it the run would not be looked after."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started it, who asks to stop
    threading.Thread(target=_stop_without, args=[int(sys.argv[3])], daemon=True).start()
    sys.exit(main(pathlib.Path(sys.argv[1]), [int(core) for core in sys.argv[2].split(",")], FORCE in sys.argv[4:]))
