"""CartSafe: swing up a pole on a cart, and keep the cart where it is safe.

A pole hangs from a cart on a track; the cart is pushed left or right. Signals: `reward = 1 + cos(angle)`, up to 2 when
the pole is upright, and `cost = 1` while the cart is more than 1 from the center, both of the new state. Beyond 2.4 the
track ends, and with it the episode; the remaining steps are then charged as cost, because otherwise leaving at once
would be the safest thing to do. An option adds the signal `effort = 1` when the push differs from the previous one; the
previous push is then observed, because otherwise the signal would not be Markov.

    u        = (F + m_p l w^2 sin a) / (m_c + m_p)
    w'       = (g sin a - u cos a) / (l (4/3 - m_p cos^2 a / (m_c + m_p)))
    v'       = u - m_p l w' cos a / (m_c + m_p)

with the angle a = 0 upright, w its rate, v the cart's velocity, l half the pole's length; explicit Euler steps.
"""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from lexrl.envs import drawing
from lexrl.errors import require_whole
from lexrl.types import Box, Discrete, EnvSpec, Step

CART_MASS, POLE_MASS, HALF_LENGTH, GRAVITY, FORCE, SECONDS = 1.0, 0.1, 0.5, 9.8, 10.0, 0.02
SAFE, TRACK = 1.0, 2.4
"""How far from the center the cart is safe, and where the track ends."""


class State(NamedTuple):
    """Position and velocity of the cart, angle of the pole (0 upright) and its rate; steps taken; the previous push."""

    body: Float[Array, " 4"]
    time: Int[Array, ""]
    previous_push: Int[Array, ""] | int = 0
    """-1 left, +1 right, 0 before the first step."""


class CartSafe(eqx.Module):
    """Swing up a pole on a cart, and keep the cart where it is safe."""

    render_fps: ClassVar[float] = 50.0

    charge_remaining: bool = eqx.field(static=True, default=True)
    """When the cart leaves the track, count the remaining steps of the episode as cost."""
    observe_cos_sin: bool = eqx.field(static=True, default=False)
    """Observe the cosine and sine of the angle instead of the angle, which jumps at 2 pi."""
    max_episode_steps: int = eqx.field(static=True, default=300)
    """Length of an episode."""
    effort_signal: bool = eqx.field(static=True, default=False)
    """A third signal, the number of changes of direction; the previous push is then observed as -1, 0 (none yet) or
    +1."""

    def __check_init__(self):
        require_whole(max_episode_steps=self.max_episode_steps)

    @property
    def spec(self) -> EnvSpec:
        signals = ("reward", "cost", "effort") if self.effort_signal else ("reward", "cost")
        observation_space = Box((4 + self.observe_cos_sin + self.effort_signal,))
        return EnvSpec(observation_space, Discrete(2), signals, self.max_episode_steps)

    @property
    def return_bounds(self) -> dict[str, tuple[float, float]]:
        """What sums of the signals lie between. Leaving the track costs what is left of the episode, no more."""
        steps = float(self.max_episode_steps)
        return {"reward": (0.0, 2 * steps), "cost": (0.0, steps), "effort": (0.0, steps)}

    def reset(self, key: Array) -> tuple[State, Array]:
        body = jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05).at[2].add(np.float32(np.pi))
        state = State(body, jnp.int32(0), jnp.int32(0))
        return state, self._observe(state)

    def step(self, state: State, action: Array, key: Array) -> Step:
        push = jnp.where(action == 1, 1, -1).astype(jnp.int32)
        body = euler(state.body, push * FORCE)
        body = body.at[2].set(jnp.mod(body[2], 2 * np.float32(np.pi)))
        time = state.time + 1
        distance = jnp.abs(body[0])
        terminated = distance > TRACK
        remaining = jnp.where(terminated, self.max_episode_steps - time, 0) if self.charge_remaining else 0
        signals = [1 + jnp.cos(body[2]), jnp.where(distance > SAFE, 1.0, 0.0) + remaining]
        if self.effort_signal:
            # The product is -1 where the direction changed, 0 in the first step.
            signals.append(jnp.where(push * state.previous_push < 0, 1.0, 0.0))
        new = State(body, time, push)
        return Step(new, self._observe(new), jnp.stack(signals), jnp.where(terminated, 0.0, 1.0))

    def render(self, state: State) -> np.ndarray:
        """A picture of the state, `[height, width, 3]`."""
        position, _, angle, _ = np.asarray(state.body, float)
        return drawing.cart(position, angle, 2 * HALF_LENGTH, SAFE, TRACK)

    def _observe(self, state: State) -> Array:
        position, velocity, angle, rate = state.body
        shown = [jnp.cos(angle), jnp.sin(angle)] if self.observe_cos_sin else [angle]
        previous = [jnp.asarray(state.previous_push, jnp.float32)] if self.effort_signal else []
        return jnp.stack([position, velocity, *shown, rate, *previous])


def euler(body: Float[Array, " 4"], force: Array) -> Float[Array, " 4"]:
    """One step of the equations of motion."""
    position, velocity, angle, rate = body
    sine, cosine, mass = jnp.sin(angle), jnp.cos(angle), CART_MASS + POLE_MASS
    push = (force + POLE_MASS * HALF_LENGTH * rate**2 * sine) / mass
    turn = (GRAVITY * sine - push * cosine) / (HALF_LENGTH * (4 / 3 - POLE_MASS * cosine**2 / mass))
    acceleration = push - POLE_MASS * HALF_LENGTH * turn * cosine / mass
    return jnp.stack(
        [
            position + SECONDS * velocity,
            velocity + SECONDS * acceleration,
            angle + SECONDS * rate,
            rate + SECONDS * turn,
        ]
    )
