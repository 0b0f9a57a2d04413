"""One process at a time in a folder; the lock of a dead process is taken over."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from lexrl import locks
from lexrl.errors import InputError

HOLD = """
import pathlib, sys, time
from lexrl import locks
{before}
with locks.hold(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""
NO_LOCKS = "locks.fcntl = None; locks.BEAT = 0.1"


def holder(folder, before=""):
    """Another process that holds the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(before=before), str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    return process


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.fixture(params=["lock", "lease"])
def before(request, monkeypatch):
    """With locks of the operating system, and without."""
    if request.param == "lock":
        return ""
    monkeypatch.setattr(locks, "fcntl", None)
    return NO_LOCKS


def test_the_second_is_given_the_name_of_the_first_and_a_dead_one_is_replaced(tmp_path, before):
    process = holder(tmp_path, before)
    with pytest.raises(locks.InUse, match=rf"is being worked on by .* on .*, process {process.pid}, since 20"):
        locks.hold(tmp_path).__enter__()
    kill(process)
    assert (tmp_path / locks.FILE).exists()
    with locks.hold(tmp_path):
        assert json.loads((tmp_path / locks.FILE).read_text())["pid"] == os.getpid()
        locks.require(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_not_twice_in_one_process_either(tmp_path, before):
    with locks.hold(tmp_path), pytest.raises(locks.InUse, match=f"process {os.getpid()}"):
        locks.hold(tmp_path).__enter__()
    with locks.hold(tmp_path):
        pass


def test_an_error_lets_go(tmp_path, before):
    with pytest.raises(ZeroDivisionError), locks.hold(tmp_path):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_reading_the_file_does_not_lose_the_lock(tmp_path):
    with locks.hold(tmp_path):
        locks.require(tmp_path)
        asked = subprocess.run(
            [sys.executable, "-c", HOLD.format(before=""), str(tmp_path)], capture_output=True, text=True
        )
        assert "InUse" in asked.stderr


def test_a_lease_of_another_machine_lapses_when_it_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "fcntl", None)
    path = tmp_path / locks.FILE
    other = locks.Holder("ada", "elsewhere", 7, "yesterday", "token", True)
    path.write_bytes(locks._text(other))
    with pytest.raises(locks.InUse, match="ada on elsewhere, process 7, since yesterday"):
        locks.hold(tmp_path).__enter__()
    os.utime(path, (time.time() - 61, time.time() - 61))
    with locks.hold(tmp_path):
        assert locks.read_holder(path).pid == os.getpid()


def test_a_lease_counts_where_there_are_locks(tmp_path):
    """One machine of a cluster may have locks, and another none."""
    path = tmp_path / locks.FILE
    path.write_bytes(locks._text(locks.Holder("ada", "elsewhere", 7, "yesterday", "token", True)))
    with pytest.raises(locks.InUse, match="ada"):
        locks.hold(tmp_path).__enter__()
    assert locks.read_holder(path).user == "ada"


def test_a_lease_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "fcntl", None)
    monkeypatch.setattr(locks, "BEAT", 0.01)
    path = tmp_path / locks.FILE
    with locks.hold(tmp_path):
        os.utime(path, (0, 0))
        end = time.monotonic() + 10
        while path.stat().st_mtime == 0:
            assert time.monotonic() < end
            time.sleep(0.01)
    assert threading.active_count() == len(threading.enumerate())


def test_who_was_taken_for_dead_may_not_write(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "fcntl", None)
    other = locks.Holder("ada", "elsewhere", 7, "now", "token", True)
    with locks.hold(tmp_path):
        (tmp_path / locks.FILE).write_bytes(locks._text(other))
        with pytest.raises(InputError, match="worked on by ada"):
            locks.require(tmp_path)
    assert locks.read_holder(tmp_path / locks.FILE) == other  # and does not remove the lease of the other


def test_not_without_the_lock(tmp_path):
    with pytest.raises(locks.InUse, match="another process"):
        locks.require(tmp_path)


def test_file_systems_without_locks_have_leases(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(locks.fcntl, "lockf", refuse)
    with locks.hold(tmp_path):
        assert locks.read_holder(tmp_path / locks.FILE).lease


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"user": 1}', b"[" * 100_000, b"\xff"])
def test_a_damaged_lock_file_of_the_dead_is_replaced(tmp_path, text):
    (tmp_path / locks.FILE).write_bytes(text)
    with locks.hold(tmp_path):
        assert locks.read_holder(tmp_path / locks.FILE).pid == os.getpid()


@pytest.mark.parametrize("pid", ["1" + 30 * "0", "Infinity", "NaN", "null", '"x"'])
def test_a_lease_of_what_can_be_no_process_is_replaced(tmp_path, before, pid):
    lease = locks.Holder("ada", socket.gethostname(), 7, "now", "token", True)
    text = locks._text(lease).decode().replace('"pid": 7', f'"pid": {pid}')
    (tmp_path / locks.FILE).write_text(text)
    locks.require_free(tmp_path)
    with locks.hold(tmp_path):
        assert locks.read_holder(tmp_path / locks.FILE).pid == os.getpid()


def test_a_link_in_its_place_is_not_followed(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / locks.FILE).symlink_to(elsewhere)
    with pytest.raises(InputError, match="lock' is a link"):
        locks.hold(folder).__enter__()
    assert elsewhere.read_text() == "precious"
