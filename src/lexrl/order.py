"""The order expression, used wherever objectives are written: `"min cost > max reward"`.

    order     := objective ( '>' objective )*
    objective := ( ('min' | 'max') name | name ('<=' | '>=') number ) [ ('±' | '+-') tolerance ]
    tolerance := number | number '%' | a sum of these: 0.01, 5%, 0.01 + 5%

It selects, signs and orders an environment's *named* signals; an environment never decides which of them matters more.
A limit in place of a direction, `"cost <= 10 > max reward"`, is an objective that counts only up to its limit: among
the policies that satisfy it, or come nearest if none does, the next objective decides.
"""

import itertools
import re
import reprlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from lexrl import tolerance as tol
from lexrl.errors import InputError
from lexrl.lex import Arr
from lexrl.schedules import NUMBER, shown
from lexrl.types import EnvSpec, Spec

_NAME = r"([^\s±+<>=]+)"


class Objective(NamedTuple):
    """One signal, its direction (1 to maximize, -1 to minimize), and what else was written: a tolerance, a limit."""

    name: str
    sign: int
    tolerance: tol.Tolerance | None = None
    limit: float | None = None
    """The return that is enough, in the signal's own sign: at least this if the sign is 1, at most this if it is -1."""

    def __str__(self) -> str:
        if self.limit is None:
            text = f"{'max' if self.sign > 0 else 'min'} {self.name}"
        else:
            text = f"{self.name} {'>=' if self.sign > 0 else '<='} {shown(self.limit)}"
        return text if self.tolerance is None else f"{text} ±{self.tolerance}"


class Order(NamedTuple):
    """Objectives, the most important first."""

    objectives: tuple[Objective, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(objective.name for objective in self.objectives)

    @property
    def signs(self) -> Float[np.ndarray, " M"]:
        return np.array([objective.sign for objective in self.objectives], np.float32)

    def columns(self, signals: Sequence[str]) -> Int[np.ndarray, " M"]:
        """The index of each objective among an environment's signals."""
        for name in self.names:
            if name not in signals:
                raise InputError(
                    f"The order names {name!r}, but the signals here are {_listed(signals)}: pick among those."
                )
        return np.array([tuple(signals).index(name) for name in self.names])

    def apply(self, values: Arr, signals: Sequence[str]) -> Arr:
        """Select, order and sign the last axis: signals `[..., K]` become rewards `[..., M]`, all to be maximized."""
        return values[..., self.columns(signals)] * self.signs

    def discounts(self, gamma: tuple[float, ...] | float, signals: Sequence[str]) -> tuple[float, ...]:
        """An algorithm's discounts, one for all objectives or one each, as one for each signal of the environment.

        A signal outside the order gets the first objective's.
        """
        each = np.broadcast_to(np.asarray(gamma, float), len(self.objectives))
        found = np.full(len(signals), each[0])
        found[self.columns(signals)] = each
        return tuple(found.tolist())

    @property
    def limited(self) -> bool:
        """Does any objective have a limit?"""
        return any(objective.limit is not None for objective in self.objectives)

    def limits(self) -> Float[np.ndarray, " M"]:
        """The return that is enough for each objective, signed like the objectives, all of which are maximized:
        `cost <= 10` is -10. Infinite without a limit, so that `min(best, limit)` is the return to keep in any case."""
        return np.array([np.inf if one.limit is None else one.sign * one.limit for one in self.objectives], np.float64)

    def unsigned(self, values: Arr) -> Arr:
        """Back to the user's signs: a cost of 3 reads 3, not -3."""
        return values * self.signs + 0.0  # -0 becomes 0

    def spec(self, env: EnvSpec) -> Spec:
        """The environment as an algorithm sees it: with these objectives, in this order."""
        self.columns(env.signals)
        signs = tuple(objective.sign for objective in self.objectives)
        return Spec(env.observation_space, env.action_space, self.names, env.max_episode_steps, signs)

    def tolerances(self, default: tol.Tolerances) -> tol.Tolerances:
        """The tolerances written in the order; objectives without one keep the default."""
        if isinstance(default, tuple) and len(default) != len(self.objectives):
            raise InputError(
                f"There are {len(default)} tolerances for the {len(self.objectives)} objectives of '{self}'; "
                "give one for all, or one for each."
            )
        if all(objective.tolerance is None for objective in self.objectives):
            return default
        each = default if isinstance(default, tuple) else (default,) * len(self.objectives)
        return tuple(own.tolerance or other for own, other in zip(self.objectives, each, strict=True))

    def __str__(self) -> str:
        return " > ".join(str(objective) for objective in self.objectives)

    def __repr__(self) -> str:
        return f"Order({str(self)!r})"


def parse(text: "str | Order") -> Order:
    """Read an order expression."""
    if isinstance(text, Order):
        return text
    if not text.strip():
        raise InputError("The order is empty; write objectives by importance, as in 'min cost > max reward'.")
    objectives = tuple(_objective(part, text) for part in _parts(text))
    _refuse_contradiction(objectives)
    names = [objective.name for objective in objectives]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"The order {text!r} names {_listed(twice)} twice; name each objective once.")
    return Order(objectives)


