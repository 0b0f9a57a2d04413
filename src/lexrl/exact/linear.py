"""The linear equations of a Markov chain, `(I - gamma P) v = r`, by the way that suits its size and shape.

Dense elimination for small or dense chains; sparse elimination where the states can be ordered so that the matrix is a
narrow band (grids, corridors), because then little fills in; iterative otherwise, checked, and with elimination to fall
back on.
"""

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from jaxtyping import Float
from scipy.sparse.csgraph import reverse_cuthill_mckee

from lexrl.momdp import MOMDP

Way = Literal["dense", "sparse", "iterative"]

_SMALL = 100
"""Up to so many states nothing beats dense elimination."""
_DENSE = 1500
"""Up to so many states dense elimination is a matter of a tenth of a second, and always works."""


def choose(momdp: MOMDP) -> Way:
    """The way for all chains of a process, from its size and the pattern of its transitions under all actions."""
    n = momdp.n_states
    if n <= _SMALL:
        return "dense"
    # Eliminating a band of width b costs about n b^2, a full matrix n^3; sparse code is some 50 times slower a step.
    if momdp.transitions.nnz / momdp.n_actions < 0.1 * n * n and _bandwidth(_pattern(momdp)) < n / 9:
        return "sparse"
    return "dense" if n <= _DENSE else "iterative"


def solve(
    way: Way, chain: Any, rewards: Float[np.ndarray, "S K"], gamma: float, guess: Float[np.ndarray, "S K"] | None = None
) -> Float[np.ndarray, "S K"]:
    """`v = r + gamma P v`, one column for each reward; a guess helps only the iterative way."""
    if way == "dense":
        return np.linalg.solve(np.eye(chain.shape[0]) - gamma * chain.toarray(), rewards)
    system = sp.csc_array(sp.eye_array(chain.shape[0]) - gamma * chain)
    if way == "sparse":
        return spl.splu(system).solve(rewards)
    return _iterate(system, rewards, np.zeros_like(rewards) if guess is None else guess)


def _iterate(system: Any, rewards: Float[np.ndarray, "S K"], guess: Float[np.ndarray, "S K"]) -> Any:
    """BiCGSTAB column by column, to within a few roundings; elimination for columns where it does not get there."""
    values = np.empty_like(rewards)
    for k, reward in enumerate(rewards.T):
        # Restarting from its own answer takes out the drift between the method's residual and the true one.
        value = guess[:, k]
        for _ in range(3):
            value, _ = spl.bicgstab(system, reward, x0=value, rtol=1e-14, atol=0.0, maxiter=1000)
            if _converged(system, reward, value):
                break
        else:
            value = spl.splu(system).solve(reward)
        values[:, k] = value
    return values


def _converged(system: Any, reward: Float[np.ndarray, " S"], value: Float[np.ndarray, " S"]) -> bool:
    if not np.isfinite(value).all():
        return False
    scale = np.max(np.abs(reward)) + np.max(np.abs(value))
    return bool(np.max(np.abs(reward - system @ value)) <= 1e-13 * scale)


def _pattern(momdp: MOMDP) -> Any:
    """Which state can follow which, under any action, as a symmetric 0/1 matrix."""
    n, entries = momdp.n_states, momdp.transitions.tocoo()
    follows = sp.csr_array((np.ones(entries.nnz), (entries.coords[0] // momdp.n_actions, entries.coords[1])), (n, n))
    return sp.csr_array(follows + follows.T)


def _bandwidth(pattern: Any) -> int:
    """Width of the band that holds a symmetric pattern once its states are reordered by Cuthill and McKee."""
    place = np.argsort(reverse_cuthill_mckee(sp.csr_matrix(pattern), symmetric_mode=True))
    entries = pattern.tocoo()
    return int(np.max(np.abs(place[entries.coords[0]] - place[entries.coords[1]]), initial=0))
