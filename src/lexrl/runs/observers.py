"""What can be plugged into a run while it is executed: progress, logs, checkpoints, a callback of the user's.

An observer is opened before the first step, given a snapshot after every chunk, and closed when the run ends, is
interrupted or fails.
"""

import contextlib
import pathlib
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, runtime_checkable

from lexrl.errors import InputError
from lexrl.loops.compiled import TrainState
from lexrl.runs.result import Result
from lexrl.runs.run import Run
from lexrl.store import Identity


class Start(NamedTuple):
    """Where a run starts."""

    folder: pathlib.Path | None = None
    """The folder it is kept in; None: it is not kept."""
    step: int = 0
    """Environment steps of each seed that were taken before."""
    identity: Identity | None = None
    """What ties its files to it, if it is kept."""


class Snapshot(NamedTuple):
    """A run after a chunk."""

    result: Result
    train_states: TrainState
    """Everything that is needed to continue from here."""


@runtime_checkable
class Observer(Protocol):
    """Opens a run; the context it returns takes the snapshots."""

    def __call__(self, run: Run, start: Start) -> contextlib.AbstractContextManager[Callable[[Snapshot], None]]: ...


def callback(function: Callable[[Result], object]) -> Observer:
    """An observer that calls a function with the result so far."""
    if not callable(function):
        raise InputError(f"The callback is {function!r}; it must be a function that takes a result.")

    @contextlib.contextmanager
    def observe(run: Run, start: Start) -> Iterator[Callable[[Snapshot], None]]:
        def see(snapshot: Snapshot) -> None:
            function(snapshot.result)

        yield see

    return observe
