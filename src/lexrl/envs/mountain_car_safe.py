"""MountainCarSafe: a car too weak for its hill gathers speed in the valley, without rolling too far to the other side.

The well-known continuous mountain car. Signals: `reward = 100` at the goal, less `0.1 a^2` in every step; `cost = 1`
while the car is left of a line, `x < wall`, in the new state; `time = 1` in every step.

    v' = v + 0.0015 a - 0.0025 cos(3 x),  within +-0.07
    x' = x + v',                          within [-1.2, 0.6]; the left end takes all speed

The goal is at x >= 0.45, the valley's bottom at x = -pi/6. The wall at -0.75 makes hurry and safety disagree from every
start. The quickest way takes 65 to 67 steps, 9 to 18 of them beyond the wall; the quickest one that never crosses it
takes 68 to 71. Pushing with the speed takes 105 to 111 steps if the first push is to the right, 22 to 26 of them beyond
the wall; with brakes in time it is safe and takes 115 to 130. With the wall at -0.65 no way to the goal is left that is
safe, and from -0.9 leftwards the quickest way is safe by itself. The world's tests compute all of this.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lexrl.envs import drawing
from lexrl.errors import InputError
from lexrl.types import Box, Spec, Step, require_episode

POWER, SLOPE = 0.0015, 0.0025
LEFT, RIGHT, FASTEST, GOAL = -1.2, 0.6, 0.07, 0.45
START = (-0.6, -0.4)


class MountainCarSafe(eqx.Module):
    """Drive a weak car up a hill by swinging, without rolling too far to the other side."""

    cost_boundary: float = -0.75
    """Left of this line every step costs; the track ends at -1.2, the car starts in [-0.6, -0.4]."""
    max_episode_steps: int = eqx.field(static=True, default=999)
    """Length of an episode."""

    def __check_init__(self):
        boundary = self.cost_boundary
        if isinstance(boundary, int | float) and not LEFT <= boundary <= START[0]:
            raise InputError(
                f"cost_boundary is {boundary:g}; it must lie between the left end of the track, {LEFT:g}, and the first "
                f"start position, {START[0]:g}."
            )
        require_episode(self.max_episode_steps)

    @property
    def spec(self) -> Spec:
        return Spec(Box((2,), LEFT, RIGHT), Box((1,), -1.0, 1.0), ("reward", "cost", "time"), self.max_episode_steps)

    def reset(self, key: Array) -> tuple[Array, Array]:
        place = jax.random.uniform(key, minval=START[0], maxval=START[1])
        car = jnp.stack([place, jnp.zeros_like(place)])
        return car, car

    def step(self, state: Array, action: Array, key: Array) -> Step:
        push = jnp.clip(action[0], -1.0, 1.0)
        car = drive(state, push)
        arrived = car[0] >= GOAL
        reward = jnp.where(arrived, 100.0, 0.0) - 0.1 * push**2
        signals = jnp.stack([reward, jnp.where(car[0] < self.cost_boundary, 1.0, 0.0), jnp.ones_like(reward)])
        return Step(car, car, signals, jnp.where(arrived, 0.0, 1.0))

    def render(self, state: Array | np.ndarray) -> np.ndarray:
        """A picture of the state, `[height, width, 3]`."""
        return drawing.hill(float(state[0]), LEFT, RIGHT, float(self.cost_boundary), GOAL)


def drive(car: Float[Array, " 2"], push: Array) -> Float[Array, " 2"]:
    """One step of the equations of motion."""
    place, speed = car
    speed = jnp.clip(speed + POWER * push - SLOPE * jnp.cos(3 * place), -FASTEST, FASTEST)
    place = jnp.clip(place + speed, LEFT, RIGHT)
    return jnp.stack([place, jnp.where((place <= LEFT) & (speed < 0), 0.0, speed)])
