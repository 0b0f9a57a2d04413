"""The benchmarks are scripts: Python looks for modules beside them first."""

import importlib.util
import pathlib

import pytest

FOLDER = pathlib.Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_its_name_hides_no_package(script):
    assert importlib.util.find_spec(script.stem) is None
