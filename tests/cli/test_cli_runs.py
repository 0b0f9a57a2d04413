"""What finished runs can be asked on the command line, and what is said of those that cannot."""

import contextlib
import json
import pathlib
import shutil

import pytest

import lexrl
from lexrl import Networks, cli, locks, store
from lexrl.cli.console import print_json
from lexrl.runs import execute, plan

ORDER = "min cost > max reward"
LEARNER = lexrl.LPPO(num_envs=4, num_steps=64, num_minibatches=2, networks=Networks(hidden_sizes=(8,)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("asked")
    for name, seeds in (("one", [0, 1, 2]), ("two", [5, 6, 7])):
        lexrl.train(LEARNER, "cart-safe", ORDER, seeds=seeds, total_timesteps=1024, num_log_points=2, out=place / name)
    idle, turned = lexrl.Random(), "max reward > min cost"
    lexrl.train(idle, "cart-safe", turned, seeds=3, total_timesteps=1024, num_log_points=2, out=place / "turned")
    run = plan(LEARNER, "cart-safe", ORDER, 3, 1024, 4)
    results = execute(run, store.new_folder(place / "stopped"))
    next(results)
    results.close()
    lexrl.train(
        lexrl.QLearning(),
        "random-momdp",
        "max signal_1",
        seeds=1,
        total_timesteps=100,
        num_log_points=1,
        out=place / "finite",
    )
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
    assert "Stochastic policies" in ask("evaluate", "one", "--episodes", "2", "--no-deterministic")
    assert (folder / "one" / "evaluation-stochastic.json").exists()


def test_compare(ask):
    told = ask("compare", "one", "two")
    assert "min cost" in told
    assert "against the one above" in told


@pytest.mark.parametrize(("ending", "begin"), [("gif", b"GIF8"), ("png", b"\x89PNG"), ("mp4", b"\x00\x00\x00")])
def test_video(ask, folder, ending, begin):
    told = ask("video", "two", "--seed", "6", "--out", f"video.{ending}")
    assert "Seed 6, episode 0" in told
    assert (folder / f"video.{ending}").read_bytes().startswith(begin)


def test_report(ask, folder):
    assert "report.html" in ask("report", ".")
    assert (folder / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("evaluate one --episodes 2", {"episodes", "per_episode", "file"}),
        ("verify one --episodes 20", {"folder", "status"}),
        ("compare one two", {"ranking"}),
        ("video one --out episode.png", {"file", "seed", "episode", "steps", "returns"}),
        ("report one --out page.html", {"file", "left_out"}),
        ("solve random-momdp --num-states 3 --order signal_1 --out solved", {"folder", "returns"}),
        ("check q-learning random-momdp --num-states 3 --order signal_1", set()),
        ("list", set()),
        ("experiment scaling --size smoke --dry-run", {"folder", "runs", "left"}),
    ],
)
def test_results_are_also_json(folder, monkeypatch, capsys, line, keys):
    """One object on the standard output, and nothing else; codes are those without --json."""
    monkeypatch.chdir(folder)
    with contextlib.suppress(SystemExit):
        cli.main([*line.replace("signal_1", "max\tsignal_1").split(" "), "--json"])
    assert keys <= json.loads(capsys.readouterr().out).keys()


def test_what_is_not_finite_is_null(capsys):
    """NaN is no JSON: a combination of a sweep that gives NaN has a row, too."""
    print_json({"rows": [{"cost": float("nan")}, {"cost": 1.5}], "best": (float("inf"), "x")})
    assert json.loads(capsys.readouterr().out, parse_constant=None) == {
        "rows": [{"cost": None}, {"cost": 1.5}], "best": [None, "x"],
    }  # fmt: skip


def test_every_command_that_prints_results_has_json():
    snapshots = pathlib.Path(__file__).parent / "help"
    for command in cli.COMMANDS:
        texts = [path.read_text() for path in snapshots.glob(f"{command}*.txt")]
        assert any("--json" in text for text in texts), command


def test_a_run_that_cannot_be_read_does_not_keep_the_others_from_being_resumed(ask, folder, tmp_path):
    for name in ("stopped", "finite", "one"):
        shutil.copytree(folder / name, tmp_path / name)
    (tmp_path / "finite" / "summary.json").unlink()
    (tmp_path / "finite" / "run.json").write_text("{")
    told = ask("resume", str(tmp_path), code=2)
    assert "2 of 3 runs" in told
    assert "1 runs failed" in told
    assert "run.json' is damaged: it is not JSON" in told
    assert store.is_finished(tmp_path / "stopped")


@pytest.mark.parametrize("flags", ["--actor harmful:run", "--optimizer harmful:run", "--over actor=harmful:run"])
def test_the_command_of_a_sweep_imports_nothing(ask, tmp_path, monkeypatch, flags):
    """It is read from a file when the sweep is resumed."""
    (tmp_path / "harmful.py").write_text("raise SystemExit('this was run')")
    monkeypatch.syspath_prepend(tmp_path)
    command = f"lexrl sweep lppo cart-safe --over gamma=0.9,0.99 {flags}"
    store.write_json(tmp_path / "sweep" / "sweep.json", {"command": command})
    assert "may not name code" in ask("resume", str(tmp_path / "sweep"), code=2)


def test_verify_holds_the_folder(ask, folder):
    """Otherwise it might write the summary of a run that was trained further meanwhile."""
    with locks.hold(folder / "two"):
        assert "is being worked on by" in ask("verify", "two", "--episodes", "20", code=2)
    assert not (folder / "two" / locks.FILE).exists()


def test_check(ask):
    told = ask("check", "q-learning", "grid-nav", "--order", ORDER)
    assert "Theorem 1" in told
    assert "It promises" in told
    assert "holds" in told


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["compare", "one"], "Comparing takes two or more folders, but 1 was given"),
        (["compare", "one", "turned"], "different orders and cannot be ranked: one has 'min cost > max reward'"),
        (["compare", "one", "stopped"], "is not finished; `lexrl resume stopped` continues it"),
        (["compare", "one", "nothing"], "There is no folder 'nothing'"),
        (["evaluate", "stopped"], "is not finished"),
        (["evaluate", "one", "--episodes", "0"], "evaluation episodes is 0"),
        (["evaluate", "."], "there are runs in it: finite, one, stopped, turned, two"),
        (["resume", "one"], "is finished; `lexrl evaluate one` evaluates it again"),
        (["video", "one", "--seed", "9"], "The run has no seed 9; it has 0, 1, 2"),
        (["video", "one", "--out", "video.avi"], "cannot be written as 'video.avi'; give a name that ends in"),
        (["video", "one", "--episode", "-1"], "The episode is -1"),
        (["video", "finite"], "FiniteEnv cannot be rendered"),
        (["report", "nothing"], "There is no folder 'nothing'"),
        (["check", "ppo", "cart-safe", "--order", "max reward"], "There is no theorem about PPO here"),
        (["train", "lppo", "gym:Nothing-v9"], "Gymnasium cannot make 'Nothing-v9'"),
        (
            ["train", "lppo", "gym:CartPole-v1", "--order", "min cost"],
            "names 'cost', but the signals here are 'reward'",
        ),
    ],
)
def test_what_cannot_be_done_is_one_sentence(ask, words, sentence):
    assert sentence in ask(*words, code=2)


