"""Searches: what is drawn and proposed, what is dropped and why, and that all of it continues where it stopped."""

import numpy as np
import pytest

import lexrl
from lexrl import store
from lexrl.engine import halving, proposals, search, slack_curve, sweep_files, swept
from lexrl.engine.values import Range
from lexrl.errors import InputError
from lexrl.order import parse

ORDER = "max signal_1 > max signal_2"
SMALL = {"env_kwargs": {"num_states": 4}, "num_log_points": 2, "eval_episodes": 3}
OVER = {"alpha": Range(1e-3, 1.0, log=True), "gamma": [0.8, 0.9]}


def test_random_combinations_are_within_their_ranges_and_decided_by_their_number():
    drawn = [search.draw(OVER, i) for i in range(200)]
    rates = np.array([float(one["alpha"]) for one in drawn])
    assert ((rates >= 1e-3) & (rates <= 1)).all()
    assert 0.4 < (rates < np.sqrt(1e-3)).mean() < 0.6  # evenly on a logarithmic scale
    assert {one["gamma"] for one in drawn} == {0.8, 0.9}
    assert drawn == [search.draw(OVER, i) for i in range(200)]


def test_rounds_double_in_length():
    assert halving.lengths(1000, 3) == [250, 500, 1000]
    with pytest.raises(InputError, match="cannot be halved 3 times"):
        halving.lengths(4, 4)
    with pytest.raises(InputError, match="rounds is 0"):
        halving.lengths(4, 0)


def seeds(*means, noise=0.01):
    return np.array(means) + noise * np.array([[-1.0], [0.0], [1.0], [0.5]])


def test_only_what_is_decidedly_worse_is_dropped():
    order = parse(ORDER)
    good, worse, bad = seeds(1, 0), seeds(0.5, 9), seeds(0, 99)
    dropped = halving.drop(np.stack([worse, good, bad, good]), order)
    assert set(dropped) == {0, 2}
    assert dropped[2].by in (1, 3)
    assert dropped[2].objective == 0
    assert dropped[2].probability >= 0.95
    # In doubt nothing is dropped, and a tolerance lets the second objective decide.
    assert halving.drop(np.stack([seeds(0, 0, noise=9), seeds(0.1, 0, noise=9)]), order) == {}
    tolerant = parse("max signal_1 ±2 > max signal_2")
    assert set(halving.drop(np.stack([good, worse, bad, good]), tolerant)) == {0, 3}
    missing = np.full_like(good, np.nan)
    assert halving.drop(np.stack([missing, good]), order) == {}
    assert halving.ranked(np.stack([missing, bad, good]), order) == [2, 1, 0]


@pytest.fixture(scope="module")
def algorithm():
    return lexrl.QLearning(min_alpha=0.0, evidence=None, guard=None, exploration="epsilon 0.5")


@pytest.fixture(scope="module")
def proposed(tmp_path_factory, algorithm):
    folder = tmp_path_factory.mktemp("optuna") / "out"
    given = {"over": OVER, "search": "optuna", "trials": 10, "rounds": 2, "seeds": 3, "confirm": 2} | SMALL
    given["total_timesteps"] = 2_000
    return lexrl.sweep(algorithm, "random-momdp", ORDER, out=folder, **given), given, folder


def test_optuna_proposes_and_its_storage_has_every_objective(proposed):
    optuna = pytest.importorskip("optuna")
    found, _, folder = proposed
    assert len(found.rows) == 10
    study = optuna.load_study(study_name="sweep", storage=f"sqlite:///{folder / proposals.STORAGE}")
    assert [len(trial.values) for trial in study.trials] == [2] * 10
    for row, trial in zip(found.rows, study.trials, strict=True):
        assert float(row.settings["alpha"]) == trial.params["alpha"]
        np.testing.assert_allclose(row.returns.mean(axis=0), trial.values)
    assert sum(row.best for row in found.rows) == pytest.approx(1)
    assert {row.steps for row in found.rows} <= {1000, 2000}
    assert all(("Dropped after 1,000 steps" in row.why) == (row.steps == 1000) for row in found.rows)


