"""How settings are printed: only what differs from the defaults, `LDQN(gamma=0.9, epsilon='1 to 0.05 in 20%')`."""

import dataclasses
from typing import Any, Protocol, runtime_checkable

import equinox as eqx


@runtime_checkable
class Named(Protocol):
    """A function or a class."""

    __qualname__: str


def short_repr(self: Any) -> str:
    """`__repr__` of a class of settings, by assignment in its body."""
    shown = [
        f"{field.name}={_text(value)}"
        for field in dataclasses.fields(self)
        if field.init and not _same(value := getattr(self, field.name), field.default)
    ]
    return f"{type(self).__name__}({', '.join(shown)})"


def _text(value: Any) -> str:
    if isinstance(value, tuple) and type(value) is tuple:
        parts = [_text(part) for part in value]
        return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    if isinstance(value, eqx.Module) and type(value).__str__ is not object.__str__:  # a schedule, a tolerance
        text = str(value)
        return text if _is_number(text) else repr(text)
    if isinstance(value, Named) and not isinstance(value, eqx.Module | tuple):
        return value.__qualname__
    return repr(value)


def _same(value: Any, default: Any) -> bool:
    """Traced values and arrays differ from any default."""
    if default is dataclasses.MISSING or type(value) is not type(default):
        return False
    if isinstance(value, eqx.Module):
        return eqx.tree_equal(value, default) is True
    return value is default or (isinstance(value, int | float | str | tuple) and value == default)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
