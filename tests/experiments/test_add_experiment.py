"""An experiment is its file and one line in the catalog: one from outside is planned, run, written and reported."""

import json
import sys

import pytest

from lexrl import catalog, cli
from lexrl.experiments import find, names, speeds
from lexrl.report import page

MODULE = '''
"""Random actions on CartPole."""

from lexrl.algorithms.random import Random
from lexrl.experiments.schedule import Job, finals
from lexrl.experiments.summary import final_table
from lexrl.report.sections.text import Text

QUESTION = "How long does the pole stay up by itself?"


def runs(size):
    steps = {"smoke": 640, "laptop": 64_000, "paper": 640_000}[size]
    return [Job("cart-pole/random", "Random", Random(), "cart-pole", "max reward", 2, steps)]


def summarize(results):
    reward = finals(results[0]).mean()
    return [final_table("final", "What was reached", results), Text("In short", (f"Reward {reward:.3g}.",))]
'''


@pytest.fixture
def added(tmp_path, monkeypatch):
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "my_experiment.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    monkeypatch.setattr(catalog, "EXPERIMENTS", dict(catalog.EXPERIMENTS))
    monkeypatch.setattr(speeds, "_own", lambda: tmp_path / "speeds.json")
    catalog.add(catalog.EXPERIMENTS, catalog.Entry("by-itself", "my_experiment", "A pole by itself"))
    yield tmp_path / "out"
    sys.modules.pop("my_experiment", None)


def test_it_has_a_name(added):
    assert names()[-1] == "by-itself"
    assert find("by-itself").QUESTION.startswith("How long")


def test_it_is_planned(added, capsys):
    cli.main(["experiment", "by-itself", "--size", "smoke", "--out", str(added), "--dry-run"])
    said = capsys.readouterr().out
    assert "cart-pole/random" in said
    assert "640" in said
    assert not added.exists()


def test_it_is_run_and_reported(added):
    cli.main(["experiment", "by-itself", "--size", "smoke", "--out", str(added)])
    content = json.loads((added / "by-itself" / "experiment.json").read_text())
    assert content["title"] == "A pole by itself"
    assert [section["kind"] for section in content["sections"]] == ["table", "text"]
    cli.main(["report", str(added)])
    text = (added / "report.html").read_text()
    assert "A pole by itself" in text
    assert "How long does the pole stay up by itself?" in text
    assert (added / "by-itself" / "data" / "final.csv").is_file()
    assert [section.kind for section in page.read(added / "by-itself").sections] == ["table", "text"]


def test_an_unknown_one_is_refused_by_name(added, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["experiment", "by-magic", "--dry-run"])
    assert stopped.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert (
        "There is no experiment 'by-magic'; there are scaling, safety, slack, pb-settings, policies, by-itself" in said
    )
