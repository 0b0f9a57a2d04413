"""One pipeline: the command line, Python, experiments and resumed runs leave the same folder, byte for byte."""

import contextlib
import dataclasses
import json
import shlex

import jax
import numpy as np
import pytest

import anonymous
import lexrl
from lexrl import cli, store
from lexrl.experiments import schedule
from lexrl.experiments.schedule import Job
from lexrl.runs import execute, plan
from lexrl.runs.observers import Snapshot, Start

ORDER = "min cost > max reward"
SETTINGS = {"seeds": 2, "total_timesteps": 2_000, "num_log_points": 5, "eval_episodes": 3}
FLAGS = "--seeds 2 --total-timesteps 2000 --num-log-points 5 --eval-episodes 3 --no-verify"
TIMES = ("begun", "command", "seconds", "label", "title")
"""What may differ: when it was, how long it took, how it was started, and what an experiment calls it."""


def content(folder):
    """Every file's bytes, without times and the command line."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(folder))] = anonymous.content(path, TIMES)
    return found


def same(one, other):
    assert one.keys() == other.keys()
    for name, data in one.items():
        assert data == other[name], name


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """The folder that `lexrl.train` leaves."""
    folder = tmp_path_factory.mktemp("grid")
    lexrl.train("sarsa", "grid-nav", ORDER, env_kwargs={"size": 5}, **SETTINGS, out=folder / "python")
    return folder


def test_files(grid):
    assert set(content(grid / "python")) == {
        "run.json", "metrics.csv", "summary.json", "curves.png", "map.png", "final.safetensors",
        "policies/seed-0.safetensors", "policies/seed-1.safetensors",
    }  # fmt: skip
    summary = json.loads((grid / "python" / "summary.json").read_text())
    assert summary["exact_optimum"].keys() == {"cost", "reward"}


def test_the_command_line(grid, monkeypatch):
    monkeypatch.chdir(grid)
    cli.main(shlex.split(f"train sarsa grid-nav --size 5 --order '{ORDER}' {FLAGS} --out command"))
    same(content(grid / "python"), content(grid / "command"))


def test_resuming(grid):
    run = plan("sarsa", "grid-nav", ORDER, env_kwargs={"size": 5}, **SETTINGS)
    with contextlib.closing(execute(run, grid / "resumed")) as results:
        next(results)
        next(results)
    assert store.checkpoints(grid / "resumed")
    lexrl.resume(grid / "resumed")
    same(content(grid / "python"), content(grid / "resumed"))


def test_experiments(tmp_path):
    algorithm = lexrl.QLearning(alpha=0.1)
    job = Job("one", "a label", algorithm, "grid-nav", ORDER, 2, 2_000, {"size": 5}, 5)
    results = list(schedule.perform(tmp_path, job))
    assert results[-1].summary["eval_episodes"] == 100
    lexrl.train(
        algorithm, "grid-nav", ORDER, env_kwargs={"size": 5}, **(SETTINGS | {"eval_episodes": 100}),
        out=tmp_path / "python",
    )  # fmt: skip
    # The title is drawn into the picture of the curves.
    job_files, python_files = content(schedule.place(tmp_path, job)), content(tmp_path / "python")
    assert job_files.pop("curves.png")
    assert python_files.pop("curves.png")
    same(job_files, python_files)
    assert schedule.is_finished(tmp_path, job)


def test_an_instance_is_known_by_its_name(tmp_path):
    """`CartSafe(...)` is what "cart-safe" stands for."""
    for name, env, kwargs in (
        ("name", "cart-safe", {"max_episode_steps": 20, "observe_cos_sin": False}),
        ("instance", lexrl.CartSafe(max_episode_steps=20), None),
    ):
        lexrl.train(lexrl.Random(), env, ORDER, env_kwargs=kwargs, **SETTINGS, out=tmp_path / name)
    same(content(tmp_path / "name"), content(tmp_path / "instance"))
    about = json.loads((tmp_path / "name" / "run.json").read_text())
    assert about["env"] == {"name": "cart-safe", "kwargs": {"max_episode_steps": 20}}


def test_an_environment_for_each_seed_is_kept_by_name(tmp_path):
    kwargs = [{"momdp_seed": seed, "num_states": 4} for seed in (3, 4)]
    lexrl.train(lexrl.QLearning(), "random-momdp", "max signal_1", env_kwargs=kwargs, **SETTINGS, out=tmp_path / "run")
    again = lexrl.load(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["env"]["kwargs"] == kwargs
    assert again.run.env.count == 2
    assert again.evaluate(2).returns.shape == (2, 2, 1)


def test_observers_are_opened_called_and_closed():
    events = []

    @contextlib.contextmanager
    def observer(run, start):
        events.append(start)
        try:
            yield lambda snapshot: events.append(snapshot)
        finally:
            events.append("closed")

    run = plan("random", "cart-safe", ORDER, 2, 256, 2)
    results = list(execute(run, observers=[observer]))
    start, *snapshots, end = events
    assert (start, end) == (Start(), "closed")
    assert [type(one) for one in snapshots] == [Snapshot] * len(results)
    assert [one.result for one in snapshots] == results


def test_a_result_holds_plain_arrays():
    """No train states, no populations, nothing on a device; and what it prints fits a screen."""
    result = lexrl.train("lppo", "cart-safe", seeds=2, total_timesteps=4096, num_log_points=1)
    assert {field.name for field in dataclasses.fields(result)} == {
        "run", "policies", "steps", "metrics", "faults", "seconds", "selection", "summary", "verdict"
    }  # fmt: skip
    arrays = jax.tree.leaves([policy.state for policy in result.policies])
    assert {type(leaf) for leaf in arrays} <= {np.ndarray, np.float32, np.int32, np.uint32, np.bool_}
    for shown in (repr(result), str(result), repr(result.run)):
        assert len(shown.splitlines()) <= 10
        assert max(map(len, shown.splitlines())) <= 120


def test_loading_builds_no_population(grid, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a population was built")

    monkeypatch.setattr("lexrl.runs.run.make_population", refuse)
    assert len(lexrl.load(grid / "python")) == 2


def test_the_same_defaults_everywhere(capsys):
    run = plan("ppo", "cart-pole", "max reward")
    assert (run.total_timesteps, len(run.seeds), run.preset) == (1_000_000, 10, "default")
    with pytest.raises(SystemExit):
        cli.main(["train", "ppo", "cart-pole", "--help"])
    shown = "".join(capsys.readouterr().out.replace("│", "").split())  # lines may be broken anywhere
    assert "perseed.(default:1,000,000)" in shown
    assert "asin3711.(default:10)" in shown
