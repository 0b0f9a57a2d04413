"""Verdicts on a page, and between two runs: folders are written out, nothing is trained."""

import pathlib
import re

import numpy as np
import pytest

from lexrl.cli import compare
from lexrl.errors import InputError
from lexrl.report import run_page, verdict_grid
from lexrl.report.run_folder import RunFolder, in_words, titles
from lexrl.verdict import Finding, Verdict


def finding(seed, objective, status):
    return Finding(seed, objective, status, "<the reference>", 2.0, 0.1, 1.0, 0.1, -1, -1.2, -0.8, 0.1, 0.0, 1.0, 500)


def folder(name, cost, reward, verdict=None, order="min cost > max reward", env="cart-safe"):
    about = {"title": f"{name} <title>", "order": order, "objectives": [["cost", -1], ["reward", 1]], "seeds": [0, 1],
             "env": {"name": env, "kwargs": {}}}  # fmt: skip
    summary = {"per_episode": {"cost": cost, "reward": reward}, "stopped": {}, "seconds": 1.0}
    judged = {} if verdict is None else {"verdict": verdict.as_json()}
    return RunFolder(pathlib.Path(name), about, summary | judged)


def verdict(*findings):
    return Verdict((0, 1), ("cost", "reward"), findings, "References.", "Method.", 500, 1.0, advice=("`more` steps",))


def block(*runs):
    return verdict_grid.block(verdict_grid.judged([(one.title, f"run-{i}", one) for i, one in enumerate(runs)]))


def test_a_row_for_each_objective_and_a_cell_for_each_seed():
    judged = verdict(finding(0, "cost", "kept"), finding(0, "cost", "violated"), finding(1, "cost", "kept"))
    page = block(folder("a", [1, 2], [3, 4], judged), folder("b", [1, 2], [3, 4]))
    assert re.findall(r"<td class=(kept|violated|undecided|none)", page) == ["violated", "kept"]
    assert page.count("scope=rowgroup") == 1  # a run without a verdict has none
    assert "violated in 1 of 2 seeds (seed 0)" in page
    assert "&lt;the reference&gt;" in page
    assert "<title>" not in page
    assert page.count("aria-label='violated'") >= 2  # a color is never alone


def test_a_seed_without_a_reference_is_a_dash():
    page = block(folder("a", [1, 2], [3, 4], verdict(finding(0, "cost", "kept"))))
    assert re.findall(r"<td class=(kept|violated|undecided|none)", page) == ["kept", "none"]


def test_runs_with_the_same_seeds_share_one_grid():
    both = verdict(finding(0, "cost", "kept"), finding(0, "reward", "kept"))
    page = block(folder("a", [1, 2], [3, 4], both), folder("b", [1, 2], [3, 4], both))
    assert page.count("<table ") == 1
    assert page.count("<tbody>") == 2
    assert page.count("<tr><th scope=rowgroup rowspan=2>") == 2
    assert "href='#run-1'" in page
    assert not re.search(r"<th[^>]*></th>", page)  # a column without a name says nothing to a screen reader
    assert "aria-label='seed 1'" in page


def test_no_verdict_no_block():
    one = folder("a", [1, 2], [3, 4])
    assert block(one) == ""
    assert verdict_grid.details(one) == ""
    assert block(RunFolder(one.path, one.about, None)) == ""


def test_details_have_every_finding_and_what_to_try():
    found = verdict_grid.details(folder("a", [1, 2], [3, 4], verdict(finding(0, "cost", "violated"))))
    assert "violated at objective &#x27;cost&#x27;" in found
    assert "Try: <code>more</code> steps" in found
    assert "Every finding" in found


def test_a_damaged_verdict_is_a_sentence():
    broken = folder("a", [1, 2], [3, 4])
    broken.summary["verdict"] = {"findings": 3}
    with pytest.raises(InputError, match="lexrl verify RUN"):
        verdict_grid.details(broken)


def test_two_runs_are_decided_at_the_first_objective_that_differs():
    good = folder("good", [1.0, 1.1, 0.9, 1.0], [5.0, 5.1, 4.9, 5.0])
    costly = folder("costly", [9.0, 9.1, 8.9, 9.0], [50.0, 51.0, 49.0, 50.0])
    for pair in ((good, costly), (costly, good)):
        status, sentence = in_words(*pair)
        assert status == "kept"
        assert sentence.startswith("good is lexicographically better, decided at objective 'cost': 1")
    # With a tolerance of 10 the costs are equal, and the reward decides.
    _, sentence = in_words(good, costly, np.array([10.0, 0.0]))
    assert sentence.startswith("costly is lexicographically better, decided at objective 'reward'")
    assert in_words(good, costly, np.array([10.0, 100.0]))[1].startswith("The two are equal within the tolerances")


def test_two_runs_that_cannot_be_told_apart():
    one, two = folder("one", [1.0, 3.0, 2.0], [5.0, 5.0, 5.0]), folder("two", [2.0, 1.0, 3.0], [5.0, 5.0, 5.0])
    status, sentence = in_words(one, two)
    assert (status, sentence.split(":")[0]) == ("undecided", "Not decidable with 3 and 3 seeds")
    alone = folder("alone", [1.0], [5.0])
    assert in_words(alone, two)[1] == "Not decidable: the runs need two or more seeds each."


def test_a_run_that_nothing_is_compared_with_has_no_empty_section():
    alone = RunFolder(
        pathlib.Path("a"),
        {"title": "a", "order": "cost <= 3", "objectives": [["cost", -1]], "seeds": [0], "env": {}},
        {"per_episode": {"cost": [1.0]}, "stopped": {}, "seconds": 1.0},
    )
    assert run_page.comparisons([alone]) == []


def test_runs_on_different_environments_are_not_ranked():
    """Each environment has its own plane and its own table; one alone needs no name."""
    runs = [folder(name, [1, 2], [3, 4], env=env) for name, env in (("a", "x"), ("b", "x"), ("c", "y"))]
    each = "".join(run_page.comparisons(runs))
    assert re.findall("<h2>(.*?)</h2>", each) == ["min cost &gt; max reward on x", "min cost &gt; max reward on y"]
    assert each.count("class=plot") == 2
    assert each.count("Data of Comparison as CSV") == 1
    assert "<h2>min cost &gt; max reward</h2>" in "".join(run_page.comparisons(runs[:2]))


def test_runs_on_different_environments_are_not_compared(monkeypatch):
    """Which of the two is better says nothing."""
    runs = {name: folder(name, [1, 2], [3, 4], env=env) for name, env in (("a", "x"), ("b", "y"))}
    monkeypatch.setattr("lexrl.cli.compare.run_folder.read", lambda path: runs[path.name])
    monkeypatch.setattr("lexrl.cli.compare.store.require_finished", lambda path: None)
    with pytest.raises(InputError, match="different environments and cannot be ranked: a is on x; b is on y"):
        compare.main(["a", "b"])


def test_runs_of_the_same_title_are_told_apart():
    same = [folder(name, [1, 2], [3, 4]) for name in ("a", "b")]
    for one in same:
        one.about["title"] = "lppo"
    assert titles([*same, folder("c", [1, 2], [3, 4])]) == ["lppo (a)", "lppo (b)", "c <title>"]
