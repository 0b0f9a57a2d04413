"""Which theorems cover an algorithm on an environment: every condition, with the number behind the verdict.

A verdict is *holds*, *fails*, or *unknown* (it cannot be decided from what is known). "Fails" does not mean that the
algorithm will not work: constant learning rates are the practical default, and no theorem covers them.
"""

from collections.abc import Callable
from typing import Any

from lexrl.algorithms.average_reward import LA2CAverageReward, LPPOAverageReward
from lexrl.algorithms.double_q import DoubleQLearning
from lexrl.algorithms.expected_sarsa import ExpectedSarsa
from lexrl.algorithms.la2c import LA2C
from lexrl.algorithms.ldqn import LDQN
from lexrl.algorithms.lppo import LPPO
from lexrl.algorithms.paper_la2c import PaperLA2C
from lexrl.algorithms.paper_lppo import PaperLPPO
from lexrl.algorithms.q_critic import LPPOQCritic
from lexrl.algorithms.q_learning import QLearning
from lexrl.algorithms.sarsa import Sarsa
from lexrl.algorithms.second_order import LA2CSecondOrder, LPPOSecondOrder
from lexrl.errors import InputError
from lexrl.momdp import MOMDP
from lexrl.order import Order, as_order
from lexrl.theory import corollary_1, corollary_2, values
from lexrl.theory.conditions import Condition, Guarantee, Verdict

__all__ = ["Condition", "Guarantee", "Verdict", "check"]

GUARANTEES: dict[type, Callable[[Any, Any, Order], tuple[Guarantee, ...]]] = {
    QLearning: values.guarantees,
    Sarsa: values.guarantees,
    ExpectedSarsa: values.guarantees,
    DoubleQLearning: values.guarantees,
    LDQN: values.of_network,
    PaperLA2C: corollary_1.of_la2c,
    LA2CSecondOrder: corollary_1.of_la2c,
    LA2CAverageReward: corollary_1.of_la2c,
    PaperLPPO: corollary_2.of_lppo,
    LPPOSecondOrder: corollary_2.of_lppo,
    LPPOAverageReward: corollary_2.of_lppo,
    LPPOQCritic: corollary_2.of_lppo,
}
"""The theorems about each algorithm, by its class."""
NAMESAKES: dict[type, tuple[str, type]] = {LA2C: ("paper-la2c", PaperLA2C), LPPO: ("paper-lppo", PaperLPPO)}
"""Algorithms whose name the paper uses for another one, and that one."""


def check(algorithm: Any, env: Any, order: Order | str | None = None) -> tuple[Guarantee, ...]:
    """The theorems about an algorithm, with each condition checked on an environment or a finite MOMDP."""
    guarantees = GUARANTEES.get(type(algorithm))
    if type(algorithm) in NAMESAKES:
        name, described = NAMESAKES[type(algorithm)]
        raise InputError(
            f"Theorem 3 is about {type(algorithm).__name__} as the paper describes it, which is {name} "
            f"(lexrl.{described.__name__}) here; check that one."
        )
    if guarantees is None:
        known = ", ".join(kind.__name__ for kind in GUARANTEES)
        raise InputError(f"There is no theorem about {type(algorithm).__name__} here; there are some about {known}.")
    order = as_order(order, env.signals if isinstance(env, MOMDP) else env.spec.signals)
    found = guarantees(algorithm, env, order)
    if not order.limited:
        return found
    limited = [str(objective) for objective in order.objectives if objective.limit is not None]
    beyond = Condition("every objective counts without a limit", "fails", "; ".join(limited))
    return tuple(one._replace(conditions=(*one.conditions, beyond)) for one in found)
