"""The page about runs: everything is in it, nothing is asked for from elsewhere, and what is broken is said."""

import json
import re
import shutil
import subprocess

import pytest

import lexrl
from lexrl import Networks
from lexrl.errors import InputError
from lexrl.report import run_folder
from lexrl.report.folder import page

ORDER = "min cost > max reward"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("page")
    algorithm = lexrl.LPPO(num_envs=4, num_steps=64, num_minibatches=2, networks=Networks(hidden_sizes=(8,)))
    for seed in (0, 10):
        lexrl.train(
            algorithm,
            "cart-safe",
            ORDER,
            seeds=[seed, seed + 1],
            total_timesteps=5120,
            num_log_points=4,
            out=place / f"run-{seed}",
        )
    return place


def test_everything_is_in_it(folder):
    text = page(folder)
    assert text.count("<svg") == 2
    for part in ("min cost", "max reward", "mean of seeds", "worst seed", "2 seeds x 5,120 steps", "jax"):
        assert part in text
    assert not re.search(r"(src|href)=['\"]?https?:", text)


def test_final_values_and_curves_are_those_of_the_run(folder):
    found = run_folder.read(folder / "run-10")
    result = lexrl.load(folder / "run-10")
    steps, values = found.curves()
    assert steps.tolist() == result.steps.tolist()
    assert values.shape == (4, 2, 2)
    summary = json.loads((folder / "run-10" / "summary.json").read_text())
    assert found.final[:, 0].tolist() == summary["per_episode"]["cost"]


def test_broken_and_unfinished_runs_are_told_and_the_rest_is_shown(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "all")
    (tmp_path / "all" / "run-0" / "summary.json").unlink()
    (tmp_path / "all" / "broken").mkdir()
    (tmp_path / "all" / "broken" / "run.json").write_text("{")
    text = page(tmp_path / "all")
    assert "This run is not finished" in text
    assert "Left out:" in text
    assert "is not JSON" in text
    assert text.count("<svg") == 2


def test_a_damaged_run_or_solution_does_not_spoil_the_page(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "all")
    (tmp_path / "all" / "run-0" / "metrics.csv").write_text("seed,step\n0,late\n")
    (tmp_path / "all" / "solved").mkdir()
    (tmp_path / "all" / "solved" / "solution.json").write_text('{"env": "grid-nav"}')
    text = page(tmp_path / "all")
    assert text.count("Left out:") == 2
    assert "metrics.csv&#x27; is damaged, or of another run" in text
    assert "it has no &#x27;order&#x27;" in text
    assert text.count("<svg") == 1


def test_a_folder_without_runs_is_a_sentence(tmp_path):
    with pytest.raises(InputError, match="There is no run to report"):
        page(tmp_path)
    with pytest.raises(InputError, match="There is no folder"):
        page(tmp_path / "nowhere")


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no browser here: chromium is not installed")
def test_a_browser_shows_it(folder, tmp_path):
    (tmp_path / "report.html").write_text(page(folder))
    command = [
        "chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom", (tmp_path / "report.html").as_uri(),
    ]  # fmt: skip
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert shown.returncode == 0
    assert shown.stdout.count("<figure>") == 2
