"""One process at a time in a run's folder: a lock of the operating system, or a lease where the file system has none.

    folder/lock     who holds it: user, host, process, since when, and a random token
    folder/attempt  the number of the attempt at a run whose workers may be lost; no other one may work in the folder

The operating system drops its lock when the process ends, however it ends, so a lock file that a killed process left is
simply taken over. A lease is kept by touching the file; one that was not touched for a minute, or whose process is
known to be dead, is taken over, and its former holder must not write any more (`require`).

Whoever sends a run to another machine cannot know that a worker is dead, only that it does not answer. So it numbers
its attempts (`new_attempt`): a later one takes the lease over at once, and an earlier one that comes back is refused.
"""

import contextlib
import contextvars
import datetime
import errno
import getpass
import json
import os
import pathlib
import secrets
import socket
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

from lexrl.errors import InputError

try:
    import fcntl
except ImportError:  # Windows: leases only
    fcntl = None

FILE, ATTEMPT = "lock", "attempt"
LEASE, BEAT = 60.0, 10.0
"""Seconds until a lease has lapsed, and between the touches that keep it."""
HELD_ELSEWHERE = (errno.EACCES, errno.EAGAIN)
"""What the operating system answers if another process has the lock; other answers mean that it has no locks here."""


class InUse(InputError):
    """Another process works in the folder."""


class Holder(NamedTuple):
    """Who holds a lock."""

    user: str
    host: str
    pid: int
    since: str
    token: str
    lease: bool
    attempt: int = 0
    """Which attempt at the run it is; 0 where attempts are not counted."""

    def __str__(self) -> str:
        return f"{self.user} on {self.host}, process {self.pid}, since {self.since}"


_held: dict[tuple[int, int], Holder] = {}
"""The folders this process holds, by device and inode: a lock of the operating system does not exclude its owner, and
is lost when its owner opens and closes the file once more."""


_attempt = contextvars.ContextVar("attempt", default=0)


@contextlib.contextmanager
def as_attempt(number: int) -> Iterator[None]:
    """Inside, folders are held by this attempt: with a lease, which later attempts take over."""
    before = _attempt.set(number)
    try:
        yield
    finally:
        _attempt.reset(before)


def new_attempt(folder: pathlib.Path) -> int:
    """Begin another attempt at the run in a folder: those before may not write from now on."""
    number = read_attempt(folder) + 1
    own = folder / f".{ATTEMPT}.{secrets.token_hex(8)}"
    own.write_text(f"{number}\n")
    own.replace(folder / ATTEMPT)
    return number


def read_attempt(folder: pathlib.Path) -> int:
    """The number of the latest attempt; 0 if there is none."""
    try:
        return int((folder / ATTEMPT).read_text())
    except (OSError, ValueError):
        return 0


def end_attempt(folder: pathlib.Path, number: int) -> None:
    """An attempt is over: if it is still at work, it may not write. A later one of somebody else goes on."""
    if read_attempt(folder) == number:
        (folder / ATTEMPT).unlink(missing_ok=True)


def claim(folder: pathlib.Path) -> bool:
    """Whether this process is the first to make a lock file in a folder; it is empty, and `hold` takes it over."""
    try:
        (folder / FILE).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


@contextlib.contextmanager
def hold(folder: pathlib.Path) -> Iterator[None]:
    """Hold the lock of a folder, which is made if it is not there; an error says who has it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        raise InputError(f"The folder {str(folder)!r} cannot be created ({error.strerror}); give another.") from None
    key, path = _key(folder), folder / FILE
    if key in _held:
        raise _in_use(folder, _held[key])
    attempt = _attempt.get()
    holder = Holder(_user(), socket.gethostname(), os.getpid(), _now(), secrets.token_hex(8), False, attempt)
    with contextlib.ExitStack() as stack:
        if attempt:
            _require_latest(folder, holder)
            _require_unlocked(folder)
        if attempt or not _lock(folder, holder, stack):
            holder = holder._replace(lease=True)
            _take_lease(folder, holder)
            stack.enter_context(_beating(path, holder))
        _held[key] = holder
        try:
            yield
        finally:
            del _held[key]
            if holder.lease and read_holder(path) == holder:
                path.unlink(missing_ok=True)


def require(folder: pathlib.Path) -> None:
    """Raise an error if this process does not hold the folder any more: another one took it for dead."""
    if _key(folder) not in _held:
        raise _in_use(folder, read_holder(folder / FILE))
    require_not_lost(folder)


def require_not_lost(folder: pathlib.Path) -> None:
    """The same for a folder that this process may never have held."""
    holder = _held.get(_key(folder)) if _held and folder.is_dir() else None
    if holder is None or not holder.lease:
        return
    _require_latest(folder, holder)
    if read_holder(folder / FILE) != holder:
        raise _in_use(folder, read_holder(folder / FILE))


def require_free(folder: pathlib.Path) -> None:
    """Raise an error if anybody works in the folder."""
    if _key(folder) in _held:  # reading the file would lose the lock
        raise _in_use(folder, _held[_key(folder)])
    holder = read_holder(folder / FILE)
    if holder is not None and holder.lease and _alive(folder / FILE, holder):
        raise _in_use(folder, holder)
    _require_unlocked(folder)


def _require_latest(folder: pathlib.Path, holder: Holder) -> None:
    """Raise an error if there was a later attempt."""
    if holder.attempt and read_attempt(folder) != holder.attempt:
        raise _in_use(folder, read_holder(folder / FILE))


def _require_unlocked(folder: pathlib.Path) -> None:
    """Raise an error if another process has the operating system's lock."""
    if fcntl is None:
        return
    try:
        handle = _open(folder / FILE)
    except FileNotFoundError:
        return
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in HELD_ELSEWHERE:
            raise _in_use(folder, read_holder(folder / FILE)) from None
    finally:
        os.close(handle)


