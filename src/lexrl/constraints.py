"""Constraints as users write them, for algorithms that need to know what is enough instead of what matters more.

    limit              "cost <= 10"                           mean sum over an episode; several are joined by ','
    chance constraint  "cost <= 10 with 0.95"                 an episode keeps the limit with this probability
    box                "reward in 90..350, cost in 0..10"     where the mean sums over an episode should be

All of them are about undiscounted sums of a signal over an episode, in the sign the environment gives it. Algorithms
see rewards that an order has selected, signed and sorted: `lexrl.algorithms.lagrangian` translates between the two.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl.errors import InputError
from lexrl.schedules import shown

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


class Limit(eqx.Module):
    """The mean sum of a signal over an episode must be at most, or at least, a bound."""

    name: str = eqx.field(static=True)
    side: int = eqx.field(static=True)
    """-1: at most; 1: at least."""
    bound: float

    def __str__(self) -> str:
        return f"{self.name} {'<=' if self.side < 0 else '>='} {_shown(self.bound)}"


class ChanceConstraint(eqx.Module):
    """A limit that an episode must keep with a probability."""

    limit: Limit
    probability: float

    def __str__(self) -> str:
        return f"{self.limit} with {_shown(self.probability)}"


@runtime_checkable
class ConvexSet(Protocol):
    """A convex set of returns, one axis for each name."""

    @property
    def names(self) -> tuple[str, ...]: ...
    def project(self, point: Float[Array, " K"]) -> Float[Array, " K"]:
        """The nearest point of the set."""
        ...


class TargetBox(eqx.Module):
    """Intervals for some signals; together a box of returns."""

    names: tuple[str, ...] = eqx.field(static=True)
    low: tuple[float, ...]
    high: tuple[float, ...]

    def project(self, point: Float[Array, " K"]) -> Float[Array, " K"]:
        """The nearest point of the box."""
        return jnp.clip(point, jnp.stack(self.low), jnp.stack(self.high))

    def __str__(self) -> str:
        parts = zip(self.names, self.low, self.high, strict=True)
        return ", ".join(f"{name} in {_shown(low)}..{_shown(high)}" for name, low, high in parts)


def as_limits(given: Any) -> tuple[Limit, ...]:
    """Limits, from texts or as they are."""
    limits = _each(given, _limit, Limit, "limit", "cost <= 10")
    for one in limits:
        for other in limits:
            if _empty(one, other):
                raise InputError(f"No return satisfies both '{one}' and '{other}'; change one of them.")
    return limits


def as_chance_constraints(given: Any) -> tuple[ChanceConstraint, ...]:
    """Chance constraints, from texts or as they are."""
    return _each(given, _chance_constraint, ChanceConstraint, "chance constraint", "cost <= 10 with 0.95")


def as_target_set(given: Any) -> ConvexSet:
    """A box from a text; any other convex set passes."""
    if isinstance(given, ConvexSet):
        return given
    if not isinstance(given, str):
        raise InputError(
            f"{given!r} is no set of returns; write a box as in 'reward in 90..350, cost in 0..10', or give an object "
            "with `names` and a `project` that finds the nearest point."
        )
    found = [_interval(part, given) for part in given.split(",")]
    names = tuple(name for name, _, _ in found)
    _require_once(names, given)
    return TargetBox(names, tuple(low for _, low, _ in found), tuple(high for _, _, high in found))


def _limit(text: str) -> Limit:
    match = re.fullmatch(rf"\s*([^\s<>=,]+)\s*(<=|>=)\s*({NUMBER})\s*", text)
    if match is None:
        raise InputError(f"The limit {text.strip()!r} cannot be read; write it as in 'cost <= 10' or 'reward >= 90'.")
    return Limit(match[1], -1 if match[2] == "<=" else 1, float(match[3]))


def _chance_constraint(text: str) -> ChanceConstraint:
    match = re.fullmatch(rf"(.*\S)\s+with\s+({NUMBER})\s*", text)
    if match is None:
        raise InputError(
            f"The chance constraint {text.strip()!r} cannot be read; write it as in 'cost <= 10 with 0.95'."
        )
    probability = float(match[2])
    if not 0 < probability < 1:
        raise InputError(f"The probability in {text.strip()!r} is {probability:g}; it must lie between 0 and 1.")
    return ChanceConstraint(_limit(match[1]), probability)


def _interval(part: str, whole: str) -> tuple[str, float, float]:
    match = re.fullmatch(rf"\s*(\S+)\s+in\s+({NUMBER})\s*\.\.\s*({NUMBER})\s*", part)
    if match is None:
        what = f"{part.strip()!r} in the box {whole!r}" if part.strip() else f"An empty place in the box {whole!r}"
        raise InputError(f"{what} cannot be read; write 'NAME in LOW..HIGH', as in 'reward in 90..350, cost in 0..10'.")
    low, high = float(match[2]), float(match[3])
    if low > high:
        raise InputError(f"The box {whole!r} is empty: {match[1]!r} cannot be above {low:g} and below {high:g}.")
    return match[1], low, high


Kind = TypeVar("Kind")


def _each(given: Any, read: Callable[[str], Kind], kind: type[Kind], noun: str, example: str) -> tuple[Kind, ...]:
    """One or several, each a text or what it stands for; a text may hold several."""
    found: list[Kind] = []
    for one in given if isinstance(given, list | tuple) else (given,):
        if isinstance(one, str):
            found += [read(part) for part in one.split(",")]
        elif isinstance(one, kind):
            found.append(one)
        else:
            raise InputError(f"{one!r} is no {noun}; write it as in {example!r}.")
    if not found:
        raise InputError(f"There is no {noun}; write one, as in {example!r}.")
    return tuple(found)


def _empty(one: Limit, other: Limit) -> bool:
    plain = all(isinstance(each.bound, int | float) for each in (one, other))
    return plain and one.name == other.name and one.side > 0 > other.side and one.bound > other.bound


def _require_once(names: Sequence[str], whole: str) -> None:
    if twice := sorted({name for name in names if list(names).count(name) > 1}):
        raise InputError(f"The box {whole!r} names {twice[0]!r} twice; each signal has one interval.")


def _shown(number: Any) -> str:
    return shown(number) if isinstance(number, int | float) and math.isfinite(number) else str(number)
