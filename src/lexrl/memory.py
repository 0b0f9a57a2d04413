"""Memory is estimated before it is allocated; what does not fit is refused, unless the user insists.

A machine that runs out of memory does not say so: it swaps until it is killed.
"""

import contextlib
import contextvars
import os
import pathlib
from collections.abc import Iterator, Mapping

from lexrl.errors import InputError

_insisting = contextvars.ContextVar("insisting", default=False)


@contextlib.contextmanager
def unlimited(insist: bool = True) -> Iterator[None]:
    """Inside, nothing is refused: what `--force` and `force=True` mean."""
    token = _insisting.set(insist)
    try:
        yield
    finally:
        _insisting.reset(token)


def is_unlimited() -> bool:
    """Does the user insist?"""
    return _insisting.get()


def require(parts: Mapping[str, int], lower: Mapping[str, str]) -> None:
    """Raise an error if the parts, in bytes, do not fit into memory together.

    Args:
        parts: what is going to be allocated, by name.
        lower: for each of them, which settings make it smaller.
    """
    total, free = sum(parts.values()), available()
    if free is None or total <= free or is_unlimited():
        return
    listed = ", ".join(f"{name} {size(each)}" for name, each in sorted(parts.items(), key=lambda part: -part[1]))
    largest = max(parts, key=lambda name: parts[name])
    raise InputError(
        f"This would take about {size(total)} of memory ({listed}), and {size(free)} are free; lower {lower[largest]}, "
        "or insist with --force (in Python force=True, or inside lexrl.memory.unlimited())."
    )


def size(count: int) -> str:
    """A number of bytes, as in `1.5 GB`."""
    for power, unit in ((4, "TB"), (3, "GB"), (2, "MB")):
        if count >= 1000**power:
            return f"{count / 1000**power:,.3g} {unit}" if count < 1000 ** (power + 1) else f"{count / 1e12:,.0f} TB"
    return f"{count / 1000:.3g} kB"


def available() -> int | None:
    """Bytes that this process can still allocate: what the machine has free, within the limit of its control group;
    None if that is not known."""
    found = [each for each in (_free_of_machine(), *_free_of_groups()) if each is not None]
    return min(found, default=None)


def _free_of_machine() -> int | None:
    try:
        for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows
        return None


def _free_of_groups() -> list[int]:
    """What control groups leave, as for a container or a job on a cluster."""
    found = []
    try:
        own = pathlib.Path("/proc/self/cgroup").read_text().strip().rpartition(":")[2].strip("/")
        group = pathlib.Path("/sys/fs/cgroup") / own
        for folder in (group, *group.parents):
            if (folder / "memory.max").is_file() and (limit := (folder / "memory.max").read_text().strip()) != "max":
                found.append(int(limit) - int((folder / "memory.current").read_text()))
    except (OSError, ValueError):
        pass
    return [max(0, each) for each in found]
