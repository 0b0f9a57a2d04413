"""Settings as JSON and back: algorithms, worlds, schedules, tolerances, orders, and the arrays inside them.

    {"class": "lexrl.schedules:Linear", "first": 0.005, ...}        {"array": "float32", "shape": [2], "values": [0, 1]}

Only what is part of lexrl is built from a file. Something of the user's own is named in it, and must be given again.
"""

import base64
import dataclasses
import importlib
import math
from typing import Any

import equinox as eqx
import numpy as np

from lexrl.errors import InputError

SHORT = 1000
"""Arrays with more numbers are packed, since nobody would read them."""


def encode(value: Any) -> Any:
    """A value as what JSON can hold."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if getattr(value, "recipe", None) is not None:
        make, given = value.recipe
        return {"call": _name(make), **{key: encode(part) for key, part in given.items()}}
    if hasattr(value, "recipe") and not isinstance(value, eqx.Module):
        return {"yours": f"{_name(type(value))} around a function"}
    if hasattr(value, "_fields") or dataclasses.is_dataclass(value):
        if not type(value).__module__.startswith("lexrl."):
            return {"yours": _name(type(value))}
        return {"class": _name(type(value)), **{name: encode(getattr(value, name)) for name in _fields(value)}}
    if isinstance(value, tuple | list):
        return [encode(part) for part in value]
    if isinstance(value, dict):
        return {"dict": {str(key): encode(part) for key, part in value.items()}}
    if hasattr(value, "__array__"):
        return _packed(np.asarray(value))
    return {"yours": _name(type(value))}


def decode(value: Any) -> Any:
    """What `encode` was given; lists become tuples."""
    try:
        return _decoded(value)
    except InputError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"The settings in the file do not fit ({error}); use the version they are from.") from error


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(part) for part in value)
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float(value["float"])
    if "dict" in value:
        return {key: _decoded(part) for key, part in value["dict"].items()}
    if "array" in value:
        return _unpacked(value)
    if "yours" in value:
        raise InputError(
            f"This run used {value['yours']}, which is not part of lexrl and so cannot be read from a file; "
            "give it again, as in lexrl.resume(folder, env=...)."
        )
    make = _class(value["class"]) if "class" in value else _builder(value.get("call"))
    return make(**{name: _decoded(part) for name, part in value.items() if name not in ("class", "call")})


def _fields(value: Any) -> list[str]:
    if hasattr(value, "_fields"):
        return list(value._fields)
    return [field.name for field in dataclasses.fields(value) if field.init]


def _packed(array: np.ndarray) -> dict[str, Any]:
    shape = {"array": str(array.dtype), "shape": list(array.shape)}
    if array.size <= SHORT and np.isfinite(array).all():
        return shape | {"values": array.reshape(-1).tolist()}
    return shape | {"base64": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()}


def _unpacked(value: dict[str, Any]) -> np.ndarray:
    dtype, shape = np.dtype(value["array"]), value["shape"]
    if "values" in value:
        return np.array(value["values"], dtype).reshape(shape)
    return np.frombuffer(base64.b64decode(value["base64"]), dtype).reshape(shape).copy()


def _name(thing: Any) -> str:
    return f"{thing.__module__}:{thing.__qualname__}"


def _class(name: Any) -> Any:
    """A kind of value of lexrl's."""
    found = _found(name)
    if not (isinstance(found, type) and (hasattr(found, "_fields") or dataclasses.is_dataclass(found))):
        raise InputError(f"The file names {name!r} as a kind of setting, which it is not; is it from another program?")
    return found


def _builder(name: Any) -> Any:
    """A function that builds a world."""
    found = _found(name)
    if not str(name).startswith("lexrl.envs."):
        raise InputError(f"The file names {name!r} as a kind of world, which it is not; is it from another program?")
    return found


def _found(name: Any) -> Any:
    """Something of lexrl's by its name; nothing else is ever looked up."""
    module, _, what = str(name).partition(":")
    if not module.startswith("lexrl.") or not what.isidentifier():
        raise InputError(f"The file names {name!r}, which is not part of lexrl; is it from another program?")
    try:
        return getattr(importlib.import_module(module), what)
    except (ImportError, AttributeError):
        raise InputError(
            f"The file names {name!r}, which this lexrl does not have; use the version it is from."
        ) from None
