"""`import lexrl` is quick and quiet, and what it offers is what type checkers see."""

import ast
import os
import pathlib
import subprocess
import sys
import time

import pytest

import lexrl


def run(script):
    quiet = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=quiet)
    return done.stdout.strip()


@pytest.mark.parametrize("name", lexrl.__all__)
def test_every_public_name_is_there(name):
    assert vars(lexrl).get(name, None) is not None or lexrl.__getattr__(name) is not None


def test_type_checkers_see_the_same_names():
    tree = ast.parse(pathlib.Path(lexrl.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imported = {alias.asname or alias.name for node in block.body for alias in node.names}
    assert imported == set(lexrl.public_names())
    assert set(lexrl.__all__) == imported | {"InputError", "catalog"}
    assert set(dir(lexrl)) == set(lexrl.__all__) | {"__version__"}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'lexrl' has no attribute 'LPO'"):
        lexrl.LPO  # noqa: B018


def test_importing_imports_no_jax_and_sets_no_flag():
    script = "import os, sys, lexrl; print('jax' in sys.modules, os.environ.get('XLA_FLAGS', ''))"
    assert run(script) == "False"


def test_importing_takes_at_most_a_second():
    def seconds(script):
        started = time.monotonic()
        run(script)
        return time.monotonic() - started

    # The best of three: other tests run at the same time.
    assert min(seconds("import lexrl") - seconds("pass") for _ in range(3)) < 1.0


def test_importing_registers_with_gymnasium():
    assert run("import gymnasium, lexrl; print('lexrl/CartSafe-v0' in gymnasium.registry)") == "True"


def test_the_order_of_imports_does_not_matter():
    script = "import lexrl, gymnasium; print('lexrl/CartSafe-v0' in gymnasium.registry)"
    assert run(script) == "True"
