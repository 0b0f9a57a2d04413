"""Cores as devices and a cache of compiled programs, before any test uses JAX; long test files first."""

import gc
import pathlib
import signal

import jax
import pytest

LONG_FIRST = ("golden", "loops", "probes", "theory", "contract", "algorithms", "experiments", "runs", "cli")
"""Folders whose files take minutes, because they compile: the workers then finish at about the same time."""

MAX_MAPPINGS = 20_000
"""Of memory, by one worker: every compiled program has some, and Linux allows a process 65,530."""


@pytest.hookimpl(trylast=True)  # jaxtyping must have installed its import hook
def pytest_configure():
    from lexrl.backend import configure

    configure()
    # A shell has its background jobs, and all that they start, ignore Ctrl-C; tests press it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Runs that are not about verdicts do without them: each would compile one more program.
    from lexrl.runs import training

    training.VERIFY_EPISODES = 0
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def pytest_collection_modifyitems(items):
    """Folders in the order above, then the rest; files, and the tests in them, stay as they are."""

    def rank(item):
        folder = pathlib.Path(item.path).parent.name
        return LONG_FIRST.index(folder) if folder in LONG_FIRST else len(LONG_FIRST)

    items.sort(key=rank)


@pytest.fixture(scope="module", autouse=True)
def forget_programs():
    """Let go of compiled programs between files before there are too many; reading one too much is a crash."""
    yield
    maps = pathlib.Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MAX_MAPPINGS:
        jax.clear_caches()
        gc.collect()
