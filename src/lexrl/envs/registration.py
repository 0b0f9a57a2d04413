"""The environments in Gymnasium: `gymnasium.make("lexrl/CartSafe-v0", observe_cos_sin=True)`.

Import Gymnasium before lexrl: `import lexrl` alone must stay quick, so it registers only with what is imported already.
`envs/exported.py` registers only strings that name the makers below; this module is imported when an environment is
made. Without importing lexrl first, `gymnasium.make("lexrl:lexrl/CartSafe-v0")` does so itself.

By MO-Gymnasium's convention the reward is a vector, one entry per signal, and `reward_space` describes it;
`info["signals"]` has the same numbers by name. Signals keep the environment's own signs: a cost is positive. The rest
is Gymnasium's: settings are passed on, episodes are truncated, `render_mode="rgb_array"` gives frames. One name
differs: `gymnasium.make` keeps `max_episode_steps` for its TimeLimit wrapper, so the environment's own length, by which
CartSafe charges, is set with `time_limit`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import jax
import numpy as np
from gymnasium import spaces
from jax import Array

from lexrl.backend import ensure_configured
from lexrl.envs import cart_safe, grid_nav, mountain_car_safe
from lexrl.envs.intersection import env as intersection
from lexrl.errors import InputError
from lexrl.types import Box, Discrete, Env, State, Step

RENDER_MODES = ["rgb_array"]


class ExportedEnv(gymnasium.Env[Any, Any]):
    """An environment of lexrl's, stepped from Python. `state` is its state, as NumPy arrays."""

    inner: Any
    reward_space: spaces.Box
    state: State = None
    episode: int = 0
    """The seed of the episode, drawn from Gymnasium's generator at every reset."""
    time: int = 0

    def __init__(self, env: Any, render_mode: str | None = None):
        if render_mode not in (None, *RENDER_MODES):
            raise InputError(f"The render mode is {render_mode!r}; it must be 'rgb_array' or None.")
        ensure_configured()
        spec = env.spec
        self.inner, self.render_mode = env, render_mode
        self.metadata = {"render_modes": RENDER_MODES, "render_fps": env.render_fps}
        self.observation_space, self.action_space = _space(spec.observation_space), _space(spec.action_space)
        self.reward_space = spaces.Box(-np.inf, np.inf, (len(spec.signals),), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode, self.time = int(self.np_random.integers(2**32)), 0
        if isinstance(self.inner, intersection.Intersection):
            # The same seed as in highway-env begins the same episode.
            self.episode = self.episode if seed is None else seed % 2**32
            self.state, obs = self.inner.begin(self.episode)
        else:
            self.state, obs = jax.device_get(_reset(self.inner, np.uint32(self.episode)))
        return self._observation(obs), {}

    def step(self, action: Any) -> tuple[Any, np.ndarray, bool, bool, dict[str, Any]]:
        action = self._checked(action)
        self.time += 1
        step = self._step(action)
        self.state = step.state
        reward = np.asarray(step.signals, np.float32)
        named = dict(zip(self.inner.spec.signals, reward.tolist(), strict=True))
        terminated = bool(step.discount == 0)
        truncated = not terminated and self.time >= self.inner.spec.max_episode_steps
        return self._observation(step.obs), reward, terminated, truncated, {"signals": named}

    def _step(self, action: np.ndarray) -> Step:
        if isinstance(self.inner, intersection.Intersection):
            return self.inner.step(self.state, action)
        return jax.device_get(_step(self.inner, self.state, action, np.uint32(self.episode), np.int32(self.time)))

    def render(self) -> Any:
        if self.render_mode is None:
            gymnasium.logger.warn(
                "There is no picture without a render mode; make the environment with render_mode='rgb_array'."
            )
            return None
        return self.inner.render(self.state)

    def _observation(self, obs: Any) -> Any:
        return np.int64(obs) if isinstance(self.observation_space, spaces.Discrete) else np.asarray(obs, np.float32)

    def _checked(self, action: Any) -> np.ndarray:
        """The action with the type that the step is compiled for. The environments clip continuous actions."""
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
    """What Gymnasium calls to make an environment; it looks at the metadata first."""

    build: Callable[..., Any]
    metadata: dict[str, Any]

    def __call__(self, render_mode: str | None = None, time_limit: int | None = None, **settings: Any) -> ExportedEnv:
        limit = {} if time_limit is None else {"max_episode_steps": time_limit}
        return ExportedEnv(self.build(**settings, **limit), render_mode)


def _maker(kind: Any, build: Callable[..., Any]) -> Maker:
    return Maker(build, {"render_modes": RENDER_MODES, "render_fps": kind.render_fps})


CartSafe = _maker(cart_safe.CartSafe, cart_safe.CartSafe)
MountainCarSafe = _maker(mountain_car_safe.MountainCarSafe, mountain_car_safe.MountainCarSafe)
GridNav = _maker(grid_nav.GridNav, grid_nav.GridNav.generate)
Intersection = _maker(intersection.Intersection, intersection.Intersection)


# The environment is an argument, so that all of the same kind and shape share one compiled program.
@jax.jit
def _reset(env: Env, episode: Array) -> tuple[State, Array]:
    return env.reset(jax.random.fold_in(jax.random.key(episode), 0))


@jax.jit
def _step(env: Env, state: State, action: Array, episode: Array, time: Array) -> Step:
    return env.step(state, action, jax.random.fold_in(jax.random.key(episode), time))


def _space(space: Discrete | Box) -> Any:
    if isinstance(space, Discrete):
        return spaces.Discrete(space.n)
    return spaces.Box(space.low, space.high, space.shape, np.float32)
