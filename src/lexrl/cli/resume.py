"""`lexrl resume RUN`: continue a run that was stopped."""

import dataclasses
import pathlib

import tyro

from lexrl import store
from lexrl.cli.arguments import parse
from lexrl.cli.execution import follow
from lexrl.errors import InputError
from lexrl.runs import record


@dataclasses.dataclass(frozen=True)
class Resume:
    """Continue a run that was stopped; it ends with the same numbers as if it had not been."""

    run: tyro.conf.Positional[pathlib.Path]
    """The run's folder."""
    json: bool = False
    """Print the outcome as JSON, and nothing else; progress goes to the standard error."""


def main(argv: list[str]) -> None:
    """Continue a run, to its end."""
    args = parse(Resume, argv, "lexrl resume")
    folder = args.run
    run = record.read(folder)
    if store.is_finished(folder):
        raise InputError(
            f"The run in {str(folder)!r} is finished; `lexrl evaluate {folder}` evaluates it again, and `lexrl "
            f"continue {folder} --steps N` trains it further."
        )
    follow(run, folder, args.json)
