"""Any Gymnasium environment, for the host loop: `GymEnv("CartPole-v1")`, `GymEnv(env)`, `GymEnv(lambda: MyEnv())`.

Its signals are found by looking at a few steps (`lexrl.envs.signals`); `env.description` says which. The time limit of
an environment that is made by its id is lifted and handed to the loop, which truncates episodes itself. Where the
environment truncates an episode all the same, the episode is over, but the task is not: algorithms bootstrap there.
"""

import dataclasses
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import jax
import numpy as np
from jax import Array

from lexrl.envs import copies, signals
from lexrl.envs.signals import Event, SignalFunction
from lexrl.envs.spaces import Interface, convert_actions, convert_observations
from lexrl.errors import InputError, require_whole
from lexrl.types import BatchedStep, Discrete, EnvSpec, Keys

NUM_PROBE_STEPS = 100
"""Steps with random actions that are looked at for signals, by default."""
RENDER_FPS = 30.0
"""Where the environment's metadata do not say."""
MAX_EPISODE_STEPS = 1_000
"""Where neither the environment nor the user says."""


class UnlimitedEpisodes(UserWarning):
    """An environment without a time limit is given one."""


@dataclasses.dataclass(frozen=True, init=False)
class GymEnv:
    """A Gymnasium environment, for the host loop."""

    name: str
    """The id, or the class of the environment inside its wrappers."""
    spec: EnvSpec
    make: Callable[..., Any] = dataclasses.field(repr=False)
    interface: Interface = dataclasses.field(repr=False)
    render_fps: float = dataclasses.field(repr=False)
    description: str = dataclasses.field(repr=False)
    """A sentence on the signals there are, and where they come from."""

    def __init__(
        self,
        env_id: Any,
        max_episode_steps: int | None = None,
        *,
        signals: SignalFunction | None = None,
        discrete_observations: bool = False,
        num_probe_steps: int = NUM_PROBE_STEPS,
        **settings: Any,
    ):
        """A Gymnasium environment by its id (MO-Gymnasium's too), by a function or class that makes it, or as it is.

        Args:
            env_id: an id as `gymnasium.make` takes it; a function or class that makes a new environment each time it is
                called; or an environment, of which copies are trained on (see `lexrl.envs.copies`).
            max_episode_steps: length of an episode; by default the environment's own limit, or 1,000 if it has none.
            signals: a function from (obs, action, reward, info) to named numbers, instead of the signals found.
            discrete_observations: observations of integers become one integer each, for tabular algorithms.
            num_probe_steps: steps with random actions that are looked at for signals.
            settings: passed to the environment when it is made.
        """
        made_by_id = isinstance(env_id, str)
        registered = copies.registered(env_id) if made_by_id else None
        make = _maker(env_id, settings)
        env = _make(make, env_id)
        try:
            name = env_id if made_by_id else type(env.unwrapped).__name__
            length = episode_length(name, registered, env, max_episode_steps)
            observations = convert_observations(env.observation_space, discrete=discrete_observations)
            found = _find_signals(env, signals, num_probe_steps)
            interface = Interface(observations, convert_actions(env.action_space), found)
            render_fps = float(env.metadata.get("render_fps") or RENDER_FPS)
        finally:
            env.close()
        for field, value in {
            "make": make,
            "interface": interface,
            "spec": interface.spec(length),
            "render_fps": render_fps,
            "description": interface.signals.description,
            "name": name,
        }.items():
            object.__setattr__(self, field, value)

    def batched(self, n: int, **settings: Any) -> "GymEnvs":
        """`n` environments; settings as in `render_mode="rgb_array"` are passed on."""
        return GymEnvs(self.interface, [self.make(**settings) for _ in range(n)])


