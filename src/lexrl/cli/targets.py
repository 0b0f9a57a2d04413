"""What a command is about: the names that come before its flags, read by position."""

import argparse
import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, get_type_hints

from lexrl import catalog
from lexrl.cli.console import console
from lexrl.envs.factory import gym_id
from lexrl.errors import InputError
from lexrl.runs import targets
from lexrl.runs.run import DEFAULT, TOTAL_TIMESTEPS, find_preset, whole_steps


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
    example = f"lexrl {command} lppo cart-safe"
    algorithm, rest = take_name(command, argv, "the algorithm and the environment", example)
    entry = catalog.find(catalog.ALGORITHMS, algorithm, "algorithm")
    env, rest = take_name(command, rest, "the environment after the algorithm", example)
    require_env(env)
    known, rest = _first_flags().parse_known_args(rest)
    found = find_preset(algorithm, env, known.preset)
    steps = None if known.total_timesteps is None else whole_steps(known.total_timesteps)
    if found is None:
        return Target(algorithm, env, entry.make(), {}, "", steps or TOTAL_TIMESTEPS, DEFAULT), rest
    found = found if steps is None else found.over(steps)
    return Target(
        algorithm, env, found.algorithm, found.env_kwargs, found.order, found.total_timesteps, known.preset
    ), rest


def require_env(name: str) -> None:
    """Complain about an environment that does not exist."""
    if name not in catalog.ENVS and gym_id(name) is None:
        raise InputError(
            f"There is no environment {name!r}; there are {', '.join(catalog.ENVS)}, and Gymnasium's, as in "
            "gym:CartPole-v1."
        )


def wants_help(argv: Sequence[str], names: int) -> bool:
    """Is help asked for before all names are given?"""
    return any(word in ("-h", "--help") for word in argv[: names + 1]) and _leading_names(argv) < names


def show_names(command: str, usage: str, purpose: str, *, algorithms: bool) -> None:
    """The help of a command before its names are known."""
    console.print(f"usage: lexrl {command} {usage} [flags]\n\n{purpose}\n", markup=False)
    if algorithms:
        console.print(f"ALGORITHM  {', '.join(catalog.ALGORITHMS)}", markup=False)
    console.print(f"ENV        {', '.join(catalog.ENVS)}, or Gymnasium's as in gym:CartPole-v1", markup=False)
    example = "lppo cart-safe" if algorithms else "grid-nav"
    console.print(
        f"\nFlags depend on these: see `lexrl {command} {example} --help`. `lexrl list` says more.", markup=False
    )


def env_type(name: str, settings: Mapping[str, Any]) -> tuple[Any, Any]:
    """The settings of an environment as tyro takes them, and their default."""
    make = targets.builder(name)
    if name in catalog.ENVS and isinstance(make, type) and dataclasses.is_dataclass(make):
        return make, make(**settings)
    kind = _as_dataclass(make if name in catalog.ENVS else gymnasium_settings)
    return kind, kind(**settings)


def gymnasium_settings(max_episode_steps: int | None = None, discrete_observations: bool = False) -> dict[str, Any]:
    """A Gymnasium environment.

    Args:
        max_episode_steps: length of an episode; by default the environment's own limit.
        discrete_observations: observations of integers become one integer each, for tabular algorithms.
    """
    return {"max_episode_steps": max_episode_steps, "discrete_observations": discrete_observations}


def _as_dataclass(make: Callable[..., Any]) -> Any:
    """A dataclass with the parameters, defaults and documentation of a function."""
    hints = get_type_hints(make)
    fields = [
        (one.name, hints.get(one.name, Any), dataclasses.field(default=one.default))
        for one in inspect.signature(make).parameters.values()
    ]
    return dataclasses.make_dataclass("EnvSettings", fields, namespace={"__doc__": make.__doc__}, frozen=True)


class _Parser(argparse.ArgumentParser):
    """Complains as everything else here does."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message[0].upper()}{message[1:]}.")


def _first_flags() -> argparse.ArgumentParser:
    """The flags that decide what the other ones are by default."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--preset", choices=("tuned", "paper", "none"), default="tuned")
    parser.add_argument("--total-timesteps", "--total_timesteps", type=float, default=None)
    return parser


def _leading_names(argv: Sequence[str]) -> int:
    return next((i for i, word in enumerate(argv) if word.startswith("-")), len(argv))
