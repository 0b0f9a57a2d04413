"""The page about runs: everything is in it, nothing is asked for from elsewhere, and what is broken is said."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from browser import MISSING, Browser

import lexrl
from lexrl import Networks, store
from lexrl.errors import InputError
from lexrl.report import learning_curves, run_folder
from lexrl.report.folder import page
from lexrl.report.learning_curves import Learned

NAN = float("nan")

ORDER = "min cost > max reward"
CHARTS = 1 + 2 * (2 + 1)
"""The plane, and for each run a panel of each objective and of the threshold of the first one."""


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
            verify_episodes=100,
            out=place / f"run-{seed}",
        )
    return place


def test_everything_is_in_it(folder):
    text = page(folder)
    assert text.count("class=plot") == CHARTS
    for part in ("min cost", "max reward", "mean of seeds", "worst seed", "2 seeds x 5,120 steps", "jax"):
        assert part in text
    assert not re.search(r"(src|href)=['\"]?https?:", text)
    order = ("Was the priority kept?", "Final returns", "Learning curves", "What was learned", "How to repeat it")
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert text.count("Priority not decidable") + text.count("Priority kept") + text.count("Priority violated") == 2


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
    unfinished = tmp_path / "all" / "run-0"
    (unfinished / "summary.json").unlink()
    store.tie_curves(unfinished, store.read_identity(unfinished))
    (tmp_path / "all" / "broken").mkdir()
    (tmp_path / "all" / "broken" / "run.json").write_text("{")
    text = page(tmp_path / "all")
    assert "This run is not finished" in text
    assert "Left out:" in text
    assert "is not JSON" in text
    assert text.count("class=plot") == CHARTS


def test_a_damaged_run_or_solution_does_not_spoil_the_page(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "all")
    (tmp_path / "all" / "run-0" / "metrics.csv").write_text("seed,step\n0,late\n")
    (tmp_path / "all" / "solved").mkdir()
    (tmp_path / "all" / "solved" / "solution.json").write_text('{"env": "grid-nav"}')
    text = page(tmp_path / "all")
    assert text.count("Left out:") == 2
    assert "metrics.csv&#x27; is damaged, or of another run" in text
    assert "it has no &#x27;order&#x27;" in text
    assert text.count("class=plot") == 1 + 3


def test_a_folder_without_runs_is_a_sentence(tmp_path):
    with pytest.raises(InputError, match="There is no run to report"):
        page(tmp_path)
    with pytest.raises(InputError, match="There is no folder"):
        page(tmp_path / "nowhere")


def test_stages_and_thresholds_are_marked():
    """By hand: two seeds of two stages; both are in stage 2 from the third point on."""
    stage = np.array([[1, 1], [1, 2], [2, 2], [2, 2]], float)
    cost = np.array([[4.0, 5], [3, 3], [2, 1], [1, 1]])
    returns = np.stack([10 * cost, 100 - cost], axis=-1)
    threshold = np.stack([cost.copy(), cost], axis=-1)
    threshold[2:, :, 0] = [1.5, 0.5]
    metrics = {"episode_return": returns, "stage": stage, "threshold": threshold,
               "return_estimate": np.stack([cost, cost], axis=-1)}  # fmt: skip
    names, objectives = ("cost", "reward"), ("min cost", "max reward")
    learned = Learned(np.array([10, 20, 30, 40]), metrics, objectives, names, (7, 8))
    first, kept = learning_curves.sections(learned)
    assert [panel.title for panel in first.panels] == ["1. min cost", "2. max reward"]
    assert [panel.events for panel in first.panels] == [((30.0, "stage 2: reward"),)] * 2
    assert [series.label for series in first.panels[0].seeds] == ["seed 7", "seed 8"]
    (panel,) = kept.panels  # the last objective has nothing to keep
    assert [series.label for series in panel.series] == ["median of the seeds", "threshold"]
    np.testing.assert_array_equal(panel.series[1].middle, [np.nan, 3, 1, 1])
    spec = learning_curves.draw(learned, "a title").spec
    words = [layer["data"]["values"][0]["text"] for layer in spec["concat"][0]["layer"] if "data" in layer]
    assert words == ["stage 2: reward"] * 2


def test_without_stages_only_the_returns_are_drawn():
    returns = np.array([[[1.0], [2.0], [9.0]], [[NAN], [4.0], [6.0]], [[NAN], [NAN], [NAN]]])
    (section,) = learning_curves.sections(
        Learned(np.array([1, 2, 3]), {"episode_return": returns}, ["max reward"], ["reward"], (0, 1, 2))
    )
    (panel,) = section.panels
    np.testing.assert_array_equal(panel.series[0].middle, [2, 5, NAN])
    assert panel.events == ()


def test_reports_import_neither_jax_nor_what_draws():
    """Reading what is on disk takes neither; drawing takes vl-convert, and maps matplotlib."""
    program = (
        "import sys, lexrl.report.folder; print([m for m in ('jax', 'matplotlib', 'vl_convert') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.skipif(MISSING, reason="no browser here: chromium is not installed")
def test_a_browser_shows_it(folder, tmp_path):
    (tmp_path / "report.html").write_text(page(folder))
    browser = Browser(tmp_path / "profile")
    try:
        for width, dark in ((1200, False), (400, True)):
            browser.open((tmp_path / "report.html").as_uri(), width=width, dark=dark)
            assert browser.run("document.documentElement.scrollWidth") <= width
            assert browser.run("document.querySelectorAll('.plot svg').length") == CHARTS
            assert browser.run("document.querySelectorAll('.verdicts tbody td:not(.words)').length") == 4
            assert (
                browser.run("document.querySelector('.verdicts .wide').scrollWidth") <= width
            )  # words are not cut off
        assert browser.errors == []
    finally:
        browser.close()


@pytest.mark.skipif(MISSING, reason="no browser here: chromium is not installed")
def test_it_prints_whole_without_javascript(folder, tmp_path):
    """On white paper what is folded is unfolded, and every run begins on a page of its own."""
    (tmp_path / "report.html").write_text(page(folder))
    browser = Browser(tmp_path / "profile")
    try:
        address = (tmp_path / "report.html").as_uri()
        shown = "[...document.querySelectorAll('.chapter details > :not(summary)')].map(each => each.checkVisibility())"
        browser.open(address, width=720, dark=True, scripts=False)
        assert not any(browser.run(shown))
        browser.open(address, width=720, dark=True, scripts=False, paper=True)
        assert browser.run(shown) == [True] * 6  # findings, settings and versions of two runs
        assert browser.run("document.documentElement.scrollWidth") <= 720
        style = "[...document.querySelectorAll('.chapter')].map(each => getComputedStyle(each).breakBefore)"
        assert browser.run(style) == ["page", "page"]
        assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    finally:
        browser.close()
