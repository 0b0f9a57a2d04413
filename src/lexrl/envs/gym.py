"""Any Gymnasium environment as a world for the host loop: `gym_world("CartPole-v1")`.

A scalar reward becomes the signal `reward`; a vector reward (MO-Gymnasium's convention) one signal for each entry. The
environment's time limit is lifted and handed to the loop, which cuts episodes off itself; where the environment
truncates an episode all the same, it is over, but nothing is learned from that: the task had not ended.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import jax
import numpy as np
from gymnasium import spaces
from jax import Array

from lexrl.errors import InputError
from lexrl.types import Box, Discrete, Spec


class Answer(NamedTuple):
    """A `Step`, and whether the environment itself cut the episode off."""

    state: Any
    obs: np.ndarray
    signals: np.ndarray
    discount: np.float32
    cut: bool


class GymWorld:
    """The world; build it with `gym_world(...)`. Its state is an environment in the middle of an episode."""

    own_generator = True
    """Environments draw from generators of their own, seeded at the reset."""

    def __init__(self, make: Callable[[], gymnasium.Env[Any, Any]], max_steps: int):
        if max_steps < 1:
            raise InputError(f"An episode of {max_steps} steps cannot be; max_steps must be 1 or more.")
        one = make()
        space = getattr(one.unwrapped, "reward_space", None)
        names = ("reward",) if space is None else tuple(f"reward_{i + 1}" for i in range(space.shape[0]))
        self.make = make
        try:
            self.spec = Spec(
                _space("observations", one.observation_space), _space("actions", one.action_space), names, max_steps
            )
        finally:
            one.close()

    def reset(self, key: Array, previous: Any = None) -> tuple[Any, Any]:
        """A new episode, in the environment of the episode before if there was one."""
        env = self.make() if previous is None else previous
        obs, _ = env.reset(seed=int(np.asarray(jax.random.bits(key))))
        return env, self._seen(obs)

    def step(self, state: Any, action: Any, key: Any) -> Answer:
        numbered, space = isinstance(self.spec.action, Discrete), state.action_space
        given = int(action) if numbered else np.clip(np.asarray(action), space.low, space.high)
        obs, reward, ended, truncated, _ = state.step(given)
        signals = np.atleast_1d(np.asarray(reward, np.float32))
        return Answer(state, self._seen(obs), signals, np.float32(not ended), bool(truncated))

    def close(self, state: Any) -> None:
        state.close()

    def _seen(self, obs: Any) -> np.ndarray:
        return np.asarray(obs, np.int32 if isinstance(self.spec.observation, Discrete) else np.float32)


def gym_world(name: str, max_steps: int | None = None, **settings: Any) -> GymWorld:
    """A Gymnasium environment by its registered name.

    Args:
        name: as `gymnasium.make` takes it.
        max_steps: length of an episode; by default the environment's own limit.
        settings: handed to the environment.
    """
    try:
        limit = gymnasium.spec(name).max_episode_steps if max_steps is None else max_steps
        if limit is None:
            raise InputError(f"{name} has no time limit of its own; give max_steps, the length of an episode.")
        return GymWorld(lambda: gymnasium.make(name, max_episode_steps=-1, **settings), limit)
    except gymnasium.error.Error as error:
        raise InputError(f"Gymnasium cannot make {name!r}: {error}") from error


def _space(what: str, space: Any) -> Discrete | Box:
    if isinstance(space, spaces.Discrete) and space.start == 0:
        return Discrete(int(space.n))
    if isinstance(space, spaces.Box):
        low, high = float(np.min(space.low)), float(np.max(space.high))
        return Box(space.shape, low if math.isfinite(low) else -math.inf, high if math.isfinite(high) else math.inf)
    shown = " ".join(str(space).split())
    raise InputError(
        f"The {what} are {shown}; lexrl takes Discrete spaces that begin at 0, and boxes: wrap the environment "
        "(gymnasium.wrappers has FlattenObservation, TransformAction), and give lexrl.envs.GymWorld what makes it."
    )
