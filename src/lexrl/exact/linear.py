"""The linear equations of a Markov chain, `(I - gamma P) v = r`, by the way that suits its size and shape.

Dense elimination for small or dense chains; sparse elimination where the states can be ordered so that the matrix is a
narrow band (grids, corridors), because then little fills in; iterative otherwise, checked, and with elimination to fall
back on.
"""

import functools
from typing import Any, Literal

import numpy as np
import scipy.linalg as dense
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from jaxtyping import Float
from scipy.sparse.csgraph import reverse_cuthill_mckee

from lexrl import doubled
from lexrl.doubled import Doubled
from lexrl.momdp import MOMDP

Way = Literal["dense", "sparse", "iterative"]

_SMALL = 100
"""Up to so many states nothing beats dense elimination."""
_DENSE = 1500
"""Up to so many states dense elimination is a matter of a tenth of a second, and always works."""
_LARGE = 10_000
"""From so many states on, even a narrow band fills in too much to be eliminated again and again."""
_LONG = 0.9995
"""From this discount on iterations are slow, and elimination of a narrow band is worth its memory."""


def choose(momdp: MOMDP) -> Way:
    """The way for all chains of a process, from its size and the pattern of its transitions under all actions."""
    n = momdp.num_states
    if n <= _SMALL:
        return "dense"
    if n > _LARGE and np.max(momdp.gamma) < _LONG:
        return "iterative"
    # Eliminating a band of width b costs about n b^2, a full matrix n^3; sparse code is some 50 times slower a step.
    if momdp.transitions.nnz / momdp.num_actions < 0.1 * n * n and _bandwidth(_pattern(momdp)) < n / 9:
        return "sparse"
    return "dense" if n <= _DENSE else "iterative"


class System:
    """`(I - gamma P) x = b` and its transpose, for as many right sides as one likes; eliminated once, when needed."""

    def __init__(self, way: Way, chain: Any, gamma: float):
        self.way, self.chain, self.gamma = way, chain, gamma

    def solve(
        self, right: Float[np.ndarray, " S"], guess: Float[np.ndarray, " S"] | None = None, rtol: float = 1e-13
    ) -> Float[np.ndarray, " S"]:
        """`x`; the guess and the relative residual matter only to the iterative way."""
        if self.way == "dense":
            return dense.lu_solve(self._dense, right, check_finite=False)
        if self.way == "sparse" or not right.any():
            return self._sparse.solve(right) if right.any() else np.zeros_like(right)
        return self._iterate(right, guess, rtol)

    def solve_transposed(self, right: Float[np.ndarray, " S"]) -> Float[np.ndarray, " S"]:
        """`x` with `(I - gamma P') x = b`."""
        if self.way == "dense":
            return dense.lu_solve(self._dense, right, trans=1, check_finite=False)
        if self.way == "sparse":
            return self._sparse.solve(right, trans="T")
        return System("iterative", sp.csr_array(self.chain.T), self.gamma).solve(right)

    def mean(self, values: Doubled) -> Doubled:
        """`P values` to twice the digits, with rows of P that sum to 1 to the last one."""
        return doubled.per_weight(doubled.expectation(self.chain, values), self._weights)

    @functools.cached_property
    def _weights(self) -> Doubled:
        return doubled.weights_of(self.chain, np.arange(self.chain.shape[0]))

    @functools.cached_property
    def _matrix(self) -> Any:
        return sp.csr_array(sp.eye_array(self.chain.shape[0], format="csr") - self.gamma * self.chain)

    @functools.cached_property
    def _dense(self) -> Any:
        return dense.lu_factor(np.eye(self.chain.shape[0]) - self.gamma * self.chain.toarray(), check_finite=False)

    @functools.cached_property
    def _sparse(self) -> Any:
        return spl.splu(sp.csc_array(self._matrix))

    def _iterate(self, right: Any, guess: Any, rtol: float) -> Float[np.ndarray, " S"]:
        """BiCGSTAB, started again from its own answer, which takes out the drift between the method's residual and the
        true one; elimination where it does not get there. In units of the right side, as the method gives up where
        numbers are small."""
        unit = 2.0 ** np.floor(np.log2(np.max(np.abs(right))))
        scaled, value = right / unit, np.zeros_like(right) if guess is None else guess / unit
        enough = 10 * rtol * np.linalg.norm(scaled)
        for _ in range(4):
            value, _ = spl.bicgstab(self._matrix, scaled, x0=value, rtol=rtol, atol=0.0, maxiter=500)
            missed = np.linalg.norm(scaled - self._matrix @ value)
            if np.isfinite(value).all() and missed <= enough + 1e-14 * np.linalg.norm(value):
                return unit * value
            value = value if np.isfinite(value).all() else np.zeros_like(right)
        return self._sparse.solve(right)


def _pattern(momdp: MOMDP) -> Any:
    """Which state can follow which, under any action, as a symmetric 0/1 matrix."""
    n, entries = momdp.num_states, momdp.transitions.tocoo()
    follows = sp.csr_array((np.ones(entries.nnz), (entries.coords[0] // momdp.num_actions, entries.coords[1])), (n, n))
    return sp.csr_array(follows + follows.T)


def _bandwidth(pattern: Any) -> int:
    """Width of the band that holds a symmetric pattern once its states are reordered by Cuthill and McKee."""
    place = np.argsort(reverse_cuthill_mckee(sp.csr_matrix(pattern), symmetric_mode=True))
    entries = pattern.tocoo()
    return int(np.max(np.abs(place[entries.coords[0]] - place[entries.coords[1]]), initial=0))
