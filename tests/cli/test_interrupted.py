"""Ctrl-C while the program is still being imported: one line, no traceback."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, runpy, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv = ["lexrl", "list"]
runpy.run_module("lexrl", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("module", ["rich", "numpy", "gymnasium", "jax.numpy", "lexrl.cli.list", "tyro"])
def test_while_importing(module):
    """As `python -m lexrl` does: the package first, then its command line."""
    program = PROGRAM.format(module=module)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stderr == "lexrl: interrupted.\n"
    assert done.returncode == 130


def test_before_the_command_line_there_is_little_to_import():
    """Nothing can look after Ctrl-C while the package itself is imported: that must be soon over."""
    program = "import sys, lexrl; print(*{name.partition('.')[0] for name in sys.modules} & {'numpy', 'gymnasium'})"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "\n"
