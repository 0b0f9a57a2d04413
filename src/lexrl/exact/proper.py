"""Which policies end: without a discount only their returns exist.

A policy is *proper* if it reaches a terminal state with probability 1 from everywhere. Where gamma is 1 the optimum is
that of the proper policies (a stochastic shortest path); it exists unless a policy can stay away from the end for ever
and gain by it.
"""

from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from lexrl.errors import InputError
from lexrl.momdp import MOMDP


def require_ends(process: MOMDP) -> None:
    """Undiscounted returns exist only where some policy reaches a terminal state from everywhere."""
    if not (process.gamma == 1).any():
        return
    if process.continuing:
        raise InputError(
            "Gamma is 1 and no state is terminal, so returns are infinite; give a gamma below 1, or ask for the limit "
            "average with `solve_average`."
        )
    if (stuck := np.flatnonzero(proper_policy(process, process.action_mask) < 0)).size:
        raise InputError(
            f"Gamma is 1, but from {states(stuck)} no policy is sure to reach a terminal state; give a gamma below 1, "
            "or a finite horizon with `solve_horizon`."
        )


def proper_policy(process: MOMDP, allowed: Bool[np.ndarray, "S A"]) -> Int[np.ndarray, " S"]:
    """A policy that ends from everywhere it can; -1 in states from which none is sure to."""
    support = process.transitions.astype(bool).astype(float)
    inside = np.ones(process.num_states, bool)
    while True:
        # Actions that never leave the states from which an end is still thought possible.
        safe = allowed & ((support @ (~inside).astype(float)).reshape(allowed.shape) == 0)
        reached, policy = process.terminal.copy(), np.where(process.terminal, 0, -1)
        while True:
            towards = safe & ((support @ reached.astype(float)).reshape(allowed.shape) > 0)
            new = towards.any(axis=1) & ~reached
            if not new.any():
                break
            policy[new] = np.argmax(towards[new], axis=1)
            reached |= new
        if (reached == inside).all():
            return policy
        inside = reached


def ends(process: MOMDP, chain: Any) -> Bool[np.ndarray, " S"]:
    """States from which a chain can reach a terminal state; where that is all of them, in the long run it does."""
    support, reached = chain.astype(bool).astype(float), process.terminal
    while True:
        wider = reached | (support @ reached.astype(float) > 0)
        if (wider == reached).all():
            return reached
        reached = wider


def states(which: Any) -> str:
    """Some states in words."""
    return f"state {which[0]}" if len(which) == 1 else f"{len(which)} states (state {which[0]} is one)"
