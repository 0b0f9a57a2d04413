"""How JAX is set up for training, and five workarounds for XLA.

XLA flags and CPU devices are fixed when JAX makes its first array, so `configure` must run before that. The command
line calls it first; a run calls it if that has not been done. Importing `lexrl` sets nothing. The five functions at the
end are explained in `docs/xla-notes.md`.
"""

import os
import pathlib
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from lexrl.errors import require_whole

Tree = TypeVar("Tree")

_WHOLE_LOOPS = "xla_cpu_small_while_loop_byte_threshold=1000000000000000"
"""XLA's CPU backend runs a loop as many small kernels, each with a dispatch that costs more than the work, unless the
loop is "small"; then it becomes one native function. All of ours are meant to."""

MAX_DEVICES = 1_024
_configured = False


def configure(num_devices: int | None = None, cache_dir: str | os.PathLike[str] | None = None) -> None:
    """Set JAX up for training: cores as devices, loops compiled whole, compiled programs cached on disk.

    Call it before JAX is used; later calls change nothing. What `XLA_FLAGS` or `jax.config` already say is respected.

    Args:
        num_devices: CPU devices to spread the seeds over; by default one for each core.
        cache_dir: where compiled programs are cached; by default in `~/.cache/lexrl`.
    """
    require_whole(1, MAX_DEVICES, **({} if num_devices is None else {"num_devices": num_devices}))
    global _configured
    _configured = True
    flags = os.environ.get("XLA_FLAGS", "")
    lost = []
    if "xla_backend_extra_options" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_extra_options={_WHOLE_LOOPS}".strip()
        lost += ["compiled loops run slower"] if _jax_is_in_use() else []
    if not _set_devices(num_devices, flags):
        lost = [f"CPU devices: {jax.local_device_count()} instead of {num_devices or num_cores()}", *lost]
    if cache_dir is not None or jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_dir or cache_folder() / "xla"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    if lost:
        warnings.warn(
            f"JAX was in use before lexrl could configure it: {'; '.join(lost)}. "
            "Call lexrl.configure() right after the imports, before anything else uses JAX.",
            stacklevel=2,
        )


def ensure_configured() -> None:
    """`configure()`, unless it has been called."""
    if not _configured:
        configure()


def _set_devices(num_devices: int | None, flags: str) -> bool:
    """Whether there are as many CPU devices as wanted: the given number, else the user's, else one for each core."""
    by_user = jax.config.values["jax_num_cpu_devices"] > 0 or "xla_force_host_platform_device_count" in flags
    if num_devices is None and by_user:
        return True
    wanted = num_devices or num_cores()
    if _jax_is_in_use():
        return jax.default_backend() != "cpu" or jax.local_device_count() == wanted
    jax.config.update("jax_num_cpu_devices", wanted)
    return True


def _jax_is_in_use() -> bool:
    """Whether JAX has made its devices: from then on it refuses another number of them."""
    current = jax.config.values["jax_num_cpu_devices"]
    try:
        jax.config.update("jax_num_cpu_devices", current + 1)
    except RuntimeError:
        return True
    jax.config.update("jax_num_cpu_devices", current)
    return False


def num_cores() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        return os.cpu_count() or 1


def cache_folder() -> pathlib.Path:
    """The user's cache for compiled programs and the like."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (pathlib.Path(base) if base else pathlib.Path.home() / ".cache") / "lexrl"


def compute_once(values: Tree, always: Array) -> Tree:
    """The same values, computed once and before anything that follows. `always` is true, but XLA must not know it.

    XLA would rather compute small things again for each of their uses. Where they are read from a table that changes,
    one of the uses may come too late, so XLA copies the whole table at every step. It cannot see through a branch.
    """
    return jax.lax.cond(always, lambda: values, lambda: jax.tree.map(jnp.zeros_like, values))


def fusion_barrier(values: Tree) -> Tree:
    """The same values, with nothing fused across: what comes before and after cannot change how they are rounded."""
    return jax.lax.optimization_barrier(values)


def reciprocal(count: Array) -> Array:
    """`1 / max(count, 1)`, to multiply by. XLA divides an array by a number in either way, depending on what is around
    it, and the two are rounded differently."""
    return fusion_barrier(1.0 / jnp.maximum(count, 1.0))


def opaque_loop(num_rounds: Array, body: Callable[[Array, Tree], Tree], init: Tree) -> Tree:
    """`fori_loop` from 0 to `num_rounds`, a number XLA must not know: it would unroll one or two rounds, and then round
    differently than in a longer loop."""
    return jax.lax.fori_loop(jnp.int32(0), num_rounds, body, init)


inline_jit: Callable[[Callable[..., Any]], Callable[..., Any]] = partial(jax.jit, inline=True)
"""For a function that is traced several times with the same shapes: JAX traces it once, and XLA sees the same program
as without."""
