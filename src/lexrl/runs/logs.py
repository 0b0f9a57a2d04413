"""Logs for TensorBoard and Weights & Biases.

    folder/tensorboard/seed-0/      events of one seed, so that the curves of the seeds are overlaid
    folder/wandb/                   runs of Weights & Biases, offline unless WANDB_MODE says otherwise

Nothing is written elsewhere. Each call adds one point: the last one of the result it is given.
"""

import contextlib
import importlib
import os
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from lexrl import store
from lexrl.errors import InputError
from lexrl.runs import record
from lexrl.runs.observers import Snapshot, Start
from lexrl.runs.run import Run

Kind = Literal["tensorboard", "wandb"]
PACKAGES = {"tensorboard": "tensorboardX", "wandb": "wandb"}
See = Callable[[Any], None]


@contextlib.contextmanager
def observe(run: Run, start: Start) -> Iterator[Callable[[Snapshot], None]]:
    """Write the logs that a run asks for while it is executed."""
    assert start.folder is not None
    with logs(run.log, start.folder, record.describe(run)) as write:
        yield lambda snapshot: write(snapshot.result)


@contextlib.contextmanager
def logs(kinds: Sequence[str], folder: pathlib.Path, about: Mapping[str, Any]) -> Iterator[See]:
    """Write the last point of every result.

    Args:
        kinds: for which programs.
        folder: the run's folder.
        about: what is run, as in `run.json`.
    """
    begin = {"tensorboard": _tensorboard, "wandb": _wandb}
    with contextlib.ExitStack() as stack:
        each = [stack.enter_context(begin[kind](folder, about)) for kind in dict.fromkeys(kinds)]

        def see(result: Any) -> None:
            for one in each:
                one(result)

        yield see


def as_kinds(given: Any) -> tuple[str, ...]:
    """Kinds of logs, one or several; an error for a program that is unknown or not installed."""
    kinds = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Sequence) else (given,)
    require(kinds)
    return kinds


def require(kinds: Sequence[str]) -> None:
    """Raise an error for a program that is unknown or not installed."""
    for kind in kinds:
        if not isinstance(kind, str) or kind not in PACKAGES:
            raise InputError(f"There are no logs of the kind {kind!r}; there are {', '.join(PACKAGES)}.")
        _package(PACKAGES[kind], kind)


def last_point(result: Any) -> dict[str, np.ndarray]:
    """The last point of every curve, `[seeds]`, by name: `episode_length`, or `episode_return/cost` of an objective."""
    found = {}
    for name, values in result.metrics.items():
        if values.ndim == 2:
            found[name] = values[-1]
        else:
            found |= {f"{name}/{objective}": values[-1, :, i] for i, objective in enumerate(result.run.order.names)}
    return found


@contextlib.contextmanager
def _tensorboard(folder: pathlib.Path, about: Mapping[str, Any]) -> Iterator[See]:
    # Not its SummaryWriter: that writes in a thread, and where the disk is full the thread dies and training hangs.
    package = _package("tensorboardX.event_file_writer", "tensorboard")
    proto = _package("tensorboardX.proto.event_pb2", "tensorboard")
    writers: dict[int, Any] = {}

    def begin(seed: int, step: int) -> Any:
        path = store.inside(folder, "tensorboard", f"seed-{seed}")
        path.mkdir(parents=True, exist_ok=True)
        writer = package.EventsWriter(str(path / "events"))
        # A resumed run repeats what came after its last checkpoint: TensorBoard then drops the older points.
        writer.write_event(proto.Event(step=step, session_log=proto.SessionLog(status=proto.SessionLog.START)))
        return writer

    def see(result: Any) -> None:
        step, now, point = int(result.steps[-1]), time.time(), last_point(result)
        for i, seed in enumerate(result.run.seeds):
            if seed not in writers:
                writers[seed] = begin(seed, step)
            event = proto.Event(step=step, wall_time=now)
            for name, values in point.items():
                if np.isfinite(values[i]):
                    event.summary.value.add(tag=name, simple_value=float(values[i]))
            writers[seed].write_event(event)
            writers[seed].flush()

    try:
        yield see
    finally:
        for writer in writers.values():
            writer.close()


@contextlib.contextmanager
def _wandb(folder: pathlib.Path, about: Mapping[str, Any]) -> Iterator[See]:
    package = _package("wandb", "wandb")
    # It would print between the lines of the progress, and keep a copy of everything printed.
    quiet = {"silent": True, "console": "off"}
    mode = os.environ.get("WANDB_MODE", "offline")
    try:
        with _files_in(store.inside(folder, store.OTHERS)):
            run = package.init(
                project=os.environ.get("WANDB_PROJECT", "lexrl"), name=folder.name, dir=str(folder),
                config=dict(about), settings=package.Settings(mode=mode, **quiet),
            )  # fmt: skip
    except (package.Error, ValueError) as error:
        sentence = " ".join(str(error).split()).rstrip(".")
        raise InputError(f"Weights & Biases does not start ({sentence}); try it with WANDB_MODE=offline.") from None

    def see(result: Any) -> None:
        row = {}
        for name, values in last_point(result).items():
            each = zip(result.run.seeds, values, strict=True)
            known = {seed: float(value) for seed, value in each if np.isfinite(value)}
            if known:
                row[name] = float(np.mean(list(known.values())))
                row |= {f"{name}/seed-{seed}": value for seed, value in known.items()}
        run.log(row, step=int(result.steps[-1]))

    with run:
        yield see


@contextlib.contextmanager
def _files_in(folder: pathlib.Path) -> Iterator[None]:
    """Have Weights & Biases keep its own files in a folder, not in the user's home."""
    folders = {f"WANDB_{what}_DIR": str(folder / what.lower()) for what in ("CACHE", "CONFIG", "DATA")}
    added = {name: path for name, path in folders.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _package(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise InputError(
            f"Logs of the kind {extra!r} need {package}, which is not installed; try pip install 'lexrl[{extra}]'."
        ) from None
