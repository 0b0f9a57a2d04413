"""How JAX is set up before its first use: cores as devices, loops compiled whole, compiled programs cached.

`lexrl.configure()` does it; the command line calls it first, and so does the first run. If JAX is already in use,
everything still works, on one device and more slowly, and one warning says so.
"""

import functools
import os
import pathlib
import warnings
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

_WHOLE_LOOPS = "xla_cpu_small_while_loop_byte_threshold=1000000000000000"
"""XLA's CPU backend runs a loop as many small kernels, each with a dispatch that costs more than the work, unless the
loop is "small"; then it becomes one native function. All of ours are meant to."""


@functools.cache
def ensure_configured() -> None:
    """`configure()`, unless it has been called."""
    configure()


def configure() -> None:
    """Set JAX up for training on this machine; environment variables of the user's take precedence."""
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_backend_extra_options" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_extra_options={_WHOLE_LOOPS}".strip()
    try:
        if jax.config.values["jax_num_cpu_devices"] <= 0 and "xla_force_host_platform_device_count" not in flags:
            jax.config.update("jax_num_cpu_devices", cores())
    except RuntimeError:
        warnings.warn(
            "JAX was used before lexrl.configure() was called, so training runs on one core and more slowly; "
            "call it first, right after `import lexrl`.",
            stacklevel=3,
        )
    if jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "xla"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cache_folder() -> pathlib.Path:
    """Where compiled programs are remembered between runs."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (pathlib.Path(base) if base else pathlib.Path.home() / ".cache") / "lexrl"


traced_once = partial(jax.jit, inline=True)
"""For a function that is traced more than once with the same shapes: JAX remembers what it saw, and the program is the
same as without."""


def once(values: Any, always: Array) -> Any:
    """The same values, computed once and before anything that follows; `always` is true, but XLA must not know.

    XLA would rather compute small things again for each of their uses. Where they come from a table that changes, one
    of the uses may then read it too late, so XLA copies the whole table at every step. It cannot see through a branch.
    """
    return jax.lax.cond(always, lambda: values, lambda: jax.tree.map(jnp.zeros_like, values))
