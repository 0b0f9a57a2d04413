"""Always the same action: a blind baseline, as driving without looking is one."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from lexrl.algorithms import validation
from lexrl.errors import InputError
from lexrl.reprs import short_repr
from lexrl.types import Discrete, Metrics, Spec, Transition


class State(NamedTuple):
    """Constant."""

    probabilities: Array
    """1 for the action, 0 for the others."""


class FixedAction(eqx.Module):
    """Always the same discrete action."""

    action: int = eqx.field(static=True, default=0)
    """The action."""
    num_envs: int = eqx.field(static=True, default=16)
    """Number of parallel environments."""
    num_steps: int = eqx.field(static=True, default=16)
    """Steps of each environment per iteration."""

    __repr__ = short_repr

    def __check_init__(self):
        validation.require_positive(num_steps=self.num_steps, num_envs=self.num_envs)

    def init(self, spec: Spec, key: Array) -> State:
        if not isinstance(spec.action_space, Discrete) or not 0 <= self.action < spec.action_space.n:
            raise InputError(f"The action is {self.action}, but this environment's actions are {spec.action_space}.")
        return State(jax.nn.one_hot(self.action, spec.action_space.n))

    def act(self, state: State, obs: Array, key: Array, *, greedy: bool = False) -> Array:
        return jnp.argmax(state.probabilities).astype(jnp.int32)

    def probabilities(self, state: State, obs: Array, *, greedy: bool = False) -> Array:
        """1 for the action, 0 for the others."""
        return state.probabilities

    def update(self, state: State, rollout: Transition, key: Array) -> tuple[State, Metrics]:
        return state, {}