def test_a_search_that_was_stopped_continues_with_what_was_proposed(proposed, algorithm, monkeypatch):
    found, given, folder = proposed

    def refuse(*_):
        raise AssertionError("it was trained again")

    monkeypatch.setattr("lexrl.engine.engines.execute", refuse)
    again = lexrl.sweep(algorithm, "random-momdp", ORDER, out=folder, **given)
    assert [row.settings for row in again.rows] == [row.settings for row in found.rows]
    assert [row.best for row in again.rows] == [row.best for row in found.rows]


def test_what_it_cannot_do(tmp_path, algorithm):
    def attempt(**given):
        lexrl.sweep(algorithm, "random-momdp", ORDER, out=tmp_path / "out", **given, **SMALL)

    with pytest.raises(InputError, match="There is no search 'magic'"):
        attempt(over=OVER, search="magic")
    with pytest.raises(InputError, match="alpha has a range"):
        attempt(over=OVER)
    with pytest.raises(InputError, match="trials is 0"):
        attempt(over=OVER, search="random", trials=0)
    with pytest.raises(InputError, match="needs something to vary"):
        attempt(over={})
    with pytest.raises(InputError, match="its settings are"):
        attempt(over={"nothing": [1]})


def test_a_sweep_over_tolerances_draws_the_slack_curve_next_to_the_exact_one(tmp_path, algorithm):
    given = {"over": {"tolerance": ["0.5", "0"]}, "seeds": 3, "confirm": 2, "total_timesteps": 4_000} | SMALL
    found = lexrl.sweep(algorithm, "random-momdp", ORDER, out=tmp_path / "out", **given)
    content = store.read_json(tmp_path / "out" / swept.FILE)
    curve = slack_curve.points(found)
    assert [point.tolerance for point in curve] == [0, 0.5]
    assert curve[0].best == 0
    assert curve[1].best is not None
    assert curve[1].best >= 0
    # No policy gains more than the exact curve allows for what it gives up.
    assert all(point.given_up.middle >= -1e-9 for point in curve)
    rows = store.read_csv(tmp_path / "out" / sweep_files.CURVE)
    assert [row["tolerance"] for row in rows] == ["0.0", "0.5"]
    assert [row["tolerance"] for row in content["learned_slack"]] == [0, 0.5]
    assert (tmp_path / "out" / "learned-slack.png").is_file()
    assert (tmp_path / "out" / "settings.png").is_file()


def draws(folder, trials=10):
    """What optuna proposes, if the first combinations are the best."""
    return proposals.Optuna(OVER, trials, folder, [1, 1])


def results(found):
    """Each combination told what it reached: the later, the less."""
    for batch in found.batches():
        yield batch
        count = len(found.chosen)
        found.tell(range(count), -np.arange(2.0 * count).reshape(count, 2))


def test_what_was_proposed_amid_a_batch_is_continued_with_the_rest_of_it(tmp_path):
    """A killed process leaves whole proposals, and the others are those that it would have made."""
    optuna = pytest.importorskip("optuna")
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    whole = [each for batch in results(draws(tmp_path / "whole")) for each in batch]
    assert len({str(each) for each in whole}) > 5
    killed, real, left = draws(tmp_path / "killed"), optuna.study.Study.add_trial, 3

    def add(study, trial):
        nonlocal left
        if trial.state == optuna.trial.TrialState.RUNNING:
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
        real(study, trial)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optuna.study.Study, "add_trial", add)
        with pytest.raises(KeyboardInterrupt):
            next(results(killed))
    assert [each for batch in results(draws(tmp_path / "killed")) for each in batch] == whole


@pytest.mark.parametrize("content", [b"", b"x" * 5000, b"SQLite format 3\0" + bytes(2000)])
def test_a_damaged_storage_is_a_sentence(tmp_path, content):
    pytest.importorskip("optuna")
    (tmp_path / proposals.STORAGE).write_bytes(content)
    found = draws(tmp_path)
    if content:
        with pytest.raises(InputError, match=r"optuna.db' is damaged, or of another search .*makes it anew\."):
            next(found.batches())
    else:
        assert len(next(found.batches())) == proposals.BATCH  # SQLite begins with an empty file


def test_the_storage_of_another_search_is_a_sentence(tmp_path):
    pytest.importorskip("optuna")
    next(draws(tmp_path).batches())
    with pytest.raises(InputError, match="or of another search"):
        next(proposals.Optuna({"gamma": [0.5, 0.6]}, 8, tmp_path, [1, 1]).batches())
