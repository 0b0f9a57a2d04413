"""Corollary 2 of Theorem 3: when PPO converges with one objective, and LPPO with several."""

import math
from typing import Any

from lexrl.algorithms.q_critic import LPPOQCritic
from lexrl.order import Order
from lexrl.theory import policies
from lexrl.theory.conditions import Condition, Guarantee, Verdict, bounded, none_of
from lexrl.theory.policies import AnyLPPO, Case
from lexrl.theory.theorem_3 import theorem_3
from lexrl.types import Discrete


def of_lppo(algorithm: AnyLPPO, env: Any, order: Order) -> tuple[Guarantee, ...]:
    """Theorem 3 and Corollary 2, for the paper's LPPO and its variants."""
    case = policies.case_of(algorithm, env, order)
    activation = algorithm.networks.activation
    q_critic: Verdict = "holds" if isinstance(algorithm, LPPOQCritic) else "fails"
    relu: Verdict = "holds" if activation == "relu" else "fails"
    conflict = "Theorem 3 wants a policy that is twice differentiable, which relu is not"
    own = (
        _compact(case),
        bounded(case.env, case.process),
        policies.discounted(case, average=False),
        _two_layers(case),
        Condition("activations are relu", relu, f"{activation} ({conflict})"),
        Condition(
            "initial weights: input normal with variance 1 / d, output uniform in [-1, 1]",
            "fails",
            "output weights are normal and small (0.01 / sqrt(width) in the actor, 0.1 / sqrt(width) in the critic)",
        ),
        Condition(
            "Q-critics take the place of the advantage", q_critic, f"the algorithm is {type(algorithm).__name__}"
        ),
        policies.td_0(case),
        policies.units(case),
        policies.discounted_states(case, "actor's"),
        policies.discounted_states(case, "critics'"),
        Condition("the critics can be every policy's values", "unknown", "the values are not known"),
        _density(case),
        _penalty(algorithm),
        _kappa(algorithm),
    )
    return policies.guarantees("Corollary 2 (LPPO)", "global", own, theorem_3(case))


def _compact(case: Case) -> Condition:
    text = "the state space is compact, actions are finite"
    if not isinstance(case.action, Discrete):
        return Condition(text, "fails", f"actions are in {case.action}")
    seen = case.observation
    if isinstance(seen, Discrete) or (math.isfinite(seen.low) and math.isfinite(seen.high)):
        return Condition(text, "holds", f"{seen}, {case.action}")
    return Condition(text, "unknown", f"observations are in {seen}")


def _two_layers(case: Case) -> Condition:
    text = "a softmax policy and critics with one hidden layer"
    others = {
        f"hidden layers of the policy: {case.algorithm.networks.hidden_sizes}": len(
            case.algorithm.networks.hidden_sizes
        )
        != 1,
        f"hidden layers of the critics: {case.critic_hidden_sizes}": len(case.critic_hidden_sizes) != 1,
        "continuous actions have a normal policy": not isinstance(case.action, Discrete),
    }
    return none_of(
        text, others, f"widths {case.algorithm.networks.hidden_sizes[-1:]} and {case.critic_hidden_sizes[-1:]}"
    )


def _density(case: Case) -> Condition:
    text = "no policy's states and actions concentrate near a hyperplane through 0"
    if case.process is not None or isinstance(case.observation, Discrete):
        return Condition(text, "fails", "of finitely many, some lie on such a plane and have positive probability")
    return Condition(text, "unknown", "the distribution of states is not known")


def _penalty(algorithm: AnyLPPO) -> Condition:
    text = "the objective is E[rho Q_i] - kappa KL(pi || pi_old)"
    if algorithm.surrogate == "clip":
        return Condition(text, "fails", "the ratio is clipped, and nothing penalized")
    return Condition(text, "holds", "penalized by the divergence of the new policy from the old")


def _kappa(algorithm: AnyLPPO) -> Condition:
    text = "kappa > 1 in the end, for an epsilon that vanishes as networks widen"
    if algorithm.surrogate == "clip":
        return Condition(text, "fails", "there is no penalty")
    return Condition(text, "unknown", f"kappa is adapted to a divergence of {algorithm.kl_target:g}")
