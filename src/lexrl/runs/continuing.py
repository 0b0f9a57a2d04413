"""Training a finished run further: it becomes an unfinished one with more steps, and its last state a checkpoint.

Schedules keep the lengths that they had: what falls over the run stays at its last value, and algorithms with stages
extend their last stage. So the numbers are those of one long run with the schedules of the short one.
"""

import datetime
import pathlib
from typing import Any

import jax

from lexrl import locks, store
from lexrl.errors import InputError
from lexrl.runs import record
from lexrl.runs.run import Run, whole_steps
from lexrl.schedules import Linear
from lexrl.stages import Stages


def extend(folder: pathlib.Path, steps: float | int, env: Any = None, algorithm: Any = None, command: str = "") -> Run:
    """Make the finished run in a folder one with `steps` more environment steps of each seed; `execute` then trains it.

    A process that is killed in between leaves the finished run, or the longer one.
    """
    store.read_run(folder)
    store.require_finished(folder)
    with locks.hold(folder):
        before = record.read(folder, env, algorithm)
        total = whole_steps(before.total_timesteps + whole_steps(steps))
        content = store.read_run(folder)
        old = store.read_identity(folder)
        if not (folder / store.FINAL).is_file():
            raise InputError(
                f"The last state of the run in {str(folder)!r} was not kept, because it takes more than "
                f"{store.MAX_FINAL // 10**6} MB; train it anew with more steps."
            )
        store.require_files(folder, store.read_summary(folder, before.seeds, before.order.names))
        arrays, about = store.read_checkpoint(store.inside(folder, store.FINAL), old)
        content |= {"total_timesteps": total}
        new = store.Identity(old.id, store.deciding_hash(content))
        store.write_checkpoint(folder, about["steps"][-1], arrays, about | {"run": new._asdict()})
        store.tie_curves(folder, new)
        moment = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        past = [*content.get("continued", []), {"at": before.total_timesteps, "on": moment, "command": command}]
        store.write_json(store.inside(folder, store.RUN), content | {"hash": new.hash, "continued": past})
        store.inside(folder, store.SUMMARY).unlink()
    return record.read(folder, env, algorithm)


def sentences(run: Run) -> list[str]:
    """What the schedules of a run do when it is trained further."""
    algorithm = run.algorithm if not isinstance(run.algorithm, list | tuple) else run.algorithm[0]
    found = jax.tree_util.tree_leaves_with_path(algorithm, is_leaf=lambda part: isinstance(part, Linear))
    said = [
        f"{jax.tree_util.keystr(path, simple=True, separator='.')} stays at {float(part.end):g}, where it ended."
        for path, part in found
        if isinstance(part, Linear)
    ]
    if any(
        isinstance(part, Stages) for part in jax.tree.leaves(algorithm, is_leaf=lambda part: isinstance(part, Stages))
    ):
        said.append("The last stage is extended.")
    return said or ["No setting depends on the length of the run."]
