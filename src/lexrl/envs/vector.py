"""A Gymnasium vector environment, for the host loop: all environments take a step in one call.

    GymVectorEnv(lambda: gymnasium.make_vec("CartPole-v1", num_envs=8, vectorization_mode="sync"))

Vector environments reset their parts by themselves, in one of three modes, and with seeds of their own. Here each part
is reset explicitly instead, with the loop's seed and before it could do so itself, which amounts to the same in all
modes: the successor is the true one, no step is spent on a reset, and a stopped run resumes with the same numbers.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from lexrl.envs import copies, signals
from lexrl.envs.gym import NUM_PROBE_STEPS, episode_length, five_tuple, seeds_of
from lexrl.envs.signals import Event, SignalFunction
from lexrl.envs.spaces import Interface, convert_actions, convert_observations
from lexrl.errors import InputError
from lexrl.types import BatchedStep, EnvSpec, Keys


@dataclasses.dataclass(frozen=True, init=False)
class GymVectorEnv:
    """A Gymnasium vector environment, for the host loop."""

    name: str
    """The class of the vector environment inside its wrappers."""
    num_envs: int
    spec: EnvSpec
    make: Callable[[], Any] = dataclasses.field(repr=False)
    interface: Interface = dataclasses.field(repr=False)
    description: str = dataclasses.field(repr=False)
    """A sentence on the signals there are, and where they come from."""

    def __init__(
        self,
        make: Any,
        max_episode_steps: int | None = None,
        *,
        signals: SignalFunction | None = None,
        discrete_observations: bool = False,
    ):
        """A Gymnasium vector environment.

        Args:
            make: a function that makes a new one each time it is called, or a vector environment, of which copies are
                trained on; an algorithm's `num_envs` must be that of the vector.
            max_episode_steps: length of an episode; by default the environment's own limit, or 1,000 if it has none.
            signals: a function from (obs, action, reward, info) of one environment to named numbers, instead of the
                signals found.
            discrete_observations: observations of integers become one integer each, for tabular algorithms.
        """
        if isinstance(make, gymnasium.vector.VectorEnv):
            make = copies.copier(make, gymnasium.make_vec)
        elif not callable(make):
            raise InputError(
                f"A {type(make).__name__} is not a Gymnasium vector environment, nor a function that makes one."
            )
        env: Any = make()
        try:
            length, num_envs = (
                episode_length(type(env.unwrapped).__name__, None, env, max_episode_steps),
                int(env.num_envs),
            )
            observations = convert_observations(env.single_observation_space, discrete=discrete_observations)
            actions = convert_actions(env.single_action_space)
            _check_resets(env)
            interface = Interface(observations, actions, _find_signals(env, signals))
        finally:
            env.close()
        for name, value in {
            "make": make,
            "num_envs": num_envs,
            "interface": interface,
            "spec": interface.spec(length),
            "description": interface.signals.description,
            "name": type(env.unwrapped).__name__,
        }.items():
            object.__setattr__(self, name, value)

    def batched(self, n: int) -> "GymVectorEnvs":
        """The vector environment, for an algorithm with as many environments."""
        if n != self.num_envs:
            raise InputError(
                f"The algorithm has num_envs={n}, but the vector environment holds {self.num_envs}; set "
                f"num_envs={self.num_envs}, or make it with num_envs={n}."
            )
        return GymVectorEnvs(self.interface, n, self.make())


@dataclasses.dataclass(frozen=True)
class GymVectorEnvs:
    """A vector environment whose parts are reset only when asked to."""

    interface: Interface
    num_envs: int
    env: Any

    def reset(self, which: np.ndarray, keys: Keys) -> np.ndarray:
        obs, _ = self.env.reset(seed=seeds_of(keys()), options={"reset_mask": np.array(which, bool)})
        return self.interface.observations.stack([_part(obs, i) for i in range(self.num_envs)])

    def step(self, actions: np.ndarray, keys: Keys) -> BatchedStep:
        chosen = self.interface.actions.convert(actions)
        in_info = self.interface.signals.in_info
        return self.interface.batched_step(*step_each(self.env, chosen, self.num_envs, with_info=in_info))

    def close(self) -> None:
        self.env.close()


def step_each(
    env: Any, actions: np.ndarray, num_envs: int, *, with_info: bool = True
) -> tuple[list[Event], np.ndarray, np.ndarray]:
    """One step, split into its parts; which of them terminated, and which were truncated."""
    obs, reward, terminated, truncated, infos = five_tuple(env.step(actions))
    events = []
    for i in range(num_envs):
        # A part that has already reset itself keeps its last observation here.
        reset = "final_obs" in infos and infos["_final_obs"][i]
        seen = infos["final_obs"][i] if reset else _part(obs, i)
        info = _info(infos["final_info"] if reset else infos, i) if with_info else {}
        events.append(Event(seen, actions[i], reward[i], info))
    return events, terminated, truncated


def _part(obs: Any, i: int) -> Any:
    """One environment's part of a batch of observations."""
    if isinstance(obs, dict):
        return {name: _part(part, i) for name, part in obs.items()}
    return tuple(_part(part, i) for part in obs) if isinstance(obs, tuple) else obs[i]


