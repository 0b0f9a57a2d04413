"""Long-run averages of a policy: where its chain ends up, and how it spends its time there."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from jaxtyping import Bool, Float, Int
from scipy.sparse.csgraph import connected_components

from lexrl.exact.evaluation import as_policy
from lexrl.momdp import MOMDP


def average_returns(process: MOMDP, policy: Float[np.ndarray, "S A"]) -> Float[np.ndarray, " M"]:
    """`J_i = sum_s d(s) r_i(s)` with `d` the long-run frequencies of the policy's chain from the initial distribution,
    which ends up in each recurrent class with some probability."""
    chain, rewards = process.chain(as_policy(policy, process))
    label, recurrent = classes(chain)
    inside = recurrent[label]
    reached = np.where(inside, process.initial, 0.0)
    if (~inside).any():
        stay = chain[~inside][:, ~inside]
        passing = _solve(sp.eye_array(stay.shape[0]) - sp.csr_array(stay.T), process.initial[~inside])
        reached[inside] += np.asarray(passing @ chain[~inside][:, inside]).ravel()
    found = np.zeros(process.num_objectives)
    for one in np.flatnonzero(recurrent):
        here = label == one
        found += reached[here].sum() * (rewards[:, here] @ _stationary(chain[here][:, here]))
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
    """`d P = d`, `sum d = 1`, for a chain of one class: one equation is redundant, and the sum takes its place."""
    n = chain.shape[0]
    system = sp.lil_array(sp.eye_array(n) - sp.csr_array(chain.T))
    system[[0], :] = np.ones((1, n))
    return _solve(system, np.eye(n)[0])


def _solve(system: Any, right: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    if len(right) <= 1500:
        return np.linalg.solve(system.toarray(), right)
    return spl.splu(sp.csc_array(system)).solve(right)
