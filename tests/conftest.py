"""Cores as devices and a cache of compiled programs, before the first test module uses JAX."""

import jax
import pytest


@pytest.hookimpl(trylast=True)  # after the import hook of jaxtyping is in place
def pytest_configure():
    from lexrl.backend import configure

    configure()
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
