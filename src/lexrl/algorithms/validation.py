"""Checks of settings that several algorithms share: each raises an error with one sentence."""

import dataclasses
import numbers
import reprlib
from typing import Any, get_type_hints

import equinox as eqx
import jax
import numpy as np

from lexrl.errors import InputError, require_whole
from lexrl.types import Spec


def require_one_objective(name: str, instead: str, spec: Spec) -> None:
    """Refuse several objectives, for an algorithm that optimizes one."""
    if len(spec.objectives) != 1:
        raise InputError(
            f"{name} optimizes one objective, but the order has {len(spec.objectives)} ({', '.join(spec.objectives)}); "
            f"order one of them, or use {instead}."
        )


def require_positive(**counts: int) -> None:
    """Refuse a count below 1."""
    require_whole(**counts)


def require_in_unit_interval(**values: Any) -> None:
    """Refuse a number, or one of several, outside of [0, 1]; traced ones pass."""
    _require(values, "it must lie in [0, 1]", lambda x: 0 <= x <= 1)


def require_above_zero(**values: Any) -> None:
    """Refuse a number, or one of several, that is not above 0 or infinite; traced ones pass."""
    _require(values, "it must be above 0 and finite", lambda x: 0 < x < float("inf"))


def require_at_least(least: int | float, **values: Any) -> None:
    """Refuse a number, or one of several, below `least`; traced ones pass."""
    _require(values, f"it must be {least:g} or more", lambda x: x >= least)


def require_choice(choices: tuple[str, ...], **values: Any) -> None:
    """Refuse a word that is not among the choices."""
    for name, given in values.items():
        if given not in choices:
            raise InputError(f"{name} is {given!r}; it must be one of {', '.join(map(repr, choices))}.")


def require_per_objective(num_objectives: int, **values: Any) -> None:
    """Refuse a setting given one each, for another number of objectives."""
    for name, given in values.items():
        if isinstance(given, tuple) and len(given) != num_objectives:
            raise InputError(
                f"{name} has {len(given)} entries for {num_objectives} objectives; give one for all, or one each."
            )


def require_types(settings: Any) -> None:
    """Refuse settings of another type than their fields say, where that is a plain one; also in the settings' parts."""
    hints = get_type_hints(type(settings))
    for field in dataclasses.fields(settings):
        value, hint = vars(settings)[field.name], hints[field.name]
        known = PLAIN.get(hint, hint if dataclasses.is_dataclass(hint) else object)
        if not isinstance(value, known) or (isinstance(value, bool) and hint in (int, float)):
            raise InputError(
                f"{field.name} of {type(settings).__name__} is {reprlib.repr(value)}, which is not {_named(hint)}."
            )
        if isinstance(value, eqx.Module):
            require_types(value)
    for path, leaf in jax.tree_util.tree_leaves_with_path(settings):
        if not isinstance(leaf, int | float | np.ndarray | np.generic | jax.Array):
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            raise InputError(f"{name} of {type(settings).__name__} is {reprlib.repr(leaf)}, which is not a number.")


PLAIN: dict[Any, Any] = {bool: bool, str: str, int: numbers.Integral, float: (numbers.Real, np.ndarray, jax.Array)}
"""What counts as such a value."""


def _named(hint: Any) -> str:
    return {int: "a whole number", float: "a number", bool: "True or False", str: "a text"}.get(
        hint, f"of the type {hint.__name__}"
    )


def _require(values: dict[str, Any], text: str, fits: Any) -> None:
    for name, given in values.items():
        for one in given if isinstance(given, tuple) else (given,):
            if isinstance(one, int | float) and not fits(one):
                raise InputError(f"{name} is {given}; {text}.")
