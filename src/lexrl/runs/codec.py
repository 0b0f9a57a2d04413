"""What a file can hold: settings as JSON, and trees of arrays as named arrays; and both back.

    {"kind": "linear", "start": 0.005, "end": 5e-05, "steps": 2900.0}
    {"array": "float32", "shape": [2], "values": [0, 1]}

A class is written under its name in the catalog, so that code may move without files becoming unreadable. Only what is
in the catalog is built from a file; anything else is named in it as `custom`, and must be given again.
"""

import base64
import contextlib
import dataclasses
import inspect
import math
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from lexrl import catalog
from lexrl.errors import InputError
from lexrl.optimizers import without_code

MAX_READABLE = 1000
"""Arrays with more numbers are packed."""


def encode(value: Any) -> Any:
    """A value as what JSON can hold."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if _is_record(value):
        return _encode_record(value)
    if isinstance(value, tuple | list):
        return [encode(part) for part in value]
    if isinstance(value, dict):
        return {"dict": {str(key): encode(part) for key, part in value.items()}}
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return _encode_array(np.asarray(value))
    return {"custom": _path(value)}


def decode(value: Any) -> Any:
    """What `encode` was given; lists become tuples."""
    with reading():
        return _decode(value)


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Inside, what a file holds becomes objects; a file may hold anything, and what does not fit is a sentence."""
    try:
        with without_code():
            yield
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"The settings in the file do not fit this version of lexrl ({why}); use the version that wrote it."
        ) from error


def name_of(thing: Any) -> str | None:
    """The name of an instance's class in files, None if the catalog has none."""
    for table in tables():
        entry = catalog.entry_of(table, thing)
        if entry is not None:
            return entry.name
    return None


def tables() -> tuple[catalog.Table, ...]:
    """Where names in files are looked up; no name may be in two of them."""
    return catalog.ALGORITHMS, catalog.ENVS, catalog.VALUES


def _encode_record(value: Any) -> Any:
    """A class with fields: by its name, with all its fields."""
    name = name_of(value)
    if name is None:
        return {"custom": _path(value)}
    contents = vars(value) if dataclasses.is_dataclass(value) else value._asdict()
    return {"kind": name} | {field: encode(contents[field]) for field in _fields(value)}


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decode(part) for part in value)
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float(value["float"])
    if "dict" in value:
        return {key: _decode(part) for key, part in value["dict"].items()}
    if "array" in value:
        return _decode_array(value)
    if "custom" in value:
        raise InputError(
            f"The file refers to {value['custom']}, which is not stored, because it has no name in lexrl's catalog; "
            "pass it again, as in lexrl.load(folder, env=...) or lexrl.load(folder, algorithm=...), and likewise to "
            "lexrl.resume."
        )
    return _build(value["kind"], {name: _decode(part) for name, part in value.items() if name != "kind"})


def _build(name: str, fields: dict[str, Any]) -> Any:
    """An instance of the class that goes by a name, with these fields."""
    entry = next((table[name] for table in tables() if name in table), None)
    if entry is None:
        raise InputError(
            f"The file names {name!r}, which is not in the catalog of this version of lexrl; use the version that "
            "wrote it, or add the name with lexrl.catalog.add."
        )
    kind: Any = entry.kind()
    if unknown := set(fields) - set(_fields(kind)):
        raise TypeError(f"{name} has no setting {', '.join(sorted(unknown))}")
    if set(fields) <= set(inspect.signature(kind).parameters):
        return kind(**fields)
    # The constructor takes something else, as `FiniteEnv` takes a MOMDP: the fields are all there is.
    made = object.__new__(kind)
    for field in _fields(kind):
        object.__setattr__(made, field, fields[field])
    return made


def _is_record(value: Any) -> bool:
    return dataclasses.is_dataclass(value) or (isinstance(value, tuple) and type(value) is not tuple)


def _fields(record: Any) -> list[str]:
    if dataclasses.is_dataclass(record):
        return [field.name for field in dataclasses.fields(record) if field.init]
    return list(record._fields)


def _encode_array(array: np.ndarray) -> dict[str, Any]:
    about = {"array": str(array.dtype), "shape": list(array.shape)}
    if array.size <= MAX_READABLE and np.isfinite(array).all():
        return about | {"values": array.reshape(-1).tolist()}
    return about | {"base64": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()}


def _decode_array(value: dict[str, Any]) -> np.ndarray:
    dtype, shape = np.dtype(value["array"]), value["shape"]
    if dtype.kind not in "biuf":
        raise ValueError(f"{dtype} is no type of numbers")
    if "values" in value:
        return np.array(value["values"], dtype).reshape(shape)
    return np.frombuffer(base64.b64decode(value["base64"]), dtype).reshape(shape).copy()


def _path(value: Any) -> str:
    """Where something comes from, for a sentence: `module:Class`, or the function itself."""
    named = value if callable(value) and not dataclasses.is_dataclass(type(value)) else type(value)
    return f"{named.__module__}:{named.__qualname__}"


def flatten(tree: Any, prefix: str = "") -> dict[str, np.ndarray]:
    """Every array of a tree by its path, as in `train_state/agent/net/weights/0`."""
    return {f"{prefix}{_name(path)}": np.asarray(leaf) for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]}


def rebuild(template: Any, arrays: Mapping[str, np.ndarray], prefix: str = "") -> Any:
    """A tree like the template (arrays, or just their shapes) from named arrays."""

    def one(path: Any, leaf: Any) -> np.ndarray:
        name = f"{prefix}{_name(path)}"
        if name not in arrays:
            raise InputError(f"The file has no {name!r}, which this lexrl needs; use the version that wrote it.")
        found = arrays[name]
        if found.shape != tuple(leaf.shape) or found.dtype != leaf.dtype:
            raise InputError(
                f"In the file {name!r} is {found.dtype}{list(found.shape)}, but {leaf.dtype}{list(leaf.shape)} is "
                "needed; the settings are not those it was written with."
            )
        return found

    return jax.tree_util.tree_map_with_path(one, template)


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")
