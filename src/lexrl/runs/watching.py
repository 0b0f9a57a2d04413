"""A line that says how far a verification is, on a terminal or in a notebook."""

import contextlib
import math
from collections.abc import Callable, Iterator

from rich.console import Console

from lexrl.runs.sampling import Look


@contextlib.contextmanager
def watching_verification(shown: Console) -> Iterator[Callable[[Look], None]]:
    """A line that says how far a verification is and how long it may take; it vanishes in the end. Where that is known
    before it begins, because the environment is stepped from Python, it is said in a line that stays."""
    with shown.status("") as status:
        status.stop()

        def watch(look: Look) -> None:
            if look.episodes == 0 and look.expected is not None:
                shown.print(f"Verifying the priority: {_progress(look)}.", markup=False)
            status.start()
            status.update(f"Verifying the priority: {_progress(look)}")

        yield watch


def _progress(look: Look) -> str:
    left = math.inf if look.expected is None else max(look.expected - look.seconds, 0.0)
    left = min(left, max(look.limits.seconds - look.seconds, 0.0))
    done = f"{look.episodes:,} of at most" if look.episodes else "at most"
    more = "" if math.isinf(left) else f", at most {_duration(left)}{' more' if look.episodes else ''}"
    return f"{done} {look.limits.episodes:,} episodes of each policy{more}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} minutes"
