"""Exact evaluation of a policy: `v_i = r_i + gamma_i P v_i`, one linear system for each discount.

Also what the other files of this room check first: that undiscounted returns exist, and that a policy is one.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from lexrl.errors import InputError
from lexrl.exact import linear
from lexrl.lex import Arr
from lexrl.momdp import MOMDP
from lexrl.order import Order


class Evaluation(NamedTuple):
    """What a stationary policy is worth."""

    values: Float[Arr, "M S"]
    q: Float[Arr, "M S A"]
    """Take the action now, follow the policy afterwards."""
    returns: Float[Arr, " M"]
    """`J`: expected from the initial distribution."""


class TimedEvaluation(NamedTuple):
    """What a time-dependent policy is worth; `values[t]` counts from step t to the end of the horizon."""

    values: Float[Arr, "H M S"]
    q: Float[Arr, "H M S A"]
    returns: Float[Arr, " M"]


def evaluate(momdp: MOMDP, policy: Any, order: Order | str | None = None) -> Evaluation:
    """The exact worth of any stationary policy `[S, A]`, objectives ordered and signed; without an order, all the
    signals as they stand."""
    process = momdp if order is None else momdp.ordered(order)
    chain, rewards = process.chain(as_policy(policy, process))
    if (process.gamma == 1).any():
        _require_end(process, chain)
    way = linear.choose(process)
    values = np.empty((process.n_objectives, process.n_states))
    for gamma in np.unique(process.gamma):
        same = process.gamma == gamma
        values[same] = linear.solve(way, chain, rewards[same].T, float(gamma)).T
    q = np.stack([process.backup(values[i], i) for i in range(process.n_objectives)])
    return Evaluation(values, q, values @ process.initial)


def evaluate_horizon(momdp: MOMDP, policy: Any, order: Order | str | None = None) -> TimedEvaluation:
    """The exact worth of a time-dependent policy `[H, S, A]` over its `H` steps."""
    process = momdp if order is None else momdp.ordered(order)
    each = [as_policy(one, process) for one in np.asarray(policy, float)]
    if not each:
        raise InputError("The policy has no steps; a time-dependent one has shape [H, S, A] with H at least 1.")
    ahead = np.zeros((process.n_objectives, process.n_states))
    values, q = [], []
    for weights in reversed(each):
        q.append(np.stack([process.backup(ahead[i], i) for i in range(process.n_objectives)]))
        ahead = np.einsum("sa,msa->ms", weights, q[-1])
        values.append(ahead)
    return TimedEvaluation(np.stack(values[::-1]), np.stack(q[::-1]), ahead @ process.initial)


def as_policy(policy: Any, momdp: MOMDP) -> Float[np.ndarray, "S A"]:
    """Check a policy's shape and rows, and take out what single precision left in the sums."""
    weights = np.asarray(policy, float)
    shape = (momdp.n_states, momdp.n_actions)
    if weights.shape != shape:
        raise InputError(
            f"The policy has shape {weights.shape}; it needs {shape}: one row of action probabilities for each state."
        )
    totals = weights.sum(axis=1)
    wrong = np.flatnonzero(~(np.abs(totals - 1) <= 1e-5) | ~(weights >= 0).all(axis=1))
    if len(wrong):
        state = int(wrong[0])
        raise InputError(
            f"The policy's row for state {state} is {np.array2string(weights[state], threshold=6)}, which sums to "
            f"{totals[state]:g}; probabilities are non-negative and sum to 1: normalize each row."
        )
    return weights / totals[:, None]


def require_ends(momdp: MOMDP) -> None:
    """Undiscounted returns exist only where every policy reaches a terminal state."""
    if not (momdp.gamma == 1).any():
        return
    if momdp.continuing:
        raise InputError(
            "Gamma is 1 and no state is terminal, so returns are infinite; give a gamma below 1, or ask for the limit "
            "average with `solve_average`."
        )
    if (stuck := np.flatnonzero(momdp.never_ending())).size:
        raise InputError(
            f"Gamma is 1, but from {_states(stuck)} some policy never reaches a terminal state; give a gamma below 1, "
            "or a finite horizon with `solve_horizon`."
        )


def _require_end(process: MOMDP, chain: Any) -> None:
    if (stuck := np.flatnonzero(~_ends(process, chain))).size:
        raise InputError(
            f"Gamma is 1, but from {_states(stuck)} this policy never reaches a terminal state; give a gamma below 1, "
            "or a policy that ends from everywhere."
        )


def _ends(process: MOMDP, chain: Any) -> Bool[np.ndarray, " S"]:
    """States from which the chain can reach a terminal state, and so in the long run does."""
    support, reached = chain.astype(bool).astype(float), process.terminal
    while True:
        wider = reached | (support @ reached.astype(float) > 0)
        if (wider == reached).all():
            return reached
        reached = wider


def _states(which: Any) -> str:
    return f"state {which[0]}" if len(which) == 1 else f"{len(which)} states (state {which[0]} is one)"
