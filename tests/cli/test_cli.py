"""The command line, driven as a user would: the real program in a process of its own."""

import csv
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from lexrl import cli
from lexrl.catalog import ALGORITHMS, ENVS
from lexrl.cli.execution import stopping

PROGRAM = [sys.executable, "-m", "lexrl"]
GRID = ["grid-nav", "--size", "5", "--map-seed", "3"]
ORDER = ["--order", "min cost > max reward"]


def lexrl(*arguments, cwd, width="100"):
    environment = os.environ | {"COLUMNS": width, "TERM": "dumb"}
    return subprocess.run([*PROGRAM, *arguments], cwd=cwd, capture_output=True, text=True, env=environment, timeout=300)


def test_what_draws_waits_until_it_is_needed():
    """Half a second of every command otherwise."""
    asked = "import sys, lexrl.cli; print([name for name in ('matplotlib', 'scipy.optimize') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii"])
def test_what_the_terminal_cannot_show_is_escaped(tmp_path, encoding):
    """The name of a folder need not be text, and a terminal need not know the symbols of a verdict."""
    words = ["experiment", "scaling", "--size", "smoke", "--dry-run", "--out", os.fsdecode(b"odd\xff")]
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run([*PROGRAM, *words], cwd=tmp_path, capture_output=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    assert rb"odd\udcff" in done.stdout


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("solve")
    return lexrl("solve", *GRID, *ORDER, "--gamma", "0.95", cwd=folder), folder / "runs" / "solve"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train")
    options = [
        "--seeds",
        "3",
        "--total-timesteps",
        "2e4",
        "--gamma",
        "0.95",
        "--tolerance",
        "0.02",
        "1%",
        "--alpha",
        "n^-0.7",
    ]
    return lexrl(
        "train", "expected-sarsa", *GRID, *ORDER, *options, cwd=folder
    ), folder / "runs" / "expected-sarsa-grid-nav"


class TestSolve:
    def test_prints_returns_certificate_map_and_curve(self, solved):
        done, _ = solved
        assert done.returncode == 0, done.stderr
        for part in ("1. min cost", "2. max reward", "Bellman residual", "What slack on cost buys", "G"):
            assert part in done.stdout
        assert any(arrow in done.stdout for arrow in "↑→↓←")

    def test_leaves_pictures_and_numbers(self, solved):
        _, folder = solved
        assert {path.name for path in folder.iterdir()} == {
            "solution.json", "policy.csv", "map.png", "critical-slack.png", "critical-slack.csv",
        }  # fmt: skip
        assert (folder / "map.png").read_bytes().startswith(b"\x89PNG")
        summary = json.loads((folder / "solution.json").read_text())
        rows = list(csv.DictReader((folder / "critical-slack.csv").open()))
        assert float(rows[0]["cost"]) == pytest.approx(summary["returns"]["cost"], rel=1e-6)
        rewards = [float(row["reward"]) for row in rows]
        assert rewards == sorted(rewards)
        assert rewards[-1] > rewards[0] + 1

    def test_a_folder_in_use_is_left_alone(self, solved):
        _, folder = solved
        before = (folder / "solution.json").read_bytes()
        again = lexrl("solve", *GRID, "--order", "max reward", cwd=folder.parent.parent)
        assert again.returncode == 0, again.stderr
        assert (folder / "solution.json").read_bytes() == before
        assert (folder.parent / "solve-2" / "solution.json").exists()


class TestTrain:
    def test_tells_how_it_goes_in_plain_lines(self, trained):
        done, _ = trained
        assert done.returncode == 0, done.stderr
        lines = [line for line in done.stdout.splitlines() if " steps  " in line]
        assert len(lines) == 11
        assert " s" in lines[0].split("compiled and started in ")[1]
        assert all(" steps/s  " in line for line in lines[1:])
        assert "20,000 steps" in lines[-1]
        assert "optimum" in done.stdout

    def test_leaves_curves_and_numbers(self, trained):
        _, folder = trained
        assert {path.name for path in folder.iterdir()} == {
            "run.json", "metrics.csv", "summary.json", "policies", "curves.png", "map.png", "final.safetensors",
        }  # fmt: skip
        summary = json.loads((folder / "summary.json").read_text())
        assert summary["seeds"] == [0, 1, 2]
        assert len(summary["per_episode"]["cost"]) == 3
        rows = list(csv.DictReader((folder / "metrics.csv").open()))
        assert {row["metric"] for row in rows} >= {"episode_return", "td_error", "episode_length"}
        assert max(int(row["step"]) for row in rows) == 20_000


def test_list_names_everything(tmp_path):
    done = lexrl("list", cwd=tmp_path)
    assert done.returncode == 0
    for name in (
        "q-learning",
        "sarsa",
        "expected-sarsa",
        "double-q",
        "gabor",
        "grid-nav",
        "random-momdp",
        "reward, cost",
    ):
        assert name in done.stdout


def test_list_shows_brackets(monkeypatch, capsys):
    """They are no markup: the name of an extra was left out of `pip install 'lexrl[intersection]'`."""
    row = {"name": "intersection", "signals": ["try pip install 'lexrl[intersection]'."]}
    monkeypatch.setattr("lexrl.cli.list.content", lambda: {"environments": [row]})
    cli.main(["list"])
    assert "'lexrl[intersection]'" in capsys.readouterr().out


@pytest.mark.parametrize("name", ENVS)
def test_builders_say_what_they_build(name):
    assert ENVS[name].kind() is type(ENVS[name].make())


def test_list_as_json(tmp_path):
    done = lexrl("list", "--json", cwd=tmp_path)
    content = json.loads(done.stdout)
    assert [one["name"] for one in content["algorithms"]] == list(ALGORITHMS)
    assert {one["name"]: one["signals"] for one in content["environments"]}["cart-safe"] == ["reward", "cost"]
    assert "safety" in [one["name"] for one in content["experiments"]]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["train", "--out", "ppo", "lppo", "cart-safe"], "needs the algorithm and the environment, not '--out'"),
        (["train", "lppo", "--out", "ppo", "cart-safe"], "needs the environment after the algorithm, not '--out'"),
        (["train"], "needs the algorithm and the environment, as in `lexrl train lppo cart-safe`; flags come after"),
        (["train", "cart-safe", "lppo"], "There is no algorithm 'cart-safe'; there are q-learning"),
        (["train", "lppo", "cartsafe"], "There is no environment 'cartsafe'; there are cart-safe"),
        (["train", "lpo", "cart-safe"], "Did you mean 'lppo'?"),
        (["train", "lppo", "cartsafe"], "Did you mean 'cart-safe'?"),
        (["trian", "lppo", "cart-safe"], "Did you mean 'train'?"),
        (["train", "lppo", "cart-safe", "--preset", "best"], "invalid choice: 'best'"),
        (["train", "sarsa", "grid-nav", "--preset", "paper"], "There is no preset 'paper' for sarsa on grid-nav"),
        (["solve", "--order", "min cost", "grid-nav"], "needs the environment, not '--order'"),
        (["experiment", "--size", "smoke", "safety"], "needs a name, not '--size'"),
        (["experiment", "safty"], "There is no experiment 'safty'; there are scaling, safety"),
        (["watch", "run"], "There is no command 'watch'; there are train, resume"),
    ],
)  # fmt: skip
def test_names_come_first(words, sentence, tmp_path, monkeypatch, capsys):
    """Whatever follows a flag is that flag's value: never a name, and never another preset."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        cli.main(words)
    assert stopped.value.code == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_a_flags_value_may_be_a_name(tmp_path, monkeypatch, capsys):
    """The preset is that of the names at their positions."""
    monkeypatch.chdir(tmp_path)
    cli.main(["train", "random", "cart-safe", "--out", "ppo", "--total-timesteps", "64", "--seeds", "1"])
    about = json.loads((tmp_path / "ppo" / "run.json").read_text())
    assert (about["name"], about["preset"], about["order"]) == ("random", "tuned", "min cost > max reward")
    assert about["command"] == "lexrl train random cart-safe --out ppo --total-timesteps 64 --seeds 1"
    assert capsys.readouterr().out.splitlines()[0] == "random on cart-safe: min cost > max reward (tuned preset)"


def test_any_algorithm_on_any_environment(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cli.main(
        [
            *("train", "la2c", "gym:CartPole-v1", "--order", "max reward", "--total-timesteps", "300", "--seeds", "1"),
            *("--hidden-sizes", "8", "--num-envs", "2"),
        ]
    )
    assert "la2c on gym:CartPole-v1: max reward (default settings)" in capsys.readouterr().out
    about = json.loads((tmp_path / "runs" / "la2c-gym-CartPole-v1" / "run.json").read_text())
    assert about["env"] == {"name": "gym:CartPole-v1", "kwargs": {}}
    assert about["algorithm"]["num_envs"] == 2


def test_a_shorter_run_shortens_what_is_scheduled(tmp_path):
    """The preset says how long in fractions of the run; the folder says it in updates."""
    length = ["--total-timesteps", "8192", "--seeds", "1", "--eval-episodes", "1", "--hidden-sizes", "2"]
    cli.main(["train", "ppo", "cart-safe", *length, "--out", str(tmp_path / "run")])
    rate = json.loads((tmp_path / "run" / "run.json").read_text())["algorithm"]["learning_rate"]
    assert rate == {"kind": "linear", "start": 5e-3, "end": 5e-5, "steps": 0.99 * 8192 / (32 * 64)}


@pytest.mark.parametrize(
    "command", [["--help"], ["solve", "--help"], ["train", "--help"], ["train", "sarsa", *GRID[:1], "--help"]]
)
def test_help_fits(command, tmp_path):
    done = lexrl(*command, cwd=tmp_path)
    assert done.returncode == 0
    assert "usage: lexrl" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["solve", "grid-nav", "--order", "min cst"], "names 'cst', but the signals here are 'reward', 'cost'"),
        (["solve", "grid-nav"], "An order is needed"),
        (["solve", "grid-nav", "--order", "cost > max reward"], "does not say which way 'cost' is good"),
        (["solve", "grid-nav", *ORDER, "--gamma", "1.5"], "Gamma is 1.5; a discount lies in [0, 1]."),
        (["solve", "random-momdp", "--order", "max signal_1", "--gamma", "1"], "gamma"),
        (["solve", "grid-nav", "--order", "min cost ±-1"], "must be 0 or more"),
        (["solve", "grid-nav", "--size", "2", *ORDER], "A grid of size 2"),
        (
            ["solve", "gym:deep-sea-treasure-v0", "--order", "max reward_1", "--time-limit", "1e-9"],
            "nothing is known of the optimum without all of its states, of which 1 were found so far. Give more time.",
        ),
        (["train", "sarsa", "grid-nav", "--one-hot", *ORDER], "needs discrete observations"),
        (["train", "sarsa", "grid-nav", *ORDER, "--total-timesteps", "0"], "total_timesteps is 0"),
        (["train", "sarsa", "grid-nav", *ORDER, "--seeds", "0"], "No seeds were given"),
        (["train", "sarsa", "grid-nav", *ORDER, "--eval-episodes", "0"], "The number of evaluation episodes is 0"),
        (["train", "sarsa", "grid-nav", *ORDER, "--gamma", "0.9", "0.9", "0.9"], "gamma has 3 entries for 2"),
        (["train", "sarsa", "grid-nav", *ORDER, "--tolerance=-0.1"], "must be 0 or more"),
        (["train", "sarsa", "grid-nav", *ORDER, "--gamma", "1.5"], "gamma is 1.5; it must lie in [0, 1]."),
        (["train", "sarsa", "grid-nav", *ORDER, "--alpha", "fast"], "The schedule 'fast' cannot be read"),
        (["train", "sarsa", "grid-nav", *ORDER, "--exploration", "ucb"], "The exploration 'ucb' cannot be read"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_exit_code_2(arguments, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    captured = capsys.readouterr()
    assert stopped.value.code == 2
    assert sentence in " ".join((captured.err + captured.out).replace("│", " ").split())
    assert "Traceback" not in captured.err + captured.out
    assert not list(tmp_path.rglob("*.json"))


def test_flags_of_a_run_are_disjoint(capsys):
    """Flat flag names clash silently or crash the parser. Every algorithm is parsed with one world, every world with
    one algorithm; no flag of an algorithm is one of a world."""

    def flags(algorithm, world):
        with pytest.raises(SystemExit) as stopped:
            cli.main(["train", algorithm, world, "--help"])
        assert stopped.value.code == 0
        return set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out))

    worlds = {world: flags("random", world) for world in (*ENVS, "gym:CartPole-v1")}
    algorithms = {algorithm: flags(algorithm, "grid-nav") for algorithm in ALGORITHMS}
    everywhere = set.intersection(*worlds.values())  # of the run, and of random play
    of_worlds = set.union(*worlds.values()) - everywhere
    for algorithm, found in algorithms.items():
        own = found - worlds["grid-nav"]
        assert not own & of_worlds, algorithm


def test_stopping_at_once_is_no_traceback(tmp_path):
    """The first signal waits for the part that runs, which here takes minutes; the second does not."""
    command = [*PROGRAM, "train", "q-learning", *GRID, *ORDER, "--total-timesteps", "5e8", "--seeds", "1"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert "q-learning on grid-nav" in process.stdout.readline()  # it has begun
        process.send_signal(signal.SIGINT)
        assert "once more: at once" in process.stderr.readline() + process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=120)
    assert process.returncode == 130
    assert complaint.strip() == "lexrl: interrupted."


def test_signals_are_noted_and_the_handlers_put_back(capfd):
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with stopping() as asked:
        assert asked() == 0
        signal.raise_signal(signal.SIGTERM)
        assert asked() == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
