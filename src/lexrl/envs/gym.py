"""Any Gymnasium environment as a world for the host loop: `gym_world("CartPole-v1")`.

A scalar reward becomes the signal `reward`; a vector reward (MO-Gymnasium's convention) one signal for each entry. The
environment's time limit is lifted and handed to the loop, which cuts episodes off itself.
"""

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium import spaces
from jax import Array

from lexrl.types import Box, Discrete, InputError, Spec, Step


class GymWorld:
    """The world; build it with `gym_world(...)`. Its state is an environment in the middle of an episode."""

    own_generator = True
    """Environments draw from generators of their own, seeded at the reset."""

    def __init__(self, make: Callable[[], gymnasium.Env[Any, Any]], max_steps: int):
        one = make()
        space = getattr(one.unwrapped, "reward_space", None)
        names = ("reward",) if space is None else tuple(f"reward_{i + 1}" for i in range(space.shape[0]))
        self.make = make
        self.spec = Spec(_space(one.observation_space), _space(one.action_space), names, max_steps)
        one.close()

    def reset(self, key: Array, previous: Any = None) -> tuple[Any, Any]:
        """A new episode, in the environment of the episode before if there was one."""
        env = self.make() if previous is None else previous
        obs, _ = env.reset(seed=int(np.asarray(jax.random.bits(key))))
        return env, _seen(obs)

    def step(self, state: Any, action: Any, key: Any) -> Step:
        number = isinstance(self.spec.action, Discrete)
        box = self.spec.action
        given = int(action) if number else np.clip(np.asarray(action), box.low, box.high)  # pyright: ignore
        obs, reward, ended, _, _ = state.step(given)
        signals = np.atleast_1d(np.asarray(reward, np.float32))
        return Step(state, _seen(obs), signals, np.float32(not ended))


def gym_world(name: str, max_steps: int | None = None, **settings: Any) -> GymWorld:
    """A Gymnasium environment by its registered name.

    Args:
        name: as `gymnasium.make` takes it.
        max_steps: length of an episode; by default the environment's own limit.
        settings: handed to the environment.
    """
    try:
        limit = max_steps or gymnasium.spec(name).max_episode_steps
    except gymnasium.error.Error as error:
        raise InputError(f"Gymnasium does not know {name!r}: {error}") from error
    if limit is None:
        raise InputError(f"{name} has no time limit of its own; give max_steps, the length of an episode.")
    return GymWorld(lambda: gymnasium.make(name, max_episode_steps=-1, **settings), limit)


def _seen(obs: Any) -> np.ndarray:
    array = np.asarray(obs)
    return array.astype(np.int32 if array.dtype.kind in "iu" and array.ndim == 0 else np.float32)


def _space(space: Any) -> Discrete | Box:
    if isinstance(space, spaces.Discrete) and space.start == 0:
        return Discrete(int(space.n))
    if isinstance(space, spaces.Box):
        low, high = float(np.min(space.low)), float(np.max(space.high))
        return Box(space.shape, low if math.isfinite(low) else -math.inf, high if math.isfinite(high) else math.inf)
    raise InputError(f"The space {space} is not supported; lexrl takes Discrete spaces that begin at 0, and boxes.")
