"""Any Gymnasium environment as a world for the host loop: `gym_world("CartPole-v1")`, `gym_world(lambda: MyEnv())`.

Its signals are found by looking at some steps (`lexrl.envs.signals`), and `world.found` says which. The time limit of
an environment that is made by its name is lifted and handed to the loop, which cuts episodes off itself; where the
environment truncates an episode all the same, it is over, but nothing is learned from that: the task had not ended.
"""

import contextlib
import dataclasses
import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import jax
import numpy as np
from jax import Array

from lexrl.envs import signals as signals_
from lexrl.envs.crowd import BatchedStep, Keys
from lexrl.envs.face import Face
from lexrl.envs.signals import Event, Function
from lexrl.envs.spaces import actions, observations
from lexrl.errors import InputError
from lexrl.types import Discrete, Spec

PROBED = 100
"""Steps with random actions that are looked at for signals."""


@dataclasses.dataclass(frozen=True, init=False)
class GymEnv:
    """A Gymnasium environment, for the host loop."""

    make: Callable[..., Any]
    face: Face
    spec: Spec
    found: str
    """A sentence on the signals there are, and where they come from."""
    recipe: tuple[Any, dict[str, Any]] | None = None
    """The call of a function that makes this world again; None for what cannot be written down."""

    def __init__(
        self,
        env_id: str | Callable[..., Any],
        max_episode_steps: int | None = None,
        *,
        signals: Function | None = None,
        discrete_observations: bool = False,
        **settings: Any,
    ):
        """A Gymnasium environment by its registered name, MO-Gymnasium's too, or by a function that makes it.

        Args:
            env_id: as `gymnasium.make` takes it, or a function that makes a new environment each time it is called.
            max_episode_steps: length of an episode; by default the environment's own limit.
            signals: a function from (obs, action, reward, info) to named numbers, in place of those found by itself.
            discrete_observations: observations of integers become one integer each, for tabular algorithms.
            settings: passed to the environment.
        """
        named = isinstance(env_id, str)
        spec = _registered(env_id) if named else None
        # The checker that Gymnasium puts around environments wants one number as a reward.
        make = partial(gymnasium.make, env_id, max_episode_steps=-1, disable_env_checker=True) if named else env_id
        try:
            one = make(**settings)
        except gymnasium.error.Error as error:
            raise InputError(f"Gymnasium cannot make {env_id!r}: {error}") from error
        try:
            limit = length(env_id if named else one, spec or getattr(one, "spec", None), max_episode_steps)
            view, moves = (
                observations(one.observation_space, discrete_observations=discrete_observations),
                actions(one.action_space),
            )
            face = Face(view, moves, signals_.find(_some_steps(one), signals))
        finally:
            one.close()
        given = {
            "env_id": env_id,
            "max_episode_steps": max_episode_steps,
            "discrete_observations": discrete_observations,
            **settings,
        }
        recipe = (GymEnv, given) if named and signals is None else None
        for name, value in {
            "make": partial(make, **settings),
            "face": face,
            "spec": face.spec(limit),
            "found": face.signals.found,
            "recipe": recipe,
        }.items():
            object.__setattr__(self, name, value)

    def crowd(self, n: int) -> "Environments":
        """Environments side by side, one for each world of a learner."""
        return Environments(self.face, [self.make() for _ in range(n)])


@dataclasses.dataclass(frozen=True)
class Environments:
    """Environments that are stepped one after the other."""

    face: Face
    each: list[Any]

    def reset(self, which: np.ndarray, keys: Keys) -> np.ndarray:
        seeds = seeds_of(keys())
        seen = {i: self.each[i].reset(seed=seeds[i])[0] for i in np.flatnonzero(which).tolist()}
        some = next(iter(seen.values()))
        return self.face.view.together([seen.get(i, some) for i in range(len(self.each))])

    def step(self, actions: np.ndarray, keys: Keys) -> BatchedStep:
        events, ended, cut = [], [], []
        taken = self.face.moves.taken(actions)
        discrete_observations = isinstance(self.face.moves.space, Discrete)
        for env, action in zip(self.each, taken.tolist() if discrete_observations else taken, strict=True):
            obs, reward, end, truncated, info = five(env.step(action))
            events.append(Event(obs, action, reward, info))
            ended.append(end)
            cut.append(truncated)
        return self.face.answers(events, ended, cut)

    def close(self) -> None:
        for env in self.each:
            env.close()


def length(what: Any, spec: Any, max_episode_steps: int | None) -> int:
    """The length of an episode: what was asked for, or the environment's own limit."""
    found = getattr(spec, "max_episode_steps", None) if max_episode_steps is None else max_episode_steps
    if found is None:
        raise InputError(f"{what} has no time limit of its own; give max_steps, the length of an episode.")
    if found < 1:
        raise InputError(f"An episode of {found} steps cannot be; max_steps must be 1 or more.")
    return int(found)


def five(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    """A step as Gymnasium answers it; Safety-Gymnasium's sixth, the cost, goes to the info."""
    if len(answer) == 5:
        return answer
    if len(answer) == 6:
        obs, reward, cost, ended, truncated, info = answer
        return obs, reward, ended, truncated, {**info, "cost": cost}
    raise InputError(
        f"A step answers with {len(answer)} values; it must be (obs, reward, terminated, truncated, info), or with a "
        "cost after the reward, as Safety-Gymnasium does."
    )


def seeds_of(keys: Array) -> list[int]:
    """A seed from each key."""
    return np.asarray(_bits(keys)).tolist()


@jax.jit
def _bits(keys: Array) -> Array:
    return jax.vmap(jax.random.bits)(keys)


def _registered(name: str) -> Any:
    """What Gymnasium knows of a name; MO-Gymnasium's are known once it has been imported."""
    with contextlib.suppress(gymnasium.error.Error):
        return gymnasium.spec(name)
    try:
        importlib.import_module("mo_gymnasium")
    except ImportError:
        raise InputError(
            f"Gymnasium cannot make {name!r}, which is not registered; if it is one of MO-Gymnasium's, install that: "
            "pip install 'lexrl[mo]'."
        ) from None
    try:
        return gymnasium.spec(name)
    except gymnasium.error.Error as error:
        raise InputError(f"Gymnasium cannot make {name!r}: {error}") from error


def _some_steps(env: Any) -> list[Event]:
    """Steps with random actions."""
    env.action_space.seed(0)
    env.reset(seed=0)
    events = []
    for _ in range(PROBED):
        action = env.action_space.sample()
        obs, reward, ended, truncated, info = five(env.step(action))
        events.append(Event(obs, action, reward, info))
        if ended or truncated:
            env.reset()
    return events
