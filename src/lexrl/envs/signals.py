"""Which signals an environment has: found by looking at a few steps, or given by a function of the user's.

    the reward                      reward, or reward_1, reward_2, ... where it is a vector (MO-Gymnasium)
    info["cost"]                    cost; also Safety-Gymnasium's, which a step returns after the reward
    info["cost_..."]                by these names
    info["constraint_costs"]        cost_1, cost_2, ..., or cost_NAME where it is a dictionary
    info["rewards"]                 by its names
    info["signals"]                 by its names, and then nothing else: lexrl's own environments

A signal that a step does not mention is 0 there: many environments report a cost only when there is one.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl.errors import InputError

SignalFunction = Callable[[Any, Any, Any, dict[str, Any]], Mapping[str, Any]]
"""From (obs, action, reward, info) to named signals; `obs` is what the action led to."""


class Event(NamedTuple):
    """One step of one environment."""

    obs: Any
    action: Any
    reward: Any
    info: dict[str, Any]


class Place(NamedTuple):
    """Where a step carries a signal: ("reward",), ("reward", 0), ("info", "cost"), ("info", "rewards", "speed")."""

    name: str
    path: tuple[str | int, ...]

    def read(self, event: Event) -> Any:
        part: Any = event.reward if self.path[0] == "reward" else event.info
        for key in self.path[1:]:
            if isinstance(part, Mapping) and key not in part:
                return 0.0
            part = part[key]
        return part

    def __str__(self) -> str:
        where = str(self.path[0]) + "".join(f"[{key!r}]" for key in self.path[1:])
        return self.name if where == self.name else f"{self.name} ({where})"


class Signals(NamedTuple):
    """The names of the signals, and how they are read from a step."""

    names: tuple[str, ...]
    read: Callable[[Event], Sequence[Any]]
    description: str
    """A sentence on the signals there are, and where they come from."""
    in_info: bool
    """Whether a step's `info` is read at all."""


def find(events: Sequence[Event], function: SignalFunction | None = None) -> Signals:
    """The signals that a few steps carry."""
    if function is not None:
        return _from_function(events, function)
    places = _unique(place for event in events for place in _places(event))
    description = f"The signals are {', '.join(map(str, places))}."
    names = tuple(place.name for place in places)
    if [place.path for place in places] == [("reward",)]:
        return Signals(names, lambda event: (event.reward,), description, in_info=False)
    in_info = any(place.path[0] == "info" for place in places)
    return Signals(names, lambda event: [place.read(event) for place in places], description, in_info)


def _from_function(events: Sequence[Event], function: SignalFunction) -> Signals:
    """The signals that a function of the user's returns."""
    if not callable(function):
        raise InputError(
            f"The signals are {function!r}; give a function from (obs, action, reward, info) to named numbers."
        )
    returned = [function(*event) for event in events]
    for answer in returned:
        if not isinstance(answer, Mapping) or not all(map(_is_number, answer.values())):
            raise InputError(
                f"The signals function returns {answer!r}; it must return a dictionary of named numbers, as in "
                "{'cost': 1.0, 'reward': 0.5}."
            )
    names = tuple(dict.fromkeys(name for answer in returned for name in answer))
    if not names or any(name != _clean(name) for name in names):
        raise InputError(
            f"The signals function returns the names {list(names)}; it must return one or more, without spaces, '<', "
            "'>', '=', '+' and '±'."
        )

    def read(event: Event) -> list[Any]:
        answer = function(*event)
        return [answer.get(name, 0.0) for name in names]

    return Signals(names, read, f"The signals are {', '.join(names)}, from the signals function.", in_info=True)


def _places(event: Event) -> Iterable[Place]:
    info = event.info
    if isinstance(info.get("signals"), Mapping):
        yield from _numbers(info["signals"], ("info", "signals"))
        return
    if np.ndim(event.reward) == 0:
        yield Place("reward", ("reward",))
    else:
        yield from (Place(f"reward_{i + 1}", ("reward", i)) for i in range(len(event.reward)))
    if _is_number(info.get("cost")):
        yield Place("cost", ("info", "cost"))
    costs = info.get("constraint_costs")
    if isinstance(costs, Mapping):
        yield from _numbers(costs, ("info", "constraint_costs"), "cost_")
    elif costs is not None and np.ndim(costs) == 1:
        yield from (Place(f"cost_{i + 1}", ("info", "constraint_costs", i)) for i in range(len(costs)))
    yield from _numbers({key: info[key] for key in info if key.startswith("cost_")}, ("info",))
    if isinstance(info.get("rewards"), Mapping):
        yield from _numbers(info["rewards"], ("info", "rewards"))


def _numbers(named: Mapping[str, Any], path: tuple[str, ...], prefix: str = "") -> Iterable[Place]:
    """A place for every number of a dictionary."""
    for name, value in named.items():
        if _is_number(value):
            yield Place(f"{prefix}{_clean(name)}", (*path, name))


def _unique(places: Iterable[Place]) -> list[Place]:
    """The first place of every name."""
    first: dict[str, Place] = {}
    for place in places:
        first.setdefault(place.name, place)
    return list(first.values())


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.number | np.bool_) or (
        isinstance(value, np.ndarray) and value.ndim == 0
    )


def _clean(name: Any) -> str:
    """A name that an order expression can hold."""
    return re.sub(r"[\s<>=+±]+", "_", str(name)) or "_"