@dataclasses.dataclass(frozen=True)
class GymEnvs:
    """Environments that are stepped one after the other."""

    interface: Interface
    envs: list[Any]

    def reset(self, which: np.ndarray, keys: Keys) -> np.ndarray:
        seeds = seeds_of(keys())
        seen = {i: self.envs[i].reset(seed=seeds[i])[0] for i in np.flatnonzero(which).tolist()}
        some = next(iter(seen.values()))
        return self.interface.observations.stack([seen.get(i, some) for i in range(len(self.envs))])

    def step(self, actions: np.ndarray, keys: Keys) -> BatchedStep:
        events, all_terminated, all_truncated = [], [], []
        chosen = self.interface.actions.convert(actions)
        is_discrete = isinstance(self.interface.actions.space, Discrete)
        for env, action in zip(self.envs, chosen.tolist() if is_discrete else chosen, strict=True):
            obs, reward, terminated, truncated, info = five_tuple(env.step(action))
            events.append(Event(obs, action, reward, info))
            all_terminated.append(terminated)
            all_truncated.append(truncated)
        return self.interface.batched_step(events, all_terminated, all_truncated)

    def render(self) -> np.ndarray:
        """A picture of the first environment."""
        frame = self.envs[0].render()
        if not isinstance(frame, np.ndarray) or frame.ndim != 3:
            raise InputError("The environment returns no pictures with render_mode='rgb_array'.")
        return frame.astype(np.uint8)

    def close(self) -> None:
        for env in self.envs:
            env.close()


def episode_length(name: str, registered: Any, env: Any, max_episode_steps: int | None) -> int:
    """What was asked for, or the environment's own time limit, or the usual one if it states none."""
    if max_episode_steps is None:
        max_episode_steps = copies.time_limit(env) if registered is None else registered.max_episode_steps
    if max_episode_steps is None:
        max_episode_steps = MAX_EPISODE_STEPS
        warnings.warn(
            f"{name} has no time limit, so episodes are truncated after {MAX_EPISODE_STEPS:,} steps; set another limit "
            "with max_episode_steps.",
            UnlimitedEpisodes,
            stacklevel=3,
        )
    require_whole(max_episode_steps=max_episode_steps)
    return int(max_episode_steps)


def five_tuple(step: tuple[Any, ...]) -> tuple[Any, ...]:
    """A step as Gymnasium returns it; Safety-Gymnasium's cost, the third of six, goes to the info."""
    if len(step) == 5:
        return step
    if len(step) == 6:
        obs, reward, cost, terminated, truncated, info = step
        return obs, reward, terminated, truncated, {**info, "cost": cost}
    raise InputError(
        f"A step returns {len(step)} values; it must return (obs, reward, terminated, truncated, info), or a cost "
        "after the reward as in Safety-Gymnasium."
    )


def seeds_of(keys: Array) -> list[int]:
    """A seed from each key."""
    return np.asarray(_bits(keys)).tolist()


@jax.jit
def _bits(keys: Array) -> Array:
    return jax.vmap(jax.random.bits)(keys)


def _maker(env_id: Any, settings: dict[str, Any]) -> Callable[..., Any]:
    """A function that makes a new environment each time it is called."""
    if isinstance(env_id, str):
        # Gymnasium's passive checker expects a scalar reward.
        return partial(gymnasium.make, env_id, max_episode_steps=-1, disable_env_checker=True, **settings)
    if not isinstance(env_id, gymnasium.Env):
        if not callable(env_id):
            raise InputError(
                f"A {type(env_id).__name__} is not a Gymnasium environment, nor a function that makes one."
            )
        return partial(env_id, **settings)
    if settings:
        raise InputError(
            f"{', '.join(settings)} cannot be passed to an environment that is made already; pass a function or class "
            "that makes it."
        )
    return copies.copier(env_id, gymnasium.make)


def _make(make: Callable[..., Any], env_id: Any) -> Any:
    try:
        return make()
    except gymnasium.error.Error as error:
        raise InputError(f"Gymnasium cannot make {env_id!r}: {error}") from error
    except TypeError as error:
        if not isinstance(env_id, str):
            raise
        raise InputError(f"{env_id} cannot be made with these settings: {str(error).rstrip('.')}.") from error


def _find_signals(env: Any, function: SignalFunction | None, num_steps: int) -> signals.Signals:
    """The signals of a few steps with random actions."""
    env.action_space.seed(0)
    env.reset(seed=0)
    events = []
    for _ in range(num_steps):
        action = env.action_space.sample()
        obs, reward, terminated, truncated, info = five_tuple(env.step(action))
        events.append(Event(obs, action, reward, info))
        if terminated or truncated:
            env.reset()
    return signals.find(events, function)
