"""Ctrl-C and SIGTERM: a run stops after the current chunk, with a checkpoint."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def stopping() -> Iterator[Callable[[], int]]:
    """Note signals instead of stopping at once; the function gives the number of the one that arrived, or 0.

    A second signal stops at once.
    """
    arrived = 0

    def note(number: int, _: Any) -> None:
        nonlocal arrived
        if arrived:
            raise KeyboardInterrupt
        arrived = number
        # Not through the console or a buffer: the signal may have arrived while a line is printed.
        os.write(2, b"\nStopping after this chunk, with a checkpoint (once more: at once).\n")

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, note) for number in numbers]
    try:
        yield lambda: arrived
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
