"""The exact solvers against enumeration in rational numbers: never wrong without saying so."""

import numpy as np
import pytest
from random_cases import KINDS

MANY = {
    "plain": 5000,
    "tolerance": 1000,
    "scales": 1000,
    "long": 1000,
    "masks": 500,
    "shortest path": 500,
    "averages": 500,
    "limits": 500,
    "by successor": 500,
    "programs": 500,
    "curves": 500,
}


def count(kind, cases):
    """How many cases are wrong, and how many undecided."""
    wrong, undecided = [], 0
    for seed in range(cases):
        verdict = KINDS[kind](np.random.default_rng([seed, *kind.encode()]))
        undecided += verdict.undecided
        if not verdict.right:
            wrong.append((seed, verdict.what))
    return wrong, undecided


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_cases_of_every_kind(kind):
    wrong, undecided = count(kind, 25)
    assert not wrong
    assert undecided <= 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_cases_of_every_kind(kind):
    wrong, undecided = count(kind, MANY[kind])
    print(f"{kind}: {MANY[kind]} cases, {len(wrong)} wrong, {undecided} undecided")
    assert not wrong
    assert undecided <= 0.01 * MANY[kind]


@pytest.mark.parametrize(("kind", "seed"), [("limits", 348), ("masks", 127), ("masks", 188), ("curves", 241)])
def test_what_cancels_to_nothing_is_neither_missed_nor_undecided(kind, seed):
    """A best return that is the limit but for its error; a sole action whose value is 0; a corner that returns 0."""
    verdict = KINDS[kind](np.random.default_rng([seed, *kind.encode()]))
    assert verdict.right
    assert not verdict.undecided
