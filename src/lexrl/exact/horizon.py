"""A finite number of steps: backward induction with sets and a policy for each time.

    q_{t,i}(s, a) = r_i(s, a) + gamma_i E[v_{t+1,i}(s')]      v_{t,i}(s) = max_{D_{t,i-1}(s)} q_{t,i}(s, .)      v_H = 0

All objectives go back together: what binds objective i from step t+1 on is known once step t+1 is done.
"""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from lexrl import lex
from lexrl.errors import InputError
from lexrl.exact.certificate import distances
from lexrl.exact.evaluation import evaluate_horizon
from lexrl.exact.iteration import rounding, tie_width, tolerances_of, widened
from lexrl.momdp import MOMDP
from lexrl.order import Order, as_order


@dataclasses.dataclass(frozen=True)
class HorizonSolution:
    """The lexicographic optimum over `H` steps; entry `t` is the choice with `H - t` steps to go."""

    order: Order
    objectives: tuple[str, ...]
    q: Float[np.ndarray, "H M S A"]
    sets: Bool[np.ndarray, "H M+1 S A"]
    values: Float[np.ndarray, "H M S"]
    """lexmax, from step t to the end."""
    policy: Float[np.ndarray, "H S A"]
    """Uniform over `D_M`."""
    returns: Float[np.ndarray, " M"]
    """`J` of `policy`, from the initial distribution."""
    ties: Float[np.ndarray, " M"]
    """Actions closer to their threshold than this count as reaching it."""
    margins: Float[np.ndarray, " M"]
    """The smallest distance to a threshold that was counted as one."""


def solve_horizon(momdp: MOMDP, order: Order | str | None, horizon: int, *, tolerance: Any = 0.0) -> HorizonSolution:
    """The lexicographic optimum with action tolerance when only `horizon` steps are left to take; any gamma will do."""
    if horizon < 1:
        raise InputError(f"The horizon is {horizon}; it needs at least 1 step.")
    order = as_order(order, momdp.signals)
    process = momdp.ordered(order)
    tolerances = tolerances_of(order, tolerance)
    ties = _ties(process, horizon)
    ahead = np.zeros((process.n_objectives, process.n_states))
    q, sets, values = [], [], []
    for _ in range(horizon):
        now = np.stack([process.backup(ahead[i], i) for i in range(process.n_objectives)])
        walk = lex.levels(now.swapaxes(0, 1), widened(tolerances, list(ties)))
        ahead = walk.best.T
        q.append(now)
        sets.append(walk.sets.swapaxes(0, 1))
        values.append(ahead)
    q, sets, values = (np.stack(part[::-1]) for part in (q, sets, values))
    policy = lex.uniform(sets[:, -1])
    alive = q.swapaxes(1, 2)[:, ~process.terminal]
    return HorizonSolution(
        order=order,
        objectives=process.signals,
        q=q,
        sets=sets,
        values=values,
        policy=policy,
        returns=evaluate_horizon(process, policy).returns,
        ties=ties,
        margins=distances(alive, widened(tolerances, [0.0] * len(ties)), list(ties))[0],
    )


def _ties(process: MOMDP, horizon: int) -> Float[np.ndarray, " M"]:
    """Each backup may be off by its rounding, and what is behind adds up."""
    largest = np.max(np.abs(process.rewards), axis=(1, 2)) * horizon
    return np.array([tie_width(rounding(process, i, size[None]), float(horizon)) for i, size in enumerate(largest)])
