"""Gymnasium's classic control tasks, compiled, with the signals of `benchmarks/foreign.py`: hundreds of times as fast.

Same dynamics, initial states and observations as Acrobot-v1, MountainCar-v0, CartPole-v1 and Pendulum-v1
(`tests/benchmarks/test_classic.py` compares them step by step). In every one `effort` or `torque` tempts away from the
objective that the task is known for.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.envs.cart_pole import CartPole
from lexrl.types import Box, Discrete, EnvSpec, Step

GRAVITY = 9.8
MAX_VELOCITY = np.array([4 * np.pi, 9 * np.pi], np.float32)


def wrap(angle: Array) -> Array:
    """Between -pi and pi."""
    return (angle + jnp.pi) % (2 * jnp.pi) - jnp.pi


class Acrobot(eqx.Module):
    """Swing the end of two links above the bar; only the joint between them has a motor. Signals `time`, `effort`."""

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec(Box((6,)), Discrete(3), ("time", "effort"), 500)

    def reset(self, key: Array) -> tuple[Array, Array]:
        state = jax.random.uniform(key, (4,), minval=-0.1, maxval=0.1)
        return state, self.observe(state)

    def observe(self, state: Array) -> Array:
        angles, speeds = state[:2], state[2:]
        cos, sin = jnp.cos(angles), jnp.sin(angles)
        return jnp.concatenate([jnp.stack([cos[0], sin[0], cos[1], sin[1]]), speeds])

    def step(self, state: Array, action: Array, key: Array) -> Step:
        torque, dt = action.astype(jnp.float32) - 1.0, 0.2
        k1 = _acrobot_slope(state, torque)
        k2 = _acrobot_slope(state + dt / 2 * k1, torque)
        k3 = _acrobot_slope(state + dt / 2 * k2, torque)
        k4 = _acrobot_slope(state + dt * k3, torque)
        new = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        state = jnp.concatenate([wrap(new[:2]), jnp.clip(new[2:], -MAX_VELOCITY, MAX_VELOCITY)])
        high = -jnp.cos(state[0]) - jnp.cos(state[0] + state[1]) > 1.0
        signals = jnp.stack([jnp.float32(1.0), (action != 1).astype(jnp.float32)])
        return Step(state, self.observe(state), signals, jnp.where(high, 0.0, 1.0))


def _acrobot_slope(state: Array, torque: Array) -> Array:
    """Two links of mass and length 1, their centers of mass in the middle, moments of inertia 1."""
    angle, bend, speed, bending = state
    inertia = 0.25 + 1.25 + jnp.cos(bend) + 2.0
    coupling = 0.25 + 0.5 * jnp.cos(bend) + 1.0
    pull = 0.5 * GRAVITY * jnp.sin(angle + bend)
    whole = -0.5 * jnp.sin(bend) * bending * (bending + 2 * speed) + 1.5 * GRAVITY * jnp.sin(angle) + pull
    drive = torque + coupling / inertia * whole - 0.5 * speed**2 * jnp.sin(bend) - pull
    second = drive / (1.25 - coupling**2 / inertia)
    return jnp.stack([speed, bending, -(coupling * second + whole) / inertia, second])


class MountainCar(eqx.Module):
    """Rock a weak car out of a valley. Signals `time`, `effort`."""

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec(Box((2,)), Discrete(3), ("time", "effort"), 200)

    def reset(self, key: Array) -> tuple[Array, Array]:
        state = jnp.stack([jax.random.uniform(key, minval=-0.6, maxval=-0.4), jnp.float32(0.0)])
        return state, state

    def step(self, state: Array, action: Array, key: Array) -> Step:
        position, velocity = state
        push = 0.001 * (action.astype(jnp.float32) - 1.0)
        velocity = jnp.clip(velocity + push - 0.0025 * jnp.cos(3 * position), -0.07, 0.07)
        position = jnp.clip(position + velocity, -1.2, 0.6)
        velocity = jnp.where((position <= -1.2) & (velocity < 0), 0.0, velocity)
        state = jnp.stack([position, velocity])
        signals = jnp.stack([jnp.float32(1.0), (action != 1).astype(jnp.float32)])
        return Step(state, state, signals, jnp.where(position >= 0.5, 0.0, 1.0))


class CenteredCartPole(eqx.Module):
    """Keep a pole upright. Signals `upright`, and `distance` of the cart from the center."""

    cart: CartPole = CartPole()

    @property
    def spec(self) -> EnvSpec:
        return self.cart.spec._replace(signals=("upright", "distance"))

    def reset(self, key: Array) -> tuple[Array, Array]:
        return self.cart.reset(key)

    def step(self, state: Array, action: Array, key: Array) -> Step:
        step = self.cart.step(state, action, key)
        return step._replace(signals=jnp.stack([jnp.float32(1.0), jnp.abs(step.obs[0])]))


class Pendulum(eqx.Module):
    """Swing up a pendulum with a weak motor. Signals `upright`, Gymnasium's reward without the torque, and `torque`,
    its square. Actions between -2 and 2."""

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec(Box((3,)), Box((1,), -2.0, 2.0), ("upright", "torque"), 200)

    def reset(self, key: Array) -> tuple[Array, Array]:
        largest = jnp.array([jnp.pi, 1.0])
        state = jax.random.uniform(key, (2,), minval=-largest, maxval=largest)
        return state, self.observe(state)

    def observe(self, state: Array) -> Array:
        return jnp.stack([jnp.cos(state[0]), jnp.sin(state[0]), state[1]])

    def step(self, state: Array, action: Array, key: Array) -> Step:
        angle, speed = state
        torque = jnp.clip(action[0], -2.0, 2.0)
        signals = jnp.stack([-(wrap(angle) ** 2) - 0.1 * speed**2, torque**2])
        speed = jnp.clip(speed + (15.0 * jnp.sin(angle) + 3.0 * torque) * 0.05, -8.0, 8.0)
        state = jnp.stack([angle + 0.05 * speed, speed])
        return Step(state, self.observe(state), signals, jnp.float32(1.0))
