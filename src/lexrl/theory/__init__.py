"""Do the theorems cover this? Every condition, with the number behind the verdict.

A verdict is *holds*, *fails*, or *unknown* (cannot be known here). "Fails" does not mean that the algorithm will not
work: constant rates are the practical default, and no theorem covers them.
"""

from typing import Any

from lexrl.algorithms import LA2C, LDQN, LPPO, TABULAR
from lexrl.errors import InputError
from lexrl.momdp import MOMDP
from lexrl.order import Order, as_order
from lexrl.theory import policies, values
from lexrl.theory.conditions import Condition, Guarantee, Verdict

__all__ = ["Condition", "Guarantee", "Verdict", "check"]


def check(algorithm: Any, world: Any, order: Order | str | None = None) -> tuple[Guarantee, ...]:
    """The theorems that speak of an algorithm, with each condition checked on a world or a finite MOMDP."""
    if not isinstance(algorithm, TABULAR | LDQN | LA2C | LPPO):
        raise InputError(
            f"There is no theorem here for {type(algorithm).__name__}; "
            "tabular algorithms, LDQN, LA2C and LPPO can be checked."
        )
    order = as_order(order, world.objectives if isinstance(world, MOMDP) else world.spec.objectives)
    if isinstance(algorithm, TABULAR):
        return values.guarantees(algorithm, world, order)
    if isinstance(algorithm, LDQN):
        return values.of_network(algorithm, world)
    return policies.guarantees(algorithm, world, order)
