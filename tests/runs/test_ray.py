"""Ray with two real local nodes: the same numbers as here, though workers and nodes are lost; errors stay errors."""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
import ray
from ray.cluster_utils import Cluster

import anonymous
import lexrl
from lexrl import locks, store
from lexrl.engine import ray as engine
from lexrl.engine.outcomes import FAILURE
from lexrl.errors import InputError
from lexrl.runs import plan

ORDER = "min cost > max reward"


def planned(count, steps, points=10):
    """Runs of two algorithms, each with other seeds."""
    settings = {"env_kwargs": {"size": 4}, "eval_episodes": 2}
    return {
        f"{name}-{i}": plan(name, "grid-nav", ORDER, [2 * i, 2 * i + 1], steps, points, **settings)
        for i in range(count // 2)
        for name in ("random", "q-learning")
    }


def content(folder):
    return {
        str(path.relative_to(folder)): anonymous.content(path, ("begun", "seconds", "machine"))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "final.safetensors"
    }


@pytest.fixture(scope="module")
def cluster():
    """Two nodes with a core each."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    found = _start()
    yield found
    ray.shutdown()
    found.shutdown()


def _start(times=6):
    """A busy machine may take longer than Ray waits for it."""
    found = Cluster()
    try:
        found.add_node(num_cpus=1, include_dashboard=False)
        found.add_node(num_cpus=1)
        return found
    except Exception:
        found.shutdown()
        if times == 1:
            raise
        return _start(times - 1)


def holders(root):
    """The processes that hold the folders of runs, by folder."""
    found = {}
    for path in root.glob(f"*/{locks.FILE}"):
        holder = locks.read_holder(path)
        if holder is not None and holder.attempt and is_alive(holder.pid):
            found[path.parent] = holder.pid  # a worker that was killed leaves its lock
    return found


def is_alive(pid):
    """Whether a process can still be killed: one that its parent has not noticed yet is dead, but has an entry."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Killer(threading.Thread):
    """Kills workers at random moments, and nodes in between; spares the worker of a run that would be given up, because
    its last two were killed without a new checkpoint."""

    def __init__(self, root, cluster, kills, pause, nodes=0):
        super().__init__(daemon=True)
        self.root, self.cluster, self.pause = root, cluster, pause
        self.random = random.Random(0)
        self.left = ["worker"] * (kills - nodes) + ["node"] * nodes
        self.random.shuffle(self.left)
        self.killed, self.over = [], threading.Event()
        self.deaths = {}

    def run(self):
        while self.left and not self.over.wait(self.random.uniform(*self.pause)):
            busy = {folder: pid for folder, pid in holders(self.root).items() if self._may_die(folder)}
            if busy and (self._kill_worker(busy) if self.left[-1] == "worker" else self._kill_node()):
                self.killed.append(self.left.pop())

    def _may_die(self, folder):
        step = max((int(path.stem) for path in store.checkpoints(folder)), default=0)
        since, count = self.deaths.get(folder, (0, 0))
        return step > since or count < 2

    def _note(self, folder):
        step = max((int(path.stem) for path in store.checkpoints(folder)), default=0)
        since, count = self.deaths.get(folder, (0, 0))
        self.deaths[folder] = (step, 1 if step > since else count + 1)

    def _kill_worker(self, busy):
        folder = self.random.choice(sorted(busy))
        try:
            os.kill(busy[folder], signal.SIGKILL)
        except ProcessLookupError:
            return False
        while is_alive(busy[folder]):  # until then it may write one more checkpoint
            time.sleep(0.01)
        self._note(folder)
        return True

    def _kill_node(self):
        keep = (self.cluster.head_node.node_id, ray.get_runtime_context().get_node_id())
        nodes = [node for node in self.cluster.list_all_nodes() if node.node_id not in keep]
        if not nodes:
            return False
        self.cluster.remove_node(nodes[0], allow_graceful=False)
        with pytest.MonkeyPatch.context() as patch:  # a node sets a handler of signals, which only the main thread can
            patch.setattr(ray._private.utils, "set_sigterm_handler", lambda *_: None)
            self.cluster.add_node(num_cpus=1)
        return True


def compare_with_here(tmp_path, cluster, count, steps, killer):
    here = {tmp_path / "here" / name: run for name, run in planned(count, steps).items()}
    assert {one.state for one in lexrl.Engine().execute(here)} == {"finished"}
    there = {tmp_path / "there" / name: run for name, run in planned(count, steps).items()}
    happened = []
    killer.start()
    outcomes = lexrl.Engine("ray", address=cluster.address).execute(there, happened.append)
    killer.over.set()
    killer.join()
    history = "\n".join(f"{one.folder.name}: {one.state} {one.why}" for one in happened)
    assert {one.state for one in outcomes} == {"finished"}, history
    for name in planned(count, steps):
        assert content(tmp_path / "here" / name) == content(tmp_path / "there" / name)
    finished = [one.folder for one in happened if one.state == "finished"]
    assert sorted(finished) == sorted(there)  # nothing was done twice that had been finished
    return happened, there


def test_the_same_numbers_on_two_nodes_although_a_worker_is_killed(tmp_path, cluster, capfd):
    killer = Killer(tmp_path / "there", cluster, kills=1, pause=(0.02, 0.05))
    happened, there = compare_with_here(tmp_path, cluster, 2, 100_000, killer)
    assert killer.killed == ["worker"]
    assert [one.state for one in happened].count("lost") == 1
    assert capfd.readouterr().out == ""  # it may be JSON for another program
    begun = time.monotonic()
    assert {one.state for one in lexrl.Engine("ray", address=cluster.address).execute(there)} == {"finished"}
    assert time.monotonic() - begun < 2  # what is finished is not done again, and Ray is not asked


@pytest.mark.slow
def test_20_kills_of_workers_and_nodes_during_12_runs(tmp_path, cluster):
    killer = Killer(tmp_path / "there", cluster, kills=20, pause=(0.3, 3.0), nodes=5)
    happened, _ = compare_with_here(tmp_path, cluster, 12, 10_000_000, killer)
    assert Counter(killer.killed) == {"worker": 15, "node": 5}
    causes = Counter(one.why for one in happened if one.state == "lost")
    assert causes.total() >= 12  # a node may have been idle, and a run finished already or lost in two ways at once
    print(f"lost and resumed: {dict(causes)}")


def test_an_error_is_not_repeated_and_what_kills_three_workers_is_given_up(tmp_path, cluster, monkeypatch):
    """Runs that fail in Python, that kill their worker, and that finish."""
    runs = {tmp_path / name: run for name, run in planned(2, 2_000).items()}
    bad = tmp_path / "bad"
    lexrl.Engine().execute({bad: next(iter(planned(2, 500).values()))})
    (bad / "summary.json").unlink()  # as if it had been stopped, with a checkpoint of another run
    other = tmp_path / "other"
    lexrl.Engine().execute({other: planned(2, 500)["q-learning-0"]})
    (bad / "checkpoints").mkdir()
    (bad / "checkpoints" / "000000000100.safetensors").write_bytes((other / "final.safetensors").read_bytes())

    def deadly(name, attempt, cores, force):
        from lexrl.engine import ray as real  # in the worker it is as it was

        if pathlib.Path(name).name == "q-learning-0":
            os.kill(os.getpid(), signal.SIGKILL)
        return real._task(name, attempt, cores, force)

    monkeypatch.setattr(engine, "_task", deadly)
    happened = []
    every = runs | {bad: planned(2, 500)["random-0"]}
    lexrl.Engine("ray", address=cluster.address).execute(every, happened.append)
    ends = {one.folder.name: one for one in happened if one.state in ("finished", "failed")}
    assert ends["bad"].state == "failed"
    assert "another run" in ends["bad"].why
    assert "another run" in store.read_json(bad / FAILURE)["why"]
    assert [one.state for one in happened if one.folder == bad] == ["started", "failed"]
    assert ends["random-0"].state == "finished"
    states = [one.state for one in happened if one.folder.name == "q-learning-0"]
    assert states == ["started", "lost"] * 2 + ["started", "failed"]
    assert ends["q-learning-0"].why.startswith("It killed 3 workers, the last one by WorkerCrashedError before its")
    assert store.read_json(tmp_path / "q-learning-0" / FAILURE)["deaths"] == 3


STOP = """
import pathlib, sys
import lexrl
sys.path.insert(0, sys.argv[3])
from test_ray import planned
root = pathlib.Path(sys.argv[1])
runs = {root / name: run for name, run in planned(2, 300_000_000, 3000).items()}
print("ready", flush=True)
lexrl.Engine("ray", address=sys.argv[2]).execute(runs)
"""


def test_ctrl_c_leaves_checkpoints(tmp_path, cluster):
    command = [sys.executable, "-c", STOP, str(tmp_path), cluster.address, str(pathlib.Path(__file__).parent)]
    paths = os.pathsep.join([str(pathlib.Path(__file__).parents[1]), *sys.path])
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": paths}, stderr=subprocess.PIPE) as process:
        until = time.monotonic() + 120
        while time.monotonic() < until and not all(map(store.checkpoints, [tmp_path / name for name in planned(2, 1)])):
            time.sleep(0.1)
            assert process.poll() is None, process.stderr.read().decode()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    for name in planned(2, 1):
        folder = tmp_path / name
        assert store.checkpoints(folder)
        assert not (folder / FAILURE).exists()
        assert not (folder / locks.FILE).exists()  # it was let go of


def test_ctrl_c_in_a_destructor_is_not_lost(monkeypatch):
    """Python only prints that it ignores an exception raised there."""

    class Interrupting:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    before, ignored = signal.getsignal(signal.SIGINT), []
    monkeypatch.setattr(sys, "unraisablehook", lambda about: ignored.append(about.exc_type))
    with engine._interrupts() as interrupts:
        Interrupting()
    assert ignored == [KeyboardInterrupt]
    assert interrupts == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is before


def test_without_ray_there_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs Ray, which is not installed: pip install 'lexrl\[ray\]'"):
        lexrl.Engine("ray")
    with pytest.raises(InputError, match="An address is for the engine 'ray'"):
        lexrl.Engine("processes", address="auto")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "absent.invalid:6379", "127.0.0.1:99999999"])
