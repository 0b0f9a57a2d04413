"""The command line: `lexrl COMMAND ...`, one file for each command.

A command is a word, then come the names it is about (an algorithm, an environment, a folder), then flags. Each word is
read once, by position: a name that follows a flag is that flag's value and nothing else.
"""

import importlib
import os
import sys

from rich.table import Table

import lexrl
from lexrl import backend
from lexrl.cli import console
from lexrl.errors import InputError, suggestion

COMMANDS = {
    "train": "Train an algorithm on an environment.",
    "resume": "Continue an interrupted run.",
    "continue": "Train a finished run for more steps.",
    "sweep": "Train with many settings and confirm the best one.",
    "evaluate": "Evaluate the policies of a finished run on fresh episodes.",
    "verify": "Decide whether the policies of a finished run keep the priority.",
    "compare": "Rank finished runs.",
    "video": "Record an episode as GIF, MP4 or PNG.",
    "report": "Write one HTML page about all runs in a folder.",
    "solve": "Compute the exact lexicographic optimum of a finite environment.",
    "check": "Check the conditions of the convergence theorems.",
    "experiment": "Reproduce an experiment of the paper.",
    "list": "List algorithms, environments and experiments.",
}
"""Each is a module of this package, with `main(argv)`."""


def main(argv: list[str] | None = None) -> None:
    """Entry point: bad input ends in one sentence and exit code 2."""
    words = sys.argv[1:] if argv is None else argv
    # Matplotlib would make a folder in the user's home.
    os.environ.setdefault("MPLCONFIGDIR", str(backend.cache_folder() / "matplotlib"))
    try:
        if not words or words[0] in ("-h", "--help"):
            show_help()
            return
        if words[0] == "--version":
            print(f"lexrl {lexrl.__version__}")
            return
        if words[0] not in COMMANDS:
            raise InputError(
                f"There is no command {words[0]!r}; there are {', '.join(COMMANDS)}.{suggestion(words[0], COMMANDS)}"
            )
        backend.ensure_configured()
        with console.plain_warnings(console.error_console):
            importlib.import_module(f"lexrl.cli.{words[0]}").main(words[1:])
    except InputError as error:
        console.complain(str(error), 2)
    except KeyboardInterrupt:
        console.complain("interrupted.", 130)
    except OSError as error:
        console.complain(f"{error.filename or 'a file'} could not be written or read: {error.strerror}.", 1)


def show_help() -> None:
    """`lexrl --help`"""
    purpose = "Lexicographic multi-objective reinforcement learning."
    console.console.print(f"usage: lexrl COMMAND ...\n\n{purpose}\n", markup=False)
    table = Table(box=None, show_header=False, padding=(0, 3, 0, 2))
    for name, purpose in COMMANDS.items():
        table.add_row(name, purpose)
    console.console.print(table)
    console.console.print(
        "\nTry: lexrl train lppo cart-safe; `lexrl COMMAND --help` shows the arguments of a command.", markup=False
    )
