"""Ctrl-C while the program is still being imported: one line, no traceback."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv = ["lexrl", "list"]
from lexrl_command import main
main()
"""


MODULES = [
    "lexrl", "gymnasium", "numpy", "rich", "jax", "jax.numpy", "lexrl.cli", "lexrl.backend", "lexrl.cli.list", "tyro",
]  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_while_importing(module):
    program = PROGRAM.format(module=module)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stderr == "lexrl: interrupted.\n"
    assert done.returncode == 130