def written(text):
    return lambda path: path.write_text(text)


def changed(**new):
    """Other values, with checksums that are right; None removes one."""

    def change(path):
        content = store.read_json(path) | new
        content = {key: value for key, value in content.items() if value is not None}
        if "hash" in content:
            content["hash"] = store.deciding_hash(content)
        store.write_json(path, content)

    return change


def flipped(path):
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


def truncated(path):
    path.write_bytes(path.read_bytes()[:-100])


def without_last_line(path):
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


EVERYONE = ("evaluate", "video", "compare", "report", "resume")
READERS = ("evaluate", "video", "compare", "report")
PLAYERS = ("evaluate", "video")
POLICY = "policies/seed-1.safetensors"
DAMAGE = {
    "a flipped bit in a policy": (POLICY, flipped, READERS, "is damaged, or of another run"),
    "a policy cut off": (POLICY, truncated, READERS, "is damaged, or of another run"),
    "no policy": (POLICY, lambda path: path.unlink(), PLAYERS, "There is no file"),
    "no JSON": ("run.json", written("{"), EVERYONE, "is damaged: it is not JSON"),
    "no text": ("run.json", lambda path: path.write_bytes(b"\xff\xfe\x00"), EVERYONE, "is damaged: it is not JSON"),
    "a list": ("run.json", written("[]"), EVERYONE, "is damaged: it holds list"),
    "another program's": ("run.json", written('{"name": "left-pad"}'), EVERYONE, "is from another program"),
    "a later format": (
        "run.json",
        changed(format=99),
        EVERYONE,
        "has format 99, and this version of lexrl reads format 2",
    ),
    "an earlier format": (
        "run.json",
        changed(format=1),
        EVERYONE,
        "has format 1, and this version of lexrl reads format 2; use the version that wrote it, or run it again.",
    ),
    "no steps": ("run.json", changed(total_timesteps=None), EVERYONE, "is damaged: it has no 'total_timesteps'"),
    "steps in words": (
        "run.json",
        changed(total_timesteps="many"),
        EVERYONE,
        "is damaged: its 'total_timesteps' is 'many'",
    ),
    "seeds in words": ("run.json", changed(seeds=["one"]), EVERYONE, "is damaged: its 'seeds' is ['one']"),
    "no signs": (
        "run.json",
        changed(objectives=["cost"]),
        EVERYONE,
        "is damaged: its 'objectives' are not names with a sign each",
    ),
    "other settings": (
        "run.json",
        changed(algorithm={"kind": "lppo", "speed": 3}),
        (*PLAYERS, "resume"),
        "The settings in the file do not fit",
    ),
    "a summary that is no JSON": ("summary.json", truncated, READERS, "is damaged: it is not JSON"),
    "no values": ("summary.json", changed(per_episode=None), READERS, "is damaged: it has no 'per_episode'"),
    "no reward": ("summary.json", changed(per_episode={"cost": [0, 1, 2]}), READERS, "is damaged: it has no 'reward'"),
    "two of three": (
        "summary.json",
        changed(per_episode={"cost": [0, 1], "reward": [0, 1, 2]}),
        READERS,
        "is damaged: 'cost' does not have one number for each seed",
    ),
    "nothing on stops": ("summary.json", changed(stopped=None), READERS, "is damaged: it has no 'stopped'"),
    "a stranger's stop": ("summary.json", changed(stopped={"8": "NaN."}), READERS, "is damaged: the run has no seed 8"),
    "no time": ("summary.json", changed(seconds=None), READERS, "is damaged: it has no 'seconds'"),
    "a summary to go on from": ("summary.json", truncated, ("resume",), "is finished"),
    "curves cut off": (
        "metrics.csv",
        without_last_line,
        READERS,
        "is damaged, or of another run",
    ),
    "no curves": ("metrics.csv", lambda path: path.unlink(), PLAYERS, "There is no file"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_one_sentence(ask, folder, tmp_path, what):
    name, damage, commands, sentence = DAMAGE[what]
    for command in commands:
        place = tmp_path / command / "run"
        shutil.copytree(folder / "one", place)
        damage(place / name)
        if command == "resume" and name != "summary.json":
            (place / "summary.json").unlink()
        words = {"compare": [place, "two"], "report": [place.parent]}.get(command, [place])
        told = ask(command, *map(str, words), code=2)
        assert told.startswith("lexrl: ")
        assert (f"{name}' {sentence}" if sentence.startswith("is damaged") else sentence) in told
