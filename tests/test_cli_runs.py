"""What finished runs can be asked on the command line, and what is said of those that cannot."""

import json

import pytest

import lexrl
from lexrl import Networks, cli, store
from lexrl.run import disk, plan

ORDER = "min cost > max reward"
LEARNER = lexrl.LPPO(worlds=4, rollout=64, minibatches=2, networks=Networks(hidden=(8,)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("asked")
    for name, order in (("one", ORDER), ("two", ORDER), ("turned", "max reward > min cost")):
        seeds = [5, 6, 7] if name == "two" else [0, 1, 2]
        lexrl.train(LEARNER, "cart-safe", order, seeds=seeds, steps=1024, chunks=2, out=place / name)
    run = plan(LEARNER, "cart-safe", ORDER, 2, 1024, 4)
    disk.begin(store.new_folder(place / "stopped"), run)
    next(iter(disk.record(place / "stopped", run)))
    lexrl.train(lexrl.q_learning(), "random-momdp", "max signal_1", seeds=1, steps=100, chunks=1, out=place / "finite")
    return place


@pytest.fixture
def ask(folder, monkeypatch, capsys):
    """Run a command in the folder; what it printed in one line."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "200")

    def ask(*words, code=None):
        if code is None:
            cli.main(list(words))
        else:
            with pytest.raises(SystemExit) as stopped:
                cli.main(list(words))
            assert stopped.value.code == code
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return " ".join((captured.out + captured.err).split())

    return ask


def test_evaluate(ask, folder):
    told = ask("evaluate", "one", "--episodes", "3")
    assert "Greedy policies, 3 fresh episodes each" in told
    content = json.loads((folder / "one" / "evaluation.json").read_text())
    assert content["returns"].keys() == {"0", "1", "2"}
    assert len(content["returns"]["0"]["cost"]) == 3
    result = lexrl.load(folder / "one").evaluate(3)
    assert content["returns"]["1"]["reward"] == result.returns[1, :, 1].tolist()
    assert "with their randomness" in ask("evaluate", "one", "--episodes", "2", "--stochastic")
    assert (folder / "one" / "evaluation-stochastic.json").exists()


def test_compare(ask):
    told = ask("compare", "one", "two")
    assert "min cost" in told
    assert "against the one above" in told


@pytest.mark.parametrize(("ending", "begin"), [("gif", b"GIF8"), ("png", b"\x89PNG"), ("mp4", b"\x00\x00\x00")])
def test_watch(ask, folder, ending, begin):
    told = ask("watch", "two", "--seed", "6", "--out", f"film.{ending}")
    assert "Seed 6, episode 0" in told
    assert (folder / f"film.{ending}").read_bytes().startswith(begin)


def test_report(ask, folder):
    assert "report.html" in ask("report", ".")
    assert (folder / "report.html").read_text().startswith("<!doctype html>")


def test_check(ask):
    told = ask("check", "q-learning", "grid-nav", "--order", ORDER)
    assert "Theorem 1" in told
    assert "It promises" in told
    assert "holds" in told


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["compare", "one"], "1 run cannot be compared; give two or more folders"),
        (["compare", "one", "turned"], "different orders, so that none is better: one has 'min cost > max reward'"),
        (["compare", "one", "stopped"], "is not finished; `lexrl resume stopped` goes on with it"),
        (["compare", "one", "nothing"], "There is no folder 'nothing'"),
        (["evaluate", "stopped"], "is not finished"),
        (["evaluate", "one", "--episodes", "0"], "0 episodes tell nothing"),
        (["evaluate", "."], "there are runs in it: finite, one, stopped, turned, two"),
        (["resume", "one"], "is finished; look at it with `lexrl evaluate one`"),
        (["watch", "one", "--seed", "9"], "The run has no seed 9; it has 0, 1, 2"),
        (["watch", "one", "--out", "film.avi"], "cannot be written as 'film.avi'; give a name that ends in"),
        (["watch", "one", "--episode", "-1"], "Episode -1 cannot be"),
        (["watch", "finite"], "FiniteWorld cannot be drawn"),
        (["report", "nothing"], "There is no folder 'nothing'"),
        (["check", "ppo", "cart-safe", "--order", "max reward"], "There is no theorem here for PPO"),
        (["train", "lppo", "gym:Nothing-v9"], "Gymnasium cannot make 'Nothing-v9'"),
        (
            ["train", "lppo", "gym:CartPole-v1", "--order", "min cost"],
            "names 'cost', but the signals here are 'reward'",
        ),
    ],
)
def test_what_cannot_be_done_is_one_sentence(ask, words, sentence):
    assert sentence in ask(*words, code=2)
