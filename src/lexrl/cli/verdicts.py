"""Verdicts in the terminal: a symbol, a color and a sentence each; and progress while policies are verified."""

import contextlib
from collections.abc import Callable, Iterator

from rich.text import Text

from lexrl.cli.console import console
from lexrl.runs.verification import Look
from lexrl.verdict import SYMBOLS, Verdict

COLORS = {"kept": "green", "violated": "red", "undecided": "yellow"}


def show(verdict: Verdict) -> None:
    """Print a verdict."""
    console.print("\nWas the priority kept?", style="italic")
    for status, sentence in verdict.lines():
        line(status or "", sentence)


def line(status: str, sentence: str) -> None:
    """Print a sentence, with the symbol and the color of a status; they are indented alike without one."""
    symbol = Text(SYMBOLS.get(status, " "), style=f"bold {COLORS[status]}" if status else "")
    text = Text.assemble(symbol, " ", Text(sentence))
    for i, part in enumerate(text.wrap(console, max(console.width - 2, 20))):
        console.print(part if i == 0 else Text("  ") + part)


@contextlib.contextmanager
def watching() -> Iterator[Callable[[Look], None]]:
    """A line that says how far a verification is and how long it may take; it vanishes in the end."""
    with console.status("") as status:
        status.stop()

        def watch(look: Look) -> None:
            status.start()
            status.update(f"Verifying the priority: {_progress(look)}")

        yield watch


def _progress(look: Look) -> str:
    left = look.seconds / look.episodes * (look.limits.episodes - look.episodes)
    left = min(left, max(look.limits.seconds - look.seconds, 0.0))
    return f"{look.episodes:,} of at most {look.limits.episodes:,} episodes of each policy, at most {left:.0f} s more"
