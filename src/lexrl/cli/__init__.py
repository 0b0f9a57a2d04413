"""The command line: `lexrl train`, `resume`, `evaluate`, `compare`, `watch`, `report`, `experiment`, and others.

Fields and arguments with their documentation become flags; what people write as text (schedules, tolerances, bandits)
is read by the same functions that read it in Python.
"""

import dataclasses
import os
import sys
from typing import Annotated, Any

import tyro
from rich.table import Table

from lexrl.backend import cache_folder, configure
from lexrl.cli.check import Check, check
from lexrl.cli.experiment import ExperimentCommand, experiment
from lexrl.cli.names import ALGORITHMS, WORLDS, chosen_preset, learners, registry, summary, worlds
from lexrl.cli.runs import Compare, Evaluate, Report, Watch, compare, evaluate, report, watch
from lexrl.cli.show import complain, console
from lexrl.cli.solve import Solve, solve
from lexrl.cli.train import Resume, Train, resume, train
from lexrl.errors import InputError
from lexrl.presets import Preset


@dataclasses.dataclass(frozen=True)
class List:
    """List the algorithms and the worlds, with the signals of each."""


def main(arguments: list[str] | None = None) -> None:
    """Entry point: bad input ends in one sentence and exit code 2."""
    words = sys.argv[1:] if arguments is None else arguments
    configure()
    # Matplotlib would make a folder in the user's home.
    os.environ.setdefault("MPLCONFIGDIR", str(cache_folder() / "matplotlib"))
    try:
        preset = chosen_preset(words)
        with registry():
            command = tyro.cli(
                _commands(preset, words),
                args=words,
                prog="lexrl",
                description="Lexicographic multi-objective reinforcement learning.",
                config=(tyro.conf.CascadeSubcommandArgs, tyro.conf.OmitSubcommandPrefixes),
            )
        _obey(command, words, preset)
    except InputError as error:
        complain(str(error), 2)
    except KeyboardInterrupt:
        complain("stopped by hand.", 130)
    except OSError as error:
        complain(f"{error.filename or 'a file'} could not be written or read: {error.strerror}.", 1)


def _commands(preset: Preset | None, words: list[str]) -> Any:
    """All commands, with the unions of what exists in their places."""
    world = tyro.conf.OmitArgPrefixes[worlds(preset, words)]
    algorithm = tyro.conf.OmitArgPrefixes[learners(preset)]
    return (
        Annotated[Train[algorithm, world], tyro.conf.subcommand("train")]
        | Annotated[Resume, tyro.conf.subcommand("resume")]
        | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
        | Annotated[Compare, tyro.conf.subcommand("compare")]
        | Annotated[Watch, tyro.conf.subcommand("watch")]
        | Annotated[Report, tyro.conf.subcommand("report")]
        | Annotated[Solve[world], tyro.conf.subcommand("solve")]
        | Annotated[Check[algorithm, world], tyro.conf.subcommand("check")]
        | Annotated[ExperimentCommand, tyro.conf.subcommand("experiment")]
        | Annotated[List, tyro.conf.subcommand("list")]
    )


def _obey(command: Any, words: list[str], preset: Preset | None) -> None:
    match command:
        case Train():
            train(command, _algorithm(words), preset)
        case Check():
            check(command, _algorithm(words), preset)
        case Resume():
            resume(command)
        case Evaluate():
            evaluate(command)
        case Compare():
            compare(command)
        case Watch():
            watch(command)
        case Report():
            report(command)
        case ExperimentCommand():
            experiment(command)
        case Solve():
            solve(command)
        case _:
            show_list()


def _algorithm(words: list[str]) -> str:
    """The name by which the algorithm was called."""
    return next(word for word in words if word in ALGORITHMS)


def show_list() -> None:
    """`lexrl list`"""
    algorithms = Table("algorithm", "what it is", box=None, title="Algorithms", title_justify="left")
    for name, make in ALGORITHMS.items():
        algorithms.add_row(name, summary(make))
    table = Table("world", "signals", "what it is", box=None, title="PerSeed", title_justify="left")
    for name, make in WORLDS.items():
        table.add_row(name, ", ".join(make().spec.signals), summary(make))
    console.print(algorithms)
    console.print(table)
    console.print("Gymnasium's environments go by their names, as in gym:CartPole-v1.", markup=False)
