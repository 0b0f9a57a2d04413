"""Engines: the same numbers here and in processes; workers that die are replaced, and what kills three is given up."""

import os
import pathlib
import signal
import threading
import time

import pytest
from jaxtyping import TypeCheckError

import anonymous
import lexrl
from lexrl import memory, store
from lexrl.engine import outcomes, processes, worker
from lexrl.engine.outcomes import Deaths
from lexrl.errors import InputError
from lexrl.runs import plan, record

ORDER = "min cost > max reward"


def planned(steps=2_000, seeds=2):
    """Two runs of different algorithms."""
    settings = {"env_kwargs": {"size": 4}, "eval_episodes": 2}
    return {
        name: plan(name, "grid-nav", ORDER, seeds, steps, 5, **settings) for name in ("random", "fixed-action")
    }  # fmt: skip


def content(folder):
    return {
        str(path.relative_to(folder)): anonymous.content(path, ("begun", "seconds", "machine"))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("worker.log", "final.safetensors")
    }


def test_the_same_numbers_on_both_and_a_killed_worker_is_replaced(tmp_path):
    here = {tmp_path / "here" / name: run for name, run in planned().items()}
    assert [one.state for one in lexrl.Engine().execute(here)] == ["finished"] * 2
    there = {tmp_path / "there" / name: run for name, run in planned().items()}
    stop = threading.Event()
    victims = []

    def kill_one():
        """The first worker that can be found."""
        while not stop.is_set() and not victims:
            for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                words = _read(entry).split(b"\0")
                if b"lexrl.engine.worker" in words and str(tmp_path).encode() in b" ".join(words):
                    victims.append(int(entry.parent.name))
                    os.kill(victims[0], signal.SIGKILL)
                    return
            time.sleep(0.05)

    thread = threading.Thread(target=kill_one)
    thread.start()
    outcomes = lexrl.Engine("processes", workers=2).execute(there)
    stop.set()
    thread.join()
    assert len(victims) == 1
    assert [one.state for one in outcomes] == ["finished"] * 2, outcomes
    for name in planned():
        assert content(tmp_path / "here" / name) == content(tmp_path / "there" / name)
    begun = time.monotonic()
    assert [one.state for one in lexrl.Engine("processes").execute(there)] == ["finished"] * 2
    assert time.monotonic() - begun < 5  # what is finished is not done again


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_what_kills_three_workers_is_given_up_and_errors_are_not_repeated(tmp_path, monkeypatch):
    """Workers that are other programs: one kills itself, one finds an error, one finishes."""
    starts = []

    def start(folder, place, workers):
        starts.append(folder.name)
        script = {
            "dies": "import os; os.kill(os.getpid(), 9)",
            "fails": f"from lexrl import store; import pathlib; store.write_json(pathlib.Path({str(folder)!r}) / "
            "'failure.json', {'why': 'It is a pity.'})",
            "ends": f"import pathlib; (pathlib.Path({str(folder)!r}) / 'summary.json').touch()",
        }[folder.name]
        command = [processes.sys.executable, "-c", script]
        return processes.Worker(processes.subprocess.Popen(command), folder, place)

    monkeypatch.setattr(processes, "_start", start)
    folders = [tmp_path / name for name in ("dies", "fails", "ends")]
    for folder in folders:
        folder.mkdir()
    found = {one.folder.name: one for one in processes.perform(folders, 2)}  # the last of each
    assert found["ends"].state == "finished"
    assert found["fails"].why == "It is a pity."
    assert found["dies"].why.startswith("It killed 3 workers, the last one by SIGKILL before its first checkpoint")
    assert store.read_json(tmp_path / "dies" / "failure.json")["deaths"] == 3
    assert sorted(starts) == ["dies"] * 3 + ["ends", "fails"]


def test_lost_nodes_are_not_held_against_a_run_as_soon_as_dead_workers(tmp_path, monkeypatch):
    """A new checkpoint forgives both."""
    deaths, steps = Deaths(), [0]
    monkeypatch.setattr(outcomes, "latest_step", lambda _: steps[0])
    kinds = [False, False, *[True] * 9]
    assert {deaths.judge(tmp_path, "SIGKILL", with_node).state for with_node in kinds} == {"lost"}
    steps[0] = 100
    assert {deaths.judge(tmp_path, "SIGKILL", with_node).state for with_node in kinds} == {"lost"}
    given_up = deaths.judge(tmp_path, "NodeDiedError", True)
    assert given_up.why.startswith("It was lost with 10 nodes, the last one by NodeDiedError after step 100;")
    assert store.read_json(tmp_path / "failure.json")["deaths"] == 10


def test_shares_of_the_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 4})
    assert [processes._share(i, 2) for i in range(2)] == [[0, 2, 4], [1, 3]]
    assert [processes._share(i, 7) for i in range(7)] == [[0], [1], [2], [3], [4], [0], [1]]


def test_whoever_insists_is_believed_by_workers_too(tmp_path, monkeypatch):
    """A worker estimates the memory of its run once more, on its own."""
    commands, real = [], processes.subprocess.Popen

    def start(command, *given, **more):
        if "lexrl.engine.worker" not in command:
            return real(command, *given, **more)
        commands.append(command)
        raise KeyboardInterrupt

    monkeypatch.setattr(processes.subprocess, "Popen", start)
    for insist in (False, True):
        with pytest.raises(KeyboardInterrupt), memory.unlimited(insist):
            lexrl.Engine("processes").execute({tmp_path / f"run-{insist}": planned()["random"]})
    assert [command[-1] == worker.FORCE for command in commands] == [False, True]


def test_a_worker_that_insists(tmp_path, monkeypatch):
    record.begin(tmp_path, planned(64)["random"])
    monkeypatch.setattr(memory, "available", lambda: 1000)
    assert "This would take about" in worker.work(tmp_path)
    assert worker.work(tmp_path, force=True) == ""
    assert store.is_finished(tmp_path)


@pytest.mark.parametrize("runs", [None, [1], {"folder": 1}, {pathlib.Path("folder"): 3}])
def test_only_runs_are_executed(runs):
    with pytest.raises((InputError, TypeCheckError), match=r"The runs are|The folder of|is to be|Type-check error"):
        lexrl.Engine().execute(runs)


def test_what_it_cannot_do(tmp_path):
    with pytest.raises(InputError, match="There is no engine 'moon'"):
        lexrl.Engine("moon")
    with pytest.raises(InputError, match="workers is 0"):
        lexrl.Engine("processes", workers=0)
    run = planned()["random"]
    lexrl.Engine().execute({tmp_path / "run": run})
    with pytest.raises(InputError, match="other settings"):
        lexrl.Engine().execute({tmp_path / "run": planned(seeds=3)["random"]})
