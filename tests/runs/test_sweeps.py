"""Sweeps: what is trained together, which settings are the best, and that fresh seeds confirm them."""

import json
import os
import shlex
import types

import numpy as np
import pytest

import lexrl
from lexrl import cli, store
from lexrl.engine import sweep_figures, sweep_files, sweeps, values
from lexrl.errors import InputError
from lexrl.order import parse
from lexrl.report import folder as reports
from lexrl.report.picture import drawing

ORDER = "max signal_1 > max signal_2"
SMALL = {"env_kwargs": {"num_states": 4}, "num_log_points": 2, "eval_episodes": 3}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=0,0.01", ("a", ["0", "0.01"])),
        ("rate=1e-4..1e-2:log:3", ("rate", ["0.0001", "0.001", "0.01"])),
        ("rate=0..1:lin:5", ("rate", ["0", "0.25", "0.5", "0.75", "1"])),
        ("hidden-sizes=32x32,64x64", ("hidden-sizes", ["32x32", "64x64"])),
        ("rate=1e-4..1e-2:log", ("rate", values.Range(1e-4, 1e-2, log=True))),
        ("rate=0...5", ("rate", values.Range(0, 0.5))),
    ],
)
def test_values_as_text(text, expected):
    assert values.parse(text) == expected


@pytest.mark.parametrize(
    "text", ["", "a", "a=", "=1", "a=0..1:log:3", "a=1..2:lin:1", "a=1..2:lin:99999999", "a=1..1e999:lin:2"]
)
def test_text_that_is_no_values(text):
    with pytest.raises(InputError, match="cannot be read"):
        values.parse(text)


@pytest.mark.parametrize("text", ["a=2..1", "a=0..1:log", "a=1..1e999"])
def test_text_that_is_no_range(text):
    with pytest.raises(InputError, match="it must rise"):
        values.parse(text)


def test_settings_of_parts_go_by_their_own_names():
    algorithm = values.changed(lexrl.LPPO(), {"hidden_sizes": "8x4", "learning_rate": "0.5", "num_envs": "3"})
    assert algorithm.networks.hidden_sizes == (8, 4)
    assert algorithm.num_envs == 3
    assert float(algorithm.learning_rate(1)) == 0.5
    with pytest.raises(InputError, match="LPPO has no setting 'nothing'; its settings are"):
        values.changed(lexrl.LPPO(), {"nothing": 1})
    with pytest.raises(InputError, match="num_envs cannot be 'many'"):
        values.changed(lexrl.LPPO(), {"num_envs": "many"})
    with pytest.raises(InputError, match=r"networks has settings of its own and cannot be '1'.*: hidden_sizes"):
        values.changed(lexrl.LPPO(), {"networks": "1"})


def test_floats_are_trained_together_and_structure_apart():
    settings = values.grid({"alpha": [0.1, 0.2], "exploration": ["epsilon 0.1", "softmax 0.1"], "gamma": [0.9, 0.8]})
    each = [values.changed(lexrl.QLearning(), one) for one in settings]
    assert values.groups(each) == [[0, 1, 4, 5], [2, 3, 6, 7]]


def probabilities(*returns, order=ORDER):
    return sweeps.best_probabilities(np.array(returns, float), parse(order))


def test_the_best_is_chosen_lexicographically():
    noise = np.array([-0.01, 0.0, 0.01])
    low, high = np.stack([noise, noise + 9], axis=1), np.stack([noise + 1, noise], axis=1)
    assert probabilities(low, high).tolist() == [0, 1]
    assert probabilities(low, high, order="max signal_1 ±2 > max signal_2").tolist() == [1, 0]
    assert probabilities(low, high, order="signal_1 >= -5 > max signal_2").tolist() == [1, 0]
    assert probabilities(low, high, order="min signal_1 > max signal_2").tolist() == [1, 0]
    assert probabilities(low, low).sum() == pytest.approx(1)


