"""Checks of settings that several algorithms share: each raises an error with one sentence."""

from typing import Any

from lexrl.errors import InputError
from lexrl.tolerance import Tolerances, needs_spread
from lexrl.types import Spec


def require_one_objective(name: str, instead: str, spec: Spec) -> None:
    """Refuse several objectives, for an algorithm that optimizes one."""
    if len(spec.objectives) != 1:
        raise InputError(
            f"{name} optimizes one objective, but the order has {len(spec.objectives)} ({', '.join(spec.objectives)}); "
            f"order one of them, or use {instead}."
        )


def require_plain_tolerance(tolerance: Tolerances) -> None:
    """Refuse a tolerance that needs the standard errors of a table's estimates."""
    if needs_spread(tolerance):
        raise InputError(
            "An adaptive tolerance needs the errors of the estimates, which a network does not keep; "
            "use an absolute or relative one, or one times a schedule."
        )


def require_positive(**counts: int) -> None:
    """Refuse a count below 1."""
    for name, count in counts.items():
        if count < 1:
            raise InputError(f"{name} is {count}; it must be 1 or more.")


def require_in_unit_interval(**values: Any) -> None:
    """Refuse a number, or one of several, outside of [0, 1]; traced ones pass."""
    _require(values, "it must lie in [0, 1]", lambda x: 0 <= x <= 1)


def require_above_zero(**values: Any) -> None:
    """Refuse a number, or one of several, that is not above 0; traced ones pass."""
    _require(values, "it must be above 0", lambda x: x > 0)


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


def _require(values: dict[str, Any], text: str, fits: Any) -> None:
    for name, given in values.items():
        for one in given if isinstance(given, tuple) else (given,):
            if isinstance(one, int | float) and not fits(one):
                raise InputError(f"{name} is {given}; {text}.")
