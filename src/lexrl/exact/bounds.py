"""Bounds on the solutions of a Markov chain's equations, which hold state by state, however small.

    e >= x  wherever  (I - gamma P) e >= (I - gamma P) x

because the inverse of `I - gamma P` has no negative entry.
"""

import numpy as np
from jaxtyping import Float

from lexrl.exact.linear import System

_MOST_SOLUTIONS = 20
"""Solutions that a bound is made of; one will do, but where values differ by many orders of magnitude."""


def bound(system: System, right: Float[np.ndarray, " S"]) -> Float[np.ndarray, " S"]:
    """What `x` is below, state by state, if its right side is nowhere above `right`, which is not negative.

    A solution is a bound, but where it is small and was rounded as if it were large: there, what is missing is added.
    """
    found, missing = np.zeros_like(right), right
    for _ in range(_MOST_SOLUTIONS):
        # The few iterations that this takes do not carry the noise of large values to where they are small.
        found = found + 2 * np.abs(system.solve(missing, rtol=1e-3))
        missing = _missing(system, found, right)
        if not missing.any():
            return found
    return found + np.max(missing) * _longest(system)


def _missing(system: System, found: Float[np.ndarray, " S"], right: Float[np.ndarray, " S"]) -> Float[np.ndarray, " S"]:
    """How far `(I - gamma P) found` is below `right`."""
    below = right - (found - system.gamma * (system.chain @ found))
    return np.where(below > 0, below, np.where(np.isnan(below), np.inf, 0.0))


def _longest(system: System) -> float:
    """What a right side of 1 everywhere can add up to; infinite where that is not known."""
    if system.gamma < 1:
        return 2 / (1 - system.gamma)
    steps = 2 * np.abs(system.solve(np.ones(system.chain.shape[0]), rtol=1e-3))
    return np.inf if _missing(system, steps, np.ones_like(steps)).any() else float(np.max(steps))
