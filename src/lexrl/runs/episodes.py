"""One episode in pictures: the same that an evaluation plays, with a frame for every step."""

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from lexrl.envs import batched
from lexrl.envs.gym import GymEnv
from lexrl.errors import InputError, require_whole
from lexrl.loops import keys
from lexrl.loops.keys import Purpose
from lexrl.runs.policy import Policy
from lexrl.types import BatchedEnv, EnvSpec, Renderable, SavableBatchedEnv, unwrapped


class RecordedEpisode(NamedTuple):
    """The frames of an episode, one before its first step and one after each, and its returns in the user's signs."""

    frames: list[np.ndarray]
    returns: np.ndarray


def record_episode(policy: Policy, env: Any, number: int = 0) -> RecordedEpisode:
    """Play an episode of a policy's evaluation, by its number, with the greedy policy."""
    require_whole(0, **{"The episode": number})
    one, render = _renderer(env)
    with contextlib.closing(one):
        return _play(policy, env.spec, one, render, number)


def render_fps(env: Any) -> float:
    """Frames per second that suit an environment."""
    inner = unwrapped(env)
    return float(inner.render_fps) if isinstance(inner, GymEnv | Renderable) else 30.0


def _renderer(env: Any) -> tuple[BatchedEnv, Callable[[], np.ndarray]]:
    """A single environment, and a function that draws its current state."""
    if isinstance(env, GymEnv):
        try:
            envs = env.batched(1, render_mode="rgb_array")
        except TypeError as error:
            raise InputError(f"The environment cannot be made with render_mode='rgb_array': {error}.") from None
        return envs, envs.render
    one = batched.make_batched(env, 1)
    if not isinstance(unwrapped(env), Renderable) or not isinstance(one, SavableBatchedEnv):
        one.close()
        raise InputError(f"{type(env).__name__} cannot be rendered: it has no render(state) that returns a picture.")
    return one, lambda: np.asarray(env.render(jax.tree.map(lambda leaf: leaf[0], one.save())))


def _play(
    policy: Policy, spec: EnvSpec, one: BatchedEnv, render: Callable[[], np.ndarray], number: int
) -> RecordedEpisode:
    """One episode, with the keys of the evaluation."""
    policy = policy.begun(number)
    purposes = (Purpose.EVALUATE_RESET, Purpose.EVALUATE_ACT, Purpose.EVALUATE_STEP)
    reset, act, step = (keys.stream(policy.seed, purpose, number) for purpose in purposes)
    obs = one.reset(np.array([True]), lambda: reset[None])
    frames, total = [render()], np.zeros(len(spec.signals))
    for time in range(spec.max_episode_steps):
        action = policy.act(obs[0], keys.at(act, time))
        step_ = one.step(action[None], lambda time=time: keys.at(step, time)[None])
        obs, total = step_.obs, total + step_.signals[0]
        frames.append(render())
        if step_.discount[0] == 0 or step_.truncated[0]:
            break
    return RecordedEpisode(frames, total[policy.order.columns(spec.signals)])
