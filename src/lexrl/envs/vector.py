"""A Gymnasium vector environment as a world: all worlds of a learner take a step in one call.

    gym_vector_world(lambda: gymnasium.make_vec("CartPole-v1", num_envs=8, vectorization_mode="sync"))

Vector environments reset their worlds by themselves, in one of three modes, and with seeds of their own. Here each is
reset explicitly instead, with the loop's seed and before it could do so itself, which comes to the same in all modes:
the successor is the true one, no step is spent on a reset, and a run that was stopped can go on with the same numbers.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium.vector import AutoresetMode

from lexrl.envs import signals as signals_
from lexrl.envs.crowd import BatchedStep, Keys
from lexrl.envs.face import Face
from lexrl.envs.gym import PROBED, five, length, seeds_of
from lexrl.envs.signals import Event, Function
from lexrl.envs.spaces import actions, observations
from lexrl.errors import InputError
from lexrl.types import Spec


@dataclasses.dataclass(frozen=True, init=False)
class GymVectorEnv:
    """A Gymnasium vector environment, for the host loop."""

    make: Callable[[], Any]
    count: int
    face: Face
    spec: Spec
    found: str
    """A sentence on the signals there are, and where they come from."""
    recipe: None = None
    """A function makes it, which cannot be written down."""

    def __init__(
        self,
        make: Callable[[], Any],
        max_episode_steps: int | None = None,
        *,
        signals: Function | None = None,
        discrete_observations: bool = False,
    ):
        """A Gymnasium vector environment.

        Args:
            make: makes a new one each time it is called; an algorithm's `num_envs` must be that of the vector.
            max_episode_steps: length of an episode; by default the environment's own limit.
            signals: a function from (obs, action, reward, info) of one environment to named numbers, in place of those
                found by itself.
            discrete_observations: observations of integers become one integer each, for tabular algorithms.
        """
        env = make()
        try:
            limit, count = length(env, env.spec, max_episode_steps), int(env.num_envs)
            view = observations(env.single_observation_space, discrete_observations=discrete_observations)
            moves = actions(env.single_action_space)
            _check_resets(env)
            face = Face(view, moves, signals_.find(_some_steps(env), signals))
        finally:
            env.close()
        for name, value in {
            "make": make,
            "count": count,
            "face": face,
            "spec": face.spec(limit),
            "found": face.signals.found,
        }.items():
            object.__setattr__(self, name, value)

    def crowd(self, n: int) -> "Vector":
        """The vector environment, for a learner with as many worlds."""
        if n != self.count:
            raise InputError(
                f"The learner has {n} worlds, but the vector environment holds {self.count}; set worlds={self.count}, "
                f"or make it with num_envs={n}."
            )
        return Vector(self.face, n, self.make())


@dataclasses.dataclass(frozen=True)
class Vector:
    """A vector environment whose worlds are reset only when asked to."""

    face: Face
    count: int
    env: Any

    def reset(self, which: np.ndarray, keys: Keys) -> np.ndarray:
        obs, _ = self.env.reset(seed=seeds_of(keys()), options={"reset_mask": np.array(which, bool)})
        return self.face.view.together([_one(obs, i) for i in range(self.count)])

    def step(self, actions: np.ndarray, keys: Keys) -> BatchedStep:
        taken = self.face.moves.taken(actions)
        return self.face.answers(*stepped(self.env, taken, self.count, with_info=self.face.signals.in_info))

    def close(self) -> None:
        self.env.close()


def stepped(
    env: Any, taken: np.ndarray, count: int, *, with_info: bool = True
) -> tuple[list[Event], np.ndarray, np.ndarray]:
    """One step of all worlds, told world by world; which of them ended, and which were cut off."""
    obs, reward, ended, cut, infos = five(env.step(taken))
    events = []
    for i in range(count):
        # Where the world has already reset itself, what it showed last has been put aside.
        reset = "final_obs" in infos and infos["_final_obs"][i]
        seen = infos["final_obs"][i] if reset else _one(obs, i)
        info = _info(infos["final_info"] if reset else infos, i) if with_info else {}
        events.append(Event(seen, taken[i], reward[i], info))
    return events, ended, cut


def _one(obs: Any, i: int) -> Any:
    """One world's part of a batch of observations."""
    if isinstance(obs, dict):
        return {name: _one(part, i) for name, part in obs.items()}
    return tuple(_one(part, i) for part in obs) if isinstance(obs, tuple) else obs[i]


def _info(infos: dict[str, Any], i: int) -> dict[str, Any]:
    """One world's info: an array for each key, and under `_key` which worlds have it."""
    return {
        key: _info(value, i) if isinstance(value, dict) else value[i]
        for key, value in infos.items()
        if not key.startswith("_") and infos.get(f"_{key}", np.ones(i + 1, bool))[i]
    }


def _some_steps(env: Any) -> list[Event]:
    """Steps with random actions, of all worlds."""
    env.action_space.seed(0)
    _reset(env, np.ones(env.num_envs, bool))
    events: list[Event] = []
    while len(events) < PROBED:
        more, ended, cut = stepped(env, env.action_space.sample(), env.num_envs)
        events += more
        if (ended | cut).any():
            _reset(env, ended | cut)
    return events


def _check_resets(env: Any) -> None:
    """Complain about worlds that cannot be reset one by one.

    What the last world shows after two steps must not depend on whether the first one was reset between them.
    """
    refused = InputError(
        f"The worlds of {env} cannot be reset one by one, each with a seed of its own, which is needed for true "
        "successors at the ends of episodes; make it from single environments: gymnasium.make_vec(..., "
        "vectorization_mode='sync'), or gym_world."
    )
    mode = env.metadata.get("autoreset_mode")
    if mode is AutoresetMode.NEXT_STEP and getattr(env.unwrapped, "shared_memory", True) is False:
        raise refused  # its processes do not hear of a reset
    first = np.arange(env.num_envs) == 0
    try:
        alone, beside = (_second(env, among) for among in (first, np.zeros_like(first)))
    except (TypeError, ValueError, AssertionError, gymnasium.error.Error) as error:
        raise refused from error
    if env.num_envs > 1 and not jax.tree.all(jax.tree.map(np.array_equal, alone, beside)):
        raise refused


def _second(env: Any, reset: np.ndarray) -> Any:
    """What the last world shows after two steps, between which worlds in `reset` begin anew, and those that ended."""
    env.action_space.seed(0)
    _reset(env, np.ones(env.num_envs, bool))
    _, ended, cut = stepped(env, env.action_space.sample(), env.num_envs)
    again = ended | cut | reset
    if again.any():
        _reset(env, again)
    events, _, _ = stepped(env, env.action_space.sample(), env.num_envs)
    return events[-1].obs


def _reset(env: Any, which: np.ndarray) -> None:
    env.reset(seed=list(range(env.num_envs)), options={"reset_mask": which})
