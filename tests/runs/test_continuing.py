"""A finished run that is trained further has the numbers of one long run with the schedules of the short one."""

import json

import numpy as np
import pytest

import anonymous
import lexrl
from lexrl import cli, store
from lexrl.errors import InputError
from lexrl.runs import continuing, execute, plan, record

ORDER = "min cost > max reward"
TABLE = lexrl.QLearning(alpha="0.5 to 0.1 in 300", min_alpha=0.0, evidence=None, guard=None, exploration="epsilon 0.2")
SETTINGS = {"seeds": 2, "num_log_points": 4, "env_kwargs": {"size": 4}, "eval_episodes": 2}


def policies(folder):
    return {path.name: anonymous.content(path) for path in sorted((folder / "policies").iterdir())}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A long run, a short one, and the short one trained further."""
    place = tmp_path_factory.mktemp("runs")
    lexrl.train(TABLE, "grid-nav", ORDER, total_timesteps=1200, **SETTINGS, out=place / "long")
    for name in ("short", "continued"):
        lexrl.train(TABLE, "grid-nav", ORDER, total_timesteps=600, **SETTINGS, out=place / name)
    result = lexrl.resume(place / "continued", steps=600)
    return place, result


def test_the_policies_of_one_long_run(folders):
    place, result = folders
    assert result.steps[-1] == 1200
    assert policies(place / "continued") == policies(place / "long")
    assert policies(place / "continued") != policies(place / "short")
    assert lexrl.load(place / "continued").summary["per_episode"] == lexrl.load(place / "long").summary["per_episode"]


def test_what_its_folder_says(folders):
    place, _ = folders
    about = json.loads((place / "continued" / "run.json").read_text())
    assert about["total_timesteps"] == 1200
    assert [one["at"] for one in about["continued"]] == [600]
    steps = lexrl.load(place / "continued").steps.tolist()
    assert steps[-1] == 1200
    assert set(lexrl.load(place / "short").steps.tolist()) <= set(steps)
    assert not (place / "continued" / "checkpoints").exists()


def test_again_and_again(folders, tmp_path):
    place, _ = folders
    lexrl.train(TABLE, "grid-nav", ORDER, total_timesteps=400, **SETTINGS, out=tmp_path / "run")
    for _ in range(2):
        lexrl.resume(tmp_path / "run", steps=400)
    assert policies(tmp_path / "run") == policies(place / "long")


def test_stopped_while_it_is_continued(folders, tmp_path):
    place, _ = folders
    lexrl.train(TABLE, "grid-nav", ORDER, total_timesteps=600, **SETTINGS, out=tmp_path / "run")
    run = continuing.extend(tmp_path / "run", 600)
    assert not store.is_finished(tmp_path / "run")
    results = execute(run, tmp_path / "run")
    next(results)
    results.close()
    lexrl.resume(tmp_path / "run")
    assert policies(tmp_path / "run") == policies(place / "long")


def test_killed_before_the_old_summary_was_removed(folders, tmp_path):
    place, _ = folders
    lexrl.train(TABLE, "grid-nav", ORDER, total_timesteps=600, **SETTINGS, out=tmp_path / "run")
    old = (tmp_path / "run" / "summary.json").read_bytes()
    continuing.extend(tmp_path / "run", 600)
    (tmp_path / "run" / "summary.json").write_bytes(old)
    assert not store.is_finished(tmp_path / "run")
    lexrl.resume(tmp_path / "run")
    assert policies(tmp_path / "run") == policies(place / "long")


def test_what_cannot_be_continued(folders, tmp_path, monkeypatch):
    place, _ = folders
    for steps in (0, -1, 1.5, 2**31):
        with pytest.raises(InputError, match="total_timesteps is"):
            lexrl.resume(place / "short", steps=steps)
    run = plan(TABLE, "grid-nav", ORDER, 2, 600, 4, env_kwargs={"size": 4})
    results = execute(run, tmp_path / "stopped")
    next(results)
    results.close()
    with pytest.raises(InputError, match="is not finished"):
        lexrl.resume(tmp_path / "stopped", steps=10)
    monkeypatch.setattr(store, "MAX_FINAL", 10)
    lexrl.train(TABLE, "grid-nav", ORDER, total_timesteps=600, **SETTINGS, out=tmp_path / "large")
    assert not (tmp_path / "large" / "final.safetensors").exists()
    with pytest.raises(InputError, match="was not kept"):
        lexrl.resume(tmp_path / "large", steps=10)


def test_what_schedules_do():
    run = plan(TABLE, "grid-nav", ORDER, 1, 600, env_kwargs={"size": 4})
    assert "alpha stays at 0.1, where it ended." in continuing.sentences(run)
    assert "The last stage is extended." in continuing.sentences(plan("lppo", "cart-safe"))
    assert continuing.sentences(plan("random", "cart-safe")) == ["No setting depends on the length of the run."]


def test_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = "train random cart-safe --total-timesteps 512 --seeds 3 7 11 --eval-episodes 2 --num-log-points 2 --out run"
    cli.main([*words.split(), "--json"])
    summary = json.loads(capsys.readouterr().out)
    assert summary["seeds"] == [3, 7, 11]
    assert summary["folder"] == "run"
    cli.main(["continue", "run", "--steps", "512"])
    said = capsys.readouterr().out
    assert "No setting depends on the length of the run." in said
    assert "Resuming at step" in said
    assert record.read(tmp_path / "run").seeds == (3, 7, 11)
    cli.main(["continue", "run", "--steps", "512", "--json"])
    assert json.loads(capsys.readouterr().out)["steps"] >= 1536
    cli.main(["evaluate", "run", "--episodes", "3", "--json"])
    assert np.shape(json.loads(capsys.readouterr().out)["per_episode"]["cost"]) == (3,)
    cli.main(["compare", "run", "run", "--json"])
    assert [row["run"] for row in json.loads(capsys.readouterr().out)["ranking"]] == ["run", "run"]
    cli.main(["check", "q-learning", "grid-nav", "--order", ORDER, "--json"])
    assert {"name", "verdict", "promise", "conditions"} == json.loads(capsys.readouterr().out)["guarantees"][0].keys()
    cli.main(["solve", "grid-nav", "--size", "4", "--order", ORDER, "--json"])
    assert json.loads(capsys.readouterr().out)["returns"].keys() == {"cost", "reward"}
    cli.main(["--version"])
    assert capsys.readouterr().out == f"lexrl {lexrl.__version__}\n"


@pytest.mark.parametrize(("words", "seeds"), [("2", (0, 1)), ("5,", (5,)), ("3 7", (3, 7)), ("3,7,11", (3, 7, 11))])
def test_seeds(words, seeds, tmp_path):
    flags = ["--total-timesteps", "64", "--eval-episodes", "1", "--num-log-points", "1", "--out", str(tmp_path / "run")]
    cli.main(["train", "random", "cart-safe", "--seeds", *words.split(), *flags])
    assert record.read(tmp_path / "run").seeds == seeds
