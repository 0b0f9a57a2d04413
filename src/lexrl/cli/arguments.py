"""The arguments of a command: names by position, then flags.

Names are what a command is about. Flags come from fields: tyro reads dataclasses, and lexrl's own text (schedules,
tolerances, orders) as in Python.
"""

import argparse
import dataclasses
import inspect
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Annotated, Any, Literal, NamedTuple, NoReturn, Optional, get_type_hints

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from lexrl import catalog
from lexrl.algorithms.exploration import Exploration, as_exploration
from lexrl.cli.console import console
from lexrl.constraints import ChanceConstraint, ConvexSet, Limit, TargetBox, as_target_set
from lexrl.envs import highway
from lexrl.envs.factory import builder, gym_id
from lexrl.errors import InputError, suggestion
from lexrl.guard import Guard, as_guard
from lexrl.networks import Builder, Features, as_builder, find_function
from lexrl.optimizers import Optimizer, as_optimizer
from lexrl.runs.run import DEFAULT, TOTAL_TIMESTEPS, find_preset
from lexrl.schedules import OfRun, Schedule, Schedules, as_length, as_schedule, as_schedules
from lexrl.tolerance import Evidence, Tolerances, as_evidence, as_tolerance

Place = Annotated[pathlib.Path | None, tyro.conf.arg(metavar="PATH", help_behavior_hint="")]
"""A file or folder; the help text says which by default."""
Whole = Annotated[int | None, tyro.conf.arg(help_behavior_hint="")]
Number = Annotated[float | None, tyro.conf.arg(help_behavior_hint="")]
Steps = Annotated[
    float | int,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="STEPS",
        instance_from_str=lambda words: _number(words[0]),
        is_instance=lambda value: isinstance(value, float | int),
        str_from_instance=lambda value: [f"{value:,.0f}"],
    ),
]
"""A number of steps, also as in 2e6."""
Seeds = Annotated[
    int | tuple[int, ...],
    PrimitiveConstructorSpec(
        nargs="*",
        metavar="INT [INT ..]",
        instance_from_str=lambda words: _seeds(words),
        is_instance=lambda value: isinstance(value, int | tuple),
        str_from_instance=lambda value: list(map(str, _as_tuple(value))),
    ),
]
"""How many seeds, or which: `10`, or `3 7 11`. A single one, such as seed 5, is `5,`."""
Order = Annotated[str, tyro.conf.arg(metavar="ORDER")]
EngineKind = Literal["here", "processes", "ray"]
Address = Annotated[str | None, tyro.conf.arg(metavar="ADDRESS", help_behavior_hint="")]
"""Of a Ray cluster."""


class Target(NamedTuple):
    """An algorithm on an environment, with the settings that flags start from."""

    name: str
    env_id: str
    algorithm: Any
    env_kwargs: Mapping[str, Any]
    order: str
    total_timesteps: int
    preset: str
    """The preset these come from, or "default"."""


def take_name(command: str, argv: Sequence[str], what: str, example: str) -> tuple[str, list[str]]:
    """The first word, which must be a name; and the words after it."""
    if not argv or argv[0].startswith("-"):
        given = f", not {argv[0]!r}" if argv else ""
        raise InputError(f"`lexrl {command}` needs {what}{given}, as in `{example}`; flags come after the names.")
    return argv[0], list(argv[1:])


def take(command: str, argv: Sequence[str]) -> tuple[Target, list[str]]:
    """ALGORITHM and ENV, with the preset that the flags start from; and the words after them."""
    example = f"lexrl {command} {_example(command)}"
    algorithm, rest = take_name(command, argv, "the algorithm and the environment", example)
    entry = catalog.find(catalog.ALGORITHMS, algorithm, "algorithm")
    env, rest = take_name(command, rest, "the environment after the algorithm", example)
    require_env(env)
    known, rest = _first_flag().parse_known_args(rest)
    found = find_preset(algorithm, env, known.preset)
    if found is None:
        return Target(algorithm, env, entry.make(), {}, "", TOTAL_TIMESTEPS, DEFAULT), rest
    return Target(
        algorithm, env, found.algorithm, found.env_kwargs, found.order, found.total_timesteps, known.preset
    ), rest


def require_env(name: str) -> None:
    """Raise an error if there is no environment of this name."""
    if name not in catalog.ENVS and not name.startswith(highway.PREFIX) and gym_id(name) is None:
        raise InputError(
            f"There is no environment {name!r}; there are {', '.join(catalog.ENVS)}, Gymnasium's, as in "
            f"gym:CartPole-v1, and highway-env's, as in highway:intersection-v0.{suggestion(name, catalog.ENVS)}"
        )


def wants_help(argv: Sequence[str], names: int) -> bool:
    """Is help asked for before all names are given?"""
    return any(word in ("-h", "--help") for word in argv[: names + 1]) and _leading_names(argv) < names