def _open(path: pathlib.Path, more: int = 0) -> int:
    """A handle of a lock file; an error if a link is in its place."""
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | more, 0o644)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise InputError(f"{str(path)!r} is a link, and a run's folder may hold only files of its own.") from None


def in_use(folder: pathlib.Path) -> InUse:
    """The error that says who works in a folder, for a process that does not."""
    return _in_use(folder, read_holder(folder / FILE))


def read_holder(path: pathlib.Path) -> Holder | None:
    """Who a lock file says holds it; None if it says nothing that can be understood."""
    try:
        return _parse(path.read_bytes())
    except OSError:
        return None


def _parse(text: bytes) -> Holder | None:
    try:
        found = json.loads(text)
        return Holder(
            str(found["user"]), str(found["host"]), int(found["pid"]), str(found["since"]), str(found["token"]),
            found["lease"] is True, int(found.get("attempt", 0)),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _lock(folder: pathlib.Path, holder: Holder, stack: contextlib.ExitStack) -> bool:
    """Take the operating system's lock until the stack is closed; False if there are no locks here."""
    if fcntl is None:
        return False
    path = folder / FILE
    while True:
        handle = _open(path, os.O_CREAT)
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            if error.errno in HELD_ELSEWHERE:
                raise _in_use(folder, read_holder(path)) from None
            return False
        if _same_file(path, handle):
            break
        os.close(handle)  # its holder removed it in the meantime
    before = _parse(os.pread(handle, 10_000, 0))
    if before is not None and before.lease and _alive(path, before):
        os.close(handle)
        raise _in_use(folder, before)  # on another machine the file system may have no locks
    stack.callback(_release, path, handle)
    os.ftruncate(handle, 0)
    os.pwrite(handle, _text(holder), 0)
    return True


def _take_lease(folder: pathlib.Path, holder: Holder) -> None:
    """Make the lock file, in place of one whose lease has lapsed, or that an attempt to lock has left empty."""
    path, own = folder / FILE, folder / f".{FILE}.{holder.token}"
    before = read_holder(path)
    is_earlier = before is not None and 0 < before.attempt < holder.attempt
    if before is not None and not is_earlier and _alive(path, before):
        raise _in_use(folder, before)
    with contextlib.suppress(FileNotFoundError):
        path.rename(own)  # whoever is first takes it over
        if (taken := read_holder(own)) != before:  # somebody was
            own.rename(path)
            raise _in_use(folder, taken)
    own.write_bytes(_text(holder))
    try:
        os.link(own, path)  # fails if there is one
    except FileExistsError:
        raise _in_use(folder, read_holder(path)) from None
    finally:
        own.unlink()


@contextlib.contextmanager
def _beating(path: pathlib.Path, holder: Holder) -> Iterator[None]:
    """Touch the file from a thread for as long as it is ours."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(BEAT) and read_holder(path) == holder:
            with contextlib.suppress(OSError):
                os.utime(path)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _alive(path: pathlib.Path, holder: Holder) -> bool:
    """Whether the holder of a lease may still be at work."""
    if holder.host == socket.gethostname():
        try:
            os.kill(holder.pid, 0)
        except (ProcessLookupError, OverflowError):  # the latter: no process can have such a number
            return False
        except PermissionError:
            pass
    # Both times are the file system's: the clocks of two machines differ.
    probe = path.with_name(f".{FILE}.{secrets.token_hex(8)}")
    probe.touch()
    try:
        return probe.stat().st_mtime - path.stat().st_mtime < LEASE
    except FileNotFoundError:
        return False
    finally:
        probe.unlink()


def _in_use(folder: pathlib.Path, holder: Holder | None) -> InUse:
    who = "another process" if holder is None else str(holder)
    return InUse(f"The run in {str(folder)!r} is being worked on by {who}; wait for it, or stop it first.")


def _release(path: pathlib.Path, handle: int) -> None:
    """Remove the file while the lock is held, then let go of it."""
    if _same_file(path, handle):
        path.unlink()
    os.close(handle)


def _text(holder: Holder) -> bytes:
    content: dict[str, Any] = holder._asdict()
    return (json.dumps(content, indent=2) + "\n").encode()


def _same_file(path: pathlib.Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _key(folder: pathlib.Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container without a name for the user
        return str(os.getuid())


def _now() -> str:
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")
