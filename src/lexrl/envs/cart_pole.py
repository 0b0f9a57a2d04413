"""CartPole: keep a pole upright on a cart. The classic control task, as in Gymnasium's CartPole-v1, written in JAX.

The physics are CartSafe's. The one signal, `reward`, is 1 per step; the task ends when the pole leans more than 12
degrees or the cart is more than 2.4 from the center.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.envs.cart_safe import FORCE, TRACK, euler
from lexrl.errors import require_whole
from lexrl.types import Box, Discrete, EnvSpec, Step

MAX_ANGLE = np.float32(12 * np.pi / 180)


class CartPole(eqx.Module):
    """Keep a pole upright on a cart."""

    max_episode_steps: int = eqx.field(static=True, default=500)
    """Length of an episode."""

    def __check_init__(self):
        require_whole(max_episode_steps=self.max_episode_steps)

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec(Box((4,)), Discrete(2), ("reward",), self.max_episode_steps)

    def reset(self, key: Array) -> tuple[Array, Array]:
        body = jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05)
        return body, body

    def step(self, state: Array, action: Array, key: Array) -> Step:
        body = euler(state, jnp.where(action == 1, FORCE, -FORCE))
        terminated = (jnp.abs(body[0]) > TRACK) | (jnp.abs(body[2]) > MAX_ANGLE)
        return Step(body, body, jnp.ones(1), jnp.where(terminated, 0.0, 1.0))
