"""Runs that are killed, stopped, damaged or run out of disk: the real program, and the same bytes in the end."""

import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

import anonymous
from lexrl import cli, store

PROGRAM = [sys.executable, "-m", "lexrl"]
TABULAR = [
    "q-learning",
    "grid-nav",
    "--size",
    "5",
    "--map-seed",
    "3",
    "--order",
    "min cost > max reward",
    "--seeds",
    "3",
    "--no-verify",
]
DEEP = ["ldqn", "cart-safe", "--seeds", "2", "--buffer-size", "9600", "--learning-starts", "320", "--batch-size", "16"]
DEEP += ["--no-verify"]
KILLS = 20


def begin(folder, *words, **more):
    return subprocess.Popen(
        [*PROGRAM, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )


def run(folder, *words, **more):
    with begin(folder, *words, **more) as process:
        out, complaint = process.communicate(timeout=300)
    return process.returncode, out, complaint


def content(folder):
    """The bytes that must be the same, by name."""
    paths = [folder / "metrics.csv", *sorted((folder / "policies").iterdir())]
    return {str(path.relative_to(folder)): anonymous.content(path) for path in paths}


def checkpoints(folder):
    return sorted((folder / "checkpoints").glob("*.safetensors"))


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def command():
    """About two seconds of training."""
    return ["train", *TABULAR, "--total-timesteps", "2e6", "--eval-episodes", "5"]


@pytest.fixture(scope="module")
def whole(places, command):
    """The run that nobody stopped."""
    code, _, complaint = run(places, *command, "--out", "whole")
    assert code == 0, complaint
    return content(places / "whole")


def test_killed_at_twenty_random_moments(places, command, whole):
    """A run that comes to its end in between is compared, and the next one begins."""
    moments = random.Random(1)
    kills = runs = 0
    while kills < KILLS:
        runs += 1
        name = f"killed-{runs}"
        folder = places / name
        while not (folder / "summary.json").exists():
            # Killed before it had said what it is, it has left nothing.
            words = ["resume", name] if (folder / "run.json").exists() else [*command, "--out", name]
            with begin(places, *words) as process:
                if kills < KILLS:
                    # Whoever is killed while it starts up gets nowhere: every third lives until it has done something.
                    kills += kill(process, folder, kills % 3 == 2, moments.uniform(0.0, 1.0))
                _, complaint = process.communicate(timeout=300)
            assert process.returncode in (0, -signal.SIGKILL), complaint
        assert content(folder) == whole
        assert not (folder / "checkpoints").exists()
        assert not list(folder.rglob(".*"))  # nothing half-written is left


def kill(process, folder, alive_for_a_checkpoint, later):
    """Whether it was still alive then."""
    latest = checkpoints(folder)[-1:]
    if alive_for_a_checkpoint:
        wait(lambda: process.poll() is not None or checkpoints(folder)[-1:] != latest)
    time.sleep(later)
    alive = process.poll() is None
    process.kill()
    return alive


def wait(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_with_a_checkpoint_and_the_command_that_goes_on(places, command, whole, number):
    name = f"stopped-{number}"
    with begin(places, *command, "--out", name) as process:
        wait(lambda: checkpoints(places / name))
        process.send_signal(number)
        _, complaint = process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert f"continue with: lexrl resume {name}" in complaint
    assert "Traceback" not in complaint
    code, out, complaint = run(places, "resume", name)
    assert code == 0, complaint
    assert "Resuming at step" in out
    assert content(places / name) == whole


@pytest.fixture(scope="module")
def stopped(places, command):
    """A run that was stopped with two checkpoints."""
    with begin(places, *command, "--out", "stopped") as process:
        wait(lambda: len(checkpoints(places / "stopped")) == 2)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert len(checkpoints(places / "stopped")) == 2
    return places / "stopped"


def test_a_damaged_checkpoint_is_noticed_and_the_one_before_is_used(places, stopped, whole):
    latest = checkpoints(stopped)[-1]
    content_of_it = bytearray(latest.read_bytes())
    content_of_it[len(content_of_it) * 3 // 4] ^= 1
    latest.write_bytes(content_of_it)
    code, out, complaint = run(places, "resume", stopped.name)
    assert code == 0, complaint
    words = " ".join(out.split())
    assert latest.name in words
    assert "is damaged" in words
    assert "The one before it is used" in words
    assert content(stopped) == whole


def test_a_full_disk_is_a_sentence_and_leaves_the_last_checkpoint(tmp_path, command):
    """A disk of its own that has room for the first checkpoints and little more."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no right to mount a small disk here")
    try:
        code, _, complaint = run(tmp_path, *command, "--out", "disk/run")
        assert code == 1
        assert "The disk is full" in complaint
        assert "lexrl resume disk/run" in complaint
        assert "Traceback" not in complaint
        kept = checkpoints(disk / "run")
        assert kept
        assert not list((disk / "run").rglob(".*"))  # no scraps
        shutil.copytree(disk / "run", tmp_path / "elsewhere")
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    code, out, complaint = run(tmp_path, "resume", "elsewhere")
    assert code == 0, complaint
    assert "damaged" not in out


def test_a_deep_learner_with_its_memory_goes_on_where_it_stopped(places):
    """Replay buffer, optimiser, target network and worlds in the middle of their episodes."""
    command = ["train", *DEEP, "--total-timesteps", "64000", "--eval-episodes", "5"]
    assert run(places, *command, "--out", "deep")[0] == 0
    with begin(places, *command, "--out", "deep-stopped") as process:
        wait(lambda: checkpoints(places / "deep-stopped"))
        process.kill()
        process.communicate()
    code, _, complaint = run(places, "resume", "deep-stopped")
    assert code == 0, complaint
    assert content(places / "deep-stopped") == content(places / "deep")


@pytest.fixture
def refused(capsys):
    """What a command says that cannot be obeyed."""

    def command(*words):
        with pytest.raises(SystemExit) as stopped:
            cli.main([str(word) for word in words])
        assert stopped.value.code == 2
        return " ".join(capsys.readouterr().err.split())

    return command


def test_a_finished_run_is_not_run_again(places, whole, refused):
    assert "is finished" in refused("resume", places / "whole")
    assert content(places / "whole") == whole


def test_what_is_no_run_is_a_sentence(tmp_path, refused):
    assert "There is no folder 'nowhere'" in refused("resume", "nowhere")
    assert "holds no run" in refused("resume", tmp_path)
    assert "holds no run" in refused("evaluate", tmp_path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("not json", "is not JSON"),
        ("[1]", "holds list"),
        ('{"format": 99}', "has format 99"),
        ('{"format": 1}', "has format 1, and this version of lexrl reads format 2"),
        ('{"format": 2}', "it has no 'algorithm'"),
    ],
)
def test_a_foreign_run_file_is_a_sentence(tmp_path, refused, text, sentence):
    (tmp_path / "run.json").write_text(text)
    assert sentence in refused("resume", tmp_path)


def test_no_code_is_run_from_a_file(tmp_path, refused):
    """Only what is in the catalog is built."""
    about = {
        "format": 2, "algorithm": {"kind": "os:system"}, "env": {}, "order": "max a", "objectives": [["a", 1]],
        "seeds": [0], "total_timesteps": 1, "num_log_points": 1, "eval_episodes": 1, "verify_episodes": 0, "name": "",
        "preset": "", "label": "", "log": [], "command": "", "id": "x",
    }  # fmt: skip
    store.write_json(tmp_path / "run.json", about | {"hash": store.deciding_hash(about)})
    assert "which is not in the catalog" in refused("resume", tmp_path)
