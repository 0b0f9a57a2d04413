"""The terminal, and how a command ends on an error."""

import contextlib
import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from rich.console import Console

console = Console(highlight=False)
error_console = Console(highlight=False, stderr=True)
"""For what is shown beside results that other programs read."""


def print_json(content: Mapping[str, Any]) -> None:
    """Results for other programs: one JSON object on the standard output."""
    print(json.dumps(content, indent=2))


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
