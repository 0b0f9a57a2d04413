"""The examples run; small, to be quick."""

import pathlib
import runpy
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
SMALL = {
    "own_gym_env.py": (["--steps", "2e3"], "cost_heat (info['cost_heat'])"),
    "own_jax_world.py": (["--steps", "1e4"], "min wet > min time: wet 0.00 times"),
    "three_objectives.py": (["--seeds", "2", "--steps", "1e4"], "effort minimised"),
}


def test_all_are_run():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SMALL)


@pytest.mark.parametrize("name", SMALL)
def test_it_runs(name, monkeypatch, capsys):
    arguments, shown = SMALL[name]
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert shown in capsys.readouterr().out
