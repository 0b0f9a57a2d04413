"""Flags from fields: tyro reads dataclasses, and lexrl's own text (schedules, tolerances, orders) as in Python."""

import pathlib
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Annotated, Any, Optional, TypeVar

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from lexrl.algorithms.tabular import Exploration, as_exploration
from lexrl.constraints import Box, ChanceConstraint, ConvexSet, Limit, as_box
from lexrl.multipliers import Schedules, as_schedules
from lexrl.networks import Builder, Features, as_builder, find_function
from lexrl.optimizers import Optimizer, as_optimizer
from lexrl.schedules import Schedule, as_schedule
from lexrl.tolerance import Tolerances, as_tolerance

Place = Annotated[pathlib.Path | None, tyro.conf.arg(metavar="PATH", help_behavior_hint="")]
"""A file or folder; the help text says which by default."""
Whole = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")]
Number = Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")]
Steps = Annotated[
    float | int,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="STEPS",
        instance_from_str=lambda words: float(words[0]),
        is_instance=lambda value: isinstance(value, float | int),
        str_from_instance=lambda value: [f"{value:,.0f}"],
    ),
]
"""A number of steps, also as in 2e6."""
Order = Annotated[str, tyro.conf.arg(metavar="ORDER")]

Args = TypeVar("Args")


def parse(
    kind: Any, argv: Sequence[str], prog: str, description: str | None = None, default: Any = tyro.MISSING
) -> Any:
    """The arguments of a command; on bad ones tyro explains and exits with code 2."""
    given = {} if default is tyro.MISSING else {"default": default}
    with registry():
        return tyro.cli(kind, args=list(argv), prog=prog, description=description, **given)


def registry() -> ConstructorRegistry:
    """The types whose text lexrl reads itself."""
    registry = ConstructorRegistry()
    readers: dict[Any, tuple[Callable[[str], Any], str]] = {
        Schedule: (as_schedule, "SCHEDULE"),
        Schedules: (as_schedules, "SCHEDULE [..]"),
        Exploration: (as_exploration, "EXPLORATION"),
        Optional[Builder]: (as_builder, "MODULE:FUNCTION"),  # noqa: UP045
        Optional[Features]: (find_function, "MODULE:FUNCTION"),  # noqa: UP045
        Optimizer: (as_optimizer, "OPTIMIZER"),
        Tolerances: (as_tolerance, "TOLERANCE [..]"),
        Tolerances | None: (as_tolerance, "TOLERANCE [..]"),
        tuple[float, ...] | float: (float, "NUMBER [..]"),
        tuple[Limit, ...]: (str, "LIMIT [..]"),
        tuple[ChanceConstraint, ...]: (str, "CHANCE-CONSTRAINT [..]"),
        Box: (as_box, "BOX"),
        ConvexSet: (as_box, "BOX"),
    }

    @registry.primitive_rule
    def read(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
        if isinstance(info.type, list) or info.type not in readers:  # a list: the arguments of a Callable
            return None
        reader, metavar = readers[info.type]
        missing = "the same" if "TOLERANCE" in metavar else "none"
        return PrimitiveConstructorSpec(
            nargs="*" if "[..]" in metavar else 1,
            metavar=metavar,
            instance_from_str=lambda words: _one_or_each(tuple(reader(word) for word in words)),
            is_instance=lambda value: True,
            str_from_instance=lambda value: [missing] if value is None else list(map(_shown, _as_tuple(value))),
        )

    return registry


def _shown(value: Any) -> str:
    """A default as text."""
    return value.__qualname__ if isinstance(value, FunctionType) else str(value)


def _as_tuple(given: Any) -> tuple[Any, ...]:
    return given if type(given) is tuple else (given,)


def _one_or_each(given: tuple[Any, ...]) -> Any:
    return given[0] if len(given) == 1 else given
