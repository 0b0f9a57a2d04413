"""The terminal: verdicts with a symbol, a color and a sentence each, and how a command ends on an error."""

import contextlib
import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from rich.console import Console
from rich.text import Text

from lexrl import store
from lexrl.verdict import SYMBOLS, Verdict

console = Console(highlight=False)
error_console = Console(highlight=False, stderr=True)
"""For what is shown beside results that other programs read."""
COLORS = {"kept": "green", "violated": "red", "undecided": "yellow"}


def print_json(content: Mapping[str, Any]) -> None:
    """Results for other programs: one JSON object on the standard output; null for what is not finite."""
    print(json.dumps(store.finite(content), indent=2, allow_nan=False))


def complain(sentence: str, code: int) -> NoReturn:
    """Print a sentence to the standard error and exit."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"lexrl: {sentence}", markup=False)
    sys.exit(code)


@contextlib.contextmanager
def plain_warnings(shown: Console) -> Iterator[None]:
    """Warnings as plain sentences."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: shown.print(str(message), markup=False)
        yield


def show_verdict(verdict: Verdict) -> None:
    """Print a verdict."""
    console.print("\nWas the priority kept?", style="italic")
    for status, sentence in verdict.lines():
        show_line(status or "", sentence)


def show_line(status: str, sentence: str) -> None:
    """Print a sentence, with the symbol and the color of a status; they are indented alike without one."""
    symbol = Text(SYMBOLS.get(status, " "), style=f"bold {COLORS[status]}" if status else "")
    text = Text.assemble(symbol, " ", Text(sentence))
    for i, part in enumerate(text.wrap(console, max(console.width - 2, 20))):
        console.print(part if i == 0 else Text("  ") + part)
