"""Cores as devices and a cache of compiled programs, before any test uses JAX; long test files first.

Most of the time goes into compiling, and most tests run what they compile for an instant. `make test` therefore has two
parts: with `--as-shipped`, the files below, which are compiled as for users, because what they assert is about the last
bit, or because they train for long; and with `--quick-compile`, all others, compiled without optimization. Without
either, everything is compiled as for users.
"""

import gc
import os
import pathlib
import signal

import jax
import pytest

TESTS = pathlib.Path(__file__).parent
LONG_FIRST = [
    TESTS / name
    for name in (
        "golden", "algorithms/test_one_objective.py", "experiments/test_smoke.py", "runs/test_corruptions.py",
        "loops", "probes", "theory", "contract", "algorithms", "experiments", "runs", "cli",
    )
]  # fmt: skip
"""Files and folders that take minutes: the workers then finish at about the same time."""

MAX_MAPPINGS = 20_000
"""Of memory, by one worker: every compiled program has some, and Linux allows a process 65,530."""

AS_SHIPPED = [
    TESTS / name
    for name in (
        "golden", "loops/test_constrained_loops.py", "loops/test_deep_loops.py", "loops/test_host_resume.py",
        "loops/test_same_numbers.py", "algorithms/test_one_objective.py", "algorithms/test_single_objective.py",
        "theory/test_constrained_against_exact.py", "theory/test_defaults_against_exact.py",
        "theory/test_ldqn_against_exact.py", "theory/test_learned_bounds.py", "theory/test_policies_against_exact.py",
        "theory/test_proposition_1.py", "theory/test_sets_by_evidence.py", "theory/test_theorems_1_2.py",
        "theory/test_tuned_on_grid_nav.py", "test_backend.py",
    )
]  # fmt: skip
QUICK = (
    "--xla_backend_optimization_level=0 --xla_backend_extra_options="
    "xla_cpu_small_while_loop_byte_threshold=1000000000000000,xla_cpu_disable_new_fusion_emitters=true"
)
"""Flags of XLA. The fusion emitters take as long as optimizing; the option before is what `lexrl.configure` sets."""


def pytest_addoption(parser):
    parser.addoption("--as-shipped", action="store_true", help="only the files that need all optimizations")
    parser.addoption("--quick-compile", action="store_true", help="the other files, compiled without optimization")


def pytest_ignore_collect(collection_path, config):
    """Files of the other part of `make test`."""
    if collection_path.suffix != ".py":
        return None
    as_shipped = any(collection_path.is_relative_to(each) for each in AS_SHIPPED)
    return config.getoption("quick_compile" if as_shipped else "as_shipped") or None


@pytest.hookimpl(trylast=True)  # jaxtyping must have installed its import hook
def pytest_configure(config):
    from lexrl.backend import configure

    assert all(each.exists() for each in (*LONG_FIRST, *AS_SHIPPED))
    if config.getoption("quick_compile"):
        os.environ["XLA_FLAGS"] = QUICK
    configure()
    # A shell has its background jobs, and all that they start, ignore Ctrl-C; tests press it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Runs that are not about verdicts do without them: each would compile one more program.
    from lexrl.runs import training

    training.VERIFY_EPISODES = 0
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def pytest_collection_modifyitems(items):
    """In the order above, then the rest; the tests of a file stay as they are."""

    def rank(item):
        places = [i for i, each in enumerate(LONG_FIRST) if item.path.is_relative_to(each)]
        return min(places, default=len(LONG_FIRST))

    items.sort(key=rank)
    # What is there now stays: the garbage collector need not look at it again and again.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="module", autouse=True)
def forget_programs():
    """Let go of compiled programs between files before there are too many; reading one too much is a crash."""
    yield
    maps = pathlib.Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MAX_MAPPINGS:
        jax.clear_caches()
        gc.collect()
