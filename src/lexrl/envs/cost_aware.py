"""A world that also shows what some of its signals have summed up to since the episode began.

A limit on a whole episode is kept best by a policy that knows what was spent: without that, such a task is not Markov.
Observations that are numbers in a box get one more for each signal; numbered states become pairs of a state and a sum,
counted in whole units from 0 to just beyond the limit.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.constraints import Limit
from lexrl.errors import InputError
from lexrl.types import Box, Discrete, Env, Spec, Step


class CostAwareObservation(eqx.Module):
    """The world; build it with `so_far(...)`."""

    world: Any
    names: tuple[str, ...] = eqx.field(static=True)
    levels: tuple[float, ...] = eqx.field(static=True)
    """The limit of each signal: sums are shown in its units, and no further than a little beyond it."""
    rounds: tuple[int, ...] = eqx.field(static=True, default=())
    """1: sums of numbered states are rounded up, as a limit from above needs; -1: down; empty: all up."""

    @property
    def spec(self) -> Spec:
        inner = self.world.spec
        if isinstance(inner.observation_space, Discrete):
            return inner._replace(observation_space=Discrete(inner.observation_space.n * int(np.prod(self.counts))))
        return inner._replace(observation_space=Box((inner.observation_space.shape[0] + len(self.names),)))

    def reset(self, key: Array) -> tuple[Any, Array]:
        state, obs = self.world.reset(key)
        sums = jnp.zeros(len(self.names))
        return (state, sums), self._seen(obs, sums)

    def step(self, state: Any, action: Array, key: Array) -> Step:
        inner, sums = state
        answer = self.world.step(inner, action, key)
        sums = sums + answer.signals[self._columns]
        return answer._replace(state=(answer.state, sums), obs=self._seen(answer.obs, sums))

    def render(self, state: Any) -> np.ndarray:
        """A picture of the state."""
        return self.world.render(state[0])

    @property
    def _columns(self) -> np.ndarray:
        return np.array([self.world.spec.objectives.index(name) for name in self.names])

    @property
    def counts(self) -> tuple[int, ...]:
        """Of whole sums that are told apart: 0 .. the limit, and beyond."""
        return tuple(int(np.floor(level)) + 2 for level in self.levels)

    def _seen(self, obs: Array, sums: Array) -> Array:
        if not isinstance(self.world.spec.observation_space, Discrete):
            size = np.maximum(np.abs(self.levels), 1.0).astype(np.float32)
            return jnp.concatenate([obs, jnp.clip(sums / size, -2.0, 2.0)])
        number = obs
        rounds = self.rounds or (1,) * len(self.names)
        for i, (count, up) in enumerate(zip(self.counts, rounds, strict=True)):
            # A sum beyond the limit must never look as if it were within.
            whole = up * jnp.ceil(up * sums[i] - 1e-4)
            number = number * count + jnp.clip(whole, 0, count - 1).astype(jnp.int32)
        return number


def so_far(world: Env, limits: Sequence[Limit]) -> CostAwareObservation:
    """A world that also shows what the limited signals have summed up to since the episode began."""
    spec = world.spec
    if not isinstance(world, eqx.Module):
        raise InputError(
            "This learner must see what was spent so far, and an environment that is stepped from Python cannot be "
            "made to show it; use a world written in JAX."
        )
    if missing := [limit.name for limit in limits if limit.name not in spec.objectives]:
        raise InputError(
            f"A limit names {missing[0]!r}, but the signals here are {', '.join(map(repr, spec.objectives))}."
        )
    levels = tuple(float(limit.bound) for limit in limits)
    if isinstance(spec.observation_space, Discrete) and min(levels) < 0:
        raise InputError(f"Sums of numbered states are counted from 0, but a limit is {min(levels):g}.")
    if isinstance(spec.observation_space, Box) and len(spec.observation_space.shape) != 1:
        raise InputError(f"Only flat observations can show what was spent so far, not {spec.observation_space}.")
    return CostAwareObservation(
        world, tuple(limit.name for limit in limits), levels, tuple(-limit.side for limit in limits)
    )
