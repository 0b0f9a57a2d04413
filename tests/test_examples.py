"""The examples run, with small budgets."""

import pathlib
import runpy
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
SMALL = {
    "own_gym_env.py": (["--total-timesteps", "2e3"], "cost_heat (info['cost_heat'])"),
    "own_jax_env.py": (["--total-timesteps", "1e4"], "min wet > min time: 0.00 times in the water"),
    "three_objectives.py": (["--seeds", "2", "--total-timesteps", "1e4"], "effort minimized"),
}


def test_all_are_run():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SMALL)


@pytest.mark.parametrize("name", SMALL)
def test_it_runs(name, monkeypatch, capsys):
    arguments, shown = SMALL[name]
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert shown in capsys.readouterr().out
