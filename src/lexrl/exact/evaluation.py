"""Exact evaluation of a policy: `v_i = r_i + gamma_i P v_i`, one linear system for each discount.

Also what the other files of this room check first: that a MOMDP is one, and a policy.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from lexrl import doubled
from lexrl.errors import InputError
from lexrl.exact import linear, proper
from lexrl.exact.policy_iteration import refine
from lexrl.lex import Arr
from lexrl.momdp import MOMDP, as_numbers
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
    process = require_momdp(momdp) if order is None else require_momdp(momdp).ordered(order)
    chain, rewards = process.chain(as_policy(policy, process))
    if (process.gamma == 1).any():
        _require_end(process, chain)
    way = linear.choose(process)
    values = np.empty((process.num_objectives, process.num_states))
    for gamma in np.unique(process.gamma):
        same = process.gamma == gamma
        system = linear.System(way, chain, float(gamma))
        # Rows of a stochastic policy's chain sum to 1 but for rounding, which a long horizon would add up.
        values[same] = [refine(system, doubled.exactly(one), None).values.value.hi for one in rewards[same]]
    q = np.stack([process.backup(values[i], i) for i in range(process.num_objectives)])
    return Evaluation(values, q, values @ process.initial)


def evaluate_horizon(momdp: MOMDP, policy: Any, order: Order | str | None = None) -> TimedEvaluation:
    """The exact worth of a time-dependent policy `[H, S, A]` over its `H` steps."""
    process = require_momdp(momdp) if order is None else require_momdp(momdp).ordered(order)
    each = [as_policy(one, process) for one in as_numbers("policy's entries", policy)]
    if not each:
        raise InputError("The policy has no steps; a time-dependent one has shape [H, S, A] with H at least 1.")
    ahead = np.zeros((process.num_objectives, process.num_states))
    values, q = [], []
    for weights in reversed(each):
        q.append(np.stack([process.backup(ahead[i], i) for i in range(process.num_objectives)]))
        ahead = np.einsum("sa,msa->ms", weights, q[-1])
        values.append(ahead)
    return TimedEvaluation(np.stack(values[::-1]), np.stack(q[::-1]), ahead @ process.initial)


def require_momdp(momdp: Any) -> MOMDP:
    """What the solvers are about."""
    if isinstance(momdp, MOMDP):
        return momdp
    raise InputError(
        f"A {type(momdp).__name__} is not a MOMDP; a finite environment has one, as in "
        "lexrl.GridNav.generate(5).momdp(0.9)."
    )


def as_policy(policy: Any, momdp: MOMDP) -> Float[np.ndarray, "S A"]:
    """Check a policy's shape and rows, and take out what single precision left in the sums."""
    weights = as_numbers("policy's entries", policy)
    shape = (momdp.num_states, momdp.num_actions)
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
    absent = np.argwhere((weights > 0) & ~momdp.action_mask)
    if len(absent):
        raise InputError(f"The policy takes action {absent[0, 1]} in state {absent[0, 0]}, which has no such action.")
    return weights / totals[:, None]


def _require_end(process: MOMDP, chain: Any) -> None:
    if (stuck := np.flatnonzero(~proper.ends(process, chain))).size:
        raise InputError(
            f"Gamma is 1, but from {proper.states(stuck)} this policy never reaches a terminal state; give a gamma "
            "below 1, or a policy that ends from everywhere."
        )
