"""A part of a JSON file together with its place in it, so that every error names the file and the place."""

import dataclasses
import math
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from lexrl import store


@dataclasses.dataclass(frozen=True)
class Checked:
    """A JSON object whose values are checked as they are read."""

    path: pathlib.Path
    where: str
    content: Mapping[str, Any]

    def error(self, why: str) -> store.Damaged:
        return store.Damaged(f"The file {str(self.path)!r} is damaged: {self.where} {why}.")

    def get(self, key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """The value of a key; if it is missing or null, the default, and without one an error."""
        found = self.content.get(key)
        found = default if found is None else found
        if found is None:
            raise self.error(f"has no {key!r}")
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise self.error(f"has {brief(found)} for {key!r}, which is not valid")
        return found

    def text(self, key: str, default: str | None = None) -> str:
        return self.get(key, str, default)

    def mapping(self, key: str) -> Mapping[str, Any]:
        return self.get(key, dict, {})

    def number(self, key: str, default: float | None = None) -> float:
        return self.as_number(key, self.get(key, (int, float), default))

    def integer(self, key: str, default: int | None = None) -> int:
        return self.get(key, int, default)

    def texts(self, key: str) -> tuple[str, ...]:
        found = self.get(key, list)
        if not all(isinstance(each, str) for each in found):
            raise self.error(f"has {key!r} that are not all strings")
        return tuple(found)

    def numbers(self, key: str, length: int | None = None) -> np.ndarray:
        """An array, NaN for null. With a `length` the key is optional, and an array of NaNs stands in for it."""
        found = self.get(key, list, None if length is None else [])
        if length is not None and not found:
            return np.full(length, np.nan)
        if length is not None and len(found) != length:
            raise self.error(f"has {len(found)} numbers in {key!r} where {length} are needed")
        return np.array([self.as_number(key, each) for each in found], dtype=float)

    def parts(self, key: str, what: str) -> "list[Checked]":
        """The objects of a list, each with its place: `what` is what an error calls one of them."""
        found = self.get(key, list)
        inside = "" if self.where == "it" else f" of {self.where}"
        parts = []
        for number, each in enumerate(found, 1):
            part = Checked(self.path, f"{what} {number}{inside}", {})
            if not isinstance(each, dict):
                raise part.error(f"is {brief(each)}, which is not valid")
            parts.append(dataclasses.replace(part, content=each))
        return parts

    def part(self, key: str) -> "Checked":
        return Checked(self.path, f"{key!r} of {self.where}", self.get(key, dict))

    def as_number(self, key: str, found: Any) -> float:
        if found is None:
            return math.nan
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self.error(f"has {brief(found)} in {key!r} where a number is needed")
        try:
            return float(found)
        except OverflowError:
            raise self.error(f"has a number in {key!r} that is too large") from None


def as_json(values: np.ndarray, digits: int = 17) -> list[float | int | None]:
    """An array as `Checked.numbers` reads it: null where a value is not finite, integers without a point."""
    found = [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values.tolist()]
    return [int(each) if each is not None and each.is_integer() and abs(each) < 1e15 else each for each in found]


def brief(found: Any) -> str:
    """A value on one line of at most 60 characters."""
    text = repr(found)
    return text if len(text) <= 60 else f"{text[:57]}..."