def is_name(given: object) -> bool:
    """Can an order name a signal so?"""
    return isinstance(given, str) and re.fullmatch(_NAME, given) is not None


def as_order(text: "str | Order | None", signals: Sequence[str]) -> Order:
    """An order checked against an environment's signals; it may be left out where there is only one signal."""
    if not (text is None or isinstance(text, str) or _is_order(text)):
        raise InputError(f"The order is {reprlib.repr(text)}; write it as text, as in 'min cost > max reward'.")
    if isinstance(text, Order) and not text.objectives:
        text = ""
    if text is None or (isinstance(text, str) and not text.strip()):
        if text is None and len(signals) == 1:
            return Order((Objective(signals[0], 1),))
        raise InputError(
            f"An order is needed, as in 'min cost > max reward': say which of the signals {_listed(signals)} matter, "
            "the most important first."
        )
    try:
        order = parse(_with_directions(text, signals))
    except InputError as error:
        raise InputError(f"{error} The signals here are {_listed(signals)}.") from None
    order.columns(signals)
    return order


def _is_order(given: Any) -> bool:
    if not isinstance(given, Order) or not isinstance(given.objectives, Sequence):
        return False
    return all(isinstance(one, Objective) for one in given.objectives)


def _with_directions(text: "str | Order", signals: Sequence[str]) -> "str | Order":
    """Raise an error that lists the signals where a direction is missing; else return the text."""
    if isinstance(text, str):
        for part in _parts(text):
            name, *more = re.split(r"[\s±+]+", part.strip())
            if name in signals and not (name in ("min", "max") and more) and "=" not in part:
                raise InputError(
                    f"The order {text!r} does not say which way {name!r} is good: 'min {name}' or 'max {name}'?"
                )
    return text


def _parts(text: str) -> list[str]:
    """What stands between the '>' that are no '>='."""
    return re.split(r">(?!=)", text)


def _objective(part: str, whole: str) -> Objective:
    name, rest = _NAME, r"\s*(?:(?:±|\+-)(.*))?"
    directed = re.fullmatch(rf"\s*(min|max)\s+{name}{rest}", part, re.DOTALL)
    limited = re.fullmatch(rf"\s*{name}\s*(<=|>=)\s*([-+]?{NUMBER}){rest}", part, re.DOTALL)
    if both := re.fullmatch(rf"\s*(min|max)\s+{name}\s*(?:<=|>=).*", part, re.DOTALL):
        raise InputError(
            f"{part.strip()!r} in the order {whole!r} has a direction and a limit; write either '{both[1]} {both[2]}' "
            f"or '{part.strip().removeprefix(both[1]).strip()}'."
        )
    if directed is not None:
        return Objective(directed[2], 1 if directed[1] == "max" else -1, _tolerance(directed[3]))
    if limited is not None:
        sign, limit = (1 if limited[2] == ">=" else -1), float(limited[3])
        if np.isinf(limit):
            raise InputError(f"The limit in {part.strip()!r} is infinite; write a finite number.")
        return Objective(limited[1], sign, _tolerance(limited[4]), limit + 0.0)  # -0 becomes 0
    what = f"{part.strip()!r} in the order {whole!r}" if part.strip() else f"An empty place in the order {whole!r}"
    raise InputError(
        f"{what} cannot be read; write 'min NAME', 'max NAME' or a limit as in 'NAME <= 10', with a tolerance as in "
        "'±0.01' or '±5%'."
    )


def _tolerance(text: str | None) -> tol.Tolerance | None:
    return None if text is None else tol.parse(text)


def _refuse_contradiction(objectives: Sequence[Objective]) -> None:
    """Raise an error that shows two limits no return satisfies together."""
    limited = [one for one in objectives if one.limit is not None]
    for low, high in itertools.permutations(limited, 2):
        if low.name == high.name and low.sign > 0 > high.sign and (low.limit or 0.0) > (high.limit or 0.0):
            raise InputError(f"No return satisfies both '{low}' and '{high}'; name {low.name!r} once.")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
