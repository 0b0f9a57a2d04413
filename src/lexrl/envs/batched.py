"""The environments of one member, stepped from Python; and what is saved of them, so that a run can resume.

The state of an environment in JAX is saved as it is, and so is that of an environment which can save itself
(`lexrl.types.Savable`). Of all others the actions are saved that were taken since their episodes began: reset with the
same keys and given the same actions, they are where they were.
"""

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.envs import checker
from lexrl.types import (
    AnyArray,
    Batchable,
    BatchedEnv,
    BatchedStep,
    Box,
    Discrete,
    EnvSpec,
    HasFixedNumber,
    Keys,
    Savable,
    SavableBatchedEnv,
    Step,
    unwrapped,
)

Draw = Callable[[int | np.ndarray], Keys]
"""The keys of a time, or of a time each."""


class Trail(NamedTuple):
    """The actions of a member's environments since their episodes began."""

    actions: AnyArray
    """`[N, max_episode_steps, ...]`"""
    taken: AnyArray
    """`[N]`: how many of them count."""


def make_batched(env: Any, n: int) -> BatchedEnv:
    """`n` environments side by side, before their first reset."""
    if isinstance(env, eqx.Module):
        return CompiledEnvs(env)
    return env.batched(n) if isinstance(env, Batchable) else PythonEnvs(env, [None] * n)


def num_side_by_side(env: Any, n: int, episodes: int) -> int:
    """How many of `n` environments play so many episodes: no more than that, unless they can only be had together."""
    return n if isinstance(unwrapped(env), HasFixedNumber) else min(n, episodes)


@dataclasses.dataclass
class CompiledEnvs:
    """An environment written in JAX: all copies in one compiled step."""

    env: Any
    state: Any = None

    def reset(self, which: np.ndarray, keys: Keys) -> np.ndarray:
        fresh, obs = _reset_all(self.env, keys())
        self.state = fresh if which.all() else _choose(which, fresh, self.state)
        return np.asarray(obs)

    def step(self, actions: np.ndarray, keys: Keys) -> BatchedStep:
        step = _step_all(self.env, self.state, actions, keys())
        self.state = step.state
        obs, signals, discount = jax.device_get((step.obs, step.signals, step.discount))
        return BatchedStep(obs, signals, discount, np.zeros(len(actions), bool))

    def save(self) -> Any:
        return self.state

    def restore(self, state: Any) -> None:
        self.state = state

    def close(self) -> None:
        pass


@dataclasses.dataclass(frozen=True)
class PythonEnvs:
    """Any object with `reset(key)` and `step(state, action, key)`, one copy after the other."""

    env: Any
    states: list[Any]

    def reset(self, which: np.ndarray, keys: Keys) -> np.ndarray:
        each, seen = keys(), {}
        for i in np.flatnonzero(which):
            self.states[i], seen[i] = self.env.reset(each[i])
            checker.check_observation(self.env.spec, seen[i], "reset")
        some = next(iter(seen.values()))
        return np.stack([seen.get(i, some) for i in range(len(self.states))])

    def step(self, actions: np.ndarray, keys: Keys) -> BatchedStep:
        steps = [self.env.step(*given) for given in zip(self.states, actions, keys(), strict=True)]
        for step in steps:
            checker.check_step(self.env.spec, step)
        self.states[:] = [step.state for step in steps]
        obs = np.stack([np.asarray(step.obs) for step in steps])
        signals = np.stack([np.asarray(step.signals) for step in steps])
        discount = np.array([float(step.discount) for step in steps], np.float32)
        return BatchedStep(obs, signals, discount, np.zeros(len(steps), bool))

    def close(self) -> None:
        pass


