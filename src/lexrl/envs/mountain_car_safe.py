"""MountainCarSafe: a car too weak for its hill gathers speed in the valley, without rolling too far to the other side.

The well-known continuous mountain car. Signals: `reward = 100` at the goal, less `0.1 a^2` in every step; `cost = 1`
while the car is left of a line, `x < cost_boundary`, in the new state; `time = 1` in every step.

    v' = v + 0.0015 a - 0.0025 cos(3 x),  within +-0.07
    x' = x + v',                          within [-1.2, 0.6]; the left end takes all speed

The goal is at x >= 0.45, the bottom of the valley at x = -pi/6. With the boundary at -0.75, speed and safety conflict
from every start. The fastest policy takes 65 to 67 steps, 9 to 18 of them beyond the boundary; the fastest one that
never crosses it takes 68 to 71. Pushing in the direction of motion takes 105 to 111 steps if the first push is to the
right, 22 to 26 of them beyond the boundary; braking in time makes it safe and takes 115 to 130. With the boundary at
-0.65 no policy reaches the goal safely, and from -0.9 leftwards the fastest policy is safe by itself. The tests compute
all of this.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lexrl.envs import drawing
from lexrl.errors import InputError, require_whole
from lexrl.types import Box, EnvSpec, Step

POWER, SLOPE = 0.0015, 0.0025
LEFT, RIGHT, MAX_SPEED, GOAL = -1.2, 0.6, 0.07, 0.45
START = (-0.6, -0.4)


class MountainCarSafe(eqx.Module):
    """Drive a weak car up a hill by gathering speed, without rolling too far to the other side."""

    render_fps: ClassVar[float] = 30.0

    cost_boundary: float = -0.75
    """Each step to the left of this line has a cost of 1; the track ends at -1.2, and the car starts in [-0.6,
    -0.4]."""
    max_episode_steps: int = eqx.field(static=True, default=999)
    """Length of an episode."""

    def __check_init__(self):
        boundary = self.cost_boundary
        if isinstance(boundary, int | float) and not LEFT <= boundary <= START[0]:
            raise InputError(
                f"cost_boundary is {boundary:g}; it must lie between the left end of the track, {LEFT:g}, and the "
                f"leftmost start position, {START[0]:g}."
            )
        require_whole(max_episode_steps=self.max_episode_steps)

    @property
    def spec(self) -> EnvSpec:
        spaces = Box((2,), LEFT, RIGHT), Box((1,), -1.0, 1.0)
        return EnvSpec(*spaces, ("reward", "cost", "time"), self.max_episode_steps)

    @property
    def return_bounds(self) -> dict[str, tuple[float, float]]:
        """What sums of the signals lie between."""
        steps = float(self.max_episode_steps)
        return {"reward": (-0.1 * steps, 100.0), "cost": (0.0, steps), "time": (0.0, steps)}

    def reset(self, key: Array) -> tuple[Array, Array]:
        position = jax.random.uniform(key, minval=START[0], maxval=START[1])
        car = jnp.stack([position, jnp.zeros_like(position)])
        return car, car

    def step(self, state: Array, action: Array, key: Array) -> Step:
        push = jnp.clip(action[0], -1.0, 1.0)
        car = drive(state, push)
        at_goal = car[0] >= GOAL
        reward = jnp.where(at_goal, 100.0, 0.0) - 0.1 * push**2
        signals = jnp.stack([reward, jnp.where(car[0] < self.cost_boundary, 1.0, 0.0), jnp.ones_like(reward)])
        return Step(car, car, signals, jnp.where(at_goal, 0.0, 1.0))

    def render(self, state: Array | np.ndarray) -> np.ndarray:
        """A picture of the state, `[height, width, 3]`."""
        return drawing.hill(float(state[0]), LEFT, RIGHT, float(self.cost_boundary), GOAL)


def drive(car: Float[Array, " 2"], push: Array) -> Float[Array, " 2"]:
    """One step of the equations of motion."""
    position, velocity = car
    velocity = jnp.clip(velocity + POWER * push - SLOPE * jnp.cos(3 * position), -MAX_SPEED, MAX_SPEED)
    position = jnp.clip(position + velocity, LEFT, RIGHT)
    return jnp.stack([position, jnp.where((position <= LEFT) & (velocity < 0), 0.0, velocity)])
