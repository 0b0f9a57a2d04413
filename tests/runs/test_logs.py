"""Logs for TensorBoard and Weights & Biases, read back from the files they leave."""

import importlib
import os
import pathlib
import struct
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

import lexrl
from lexrl.order import parse
from lexrl.runs.logs import last_point, logs

NAN = float("nan")
ABOUT = {"title": "a run", "algorithm": {"learning_rate": 0.015625}, "seeds": [0, 7]}


def result(points: int) -> SimpleNamespace:
    """Two seeds and two objectives; seed 7 has had no episode by the second point. All numbers are binary fractions."""
    metrics = {
        "episode_return": np.array([[[3.25, 10.5], [5.75, 12.5]], [[2.125, 11.5], [NAN, NAN]]], np.float32),
        "multiplier": np.array([[[0.5, 0.0], [1.5, 0.0]], [[0.75, 0.0], [2.75, 0.0]]], np.float32),
        "episode_length": np.array([[40.0, 60.0], [44.0, NAN]], np.float32),
    }
    run = SimpleNamespace(order=parse("min cost > max reward"), seeds=(0, 7))
    return SimpleNamespace(
        run=run, steps=np.array([100, 200])[:points], metrics={name: all[:points] for name, all in metrics.items()}
    )


def records(path: pathlib.Path) -> list:
    """A file of events: each is its length (8 bytes), a checksum (4), the event, and another checksum (4)."""
    event_pb2 = importlib.import_module("tensorboardX.proto.event_pb2")
    content, events, at = path.read_bytes(), [], 0
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        events.append(event_pb2.Event.FromString(content[at + 12 : at + 12 + length]))
        at += 12 + length + 4
    return events


def scalars(folder: pathlib.Path) -> list[tuple[int, str, float]]:
    events = [event for path in sorted(folder.glob("events.out.tfevents.*")) for event in records(path)]
    return [(event.step, one.tag, one.simple_value) for event in events for one in event.summary.value]


def history(folder: pathlib.Path, awaited: bytes) -> bytes:
    """The one file of an offline run, which holds names and numbers as text.

    A process of W&B's own writes it, a moment after the run is finished: wait for what should be in it.
    """
    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    patience = time.monotonic() + 20
    while awaited not in path.read_bytes() and time.monotonic() < patience:
        time.sleep(0.05)
    return path.read_bytes()


class TestLastPoint:
    def test_has_one_name_for_each_curve(self):
        assert list(last_point(result(2))) == [
            "episode_return/cost",
            "episode_return/reward",
            "multiplier/cost",
            "multiplier/reward",
            "episode_length",
        ]

    def test_is_the_last_and_has_every_seed(self):
        np.testing.assert_array_equal(last_point(result(2))["episode_return/cost"], [2.125, NAN])
        np.testing.assert_array_equal(last_point(result(1))["episode_length"], [40, 60])


class TestTensorBoard:
    def test_each_seed_has_its_own_folder_and_each_call_one_point(self, tmp_path):
        with logs(["tensorboard"], tmp_path, ABOUT) as see:
            see(result(1))
            see(result(2))
        assert {path.name for path in (tmp_path / "tensorboard").iterdir()} == {"seed-0", "seed-7"}
        assert scalars(tmp_path / "tensorboard" / "seed-0") == [
            (100, "episode_return/cost", 3.25), (100, "episode_return/reward", 10.5), (100, "multiplier/cost", 0.5),
            (100, "multiplier/reward", 0.0), (100, "episode_length", 40.0),
            (200, "episode_return/cost", 2.125), (200, "episode_return/reward", 11.5), (200, "multiplier/cost", 0.75),
            (200, "multiplier/reward", 0.0), (200, "episode_length", 44.0),
        ]  # fmt: skip

    def test_leaves_out_what_is_not_known(self, tmp_path):
        with logs(["tensorboard"], tmp_path, ABOUT) as see:
            see(result(2))
        assert scalars(tmp_path / "tensorboard" / "seed-7") == [
            (200, "multiplier/cost", 2.75),
            (200, "multiplier/reward", 0.0),
        ]

    def test_a_point_can_be_read_before_the_run_ends(self, tmp_path):
        with logs(["tensorboard"], tmp_path, ABOUT) as see:
            see(result(1))
            assert (100, "episode_return/cost", 3.25) in scalars(tmp_path / "tensorboard" / "seed-0")

    def test_says_from_where_on_older_points_no_longer_count(self, tmp_path):
        with logs(["tensorboard"], tmp_path, ABOUT) as see:
            see(result(2))
        (path,) = (tmp_path / "tensorboard" / "seed-0").iterdir()
        (start,) = [event for event in records(path) if event.session_log.status == event.session_log.START]
        assert start.step == 200

    def test_writes_what_a_real_run_gives(self, tmp_path):
        process = lexrl.MOMDP.random(momdp_seed=0, num_states=4, num_actions=2, num_signals=2)
        world = lexrl.FiniteEnv(process, max_episode_steps=10)
        with logs(["tensorboard"], tmp_path, {}) as see:
            found = lexrl.train(
                lexrl.QLearning(),
                world,
                "max signal_1 > min signal_2",
                seeds=[3, 5],
                total_timesteps=400,
                num_log_points=4,
                callback=see,
            )
        for place, seed in enumerate(found.run.seeds):
            written = scalars(tmp_path / "tensorboard" / f"seed-{seed}")
            curve = [(step, value) for step, name, value in written if name == "episode_return/signal_2"]
            assert curve == list(zip(found.steps, found.metrics["episode_return"][:, place, 1], strict=True))
            assert {name for _, name, _ in written} == set(last_point(found))


