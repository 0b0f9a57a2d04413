"""The learner that does not learn: every action with the same chance, for ever. What others must beat."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from lexrl import distributions
from lexrl.algorithms import validation
from lexrl.types import Discrete, Metrics, Spec, Transition


class State(NamedTuple):
    """Nothing changes."""

    chances: Array
    """Of numbered actions; empty if actions are continuous."""
    low: Array
    high: Array
    """Bounds of continuous actions."""


class Random(eqx.Module):
    """Uniformly random actions."""

    worlds: int = eqx.field(static=True, default=16)
    """Worlds side by side."""
    rollout: int = eqx.field(static=True, default=16)
    """Steps of each world between two looks at the clock."""

    def __check_init__(self):
        validation.require_positive(rollout=self.rollout, worlds=self.worlds)

    def init(self, spec: Spec, key: Array) -> State:
        if isinstance(spec.action, Discrete):
            return State(jnp.full(spec.action.n, 1 / spec.action.n), jnp.zeros(()), jnp.zeros(()))
        # An unbounded action has no uniform distribution: a unit box stands in.
        low = spec.action.low if math.isfinite(spec.action.low) else -1.0
        high = spec.action.high if math.isfinite(spec.action.high) else 1.0
        return State(jnp.zeros(0), jnp.full(spec.action.shape, low), jnp.full(spec.action.shape, high))

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        if state.chances.shape[0]:
            return distributions.draw(state.chances, key)
        return jax.random.uniform(key, state.low.shape, minval=state.low, maxval=state.high)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Array:
        """The same chance for each numbered action."""
        return state.chances

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        return state, {}
