"""One episode to look at: the same that an evaluation played, with a picture of every step."""

from typing import Any, NamedTuple

import jax
import numpy as np

from lexrl.envs import registered
from lexrl.envs.gym import Environments, GymWorld
from lexrl.errors import InputError
from lexrl.run.policy import Policy
from lexrl.train import keys
from lexrl.train.keys import Purpose
from lexrl.train.population import Worlds


class Seen(NamedTuple):
    """An episode's pictures, the first before its first step, and what it paid, in the user's signs."""

    frames: list[np.ndarray]
    returns: np.ndarray


def episode(policy: Policy, world: Any, number: int = 0) -> Seen:
    """Play the numbered episode of a policy's evaluation, greedily."""
    if number < 0:
        raise InputError(f"Episode {number} cannot be; they are numbered from 0 on.")
    if isinstance(world, GymWorld):
        return _in_gymnasium(policy, world, number)
    if isinstance(world, Worlds) or not hasattr(world, "render"):
        raise InputError(f"{type(world).__name__} cannot be drawn: it has no render(state) that gives a picture.")
    reset, act, step = _streams(policy, number)
    state, obs = _reset(world, reset)
    frames, total = [world.render(state)], 0.0
    for time in range(world.spec.max_steps):
        action = policy.act(obs, keys.at(act, time))
        answer = _step(world, state, action, keys.at(step, time))
        state, obs, total = answer.state, np.asarray(answer.obs), total + np.asarray(answer.signals, float)
        frames.append(world.render(state))
        if float(answer.discount) == 0:
            break
    return Seen([np.asarray(frame) for frame in frames], _ordered(policy, world, total))


def pace(world: Any) -> float:
    """Pictures a second that suit a world."""
    if isinstance(world, GymWorld):
        return float(world.make().metadata.get("render_fps") or 30)
    name = type(world).__name__
    return float(getattr(registered, name).metadata["render_fps"]) if hasattr(registered, name) else 30.0


def _in_gymnasium(policy: Policy, world: GymWorld, number: int) -> Seen:
    try:
        env = world.make(render_mode="rgb_array")
    except TypeError as error:
        raise InputError(f"The environment cannot be made with render_mode='rgb_array': {error}.") from None
    alone = Environments(world, [env])
    reset, act, step = _streams(policy, number)
    try:
        obs = alone.reset(np.array([True]), lambda: reset[None])
        frames, total = [_frame(env)], 0.0
        for time in range(world.max_steps):
            action = policy.act(obs[0], keys.at(act, time))
            answers = alone.step(action[None], lambda: step[None])
            obs, total = answers.obs, total + answers.signals[0].astype(float)
            frames.append(_frame(env))
            if answers.discount[0] == 0 or answers.cut[0]:
                break
        return Seen(frames, _ordered(policy, world, total))
    finally:
        alone.close()


def _streams(policy: Policy, number: int) -> Any:
    """The keys of an evaluation's episode: of its reset, its actions and its steps."""
    purposes = (Purpose.EVALUATE_RESET, Purpose.EVALUATE_ACT, Purpose.EVALUATE_STEP)
    return [keys.stream(policy.seed, purpose, number) for purpose in purposes]


def _frame(env: Any) -> np.ndarray:
    frame = env.render()
    if not isinstance(frame, np.ndarray) or frame.ndim != 3:
        raise InputError("The environment gives no pictures when it is made with render_mode='rgb_array'.")
    return frame.astype(np.uint8)


def _ordered(policy: Policy, world: Any, total: Any) -> np.ndarray:
    return np.asarray(total)[policy.order.columns(world.spec.objectives)]


@jax.jit
def _reset(world: Any, key: Any) -> Any:
    return world.reset(key)


@jax.jit
def _step(world: Any, state: Any, action: Any, key: Any) -> Any:
    return world.step(state, action, key)
