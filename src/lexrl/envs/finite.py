"""Any finite MOMDP as a world to learn in."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import Array

from lexrl.momdp import MOMDP, from_outcomes
from lexrl.types import Discrete, InputError, Spec, Step


class FiniteWorld(eqx.Module):
    """Samples a finite MOMDP. Each (s, a) has `K` slots, one for each possible successor; unused ones are never drawn.

    On the host the arrays are float64, so that `momdp()` gives back what went in; a device keeps them in float32.
    """

    cumulative: Array | np.ndarray
    """`[S, A, K]`: the probability of this slot or an earlier one; infinite from the last used slot on."""
    successor: Array | np.ndarray
    """`[S, A, K]`"""
    signals: Array | np.ndarray
    """`[S, A, K, M]`"""
    terminal: Array | np.ndarray
    """`[S]`"""
    initial: Array | np.ndarray
    """`[S]`, cumulative like the rows."""
    noise: float
    """Standard deviation of the Gaussian noise added to each signal."""
    names: tuple[str, ...] = eqx.field(static=True)
    max_steps: int = eqx.field(static=True)

    @property
    def spec(self) -> Spec:
        n_states, n_actions = self.successor.shape[:2]
        return Spec(Discrete(n_states), Discrete(n_actions), self.names, self.max_steps)

    def reset(self, key: Array) -> tuple[Array, Array]:
        state = _slot(lambda k: jnp.asarray(self.initial)[k], self.initial.shape[0], jax.random.uniform(key))
        return state, state

    def step(self, state: Array, action: Array, key: Array) -> Step:
        n_objectives = self.signals.shape[-1]
        pairs = (n_objectives + 1) // 2
        draws = jax.random.uniform(key, (1 + 2 * pairs,))
        slot = _slot(lambda k: jnp.asarray(self.cumulative)[state, action, k], self.successor.shape[-1], draws[0])
        successor = jnp.asarray(self.successor)[state, action, slot]
        noise = _normal(draws[1 : 1 + pairs], draws[1 + pairs :])[:n_objectives]
        signals = jnp.asarray(self.signals)[state, action, slot] + self.noise * noise
        return Step(successor, successor, signals, jnp.where(jnp.asarray(self.terminal)[successor], 0.0, 1.0))

    def momdp(self, gamma: float | tuple[float, ...] = 0.99) -> MOMDP:
        """The process this world samples, for the exact solver (noise has mean 0 and does not show there)."""
        n_states, n_actions, n_slots = self.successor.shape
        heights = np.minimum(np.asarray(self.cumulative, float).reshape(-1, n_slots), 1.0)
        probability = np.diff(heights, axis=1, prepend=0.0)
        used = probability > 0
        indptr = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        columns = np.asarray(self.successor).reshape(-1, n_slots)[used]
        matrix = sp.csr_array((probability[used], columns, indptr), shape=(n_states * n_actions, n_states))
        signals = np.asarray(self.signals, float).reshape(*probability.shape, -1)[used]
        first = np.diff(np.minimum(np.asarray(self.initial, float), 1.0), prepend=0.0)
        return from_outcomes(
            matrix, signals, n_actions, gamma, initial=first, terminal=np.asarray(self.terminal), objectives=self.names
        )


def finite_world(momdp: MOMDP, *, noise: float = 0.0, max_steps: int = 100) -> FiniteWorld:
    """A world that samples a finite MOMDP.

    Args:
        momdp: the process.
        noise: standard deviation of Gaussian noise added to every signal.
        max_steps: an episode is cut off after so many steps; learners bootstrap across the cut.
    """
    if max_steps < 1:
        raise InputError(f"An episode of {max_steps} steps cannot be; max_steps must be 1 or more.")
    matrix = momdp.transitions
    counts = np.diff(matrix.indptr)
    n_slots = int(counts.max())
    where = np.arange(n_slots)[None, :] < counts[:, None]
    shape = (momdp.n_states, momdp.n_actions, n_slots)
    probability = np.zeros(where.shape)
    probability[where] = matrix.data
    successor = np.zeros(where.shape, np.int32)
    successor[where] = matrix.indices
    signals = np.zeros((*where.shape, momdp.n_objectives))
    signals[where] = momdp.outcome_rewards
    return FiniteWorld(
        cumulative=_open_ended(np.cumsum(probability, axis=1), probability).reshape(shape),
        successor=successor.reshape(shape),
        signals=signals.reshape(*shape, -1),
        terminal=momdp.terminal,
        initial=_open_ended(np.cumsum(momdp.initial)[None], momdp.initial[None])[0],
        noise=noise,
        names=momdp.objectives,
        max_steps=max_steps,
    )


def _open_ended(cumulative: np.ndarray, probability: np.ndarray) -> np.ndarray:
    """Rounding must never let a draw pass the last possible slot: from there on the height is infinite."""
    last = probability.shape[1] - 1 - np.argmax(probability[:, ::-1] > 0, axis=1)
    return np.where(np.arange(probability.shape[1]) >= last[:, None], np.inf, cumulative)


def _slot(height, n_slots: int, draw: Array) -> Array:
    """The first slot whose height exceeds the draw, by bisection with a fixed number of steps."""
    low = jnp.int32(0)
    for power in reversed(range(max(1, math.ceil(math.log2(n_slots + 1))))):
        middle = low + (1 << power)
        inside = middle <= n_slots
        passed = inside & (height(jnp.minimum(middle, n_slots) - 1) <= draw)
        low = jnp.where(passed, middle, low)
    return low


def _normal(radius: Array, angle: Array) -> Array:
    """Box-Muller: two standard normals from two uniforms; a logarithm and a cosine are cheaper than an inverse erf."""
    size = jnp.sqrt(-2.0 * jnp.log(1.0 - radius))
    turn = 2.0 * np.float32(np.pi) * angle
    return jnp.concatenate([size * jnp.cos(turn), size * jnp.sin(turn)])
