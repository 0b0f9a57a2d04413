"""Errors that a user can correct."""

import difflib
import math
import numbers
import os
import pathlib
import reprlib
from collections.abc import Iterable
from typing import Any


class InputError(ValueError):
    """Something was given that does not work: one sentence with what it was, what is needed and what to try."""


def require_whole(least: int = 1, most: int = 2**31 - 1, **values: Any) -> None:
    """Refuse what is not a whole number from `least` to `most`."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise InputError(f"{name} is {reprlib.repr(value)}; it must be a whole number.")
        if not least <= int(value) <= most:
            needed = f"{least} or more" if int(value) < least else f"{most:,} or less"
            raise InputError(f"{name} is {reprlib.repr(value)}; it must be {needed}.")


def require_finite(**values: Any) -> None:
    """Refuse what is not a finite number."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
            raise InputError(f"{name} is {reprlib.repr(value)}; it must be a finite number.")


def suggestion(given: str, known: Iterable[str]) -> str:
    """A question to end a sentence about an unknown name with: which one was meant? Empty if none is similar."""
    similar = difflib.get_close_matches(given, known, n=1)
    return f" Did you mean {similar[0]!r}?" if similar else ""


def names_path(given: Any) -> bool:
    """Whether a file or folder could have this name."""
    if not isinstance(given, str | os.PathLike):
        return False
    try:
        return b"\0" not in os.fsencode(given)
    except UnicodeEncodeError:
        return False


def as_path(given: Any) -> pathlib.Path:
    """A file or folder; an error for what cannot name one."""
    if not names_path(given):
        raise InputError(f"{reprlib.repr(given)} does not name a file or a folder; give its path as text.")
    return pathlib.Path(given)
