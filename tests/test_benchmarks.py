"""The benchmarks are scripts: Python looks for modules beside them first."""

import importlib
import importlib.metadata
import pathlib
import sys

import lexrl

FOLDER = pathlib.Path(__file__).parents[1] / "benchmarks"


def test_their_names_hide_no_package():
    names = {script.stem for script in FOLDER.glob("*.py")}
    assert "tabular" in names
    assert not names & (importlib.metadata.packages_distributions().keys() | sys.stdlib_module_names)


def test_what_is_timed_knows_the_length_of_its_run(monkeypatch):
    """The defaults of an algorithm last for fractions of a run."""
    monkeypatch.syspath_prepend(FOLDER)
    deep = importlib.import_module("deep")
    monkeypatch.setattr(deep, "SEEDS", [0])
    algorithm = lexrl.LDQN(num_envs=4, hidden_sizes=(4,), batch_size=4, buffer_size=64, learning_starts=8)
    assert deep.ours(algorithm, lexrl.CartSafe(), deep.ORDER, 64)() > 0
