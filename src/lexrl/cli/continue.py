"""`lexrl continue RUN --steps N`: train a finished run further."""

import dataclasses
import pathlib
import shlex

import tyro

from lexrl import memory
from lexrl.cli.arguments import Steps, parse
from lexrl.cli.console import console
from lexrl.cli.execution import follow
from lexrl.runs import continuing


@dataclasses.dataclass(frozen=True)
class Continue:
    """Train a finished run for more steps, and print how its schedules continue."""

    run: tyro.conf.Positional[pathlib.Path]
    """The run's folder."""
    steps: Steps
    """Number of additional environment steps per seed."""
    force: bool = False
    """Train although it does not seem to fit into memory."""
    json: bool = False
    """Print the outcome as JSON, and nothing else."""


def main(argv: list[str]) -> None:
    """Extend a run, then execute it."""
    args = parse(Continue, argv, "lexrl continue")
    with memory.unlimited(args.force):
        run = continuing.extend(args.run, args.steps, command=shlex.join(["lexrl", "continue", *argv]))
        if not args.json:
            for sentence in continuing.sentences(run):
                console.print(sentence, markup=False)
        follow(run, args.run, args.json)