def _info(infos: dict[str, Any], i: int) -> dict[str, Any]:
    """One environment's info: an array for each key, and under `_key` which of them have it."""
    return {
        key: _info(value, i) if isinstance(value, dict) else value[i]
        for key, value in infos.items()
        if not key.startswith("_") and infos.get(f"_{key}", np.ones(i + 1, bool))[i]
    }


def _find_signals(env: Any, function: SignalFunction | None) -> signals.Signals:
    """The signals of a few steps with random actions."""
    env.action_space.seed(0)
    _reset(env, np.ones(env.num_envs, bool))
    events: list[Event] = []
    while len(events) < NUM_PROBE_STEPS:
        more, terminated, truncated = step_each(env, env.action_space.sample(), env.num_envs)
        events += more
        if (terminated | truncated).any():
            _reset(env, terminated | truncated)
    return signals.find(events, function)


def _check_resets(env: Any) -> None:
    """Raise an error if the parts cannot be reset one by one.

    What the last part shows after two steps must not depend on whether the first one was reset between them.
    """
    refused = InputError(
        f"The parts of {env} cannot be reset one by one, each with its own seed, which is needed for true successors "
        "at the ends of episodes; make it from single environments: gymnasium.make_vec(..., "
        "vectorization_mode='sync'), or lexrl.GymEnv."
    )
    mode = env.metadata.get("autoreset_mode")
    inner = env.unwrapped
    if mode is AutoresetMode.NEXT_STEP and isinstance(inner, AsyncVectorEnv) and inner.shared_memory is False:
        raise refused  # its processes never learn of a reset
    first = np.arange(env.num_envs) == 0
    try:
        with_reset, without = (_last_after_two_steps(env, which) for which in (first, np.zeros_like(first)))
    except (TypeError, ValueError, AssertionError, gymnasium.error.Error) as error:
        raise refused from error
    if env.num_envs > 1 and not jax.tree.all(jax.tree.map(np.array_equal, with_reset, without)):
        raise refused


def _last_after_two_steps(env: Any, reset: np.ndarray) -> Any:
    """What the last part shows after two steps, between which those in `reset` and those that ended are reset."""
    env.action_space.seed(0)
    _reset(env, np.ones(env.num_envs, bool))
    _, terminated, truncated = step_each(env, env.action_space.sample(), env.num_envs)
    again = terminated | truncated | reset
    if again.any():
        _reset(env, again)
    events, _, _ = step_each(env, env.action_space.sample(), env.num_envs)
    return events[-1].obs


def _reset(env: Any, which: np.ndarray) -> None:
    env.reset(seed=list(range(env.num_envs)), options={"reset_mask": which})
