"""The numbers that every algorithm gave when `golden.json` was written, after a few updates from two seeds.

They prove that a refactoring leaves the mathematics alone: on the machine that wrote the file (the same processor and
versions of JAX and NumPy) every array and metric must be the same to the last bit. Other processors round differently,
so elsewhere sums over each array and the metrics are compared, to rtol 1e-3 and atol 1e-5.

`python tests/golden/record.py` writes the file anew, where numbers are meant to change. The names of the library are in
the tables at the top of `cases.py`.
"""

from typing import Any

import jax
import numpy as np
import pytest
from cases import COUNTED, cases, compilations, fingerprint, measure, recorded

CASES = cases()
GOLDEN = recorded()
SAME_MACHINE = GOLDEN["fingerprint"] == fingerprint()


def test_every_case_is_recorded():
    assert {name: list(case.loops) for name, case in CASES.items()} == {
        name: list(loops) for name, loops in GOLDEN["cases"].items()
    }


@pytest.mark.parametrize(("name", "loop"), [(name, loop) for name, case in CASES.items() for loop in case.loops])
def test_the_same_numbers(name: str, loop: str):
    expected, found = GOLDEN["cases"][name][loop], measure(CASES[name], loop)
    for part, key in (("state", "sums"), ("metrics", "values")):
        assert found[part].keys() == expected[part].keys()
        for group, numbers in expected[part].items():
            close(found[part][group][key], numbers[key], f"{part} {group}")
    if SAME_MACHINE:
        assert hashes(found) == hashes(expected)


def hashes(measured: dict[str, Any]) -> dict[str, str]:
    return {f"{part} {group}": numbers["sha256"] for part in measured for group, numbers in measured[part].items()}


def close(found: list[float | None], expected: list[float | None], what: str) -> None:
    one, other = (np.array(values, np.float64) for values in (found, expected))
    np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5, err_msg=what)


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if {"multipliers", "converged"} & case.groups.keys()]
)
def test_multipliers_are_at_work(name: str):
    """Else the recorded numbers would not prove much."""
    metrics = GOLDEN["cases"][name]["compiled"]["metrics"]
    if "converged" in metrics:
        assert any(metrics["converged"]["values"])
    if "multiplier" in metrics and CASES[name].objectives > 1:
        assert any(metrics["multiplier"]["values"])


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if len(case.loops) == 2])
def test_both_loops_gave_the_same_states(name: str):
    one, other = (
        {group: numbers["sha256"] for group, numbers in loop["state"].items()}
        for loop in GOLDEN["cases"][name].values()
    )
    assert one == other


@pytest.mark.parametrize("name", COUNTED)
def test_compilations(name: str):
    """As many programs as ever, and none for other numbers."""
    counts = compilations(name)
    assert counts["other_numbers"] == 0
    if jax.__version__ == GOLDEN["fingerprint"]["jax"]:
        assert counts == GOLDEN["compilations"][name]
