"""Values in JSON: null for what is not finite; and whether what a file holds is of a type, for it may hold anything."""

import math
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin


def finite(value: Any) -> Any:
    """The same with null for every number that is not finite: JSON has no NaN."""
    if isinstance(value, Mapping):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def fits(value: Any, hint: Any) -> bool:
    """Is a value of a type, such as `dict[str, list[float]]`? Lists stand for tuples, whole numbers for floats."""
    kind, parts = get_origin(hint), get_args(hint)
    if kind is Literal:
        return isinstance(value, str) and value in parts
    if kind in (Union, types.UnionType):
        return any(fits(value, part) for part in parts)
    if kind in (list, tuple):
        return isinstance(value, list | tuple) and all(fits(each, parts[0]) for each in value)
    if kind is dict:
        return isinstance(value, dict) and all(fits(each, parts[1]) for each in value.values())
    return _is_number(value) if hint is float else type(value) is hint


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True
