"""A worker: `python -m lexrl.engine.worker FOLDER CORES` resumes the run in a folder on some of the cores."""

import os
import pathlib
import signal
import sys
import traceback
from typing import Any

STOPPED = 130
"""The code of a worker that was asked to stop, and left a checkpoint."""


def main(folder: pathlib.Path, cores: list[int]) -> int:
    """Resume the run; the code to exit with."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, cores)
    from lexrl import backend, store
    from lexrl.engine.processes import FAILURE
    from lexrl.errors import InputError
    from lexrl.runs import resume

    backend.configure(num_devices=len(cores))
    try:
        resume(folder)
    except InputError as error:
        store.write_json(store.inside(folder, FAILURE), {"why": str(error)})
        return 2
    except KeyboardInterrupt:
        return STOPPED
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        store.write_json(store.inside(folder, FAILURE), {"why": why, "traceback": traceback.format_exc()})
        return 1
    return 0


def _stop(*_: Any) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)
    sys.exit(main(pathlib.Path(sys.argv[1]), [int(core) for core in sys.argv[2].split(",")]))
