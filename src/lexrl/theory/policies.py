"""A policy-based algorithm on its environment: what Theorem 3 and its corollaries ask about, and what they share.

The theorem lifts what is known of one objective to several; that A2C or PPO converges with one comes from the
corollary.
"""

from typing import Any, NamedTuple

import numpy as np

from lexrl.algorithms import validation
from lexrl.algorithms.average_reward import LA2CAverageReward, LPPOAverageReward
from lexrl.algorithms.paper_la2c import PaperLA2C
from lexrl.algorithms.paper_lppo import PaperLPPO
from lexrl.algorithms.q_critic import LPPOQCritic
from lexrl.algorithms.second_order import LA2CSecondOrder, LPPOSecondOrder
from lexrl.momdp import MOMDP
from lexrl.order import Order
from lexrl.theory.conditions import Condition, Guarantee, weakest
from lexrl.types import Box, Discrete, HasModel

AnyLA2C = PaperLA2C | LA2CSecondOrder | LA2CAverageReward
AnyLPPO = PaperLPPO | LPPOSecondOrder | LPPOAverageReward | LPPOQCritic


class Case(NamedTuple):
    """What is checked."""

    algorithm: AnyLA2C | AnyLPPO
    env: Any
    observation: Discrete | Box
    action: Discrete | Box
    process: MOMDP | None
    """The finite process behind the environment, where it is known."""
    order: Order

    @property
    def m(self) -> int:
        return len(self.order.objectives)

    @property
    def critic_hidden_sizes(self) -> tuple[int, ...]:
        networks = self.algorithm.networks
        return networks.hidden_sizes if networks.critic_hidden_sizes is None else networks.critic_hidden_sizes

    @property
    def gamma(self) -> tuple[float, ...] | float:
        return 1.0 if isinstance(self.algorithm, LA2CAverageReward | LPPOAverageReward) else self.algorithm.gamma

    @property
    def discounted_states(self) -> bool:
        if isinstance(self.algorithm, LA2CAverageReward | LPPOAverageReward):
            return False
        return self.algorithm.discounted_states

    @property
    def average_reward(self) -> bool:
        return isinstance(self.algorithm, LA2CAverageReward | LPPOAverageReward)


def case_of(algorithm: AnyLA2C | AnyLPPO, env: Any, order: Order) -> Case:
    """The case, with the process behind the environment where it is known; settings that do not fit are refused."""
    if isinstance(env, MOMDP):
        spaces = Discrete(env.num_states), Discrete(env.num_actions)
        case = Case(algorithm, env, *spaces, env.ordered(order), order)
    else:
        # No condition is about the gamma of the process.
        process = env.momdp(0.5).ordered(order) if isinstance(env, HasModel) else None
        case = Case(algorithm, env, env.spec.observation_space, env.spec.action_space, process, order)
    validation.require_per_objective(case.m, gamma=case.gamma, tolerance=algorithm.tolerance)
    algorithm.multipliers.check(case.m)
    return case


def guarantees(
    name: str, kind: str, corollary: tuple[Condition, ...], theorem: tuple[Condition, ...]
) -> tuple[Guarantee, Guarantee]:
    """Theorem 3 and one of its corollaries: each is a condition of the other."""
    alone = weakest(corollary)
    one = Condition(
        "with one objective the algorithm converges",
        "holds" if alone == "holds" else "unknown",
        f"by {name}, whose conditions {'hold' if alone == 'holds' else 'fail' if alone == 'fails' else 'are unknown'}",
    )
    rest = Condition("Theorem 3's own conditions", weakest(theorem), "see there")
    return (
        Guarantee("Theorem 3", f"the policy converges to a lexicographic {kind} epsilon-optimum", (*theorem, one)),
        Guarantee(name, f"almost surely a lexicographic {kind} epsilon-optimum is reached", (*corollary, rest)),
    )


def smooth_policy(case: Case) -> Condition:
    """Can the policy be differentiated twice?"""
    networks = case.algorithm.networks
    return smooth("the policy is twice continuously differentiable", networks.hidden_sizes, networks.activation)


def smooth(text: str, hidden: tuple[int, ...], activation: str) -> Condition:
    """Is a network with these layers smooth?"""
    if not hidden:
        return Condition(text, "holds", "no hidden layers")
    if activation == "relu":
        return Condition(text, "fails", "relu has no derivative at 0")
    return Condition(text, "holds", f"{activation} is smooth")


def discounted(case: Case, *, average: bool) -> Condition:
    """Are the objectives of the kind a corollary is about? `average`: limit averages are, too."""
    text = f"objectives are discounted{' or limit averages' if average else ''}"
    if case.average_reward:
        return Condition(text, "holds" if average else "fails", "limit averages")
    largest = float(np.max(case.gamma))
    return Condition(text, "holds" if largest < 1 else "fails", f"gamma is at most {largest:g}")


def td_0(case: Case) -> Condition:
    gae_lambda = float(case.algorithm.gae_lambda)
    return Condition(
        "critics are updated by TD(0)", "fails" if gae_lambda else "holds", f"gae_lambda is {gae_lambda:g}"
    )


def units(case: Case) -> Condition:
    text = "critics learn from rewards in units that converge"
    if not case.algorithm.normalize_advantage:
        return Condition(text, "holds", "the unit is an average over all updates")
    mean = " and so is the mean reward" if case.average_reward else ""
    return Condition(text, "fails", f"the unit is a running average whose rate never falls below 0.01{mean}")


def discounted_states(case: Case, whose: str) -> Condition:
    """Corollary 1 does not list this; its proof assumes it."""
    text = f"the {whose} samples are from the discounted state distribution"
    if case.average_reward:
        return Condition(text, "holds", "limit averages have no discount")
    if case.discounted_states:
        return Condition(text, "holds", "the t-th step of an episode counts gamma^t")
    return Condition(text, "fails", "every step of an episode counts the same (discounted_states is off)")
