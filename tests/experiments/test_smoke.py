"""The paper's experiments at their smallest, all of them, with the real commands; and the page about them."""

import html
import json

import pytest

from lexrl import cli
from lexrl.catalog import EXPERIMENTS
from lexrl.experiments import speeds


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("experiments")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speeds, "_own", lambda: place / "speeds.json")
        cli.main(["experiment", "all", "--size", "smoke", "--out", str(place / "smoke")])
        cli.main(["report", str(place / "smoke")])
    return place / "smoke"


def test_every_run_is_finished(folder):
    for name in EXPERIMENTS:
        content = json.loads((folder / name / "experiment.json").read_text())
        assert {run["state"] for run in content["runs"]} == {"finished"}
        assert content["sections"]


def test_every_answer_has_its_word(folder):
    for name in ("scaling", "safety", "slack", "pb-settings"):
        content = json.loads((folder / name / "experiment.json").read_text())
        [answers] = [section for section in content["sections"] if section["kind"] == "claims"]
        assert all(row["seen"] in ("yes", "no", "not decidable") for row in answers["rows"])


def test_the_page_has_a_chapter_for_each(folder):
    text = (folder / "report.html").read_text()
    for experiment in EXPERIMENTS.values():
        assert html.escape(experiment.title) in text
    assert len(text) < 3_000_000


def test_nothing_is_left_to_run(folder, capsys):
    cli.main(["experiment", "all", "--size", "smoke", "--out", str(folder), "--dry-run"])
    assert "for the 0 runs that are left" in capsys.readouterr().out
