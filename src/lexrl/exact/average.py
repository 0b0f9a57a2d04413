"""Limit averages (no discount, no end): the programs of `programs.py` over long-run frequencies of (s, a).

    max r_i . x    over x >= 0,  sum_a x(s', a) = sum_{s,a} P(s' | s, a) x(s, a),  sum x = 1

Their dual is a gain `g` and a bias `h` with `g + h(s) >= r(s, a) + E[h(s')]`, found by policy iteration. Every policy
must have one recurrent class (unichain), so that averages do not depend on where one starts.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from jaxtyping import Float, Int
from scipy.sparse.csgraph import connected_components

from lexrl.errors import InputError
from lexrl.exact import linear
from lexrl.exact.iteration import tolerances_of
from lexrl.exact.programs import Priced, Program, ProgramSolution, leaving, successive
from lexrl.lex import Arr
from lexrl.momdp import MOMDP
from lexrl.order import Order, as_order

_BIAS_PRECISION = 1e-11
"""Biases are trusted to so many digits: nothing like `1 / (1 - gamma)` bounds how a residual adds up in them."""


def solve_average(momdp: MOMDP, order: Order | str | None = None, *, slack: Any = 0.0) -> ProgramSolution:
    """The lexicographic optimum for long-run averages, with policy tolerance as in `solve_slack`; gamma plays no part.

    Returns are averages for each step. In states that are left for ever the policy takes what is best for the last
    program's bias.
    """
    order = as_order(order, momdp.signals)
    process = momdp.ordered(order)
    if not process.continuing:
        raise InputError(
            f"State {int(np.argmax(process.terminal))} is terminal; limit averages need a task that never ends: use "
            "`solve` with gamma 1, or let terminal states lead back to the start."
        )
    return successive(_frequencies(process), order, tolerances_of(order, slack))


def average_returns(process: MOMDP, policy: Float[np.ndarray, "S A"]) -> Float[np.ndarray, " M"]:
    """`J_i = sum_s d(s) r_i(s)` with `d` the stationary distribution of the policy's chain: `d P = d`, `sum d = 1`."""
    chain, rewards = process.chain(policy)
    _require_one_class(chain)
    return rewards @ _solve_bordered(process, sp.csr_array(chain.T), np.append(np.zeros(process.n_states), 1.0))[:-1]


def _frequencies(process: MOMDP) -> Program:
    ones = np.ones((1, process.n_states * process.n_actions))
    flow = sp.vstack([(leaving(process) - process.transitions).T, ones], format="csr")

    def best(reward: Arr, allowed: Arr, start: Arr) -> Priced:
        return _best_gain(process, reward, allowed, start)

    inflow = np.append(np.zeros(process.n_states), 1.0)
    return Program(process, flow, inflow, best, lambda policy: average_returns(process, policy))


def _best_gain(process: MOMDP, reward: Float[np.ndarray, "S A"], allowed: Any, start: Int[np.ndarray, " S"]) -> Priced:
    """Policy iteration for averages: solve `g + h = r + P h` (with `h` summing to 0), improve on `r + P h`."""
    policy, states, gain = start, np.arange(process.n_states), -np.inf
    while True:
        before, chain = gain, process.transitions[states * process.n_actions + policy]
        _require_one_class(chain)
        solved = _solve_bordered(process, chain, np.append(reward[states, policy], 0.0))
        bias, gain = solved[:-1], float(solved[-1])
        q = reward + (process.transitions @ bias).reshape(reward.shape)
        tie = _BIAS_PRECISION * float(np.max(np.abs(q)) + np.max(np.abs(reward)))
        best = np.argmax(np.where(allowed, q, -np.inf), axis=1)
        better = q[states, best] > q[states, policy] + tie
        if not better.any() or gain < before - tie:
            return Priced(gain, gain + bias[:, None] - q, policy, 4 * tie)
        policy = np.where(better, best, policy)


def _solve_bordered(process: MOMDP, chain: Any, right: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """`[[I - P, 1], [1', 0]] z = right`: regular where P has one recurrent class, for P and for its transpose."""
    n = chain.shape[0]
    one = np.ones((n, 1))
    system = sp.block_array([[sp.eye_array(n) - chain, one], [one.T, None]], format="csc")
    if linear.choose(process) == "dense":
        return np.linalg.solve(system.toarray(), right)
    return spl.splu(system).solve(right)


def _require_one_class(chain: Any) -> None:
    """A class is recurrent if no transition leaves it; there must be one."""
    count, label = connected_components(sp.csr_matrix(chain), directed=True, connection="strong")
    entries = chain.tocoo()
    source, target = label[entries.coords[0]], label[entries.coords[1]]
    left = np.unique(source[(source != target) & (entries.data > 0)])
    if count - len(left) > 1:
        raise InputError(
            f"A policy splits the states into {count - len(left)} classes that never meet, so its averages depend on "
            "the start; limit averages need one recurrent class under every policy: use a gamma below 1."
        )
