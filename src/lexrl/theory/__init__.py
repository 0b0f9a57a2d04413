"""Which theorems cover an algorithm on an environment: every condition, with the number behind the verdict.

A verdict is *holds*, *fails*, or *unknown* (it cannot be decided from what is known). "Fails" does not mean that the
algorithm will not work: constant learning rates are the practical default, and no theorem covers them.
"""

from collections.abc import Callable
from typing import Any

from lexrl import algorithms
from lexrl.errors import InputError
from lexrl.momdp import MOMDP
from lexrl.order import Order, as_order
from lexrl.theory import corollary_1, corollary_2, values
from lexrl.theory.conditions import Condition, Guarantee, Verdict

__all__ = ["Condition", "Guarantee", "Verdict", "check"]

GUARANTEES: dict[type, Callable[[Any, Any, Order], tuple[Guarantee, ...]]] = {
    algorithms.QLearning: values.guarantees,
    algorithms.Sarsa: values.guarantees,
    algorithms.ExpectedSarsa: values.guarantees,
    algorithms.DoubleQLearning: values.guarantees,
    algorithms.LDQN: values.of_network,
    algorithms.LA2C: corollary_1.of_la2c,
    algorithms.LA2CSecondOrder: corollary_1.of_la2c,
    algorithms.LA2CAverageReward: corollary_1.of_la2c,
    algorithms.LPPO: corollary_2.of_lppo,
    algorithms.LPPOSecondOrder: corollary_2.of_lppo,
    algorithms.LPPOAverageReward: corollary_2.of_lppo,
    algorithms.LPPOQCritic: corollary_2.of_lppo,
}
"""The theorems about each algorithm, by its class."""


def check(algorithm: Any, env: Any, order: Order | str | None = None) -> tuple[Guarantee, ...]:
    """The theorems about an algorithm, with each condition checked on an environment or a finite MOMDP."""
    guarantees = GUARANTEES.get(type(algorithm))
    if guarantees is None:
        known = ", ".join(kind.__name__ for kind in GUARANTEES)
        raise InputError(f"There is no theorem about {type(algorithm).__name__} here; there are some about {known}.")
    order = as_order(order, env.signals if isinstance(env, MOMDP) else env.spec.signals)
    return guarantees(algorithm, env, order)