def test_noise_does_not_win():
    """Once, the combination whose cost was 5.5 for one of three seeds won: resamples went far below 0."""
    order = "min cost > max reward"
    good, careful = [[0.0, 100], [0.1, 100], [0, 100]], [[0.0, 20], [0, 50], [0, 50]]
    noisy, worse = [[0.0, 20], [5.5, 20], [0.1, 30]], [[0.2, 30], [0, 40], [0, 40]]
    found = probabilities(good, careful, noisy, worse, order=order)
    assert found[2] < 0.01
    assert found[0] == pytest.approx(8 / 27, abs=0.03)  # as often as its costs are 0, and it has all the reward
    assert found[:2].sum() > 0.85


def test_words_of_the_best_settings():
    each = ("softmax 0.1", "32x32", "0.1", (8, 4), "x", 0.5)
    words = [["softmax 0.1"], ["32", "32"], ["0.1"], ["8", "4"], ["x"], ["0.5"]]
    assert [sweep_files._words(one) for one in each] == words


def test_nan_cannot_win():
    good = np.array([[1.0, 1], [2, 2]])
    assert probabilities(np.full((2, 2), np.nan), good).tolist() == [0, 1]
    assert probabilities(np.full((2, 2), np.nan)).tolist() == [0]


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Learning rates: none at all, a good one, and one that overflows."""
    folder = tmp_path_factory.mktemp("sweep") / "out"
    algorithm = lexrl.QLearning(min_alpha=0.0, evidence=None, guard=None, exploration="epsilon 0.5")
    given = {"over": {"alpha": [0.0, 0.2, 1e30]}, "seeds": 3, "confirm": 2, "total_timesteps": 3000} | SMALL
    return lexrl.sweep(algorithm, "random-momdp", ORDER, out=folder, **given), algorithm, folder, given


def test_a_sweep(swept):
    found, _, folder, _ = swept
    assert [row.settings["alpha"] for row in found.rows] == [0.0, 0.2, 1e30]
    assert found.rows[2].best == 0
    assert "NaN or infinity" in found.rows[2].why
    assert found.winner == 1
    assert [path.name for path in (folder / "rounds" / "0-0").iterdir()] == ["0"]
    assert "NaN or infinity" in store.read_csv(folder / "sweep.csv")[2]["why"]
    content = json.loads((folder / "sweep.json").read_text(), parse_constant=pytest.fail)  # NaN would be no JSON
    assert content["best"] == {"alpha": "0.2"}
    assert content["rows"][2]["signal_1"] is None
    assert "probability of being best" in reports.page(folder)
    searched = store.read_run(folder / "rounds" / "0-0" / "0")["seeds"]
    assert set(found.confirmation.about["seeds"]).isdisjoint(searched)
    assert len(searched) == len(set(searched)) == 9


def test_each_combination_has_the_numbers_of_a_run_of_its_own(swept):
    found, algorithm, _, _ = swept
    alone = lexrl.train(
        values.changed(algorithm, {"alpha": 0.2}), "random-momdp", ORDER, seeds=[3, 4, 5], total_timesteps=3000,
        env_kwargs={"num_states": 4}, num_log_points=2,
    )  # fmt: skip
    np.testing.assert_array_equal(alone.evaluate(3).returns.mean(axis=1), found.rows[1].returns)


def test_again_nothing_is_trained_and_another_sweep_is_refused(swept, monkeypatch):
    found, algorithm, folder, given = swept

    def refuse(*_):
        raise AssertionError("it was trained again")

    monkeypatch.setattr("lexrl.engine.engines.execute", refuse)
    again = lexrl.sweep(algorithm, "random-momdp", ORDER, out=folder, **given)
    assert [row.best for row in again.rows] == [row.best for row in found.rows]
    with pytest.raises(InputError, match="holds another sweep"):
        lexrl.sweep(algorithm, "random-momdp", ORDER, out=folder, **(given | {"over": {"alpha": [0.3]}}))


def test_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [
        "sweep", "random", "random-momdp", "--num-states", "4", "--order", ORDER, "--over", "num_envs=1,2",
        "--seeds", "2", "--confirm", "2", "--total-timesteps", "64", "--eval-episodes", "2", "--num-log-points", "1",
    ]  # fmt: skip
    cli.main([*words, "--json"])
    content = json.loads(capsys.readouterr().out)
    assert content["best"]["num_envs"] in ("1", "2")
    expected = ["train", "random", "random-momdp", "--num-states", "4", "--order", ORDER, "--total-timesteps", "64"]
    expected += ["--eval-episodes", "2", "--num-log-points", "1", "--num-envs", content["best"]["num_envs"]]
    assert shlex.split(content["train_again"])[1:] == expected
    rows = store.read_csv(tmp_path / content["folder"] / "sweep.csv")
    assert [row["num_envs"] for row in rows] == ["1", "2"]
    assert len(list((tmp_path / content["folder"] / "rounds" / "0-0").iterdir())) == 2
    page = reports.page(tmp_path / content["folder"])
    assert "probability of being best" in page
    assert "<div class='pictures wide'>" in page
    assert "<summary>2 runs, all finished</summary>" in page
    assert page.count("1 of 2 combinations") == 2  # in the list of runs: they are no chapters of their own
    assert "lexrl train random" in page
    cli.main(words)
    assert "Confirmed by fresh seeds" in capsys.readouterr().out
    cli.main([*words, "--over", "num_envs=1,2", "seeds=2", "--json"])  # also there, as if it were varied
    assert json.loads(capsys.readouterr().out)["best"] == content["best"]
    cli.main(["resume", content["folder"], "--json"])
    assert json.loads(capsys.readouterr().out)["best"] == content["best"]


def test_links_in_the_folder_of_a_sweep_are_refused(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "rounds").symlink_to(precious)
    with pytest.raises(InputError, match="is a link to"):
        lexrl.sweep("random", "random-momdp", ORDER, over={"num_envs": [1]}, out=tmp_path / "out", **SMALL)
    assert list(precious.iterdir()) == []


def test_axes_have_numbers_that_can_be_read():
    """The texts of figures are not markup, so that those of logarithmic axes would be."""
    rows = tuple(
        sweeps.Row({"rate": rate, "ent_coef": coef}, np.array([[1.0, 2.0], [2.0, 3.0]]), 0.0, "")
        for rate in ("0.0001", "0.001", "0.01")
        for coef in ("0", "0.01")
    )
    with drawing(8, 4) as figure:
        for k, name in enumerate(("rate", "ent_coef")):
            axes = figure.add_subplot(1, 2, k + 1)
            sweep_figures._panel(axes, types.SimpleNamespace(rows=rows, winner=1), name, 0)
        figure.draw_without_rendering()
    texts = [[label.get_text() for label in axes.get_xticklabels()] for axes in figure.axes]
    assert {"0.0001", "0.001", "0.01"} <= set(texts[0])
    assert texts[1] == ["0", "0.01"]
    assert all(axes.get_xlim()[1] < 0.02 and axes.get_ylim()[0] < 1.5 < axes.get_ylim()[1] for axes in figure.axes)
    assert sweep_figures._beside(["1", "2", "1", "1"]) == [-0.02, 0.0, 0.0, 0.02]


def test_two_sweeps_at_once(tmp_path):
    """The second of two in one folder does not change what the first one varies."""
    given = {"seeds": 2, "confirm": 2, "total_timesteps": 64, "out": tmp_path / "out"} | SMALL

    def another(*_, **__):
        with pytest.raises(InputError, match=f"being worked on by .* process {os.getpid()}"):
            lexrl.sweep("random", "random-momdp", ORDER, over={"num_envs": [3, 4]}, **given)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeps._Looking, "all_rows", another)
        with pytest.raises(KeyboardInterrupt):
            lexrl.sweep("random", "random-momdp", ORDER, over={"num_envs": [1, 2]}, **given)
    assert store.read_json(tmp_path / "out" / "sweep.json")["over"] == {"num_envs": ["1", "2"]}
    assert not (tmp_path / "out" / "lock").exists()


def test_a_sweep_that_was_killed_before_it_wrote_anything(tmp_path):
    (tmp_path / "lock").touch()
    (tmp_path / ".sweep.json.x1y2z3_4").write_text("{")
    sweeps._require_place(tmp_path)
    (tmp_path / "letter.txt").touch()
    with pytest.raises(InputError, match="is in use"):
        sweeps._require_place(tmp_path)
