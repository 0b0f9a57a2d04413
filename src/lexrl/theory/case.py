"""A learner of policies in its world: what Theorem 3 and its corollaries ask about, and what they have in common."""

from typing import Any, NamedTuple

from lexrl.algorithms import LA2C, LPPO
from lexrl.momdp import MOMDP
from lexrl.order import Order
from lexrl.theory.conditions import Condition
from lexrl.types import Box, Discrete


class Case(NamedTuple):
    """What is to be checked."""

    algorithm: LA2C | LPPO
    world: Any
    observation: Discrete | Box
    action: Discrete | Box
    process: MOMDP | None
    """The finite process behind the world, where it is known."""
    order: Order

    @property
    def m(self) -> int:
        return len(self.order.objectives)

    @property
    def critic_hidden_sizes(self) -> tuple[int, ...]:
        networks = self.algorithm.networks
        return networks.hidden_sizes if networks.critic_hidden_sizes is None else networks.critic_hidden_sizes


def case_of(algorithm: LA2C | LPPO, world: Any, order: Order) -> Case:
    """The case, with the process behind the world where it is known."""
    if isinstance(world, MOMDP):
        spaces = Discrete(world.n_states), Discrete(world.n_actions)
        return Case(algorithm, world, *spaces, world.ordered(order), order)
    process = world.momdp(0.5).ordered(order) if hasattr(world, "momdp") else None  # no condition is about its gamma
    return Case(algorithm, world, world.spec.observation_space, world.spec.action_space, process, order)


def smooth_policy(case: Case) -> Condition:
    """Can the policy be differentiated twice?"""
    networks = case.algorithm.networks
    return smooth("the policy is twice continuously differentiable", networks.hidden_sizes, networks.activation)


def smooth(text: str, hidden: tuple[int, ...], activation: str) -> Condition:
    """Is a network as smooth as that?"""
    if not hidden:
        return Condition(text, "holds", "no hidden layers")
    if activation == "relu":
        return Condition(text, "fails", "relu has no derivative at 0")
    return Condition(text, "holds", f"{activation} is smooth")
