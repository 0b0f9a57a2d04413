"""A finite number of steps: backward induction with sets and a policy for each time.

    q_{t,i}(s, a) = r_i(s, a) + gamma_i E[v_{t+1,i}(s')]      v_{t,i}(s) = max_{D_{t,i-1}(s)} q_{t,i}(s, .)      v_H = 0

All objectives go back together: what binds objective i from step t+1 on is known once step t+1 is done.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from lexrl import doubled, lex
from lexrl import tolerance as tol
from lexrl.errors import InputError
from lexrl.exact import backups
from lexrl.exact.backups import Judged, Values
from lexrl.exact.evaluation import evaluate_horizon, require_momdp
from lexrl.exact.iteration import finite_slack, refuse_limits, tolerances_of
from lexrl.lex import Arr
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
    margins: Float[np.ndarray, " M"]
    """The smallest distance to a threshold that was counted as one."""
    num_rounded: int
    """How many actions count as reaching a threshold though they are below it by the rounding of the input."""
    num_undecided: int
    """Of how many actions even twice the digits do not tell whether they reach their threshold."""


class _Step(NamedTuple):
    """One step of backward induction."""

    q: Float[Arr, "M S A"]
    sets: Bool[Arr, "M+1 S A"]
    values: list[Values]
    judged: list[Judged]


def solve_horizon(momdp: MOMDP, order: Order | str | None, horizon: int, *, tolerance: Any = 0.0) -> HorizonSolution:
    """The lexicographic optimum with action tolerance when only `horizon` steps are left to take; any gamma will do."""
    if not isinstance(horizon, int | np.integer) or horizon < 1:
        raise InputError(f"The horizon is {horizon}; it needs at least 1 step, and a whole number of them.")
    order = as_order(order, require_momdp(momdp).signals)
    refuse_limits(order)
    process = momdp.ordered(order)
    tolerances = tolerances_of(order, tolerance)
    nothing = np.zeros(process.num_states)
    ahead = [Values(doubled.exactly(nothing), nothing)] * process.num_objectives
    steps: list[_Step] = []
    for _ in range(horizon):
        steps.insert(0, _step_back(process, ahead, tolerances))
        ahead = steps[0].values
    policy = lex.uniform(np.stack([step.sets[-1] for step in steps]))
    return HorizonSolution(
        order=order,
        objectives=process.signals,
        q=np.stack([step.q for step in steps]),
        sets=np.stack([step.sets for step in steps]),
        values=np.stack([[one.value.hi for one in step.values] for step in steps]),
        policy=policy,
        returns=evaluate_horizon(process, policy).returns,
        margins=np.min([[one.margin for one in step.judged] for step in steps], axis=0),
        num_rounded=sum(len(one.rounded[0]) for step in steps for one in step.judged),
        num_undecided=sum(len(one.undecided[0]) for step in steps for one in step.judged),
    )


def _step_back(process: MOMDP, ahead: list[Values], tolerances: tol.Tolerances) -> _Step:
    slack, sets = tol.slack(tolerances), [process.action_mask]
    q, values, judged = [], [], []
    for i, behind in enumerate(ahead):
        backup = backups.look_ahead(process, i, behind)
        best, known = backups.best_of(process, i, behind, backup, sets[-1])
        backup.q.ravel()[known.index] = known.q.hi
        backup.q[process.terminal] = best.value.hi[process.terminal] = best.value.lo[process.terminal] = 0.0
        tau = finite_slack(process, i, slack(i, backup.q, sets[-1], best.value.hi))
        tau = np.broadcast_to(tau, best.value.hi.shape).copy()
        judged.append(backups.judge(process, i, behind, best, backup, sets[-1], tau, known))
        sets.append(judged[-1].reached)
        values.append(best)
        q.append(backup.q)
    return _Step(np.stack(q), np.stack(sets), values, judged)
