"""What `--help` says, word for word: a change of the command line shows in the snapshots.

To renew them after a change that is meant: `python tests/cli/test_help.py`, and read the difference.
"""

import contextlib
import io
import os
import pathlib
import re

import pytest

from lexrl import cli
from lexrl.cli.console import console

PLAIN = {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
SNAPSHOTS = pathlib.Path(__file__).parent / "help"
COMMANDS = {
    "lexrl": [],
    "train": ["train"],
    "train-lppo-cart-safe": ["train", "lppo", "cart-safe"],
    "train-ldqn-gym": ["train", "ldqn", "gym:CartPole-v1"],
    "train-q-learning-grid-nav": ["train", "q-learning", "grid-nav"],
    "resume": ["resume"],
    "continue": ["continue"],
    "sweep": ["sweep"],
    "sweep-q-learning-grid-nav": ["sweep", "q-learning", "grid-nav"],
    "evaluate": ["evaluate"],
    "verify": ["verify"],
    "compare": ["compare"],
    "video": ["video"],
    "report": ["report"],
    "solve": ["solve"],
    "solve-grid-nav": ["solve", "grid-nav"],
    "check": ["check"],
    "check-paper-la2c-grid-nav": ["check", "paper-la2c", "grid-nav"],
    "experiment": ["experiment"],
    "list": ["list"],
}


def told(words):
    """What the program says, asked in this process; the environment decides how wide and how plain."""
    written = io.BytesIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(written, "utf-8")) as shown, contextlib.suppress(SystemExit):
        cli.main([*words, "--help"])
    shown.flush()
    return re.sub(r"[ \t]+\n", "\n", written.getvalue().decode())


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    for name, value in PLAIN.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(console, "_width", int(PLAIN["COLUMNS"]))  # it read COLUMNS when it was imported


@pytest.mark.parametrize("name", COMMANDS)
def test_says_what_it_said(name):
    assert told(COMMANDS[name]) == (SNAPSHOTS / f"{name}.txt").read_text()


def test_no_snapshot_is_left_over():
    assert {path.stem for path in SNAPSHOTS.iterdir()} == set(COMMANDS)


if __name__ == "__main__":
    os.environ.update(PLAIN)
    console.width = int(PLAIN["COLUMNS"])
    SNAPSHOTS.mkdir(exist_ok=True)
    for name, words in COMMANDS.items():
        (SNAPSHOTS / f"{name}.txt").write_text(told(words))
