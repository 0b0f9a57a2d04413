"""An algorithm for one objective, applied to one of several: the others are only recorded.

This makes an algorithm that ignores costs comparable with others: its costs are reported, too.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from lexrl.errors import InputError
from lexrl.reprs import short_repr
from lexrl.types import Metrics, Spec, Transition


class State(NamedTuple):
    """The state of the algorithm, and the column of its objective."""

    agent: Any
    column: Int[Array, ""]


class SingleObjective(eqx.Module):
    """Optimize one objective of the order with an algorithm for one; the others are only recorded."""

    algorithm: Any
    objective: str = eqx.field(static=True)

    __repr__ = short_repr

    @property
    def num_envs(self) -> int:
        return self.algorithm.num_envs

    @property
    def num_steps(self) -> int:
        return self.algorithm.num_steps

    @property
    def gamma(self) -> float:
        return self.algorithm.gamma

    def init(self, spec: Spec, key: Array) -> State:
        if self.objective not in spec.objectives:
            raise InputError(
                f"The objective is {self.objective!r}, but the order has {', '.join(map(repr, spec.objectives))}; pick "
                "one of these."
            )
        column = spec.objectives.index(self.objective)
        alone = spec._replace(objectives=(self.objective,), signs=spec.signs[column : column + 1])
        return State(self.algorithm.init(alone, key), jnp.int32(column))

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        return self.algorithm.act(state.agent, obs, key, greedy=greedy)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """The policy's probability of each discrete action."""
        return self.algorithm.probabilities(state.agent, obs, greedy=greedy)

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        alone = rollout._replace(reward=jnp.take(rollout.reward, state.column, axis=-1)[..., None])
        agent, metrics = self.algorithm.update(state.agent, alone, key)
        # The algorithm has one objective, so its metrics per objective are single numbers.
        return state._replace(agent=agent), {name: jnp.sum(value) for name, value in metrics.items()}