def test_where_no_cluster_answers_there_is_a_sentence_at_once(address, tmp_path, monkeypatch):
    """Ray itself tries for more than a minute, and prints what it tries."""
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    begun = time.monotonic()
    with pytest.raises(InputError, match=f"There is no answer from a Ray cluster at {address!r}"):
        lexrl.Engine("ray", address=address).execute({tmp_path / "run": planned(2, 100)["random-0"]})
    assert time.monotonic() - begun < 30


def test_an_earlier_attempt_that_comes_back_cannot_write(tmp_path):
    """The holder of a lease is taken for dead: a later attempt takes over at once, and the first may not write."""
    first = locks.new_attempt(tmp_path)
    with locks.as_attempt(first), locks.hold(tmp_path):
        store.write_json(store.inside(tmp_path, "before.json"), {})
        later = locks.new_attempt(tmp_path)
        with pytest.raises(locks.InUse, match="is being worked on by"):
            store.inside(tmp_path, "after.json")
        command = (
            "import pathlib, sys; from lexrl import locks, store; folder = pathlib.Path(sys.argv[1])\n"
            "with locks.as_attempt(int(sys.argv[2])), locks.hold(folder):\n"
            "    store.write_json(store.inside(folder, 'after.json'), {})"
        )
        subprocess.run([sys.executable, "-c", command, str(tmp_path), str(later)], check=True)
        with pytest.raises(locks.InUse):
            locks.require(tmp_path)
    with pytest.raises(locks.InUse), locks.as_attempt(first), locks.hold(tmp_path):
        pass
    assert (tmp_path / "after.json").is_file()


def test_an_attempt_respects_whoever_works_here(tmp_path):
    command = "import pathlib, sys, time; from lexrl import locks\nwith locks.hold(pathlib.Path(sys.argv[1])):\n"
    command += "    print('held', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", command, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(locks.InUse, match=f"process {process.pid}"), locks.as_attempt(locks.new_attempt(tmp_path)):
            locks.hold(tmp_path).__enter__()
        with pytest.raises(locks.InUse):
            locks.require_free(tmp_path)
        process.kill()
    locks.require_free(tmp_path)
    assert json.loads((tmp_path / locks.FILE).read_text())["lease"] is False
