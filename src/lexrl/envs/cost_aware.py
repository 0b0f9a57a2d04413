"""A wrapper that adds to the observation what some signals have summed up to since the episode began.

A limit on a whole episode is kept best by a policy that knows what was spent: without it, the task is not Markov. A box
gets one more entry for each signal; discrete states become pairs of a state and a sum, counted in whole units from 0 to
just beyond the limit.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.constraints import Limit
from lexrl.errors import InputError
from lexrl.types import AnyArray, Box, Discrete, Env, EnvSpec, Step, unwrapped


def require_signals(spec: EnvSpec, limits: Sequence[Limit]) -> None:
    """Raise an error if a limit names a signal that the environment does not have."""
    if missing := [limit.name for limit in limits if limit.name not in spec.signals]:
        raise InputError(
            f"A limit names {missing[0]!r}, but the signals here are {', '.join(map(repr, spec.signals))}."
        )


class CostAwareObservation(eqx.Module):
    """The wrapper; `CostAwareObservation.wrap(env, limits)` makes it."""

    env: Any
    signals: tuple[str, ...] = eqx.field(static=True)
    limits: tuple[float, ...] = eqx.field(static=True)
    """The limit of each signal: sums are observed in its units, and no further than a little beyond it."""
    rounding: tuple[int, ...] = eqx.field(static=True, default=())
    """1: sums of discrete states are rounded up, as an upper limit needs; -1: down; empty: all up."""

    @classmethod
    def wrap(cls, env: Env, limits: Sequence[Limit]) -> "CostAwareObservation":
        """Add the sums of the limited signals to the observation."""
        spec = env.spec
        require_signals(spec, limits)
        bounds = tuple(float(limit.bound) for limit in limits)
        if isinstance(spec.observation_space, Discrete) and min(bounds) < 0:
            raise InputError(f"Sums of discrete states are counted from 0, but a limit is {min(bounds):g}.")
        if isinstance(spec.observation_space, Box) and len(spec.observation_space.shape) != 1:
            raise InputError(
                f"The observations are {spec.observation_space}; sums can only be added to flat ones: flatten them."
            )
        return cls(env, tuple(limit.name for limit in limits), bounds, tuple(-limit.side for limit in limits))

    @property
    def unwrapped(self) -> Any:
        """The environment inside all wrappers."""
        return unwrapped(self.env)

    @property
    def spec(self) -> EnvSpec:
        inner = self.env.spec
        if isinstance(inner.observation_space, Discrete):
            return inner._replace(observation_space=Discrete(inner.observation_space.n * self._num_sums))
        return inner._replace(observation_space=Box((inner.observation_space.shape[0] + len(self.signals),)))

    def reset(self, key: Array) -> tuple[Any, Array]:
        state, obs = self.env.reset(key)
        sums = jnp.zeros(len(self.signals))
        return (state, sums), self._observation(obs, sums)

    def step(self, state: Any, action: Array, key: Array) -> Step:
        inner, sums = state
        step = self.env.step(inner, action, key)
        sums = sums + step.signals[self._columns]
        return step._replace(state=(step.state, sums), obs=self._observation(step.obs, sums))

    def render(self, state: Any) -> np.ndarray:
        """A picture of the state, if the environment can be drawn."""
        return self.env.render(state[0])

    @property
    def render_fps(self) -> float:
        return self.env.render_fps

    def inner_observation(self, obs: AnyArray) -> AnyArray:
        """The environment's own part of observations `[...]` or `[..., n]`."""
        if isinstance(self.env.spec.observation_space, Discrete):
            return obs // self._num_sums
        return obs[..., : -len(self.signals)]

    @property
    def _columns(self) -> np.ndarray:
        return np.array([self.env.spec.signals.index(name) for name in self.signals])

    @property
    def _counts(self) -> tuple[int, ...]:
        """How many sums are distinguished for each signal: 0 .. the limit, and beyond."""
        return tuple(int(np.floor(limit)) + 2 for limit in self.limits)

    @property
    def _num_sums(self) -> int:
        return int(np.prod(self._counts))

    def _observation(self, obs: Array, sums: Array) -> Array:
        if not isinstance(self.env.spec.observation_space, Discrete):
            unit = np.maximum(np.abs(self.limits), 1.0).astype(np.float32)
            return jnp.concatenate([obs, jnp.clip(sums / unit, -2.0, 2.0)])
        number = obs
        rounding = self.rounding or (1,) * len(self.signals)
        for i, (count, up) in enumerate(zip(self._counts, rounding, strict=True)):
            # A sum beyond the limit must never look as if it were within.
            whole = up * jnp.ceil(up * sums[i] - 1e-4)
            number = number * count + jnp.clip(whole, 0, count - 1).astype(jnp.int32)
        return number
