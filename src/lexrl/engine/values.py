"""The values of a sweep: what is varied, and over which values.

learning_rate=1e-4..1e-2:log:8      eight values between the two, evenly on a logarithmic scale (`lin`: linear)
learning_rate=1e-4..1e-2:log        any value between the two, for a random search or optuna
ent_coef=0,0.01                     these values
hidden_sizes=32x32,64x64            layers are joined by x
"""

import dataclasses
import itertools
import math
import numbers
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from lexrl.errors import InputError

Settings = Mapping[str, Any]
"""One value for each setting that is varied, by name."""
MAX_VALUES = 10_000


class Range(NamedTuple):
    """Any value between two, for a search that draws its values."""

    low: float
    high: float
    log: bool = False
    """Is it the logarithm that is drawn evenly?"""

    def at(self, share: float) -> str:
        """The value at a share of the way."""
        if self.log:
            return f"{self.low * (self.high / self.low) ** share:.4g}"
        return f"{self.low + (self.high - self.low) * share:.4g}"

    def __str__(self) -> str:
        return f"{self.low:g}..{self.high:g}:{'log' if self.log else 'lin'}"


Over = Mapping[str, Sequence[Any] | Range]
"""What is varied: the values of each setting, or their range."""


def require(over: Over) -> None:
    """Refuse what cannot be varied."""
    if not isinstance(over, Mapping) or not over:
        raise InputError("A sweep needs something to vary, as in over={'learning_rate': [1e-4, 1e-3]}.")
    for name, given in over.items():
        if not isinstance(name, str):
            raise InputError(f"What is varied is {name!r}; give the name of a setting.")
        if isinstance(given, Range):
            if not all(isinstance(end, numbers.Real) for end in given[:2]):
                raise InputError(f"The range of {name!r} is from {given.low!r} to {given.high!r}; give numbers.")
            if not (given.low < given.high and math.isfinite(given.high - given.low)) or (given.log and given.low <= 0):
                raise InputError(f"The range of {name!r} is {given}; it must rise, above 0 on a logarithmic scale.")
        elif not _are_values(given):
            raise InputError(f"The values of {name!r} are {given!r}; give a list of them.")
    require_once([plain(name) for name in over])


def _are_values(given: Any) -> bool:
    if isinstance(given, np.ndarray):
        return given.ndim > 0 and len(given) > 0
    return isinstance(given, Sequence) and not isinstance(given, str) and len(given) > 0


def require_once(names: Sequence[str]) -> None:
    """Refuse settings that are varied twice."""
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise InputError(f"{twice[0]} is varied twice; give all its values at once.")


def plain(name: str) -> str:
    """A setting's name as in Python; the command line also knows it by its flag."""
    return name.replace("-", "_")


def grid(over: Over) -> list[dict[str, Any]]:
    """Every combination of the values."""
    require(over)
    for name, given in over.items():
        if isinstance(given, Range):
            raise InputError(
                f"{name} has a range; say how many values a grid takes of it, as in {given}:8, or search it at random."
            )
    every: Any = over
    if math.prod(len(given) for given in every.values()) > MAX_VALUES:
        raise InputError(f"These are more than {MAX_VALUES:,} combinations; vary less at a time.")
    return [dict(zip(every, combination, strict=True)) for combination in itertools.product(*every.values())]


def parse(text: str) -> tuple[str, list[str] | Range]:
    """A name and its values, from text as above."""
    name, equals, values = text.partition("=")
    if not equals or not name.strip() or not values.strip():
        raise InputError(
            f"{text!r} cannot be read; write what is varied as in learning_rate=1e-4..1e-2:log:8 or a=0,1."
        )
    number = r"([-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?)"
    found = re.fullmatch(rf"{number}\.\.{number}(?::(log|lin))?(?::(\d{{1,9}}))?", values.strip())
    if found is None:
        return name.strip(), [value.strip() for value in values.split(",")]
    low, high, scale = float(found[1]), float(found[2]), found[3] or "lin"
    if found[4] is None:
        chosen = Range(low, high, scale == "log")
        require({name.strip(): chosen})
        return name.strip(), chosen
    count = int(found[4])
    if not 2 <= count <= MAX_VALUES or not np.isfinite([low, high]).all() or (scale == "log" and min(low, high) <= 0):
        raise InputError(
            f"{text!r} cannot be read; it takes 2 to {MAX_VALUES:,} values, above 0 on a logarithmic scale."
        )
    each = np.geomspace(low, high, count) if scale == "log" else np.linspace(low, high, count)
    return name.strip(), [f"{value:.4g}" for value in each]


def changed(algorithm: Any, settings: Settings) -> Any:
    """The algorithm with these settings; those of its parts go by their own names."""
    for name, value in settings.items():
        algorithm = _replace(algorithm, find(algorithm, plain(name)), value)
    return algorithm


def find(part: Any, name: str) -> list[str]:
    """The fields that lead to a setting; an error if there is none, or more than one."""
    paths = list(_paths(part, name))
    if len(paths) == 1:
        return paths[0]
    known = sorted({field.name for field in dataclasses.fields(part)})
    what = "has no setting" if not paths else "has more than one setting"
    raise InputError(f"{type(part).__name__} {what} {name!r}; its settings are {', '.join(known)}.")


def _paths(part: Any, name: str) -> Any:
    for field in dataclasses.fields(part):
        value = vars(part)[field.name]
        if field.name == name:
            yield [name]
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            yield from ([field.name, *rest] for rest in _paths(value, name))


def _replace(part: Any, path: Sequence[str], value: Any) -> Any:
    first, *rest = path
    before = vars(part)[first]
    reads_text = any("converter" in field.metadata for field in dataclasses.fields(part) if field.name == first)
    if isinstance(value, str) and not rest and dataclasses.is_dataclass(before) and not reads_text:
        own = ", ".join(field.name for field in dataclasses.fields(before))
        raise InputError(f"{first} has settings of its own and cannot be {value!r}; vary one of them: {own}.")
    new = _replace(before, rest, value) if rest else _as_type_of(before, value, first)
    return dataclasses.replace(part, **{first: new})


def _as_type_of(before: Any, value: Any, name: str) -> Any:
    """Text as the setting takes it; schedules and tolerances read text themselves."""
    if not isinstance(value, str) or isinstance(before, str):
        return value
    try:
        if isinstance(before, bool):
            return {"true": True, "false": False}[value.lower()]
        if isinstance(before, int):
            return int(value)
        if isinstance(before, tuple) and all(isinstance(each, int) for each in before):
            return tuple(int(each) for each in value.split("x"))
        return float(value) if isinstance(before, float) else value
    except (ValueError, KeyError):
        raise InputError(f"{name} cannot be {value!r}; now it is {before!r}.") from None


def groups(algorithms: Sequence[Any]) -> list[list[int]]:
    """Positions of the algorithms that one compiled program can train together: those that differ in floats only."""
    found: dict[Any, list[int]] = {}
    for i, one in enumerate(algorithms):
        shapes = tuple(np.shape(leaf) for leaf in jax.tree.leaves(one))
        found.setdefault((jax.tree.structure(one), shapes), []).append(i)
    return list(found.values())
