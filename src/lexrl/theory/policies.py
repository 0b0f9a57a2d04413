"""Learners of policies: Theorem 3 and its corollaries for LA2C and LPPO.

The theorem lifts what is known of one objective to several; that A2C or PPO converges with one comes from the
corollary.
"""

from typing import Any

from lexrl.algorithms import LA2C, LPPO, validation
from lexrl.order import Order
from lexrl.theory.case import case_of
from lexrl.theory.conditions import Condition, Guarantee, weakest
from lexrl.theory.corollaries import corollary_la2c, corollary_lppo
from lexrl.theory.theorem_3 import theorem_3


def guarantees(algorithm: LA2C | LPPO, world: Any, order: Order) -> tuple[Guarantee, ...]:
    """Theorem 3 and the algorithm's corollary."""
    case = case_of(algorithm, world, order)
    validation.require_per_objective(case.m, gamma=algorithm.gamma, tolerance=algorithm.tolerance)
    algorithm.dual.check(case.m)
    own = theorem_3(case)
    if isinstance(algorithm, LA2C):
        name, kind, needed = "Corollary 1 (LA2C)", "local", corollary_la2c(case)
    else:
        name, kind, needed = "Corollary 2 (LPPO)", "global", corollary_lppo(case, algorithm)
    alone = weakest(needed)
    one = Condition(
        "with one objective the algorithm converges",
        "holds" if alone == "holds" else "unknown",
        f"by {name}, whose conditions {'hold' if alone == 'holds' else 'fail' if alone == 'fails' else 'are unknown'}",
    )
    rest = Condition("Theorem 3's own conditions", weakest(own), "see there")
    return (
        Guarantee("Theorem 3", f"the policy converges to a lexicographic {kind} epsilon-optimum", (*own, one)),
        Guarantee(name, f"almost surely a lexicographic {kind} epsilon-optimum is reached", (*needed, rest)),
    )
