"""Cores as devices and a cache of compiled programs, before any test uses JAX; long test files first."""

import pathlib

import jax
import pytest

LONG_FIRST = ("golden", "loops", "probes", "theory", "contract", "algorithms", "experiments", "runs", "cli")
"""Folders whose files take minutes, because they compile: the workers then finish at about the same time."""


@pytest.hookimpl(trylast=True)  # jaxtyping must have installed its import hook
def pytest_configure():
    from lexrl.backend import configure

    configure()
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def pytest_collection_modifyitems(items):
    """Folders in the order above, then the rest; files, and the tests in them, stay as they are."""

    def rank(item):
        folder = pathlib.Path(item.path).parent.name
        return LONG_FIRST.index(folder) if folder in LONG_FIRST else len(LONG_FIRST)

    items.sort(key=rank)
