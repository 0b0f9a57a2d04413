"""Long-run averages of a policy: where its chain ends up, and how it spends its time there."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from jaxtyping import Bool, Float, Int
from scipy.sparse.csgraph import connected_components

from lexrl.exact.evaluation import as_policy
from lexrl.momdp import MOMDP

_ELIMINATED = 400
"""Up to so many states frequencies are found by elimination without a subtraction."""


def average_returns(process: MOMDP, policy: Float[np.ndarray, "S A"]) -> Float[np.ndarray, " M"]:
    """`J_i = sum_s d(s) r_i(s)` with `d` the long-run frequencies of the policy's chain from the initial distribution,
    which ends up in each recurrent class with some probability."""
    chain, rewards = process.chain(as_policy(policy, process))
    label, recurrent = classes(chain)
    inside = recurrent[label]
    absorbed = _absorbed(chain, process.initial, inside)
    found = np.zeros(process.num_objectives)
    for one in np.flatnonzero(recurrent):
        here = label == one
        found += absorbed[here].sum() * (rewards[:, here] @ _stationary(chain[here][:, here]))
    return found


def _absorbed(chain: Any, initial: Float[np.ndarray, " S"], inside: Bool[np.ndarray, " S"]) -> Float[np.ndarray, " S"]:
    """Where a chain is when it first comes to the states inside."""
    if inside.all():
        return initial
    if len(inside) <= _ELIMINATED:
        places = np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)])
        weights = initial[places]
        reduced = chain.toarray()[np.ix_(places, places)]
        for k in range(len(places) - 1, int(inside.sum()) - 1, -1):
            shares = reduced[k, :k] / reduced[k, :k].sum()
            weights[:k] += weights[k] * shares
            reduced[:k, :k] += np.outer(reduced[:k, k], shares)
        found = np.zeros(len(inside))
        found[inside] = weights[: inside.sum()]
        return found
    stay = chain[~inside][:, ~inside]
    passing = spl.splu(sp.csc_array(sp.eye_array(stay.shape[0]) - sp.csr_array(stay.T))).solve(initial[~inside])
    found = np.where(inside, initial, 0.0)
    found[inside] += np.asarray(passing @ chain[~inside][:, inside]).ravel()
    return found


def classes(chain: Any) -> tuple[Int[np.ndarray, " S"], Bool[np.ndarray, " classes"]]:
    """The communicating class of each state, and which classes are never left."""
    count, label = connected_components(sp.csr_matrix(chain), directed=True, connection="strong")
    entries = chain.tocoo()
    source, target = label[entries.coords[0]], label[entries.coords[1]]
    recurrent = np.ones(count, bool)
    recurrent[source[(source != target) & (entries.data > 0)]] = False
    return label, recurrent


def _stationary(chain: Any) -> Float[np.ndarray, " S"]:
    """`d P = d`, `sum d = 1`, for a chain of one class.

    By the elimination of Grassmann, Taksar and Heyman (1985): nothing is subtracted, so that rare transitions between
    parts of the class cost no digits. For large chains one equation, which is redundant, makes room for the sum.
    """
    n = chain.shape[0]
    if n > _ELIMINATED:
        system = sp.lil_array(sp.eye_array(n) - sp.csr_array(chain.T))
        system[[0], :] = np.ones((1, n))
        return spl.splu(sp.csc_array(system)).solve(np.eye(n)[0])
    reduced = chain.toarray()
    for k in range(n - 1, 0, -1):
        reduced[:k, k] /= reduced[k, :k].sum()
        reduced[:k, :k] += np.outer(reduced[:k, k], reduced[k, :k])
    found = np.ones(n)
    for k in range(1, n):
        found[k] = found[:k] @ reduced[:k, k]
    return found / found.sum()
