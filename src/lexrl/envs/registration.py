"""The worlds as Gymnasium environments: `gymnasium.make("lexrl/CartSafe-v0", max_steps=200)` once lexrl is imported.

By MO-Gymnasium's convention the reward is a vector, one entry for each signal, and `reward_space` describes it;
`info["signals"]` has the same numbers by name. Signals keep the world's own signs: a cost is positive. The rest is
Gymnasium's: settings go to the world's builder, time runs out by truncation, `render_mode="rgb_array"` gives frames.

Without importing lexrl first, `gymnasium.make("lexrl:lexrl/CartSafe-v0")` does so itself.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import gymnasium
import jax
import numpy as np
from gymnasium import spaces
from jax import Array

from lexrl.envs.cart_safe import CartSafe
from lexrl.envs.grid_nav import GridNav
from lexrl.envs.mountain_car_safe import MountainCarSafe
from lexrl.errors import InputError
from lexrl.types import Box, Discrete, Env, State, Step


@runtime_checkable
class Drawn(Env, Protocol):
    """A world that can show its states."""

    def render(self, state: Any) -> np.ndarray: ...


class World(gymnasium.Env[Any, Any]):
    """A JAX world, stepped from Python. `state` is the world's own, as NumPy arrays."""

    world: Drawn
    reward_space: spaces.Box
    state: State = None
    episode: int = 0
    """Where the episode's randomness comes from: drawn from Gymnasium's generator at every reset."""
    time: int = 0

    def __init__(self, world: Drawn, metadata: dict[str, Any], render_mode: str | None = None):
        if render_mode not in (None, *metadata["render_modes"]):
            raise InputError(f"The render mode is {render_mode!r}; it must be 'rgb_array' or None.")
        spec = world.spec
        self.world, self.metadata, self.render_mode = world, metadata, render_mode
        self.observation_space, self.action_space = _space(spec.observation_space), _space(spec.action_space)
        self.reward_space = spaces.Box(-np.inf, np.inf, (len(spec.objectives),), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode, self.time = int(self.np_random.integers(2**32)), 0
        self.state, obs = jax.device_get(_first(self.world, np.uint32(self.episode)))
        return self._shown(obs), {}

    def step(self, action: Any) -> tuple[Any, np.ndarray, bool, bool, dict[str, Any]]:
        action = self._understood(action)
        self.time += 1
        answer = jax.device_get(_next(self.world, self.state, action, np.uint32(self.episode), np.int32(self.time)))
        self.state = answer.state
        reward = np.asarray(answer.signals, np.float32)
        named = dict(zip(self.world.spec.objectives, reward.tolist(), strict=True))
        ended = bool(answer.discount == 0)
        out_of_time = not ended and self.time >= self.world.spec.max_episode_steps
        return self._shown(answer.obs), reward, ended, out_of_time, {"signals": named}

    def render(self) -> Any:
        if self.render_mode is None:
            gymnasium.logger.warn(
                "There is no picture without a render mode; make the world with render_mode='rgb_array'."
            )
            return None
        return self.world.render(self.state)

    def _shown(self, obs: Any) -> Any:
        return np.int64(obs) if isinstance(self.observation_space, spaces.Discrete) else np.asarray(obs, np.float32)

    def _understood(self, action: Any) -> np.ndarray:
        """The action in the numbers that the world was compiled for. Worlds clip actions of a box themselves."""
        if isinstance(self.action_space, spaces.Discrete):
            if not self.action_space.contains(action):
                raise InputError(
                    f"The action is {action!r}; it must be an integer from 0 to {self.action_space.n - 1}."
                )
            return np.asarray(action, np.int32)
        if np.shape(action) != self.action_space.shape:
            raise InputError(f"The action has shape {np.shape(action)}; it must have {self.action_space.shape}.")
        return np.asarray(action, np.float32)


class Maker(NamedTuple):
    """What Gymnasium calls to make an environment; the metadata tell it beforehand what can be shown."""

    build: Callable[..., Any]
    metadata: dict[str, Any]

    def __call__(self, render_mode: str | None = None, **settings: Any) -> World:
        return World(self.build(**settings), self.metadata, render_mode)


CartSafe = Maker(CartSafe, {"render_modes": ["rgb_array"], "render_fps": 50})
MountainCarSafe = Maker(MountainCarSafe, {"render_modes": ["rgb_array"], "render_fps": 30})
GridNav = Maker(GridNav.generate, {"render_modes": ["rgb_array"], "render_fps": 5})


# The world is an argument, so that all environments of the same kind and shape share one compiled program.
@jax.jit
def _first(world: Env, episode: Array) -> tuple[State, Array]:
    return world.reset(jax.random.fold_in(jax.random.key(episode), 0))


@jax.jit
def _next(world: Env, state: State, action: Array, episode: Array, time: Array) -> Step:
    return world.step(state, action, jax.random.fold_in(jax.random.key(episode), time))


def _space(of: Discrete | Box) -> Any:
    return spaces.Discrete(of.n) if isinstance(of, Discrete) else spaces.Box(of.low, of.high, of.shape, np.float32)
