"""One episode to look at: the same that an evaluation played, with a picture of every step."""

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from lexrl.envs import batched
from lexrl.envs.gym import GymEnv
from lexrl.errors import InputError
from lexrl.loops import keys
from lexrl.loops.keys import Purpose
from lexrl.runs.policy import Policy
from lexrl.types import BatchedEnv, EnvSpec, Renderable, unwrapped


class Seen(NamedTuple):
    """An episode's pictures, the first before its first step, and what it paid, in the user's signs."""

    frames: list[np.ndarray]
    returns: np.ndarray


def episode(policy: Policy, world: Any, number: int = 0) -> Seen:
    """Play the numbered episode of a policy's evaluation, greedily."""
    if number < 0:
        raise InputError(f"Episode {number} cannot be; they are numbered from 0 on.")
    crowd, show = _drawn(world)
    with contextlib.closing(crowd):
        return _played(policy, world.spec, crowd, show, number)


def pace(world: Any) -> float:
    """Pictures a second that suit a world."""
    inner = unwrapped(world)
    return float(inner.render_fps) if isinstance(inner, GymEnv | Renderable) else 30.0


def _drawn(world: Any) -> tuple[BatchedEnv, Callable[[], np.ndarray]]:
    """A world alone, and what gives a picture of where it is."""
    if isinstance(world, GymEnv):
        try:
            envs = world.batched(1, render_mode="rgb_array")
        except TypeError as error:
            raise InputError(f"The environment cannot be made with render_mode='rgb_array': {error}.") from None
        return envs, envs.render
    if not isinstance(unwrapped(world), Renderable):
        raise InputError(f"{type(world).__name__} cannot be drawn: it has no render(state) that gives a picture.")
    crowd = batched.CompiledEnvs(world)
    return crowd, lambda: np.asarray(world.render(jax.tree.map(lambda leaf: leaf[0], crowd.state)))


def _played(policy: Policy, spec: EnvSpec, crowd: BatchedEnv, show: Callable[[], np.ndarray], number: int) -> Seen:
    """One episode, with the keys of the evaluation's."""
    policy = policy.begun(number)
    purposes = (Purpose.EVALUATE_RESET, Purpose.EVALUATE_ACT, Purpose.EVALUATE_STEP)
    reset, act, step = (keys.stream(policy.seed, purpose, number) for purpose in purposes)
    obs = crowd.reset(np.array([True]), lambda: reset[None])
    frames, total = [show()], np.zeros(len(spec.signals))
    for time in range(spec.max_episode_steps):
        action = policy.act(obs[0], keys.at(act, time))
        answers = crowd.step(action[None], lambda time=time: keys.at(step, time)[None])
        obs, total = answers.obs, total + answers.signals[0]
        frames.append(show())
        if answers.discount[0] == 0 or answers.truncated[0]:
            break
    return Seen(frames, total[policy.order.columns(spec.signals)])
