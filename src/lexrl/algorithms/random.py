"""Uniformly random actions: a baseline that every algorithm must beat."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from lexrl import distributions
from lexrl.algorithms import validation
from lexrl.reprs import short_repr
from lexrl.types import Discrete, Metrics, Spec, Transition


class State(NamedTuple):
    """Constant."""

    probabilities: Array
    """Of discrete actions; empty if actions are continuous."""
    low: Array
    high: Array
    """Bounds of continuous actions."""


class Random(eqx.Module):
    """Uniformly random actions."""

    num_envs: int = eqx.field(static=True, default=16)
    """Number of parallel environments."""
    num_steps: int = eqx.field(static=True, default=16)
    """Steps of each environment per iteration."""

    __repr__ = short_repr

    def __check_init__(self):
        validation.require_positive(num_steps=self.num_steps, num_envs=self.num_envs)

    def init(self, spec: Spec, key: Array) -> State:
        if isinstance(spec.action_space, Discrete):
            return State(jnp.full(spec.action_space.n, 1 / spec.action_space.n), jnp.zeros(()), jnp.zeros(()))
        # An unbounded action has no uniform distribution: a unit box stands in.
        low = spec.action_space.low if math.isfinite(spec.action_space.low) else -1.0
        high = spec.action_space.high if math.isfinite(spec.action_space.high) else 1.0
        return State(jnp.zeros(0), jnp.full(spec.action_space.shape, low), jnp.full(spec.action_space.shape, high))

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        if state.probabilities.shape[0]:
            return distributions.draw(state.probabilities, key)
        return jax.random.uniform(key, state.low.shape, minval=state.low, maxval=state.high)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Array:
        """The same probability for each discrete action."""
        return state.probabilities

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        return state, {}
