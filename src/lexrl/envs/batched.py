"""The worlds of one member, alive; and what is kept of them, so that they can be brought back to life.

A world in JAX has a state that can be kept as it is. Of all others the actions are kept that were taken since their
episodes began: reset with the same keys, and asked to do the same again, they are where they were.
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
from lexrl.envs.crowd import BatchedEnv, BatchedStep, Keys
from lexrl.types import AnyArray, Box, Discrete, Spec, Step

Draw = Callable[[int | np.ndarray], Keys]
"""The keys of a time, or of a time each."""


class Trail(NamedTuple):
    """What the worlds of a member were asked to do since their episodes began."""

    actions: AnyArray
    """`[N, max_steps, ...]`"""
    taken: AnyArray
    """`[N]`: how many of them count."""


def alive(env: Any, n: int) -> BatchedEnv:
    """`n` worlds side by side, before their first reset."""
    if isinstance(env, eqx.Module):
        return Compiled(env)
    return env.crowd(n) if hasattr(env, "crowd") else Plain(env, [None] * n)


@dataclasses.dataclass
class Compiled:
    """A world written in JAX: all of them in one compiled step."""

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

    def close(self) -> None:
        pass


@dataclasses.dataclass(frozen=True)
class Plain:
    """Any object with `reset(key)` and `step(state, action, key)`, world by world."""

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
        obs, signals = (np.stack([np.asarray(getattr(step, part)) for step in steps]) for part in ("obs", "signals"))
        discount = np.array([float(step.discount) for step in steps], np.float32)
        return BatchedStep(obs, signals, discount, np.zeros(len(steps), bool))

    def close(self) -> None:
        pass


@dataclasses.dataclass(frozen=True)
class Recorded:
    """Other worlds, and the trail they leave."""

    crowd: BatchedEnv
    trail: Trail

    @property
    def state(self) -> Trail:
        return jax.tree.map(np.copy, self.trail)

    def reset(self, which: np.ndarray, keys: Keys) -> np.ndarray:
        self.trail.taken[which] = 0
        return self.crowd.reset(which, keys)

    def step(self, actions: np.ndarray, keys: Keys) -> BatchedStep:
        self.trail.actions[np.arange(len(actions)), self.trail.taken] = actions
        self.trail.taken[:] += 1
        return self.crowd.step(actions, keys)

    def close(self) -> None:
        self.crowd.close()


def no_trail(spec: Spec, n: int) -> Trail:
    """The trail of worlds that have not moved yet."""
    return Trail(blank(spec.action_space, n, spec.max_episode_steps), np.zeros(n, np.int32))


def blank(space: Discrete | Box, *leading: int) -> np.ndarray:
    """Zeros where observations or actions of a space will be."""
    if isinstance(space, Discrete):
        return np.zeros(leading, np.int32)
    return np.zeros((*leading, *space.shape), np.float32)


def renewed(crowd: BatchedEnv, which: np.ndarray, obs: np.ndarray, keys: Keys) -> np.ndarray:
    """New episodes in some worlds; what all of them show then."""
    return np.where(which.reshape(-1, *[1] * (obs.ndim - 1)), crowd.reset(which, keys), obs)


def revived(
    crowd: BatchedEnv, state: Any, obs: np.ndarray, time: int, resets: Draw, steps: Draw
) -> tuple[Any, np.ndarray]:
    """Worlds as they were at a time, and what they show; before the first reset of all, nobody knows that."""
    if isinstance(crowd, Compiled):
        return Compiled(crowd.env, state), obs
    trail = jax.tree.map(np.array, state)
    again = _again(crowd, trail, time, resets, steps)
    if time > 0 and not np.array_equal(again, obs):
        warnings.warn(
            "The environment did not do the same again when it was given the same seeds and actions: the run goes on, "
            "but not with the numbers it would have had.",
            stacklevel=2,
        )
    return Recorded(crowd, trail), again


def _again(crowd: BatchedEnv, trail: Trail, time: int, resets: Draw, steps: Draw) -> np.ndarray:
    """Reset each world at the time when its episode began, and take the actions since; what they show in the end.

    All worlds take a step at once, so those that begin later walk about before, which does not matter.
    """
    begun, rows = time - trail.taken, np.arange(len(trail.taken))
    obs = crowd.reset(np.ones(len(begun), bool), resets(begun))
    for now in range(int(begun.min()), time):
        answers = crowd.step(trail.actions[rows, np.maximum(now - begun, 0)], steps(now))
        obs, begins = answers.obs, (begun == now + 1) | (answers.discount == 0) | answers.cut
        if begins.any():
            obs = renewed(crowd, begins, obs, resets(begun))
    return obs


def choose(where: Array, yes: Any, no: Any) -> Any:
    """Pick between two trees, world by world."""
    return jax.tree.map(lambda a, b: jnp.where(where.reshape(-1, *[1] * (a.ndim - 1)), a, b), yes, no)


def over_envs(function: Callable[..., Any], n: int) -> Callable[..., Any]:
    """`vmap`, except that a single world is spared the batched look-ups."""
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