@dataclasses.dataclass(frozen=True)
class RecordedEnvs:
    """Other environments, and the trail of their actions."""

    envs: BatchedEnv
    trail: Trail

    def reset(self, which: np.ndarray, keys: Keys) -> np.ndarray:
        self.trail.taken[which] = 0
        return self.envs.reset(which, keys)

    def step(self, actions: np.ndarray, keys: Keys) -> BatchedStep:
        self.trail.actions[np.arange(len(actions)), self.trail.taken] = actions
        self.trail.taken[:] += 1
        return self.envs.step(actions, keys)

    def save(self) -> Trail:
        return jax.tree.map(np.copy, self.trail)

    def close(self) -> None:
        self.envs.close()


def empty_state(env: Any, spec: EnvSpec, n: int) -> Any:
    """What is saved of an environment outside JAX before its first reset."""
    if isinstance(env, Savable):
        return env.empty_state(n)
    return Trail(zeros(spec.action_space, n, spec.max_episode_steps), np.zeros(n, np.int32))


def zeros(space: Discrete | Box, *leading: int) -> np.ndarray:
    """Zeros in place of observations or actions."""
    if isinstance(space, Discrete):
        return np.zeros(leading, np.int32)
    return np.zeros((*leading, *space.shape), np.float32)


def reset_where(envs: BatchedEnv, which: np.ndarray, obs: np.ndarray, keys: Keys) -> np.ndarray:
    """Reset some environments; the observations of all."""
    return np.where(which.reshape(-1, *[1] * (obs.ndim - 1)), envs.reset(which, keys), obs)


def restore(
    envs: BatchedEnv, state: Any, obs: np.ndarray, time: int, resets: Draw, steps: Draw
) -> tuple[Any, np.ndarray]:
    """Environments as they were at a time, and their observations (meaningless at time 0, before the first reset)."""
    if isinstance(envs, SavableBatchedEnv):
        if time == 0 and not isinstance(envs, CompiledEnvs):
            return envs, envs.reset(np.ones(len(obs), bool), resets(0))
        envs.restore(state)
        return envs, obs
    trail = jax.tree.map(np.array, state)
    replayed = _replay(envs, trail, time, resets, steps)
    if time > 0 and not np.array_equal(replayed, obs):
        warnings.warn(
            "The environment did not repeat itself with the same seeds and actions: the run continues, but not with "
            "the numbers it would have had without the interruption.",
            stacklevel=2,
        )
    return RecordedEnvs(envs, trail), replayed


def _replay(envs: BatchedEnv, trail: Trail, time: int, resets: Draw, steps: Draw) -> np.ndarray:
    """Reset each environment at the time when its episode began, and repeat its actions; the last observations.

    All environments take a step at once; what one does before its episode begins does not matter.
    """
    begun, rows = time - trail.taken, np.arange(len(trail.taken))
    obs = envs.reset(np.ones(len(begun), bool), resets(begun))
    for now in range(int(begun.min()), time):
        step = envs.step(trail.actions[rows, np.maximum(now - begun, 0)], steps(now))
        obs, begins = step.obs, (begun == now + 1) | (step.discount == 0) | step.truncated
        if begins.any():
            obs = reset_where(envs, begins, obs, resets(begun))
    return obs


def choose(where: Array, yes: Any, no: Any) -> Any:
    """Pick between two trees, environment by environment."""
    return jax.tree.map(lambda a, b: jnp.where(where.reshape(-1, *[1] * (a.ndim - 1)), a, b), yes, no)


def over_envs(function: Callable[..., Any], n: int) -> Callable[..., Any]:
    """`vmap`, except that a single environment is spared the batched look-ups."""
    if n > 1:
        return jax.vmap(function)

    def alone(*arguments: Any) -> Any:
        answer = function(*jax.tree.map(lambda leaf: leaf[0], arguments))
        return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], answer)

    return alone


@jax.jit
def _reset_all(env: Any, keys: Array) -> Any:
    return over_envs(env.reset, keys.shape[0])(keys)


@jax.jit
def _step_all(env: Any, state: Any, actions: Array, keys: Array) -> Step:
    return over_envs(env.step, keys.shape[0])(state, actions, keys)


_choose = jax.jit(choose)