class TestWeightsAndBiases:
    @pytest.fixture(autouse=True)
    def _no_settings_of_the_user(self, monkeypatch):
        for name in [name for name in os.environ if name.startswith("WANDB_")]:
            monkeypatch.delenv(name)

    def test_an_offline_run_holds_means_and_seeds_and_what_was_run(self, tmp_path):
        with logs(["wandb"], tmp_path, ABOUT) as see:
            see(result(1))
            see(result(2))
        written = history(tmp_path, awaited=b"2.125")
        for part in (
            b"episode_return/cost",
            b"4.5",
            b"episode_return/cost/seed-7",
            b"5.75",
            b"2.125",
            b"episode_length",
            b"0.015625",
        ):
            assert part in written
        assert b"NaN" not in written

    def test_the_environment_is_as_before(self, tmp_path):
        before = dict(os.environ)
        with logs(["wandb"], tmp_path, ABOUT) as see:
            see(result(1))
        assert dict(os.environ) == before

    def test_the_users_mode_counts(self, tmp_path, monkeypatch):
        monkeypatch.setenv("WANDB_MODE", "disabled")
        with logs(["wandb"], tmp_path, ABOUT) as see:
            see(result(1))
        assert not list(tmp_path.glob("wandb/offline-run-*"))

    def test_a_mode_that_does_not_exist_is_one_sentence(self, tmp_path, monkeypatch):
        monkeypatch.setenv("WANDB_MODE", "sideways")
        with pytest.raises(lexrl.InputError, match=r"^Weights & Biases does not start .*WANDB_MODE=offline\.$"):
            logs(["wandb"], tmp_path, ABOUT).__enter__()


def test_both_at_once_and_nothing_outside_the_folder(tmp_path):
    """In a process of its own, with a home, a working folder and a folder for temporary files that start out empty."""
    script = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from test_logs import ABOUT, result
from lexrl.runs.logs import logs
with logs(["tensorboard", "wandb"], Path(sys.argv[2]), ABOUT) as see:
    see(result(1))
"""
    places = {name: tmp_path / name for name in ("home", "work", "temporary", "run")}
    for place in places.values():
        place.mkdir()
    unset = ("XDG_", "WANDB_", "PYTHON", "JAX_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
    environment = kept | {"HOME": str(places["home"]), "TMPDIR": str(places["temporary"])}
    done = subprocess.run(
        [sys.executable, "-c", script, str(pathlib.Path(__file__).parent), str(places["run"])],
        cwd=places["work"], env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout + done.stderr == ""
    assert scalars(places["run"] / "tensorboard" / "seed-0")
    (written,) = places["run"].glob("wandb/offline-run-*/run-*.wandb")
    assert (
        b"episode_return/cost/seed-7" in written.read_bytes()
    )  # nothing is left to be written once the process has ended
    left = [path for name in ("home", "work", "temporary") for path in places[name].rglob("*") if path.is_file()]
    ours = [path for path in left if "wandb" in str(path) or "tensorboard" in str(path)]
    assert ours == []


def test_without_any_kind_nothing_is_written(tmp_path):
    with logs([], tmp_path, ABOUT) as see:
        see(result(1))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("kind", "package"), [("tensorboard", "tensorboardX"), ("wandb", "wandb")])
def test_a_missing_package_is_one_sentence_with_the_extra(kind, package, tmp_path, monkeypatch):
    for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        lexrl.InputError, match=rf"{package}, which is not installed; try pip install 'lexrl\[{kind}\]'"
    ):
        logs([kind], tmp_path, ABOUT).__enter__()
