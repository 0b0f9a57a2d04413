"""What `--help` says, word for word: a change of the command line shows in the snapshots.

To renew them after a change that is meant: `python tests/test_help.py`, and read the difference.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

SNAPSHOTS = pathlib.Path(__file__).parent / "help"
COMMANDS = {
    "lexrl": [],
    "train": ["train"],
    "train-lppo-cart-safe": ["train", "lppo", "cart-safe"],
    "train-ldqn-gym": ["train", "ldqn", "gym:CartPole-v1"],
    "train-q-learning-grid-nav": ["train", "q-learning", "grid-nav"],
    "resume": ["resume"],
    "evaluate": ["evaluate"],
    "compare": ["compare"],
    "watch": ["watch"],
    "report": ["report"],
    "solve": ["solve"],
    "solve-grid-nav": ["solve", "grid-nav"],
    "check": ["check"],
    "list": ["list"],
}


def told(words):
    program = pathlib.Path(sys.executable).with_name("lexrl")
    environment = os.environ | {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    done = subprocess.run([program, *words, "--help"], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    return re.sub(r"[ \t]+\n", "\n", done.stdout)


@pytest.mark.parametrize("name", COMMANDS)
def test_says_what_it_said(name):
    assert told(COMMANDS[name]) == (SNAPSHOTS / f"{name}.txt").read_text()


def test_no_snapshot_is_left_over():
    assert {path.stem for path in SNAPSHOTS.iterdir()} == set(COMMANDS)


if __name__ == "__main__":
    SNAPSHOTS.mkdir(exist_ok=True)
    for name, words in COMMANDS.items():
        (SNAPSHOTS / f"{name}.txt").write_text(told(words))
