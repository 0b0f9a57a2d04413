"""Command lines that cannot be obeyed: a sentence and code 2 (1 where a file cannot be written), never a traceback."""

import pathlib
import shlex
import subprocess
import sys

import pytest

import lexrl
from lexrl import cli

LINES = [
    line.replace("%00", "\0")
    for line in pathlib.Path(__file__).with_name("bad_command_lines.txt").read_text().splitlines()
]
ORDER = "--order 'min cost > max reward'"
ONCE_RAW = [
    "train lppo cart-safe --seeds 99999999999999999999",
    "train lppo cart-safe --eval-episodes 99999999999",
    "train lppo cart-safe --optimizer os:system",
    "train lppo cart-safe --actor os:getcwd",
    "train lppo highway:intersection-v0 --config '{\"observation\": 3}' --order 'max arrived'",
    f"train q-learning grid-nav --map-seed -1 {ORDER}",
    f"train q-learning grid-nav --exploration 'epsilon 2' {ORDER}",
    "train q-learning random-momdp --num-states -1",
    "train q-learning random-momdp --num-actions -1",
    "train q-learning random-momdp --num-signals -1",
    "train q-learning random-momdp --num-successors -1",
    "train q-learning random-momdp --momdp-seed -1",
    "solve random-momdp --num-states -1 --order 'max signal_1'",
    "resume 'a\0b'",
    "train random cart-safe --total-timesteps 64 --out 'a\0b'",
    "report run --out file/x.html",
    "video run --out file/x.gif",
    "evaluate run --episodes 1.5",
    "video run --episode 99999999999999",
    "video run --out 'a\0b.gif'",
    "report run --out 'a\0b'",
    "train lppo highway:intersection-v0 --config '{\"duration\": \"x\"}' --order 'max arrived'",
    "train lppo cart-safe --order 'min cost ±1e999 > max reward'",
    "train lppo cart-safe --num-epochs 1000000000",
    "train ldqn cart-safe --num-members 1000000000",
    "train random cart-safe --engine ray --address 127.0.0.1:1",
    "verify run --seconds nan",
    "video run --fps 0",
    "train lppo cart-safe --learning-rate 1e999",
]
"""Those that ended in a traceback once, hung, or were obeyed."""
SHORT = "--total-timesteps 8192 --eval-episodes 1 --num-log-points 1"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with two runs, a file, an empty folder and a folder that is no run."""
    folder = tmp_path_factory.mktemp("bad")
    settings = {"seeds": 2, "total_timesteps": 64, "num_log_points": 1, "eval_episodes": 2}
    lexrl.train("random", "cart-safe", **settings, out=folder / "run")
    lexrl.train("random", "grid-nav", "min cost", env_kwargs={"size": 4}, **settings, out=folder / "grid")
    (folder / "file").write_text("x")
    (folder / "empty").mkdir()
    (folder / "fake").mkdir()
    (folder / "fake" / "run.json").write_text("{}")
    for name, text in (("badsweep", "["), ("pysweep", '{"command": "rm -rf /"}')):
        (folder / name).mkdir()
        (folder / name / "sweep.json").write_text(text)
    return folder


def refuse(line, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    words = shlex.split(line)
    if words[:1] in (["train"], ["sweep"]) and len(words) > 3 and not words[2].startswith("-"):
        words = [*words[:3], *shlex.split(SHORT), "--seeds", "2", *words[3:]]  # soon over, should it be good
    with pytest.raises(SystemExit) as stopped:
        cli.main(words)
    said = capsys.readouterr()
    assert stopped.value.code in (1, 2), said
    assert len(said.err.split()) + len(said.out.split()) > 3
    assert "Traceback" not in said.err


@pytest.mark.parametrize("line", ONCE_RAW)
def test_once_raw(line, place, monkeypatch, capsys):
    refuse(line, place, monkeypatch, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_refused(line, place, monkeypatch, capsys):
    refuse(line, place, monkeypatch, capsys)


@pytest.mark.slow
def test_refused_in_a_process_of_its_own(place):
    """Here types are checked while tests run, which is sooner than the sentence."""
    line = "sweep lppo cart-safe --over activation=step,tanh"
    done = subprocess.run([sys.executable, "-m", "lexrl", *line.split()], cwd=place, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "lexrl: activation is 'step'; it must be one of 'tanh', 'relu', 'elu', 'gelu', 'silu'.\n"
