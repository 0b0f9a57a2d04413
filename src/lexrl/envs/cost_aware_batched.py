"""`CostAwareObservation` for environments that are stepped from Python and can save their state.

Observations of any shape are flattened, and get one more entry for each limited signal.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl.constraints import Limit
from lexrl.envs.cost_aware import require_signals
from lexrl.errors import InputError
from lexrl.types import AnyArray, BatchedStep, Box, EnvSpec, Keys, Savable, SavableBatchedEnv, State, unwrapped


class Sums(NamedTuple):
    """The state of the environments, and what the signals have summed up to since their episodes began."""

    inner: State
    sums: np.ndarray
    """`[N, signals]`"""


@dataclasses.dataclass(frozen=True)
class CostAwareBatch:
    """The wrapper; `CostAwareBatch.wrap(env, limits)` makes it."""

    env: Any
    signals: tuple[str, ...]
    limits: tuple[float, ...]
    """The limit of each signal: sums are observed in its units, and no further than a little beyond it."""

    @classmethod
    def wrap(cls, env: Any, limits: Sequence[Limit]) -> "CostAwareBatch":
        """Add the sums of the limited signals to the observation."""
        if not isinstance(env, Savable) or not isinstance(env.spec.observation_space, Box):
            raise InputError(
                "This algorithm must observe what was spent so far, which cannot be added to this environment; use one "
                "that is written in JAX, or one with observations of floats that can save its state."
            )
        require_signals(env.spec, limits)
        return cls(env, tuple(limit.name for limit in limits), tuple(float(limit.bound) for limit in limits))

    @property
    def unwrapped(self) -> Any:
        """The environment inside all wrappers."""
        return unwrapped(self.env)

    @property
    def spec(self) -> EnvSpec:
        inner = self.env.spec
        return inner._replace(observation_space=Box((int(np.prod(inner.observation_space.shape)) + len(self.signals),)))

    @property
    def render_fps(self) -> float:
        return self.env.render_fps

    def render(self, state: Sums) -> np.ndarray:
        """A picture of the state, if the environment can be drawn."""
        return self.env.render(state.inner)

    def batched(self, n: int) -> "CostAwareEnvs":
        """`n` environments, before their first reset."""
        return CostAwareEnvs(self, self.env.batched(n), np.zeros((n, len(self.signals)), np.float32))

    def empty_state(self, n: int) -> Sums:
        """The state of `n` environments before their first reset."""
        return Sums(self.env.empty_state(n), np.zeros((n, len(self.signals)), np.float32))

    def inner_observation(self, obs: AnyArray) -> AnyArray:
        """The environment's own part of observations `[..., n]`."""
        own = obs[..., : -len(self.signals)]
        return own.reshape(*own.shape[:-1], *self.env.spec.observation_space.shape)


@dataclasses.dataclass
class CostAwareEnvs:
    """Environments with their sums."""

    wrapper: CostAwareBatch
    envs: SavableBatchedEnv
    sums: np.ndarray

    def reset(self, which: np.ndarray, keys: Keys) -> np.ndarray:
        obs = self.envs.reset(which, keys)
        self.sums = np.where(which[:, None], np.float32(0), self.sums)
        return self._observation(obs)

    def step(self, actions: np.ndarray, keys: Keys) -> BatchedStep:
        step = self.envs.step(actions, keys)
        columns = [self.wrapper.env.spec.signals.index(name) for name in self.wrapper.signals]
        self.sums = self.sums + step.signals[:, columns]
        return step._replace(obs=self._observation(step.obs))

    def save(self) -> Sums:
        return Sums(self.envs.save(), np.copy(self.sums))

    def restore(self, state: Sums) -> None:
        self.envs.restore(state.inner)
        self.sums = np.array(state.sums)

    def close(self) -> None:
        self.envs.close()

    def _observation(self, obs: np.ndarray) -> np.ndarray:
        unit = np.maximum(np.abs(self.wrapper.limits), 1.0).astype(np.float32)
        shown = np.clip(self.sums / unit, np.float32(-2), np.float32(2))
        return np.concatenate([obs.reshape(len(obs), -1), shown], axis=1)
