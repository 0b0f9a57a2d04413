"""The benchmarks are scripts: Python looks for modules beside them first."""

import importlib.metadata
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parents[1] / "benchmarks"


def test_their_names_hide_no_package():
    names = {script.stem for script in FOLDER.glob("*.py")}
    assert "tabular" in names
    assert not names & (importlib.metadata.packages_distributions().keys() | sys.stdlib_module_names)
