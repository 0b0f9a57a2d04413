"""A learner of one objective among several: it learns from that one, and the others are only watched.

So a learner that knows nothing of costs can stand beside others in a comparison, and its costs are seen.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from lexrl.errors import InputError
from lexrl.types import Metrics, Spec, Transition


class State(NamedTuple):
    """The learner's own, and where its objective stands."""

    agent: Any
    column: Int[Array, ""]


class SingleObjective(eqx.Module):
    """Learn one objective with an algorithm for one; the others of the order are only watched."""

    algorithm: Any
    objective: str = eqx.field(static=True)

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
                f"{self.objective!r} is to be learned, but the order has {', '.join(map(repr, spec.objectives))}; pick "
                "one of these."
            )
        column = spec.objectives.index(self.objective)
        alone = spec._replace(objectives=(self.objective,), signs=spec.signs[column : column + 1])
        return State(self.algorithm.init(alone, key), jnp.int32(column))

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        return self.algorithm.act(state.agent, obs, key, greedy=greedy)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Float[Array, " A"]:
        """The policy's chances of each numbered action."""
        return self.algorithm.probabilities(state.agent, obs, greedy=greedy)

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        alone = rollout._replace(reward=jnp.take(rollout.reward, state.column, axis=-1)[..., None])
        agent, metrics = self.algorithm.update(state.agent, alone, key)
        # What there is one of per objective is a single number here.
        return state._replace(agent=agent), {name: jnp.sum(value) for name, value in metrics.items()}