def show_names(command: str, usage: str, purpose: str, *, algorithms: bool) -> None:
    """The help of a command before its names are known."""
    console.print(f"usage: lexrl {command} {usage} [flags]\n\n{purpose}\n", markup=False)
    if algorithms:
        console.print(f"ALGORITHM  {', '.join(catalog.ALGORITHMS)}", markup=False)
    console.print(
        f"ENV        {', '.join(catalog.ENVS)}, Gymnasium's as in gym:CartPole-v1, or highway-env's as in "
        "highway:intersection-v0",
        markup=False,
    )
    example = _example(command) if algorithms else "grid-nav"
    console.print(
        f"\nFlags depend on these: see `lexrl {command} {example} --help`. `lexrl list` says more.", markup=False
    )


def _example(command: str) -> str:
    """An algorithm and an environment; the theorems are about the paper's algorithms."""
    return "paper-lppo cart-safe" if command == "check" else "lppo cart-safe"


def env_type(name: str, settings: Mapping[str, Any]) -> tuple[Any, Any]:
    """The settings of an environment as tyro takes them, and their default."""
    make = builder(name)
    if name in catalog.ENVS and isinstance(make, type) and dataclasses.is_dataclass(make):
        return make, make(**settings)
    outside = highway_settings if name.startswith(highway.PREFIX) else gymnasium_settings
    kind = _as_dataclass(make if name in catalog.ENVS else outside)
    return kind, kind(**settings)


def gymnasium_settings(max_episode_steps: int | None = None, discrete_observations: bool = False) -> dict[str, Any]:
    """A Gymnasium environment.

    Args:
        max_episode_steps: length of an episode; by default the environment's own limit, or 1,000 if it has none.
        discrete_observations: observations of integers become one integer each, for tabular algorithms.
    """
    return {"max_episode_steps": max_episode_steps, "discrete_observations": discrete_observations}


def highway_settings(max_episode_steps: int | None = None, config: str = "") -> dict[str, Any]:
    """An environment of highway-env's.

    Args:
        max_episode_steps: length of an episode; by default the duration in the environment's configuration.
        config: what differs from that configuration, as JSON: '{"duration": 20}'.
    """
    return {"max_episode_steps": max_episode_steps, "config": config}


def _as_dataclass(make: Callable[..., Any]) -> Any:
    """A dataclass with the parameters, defaults and documentation of a function."""
    hints = get_type_hints(make)
    fields = [
        (one.name, hints.get(one.name, Any), dataclasses.field(default=one.default))
        for one in inspect.signature(make).parameters.values()
    ]
    return dataclasses.make_dataclass("EnvSettings", fields, namespace={"__doc__": make.__doc__}, frozen=True)


class _Parser(argparse.ArgumentParser):
    """Reports an error in one sentence, as the rest of the command line does."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message[0].upper()}{message[1:]}.")


def _first_flag() -> argparse.ArgumentParser:
    """The flag that decides what the other ones are by default."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--preset", choices=("tuned", "paper", "none"), default="tuned")
    return parser


def _leading_names(argv: Sequence[str]) -> int:
    return next((i for i, word in enumerate(argv) if word.startswith("-")), len(argv))


def parse(
    kind: Any, argv: Sequence[str], prog: str, description: str | None = None, default: Any = tyro.MISSING
) -> Any:
    """The arguments of a command; on bad ones tyro explains and exits with code 2.

    Of a setting that may be one of several classes, the flags are those of the class it has by default.
    """
    given = {} if default is tyro.MISSING else {"default": default}
    with registry():
        return tyro.cli(
            kind, args=list(argv), prog=prog, description=description, config=(tyro.conf.AvoidSubcommands,), **given
        )


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
        float | OfRun: (as_length, "NUMBER"),
        Optional[Evidence]: (as_evidence, "STANDARD-ERRORS"),  # noqa: UP045
        Optional[Guard]: (as_guard, "STANDARD-ERRORS"),  # noqa: UP045
        tuple[float, ...] | float: (_number, "NUMBER [..]"),
        int: (_whole, "INT"),
        Optional[int]: (_whole, "INT"),  # noqa: UP045
        float: (_number, "FLOAT"),
        Optional[float]: (_number, "FLOAT"),  # noqa: UP045
        tuple[Limit, ...]: (str, "LIMIT [..]"),
        tuple[ChanceConstraint, ...]: (str, "CHANCE-CONSTRAINT [..]"),
        TargetBox: (as_target_set, "BOX"),
        ConvexSet: (as_target_set, "BOX"),
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


def _seeds(words: list[str]) -> int | tuple[int, ...]:
    each = [part for word in words for part in word.split(",") if part]
    if not each or not all(re.fullmatch(r"-?[0-9]{1,30}", part) for part in each):
        raise ValueError(f"{' '.join(words)!r} are not whole numbers; say how many seeds, or which, as in 3 7 11")
    which = tuple(map(int, each))
    return which if len(words) > 1 or "," in words[0] else which[0]


def _whole(word: str) -> int:
    if re.fullmatch(r"[-+]?[0-9_]{1,4000}", word) is None:
        raise ValueError(f"{word!r} is not a whole number")
    return int(word)


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ValueError(f"{word!r} is not a number") from None


def _one_or_each(given: tuple[Any, ...]) -> Any:
    return given[0] if len(given) == 1 else given
