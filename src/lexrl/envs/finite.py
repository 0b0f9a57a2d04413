"""Any finite MOMDP as an environment."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import Array

from lexrl.backend import compute_once
from lexrl.errors import InputError, require_whole
from lexrl.momdp import MOMDP, from_outcomes
from lexrl.types import Discrete, EnvSpec, Step


class FiniteEnv(eqx.Module):
    """Samples a finite MOMDP. Each (s, a) has `K` slots, one for each possible successor; spare ones are never drawn.

    Slots are drawn by Walker's alias method: pick one of `K` uniformly, keep it with its own probability, else take its
    alias. That is two look-ups however many successors there are, and what is needed next lies beside them.

    On the host the arrays are float64, so that `momdp()` gives back what went in; a device keeps them in float32.
    """

    slots: Array | np.ndarray
    """`[S, A, K, 3 + M]`: probability that a slot is kept, its alias, its successor, its signals."""
    n_slots: Array | np.ndarray
    """How many slots are drawn from; `per_seed` pads the others."""
    terminal: Array | np.ndarray
    """`[S]`"""
    initial: Array | np.ndarray
    """`[S, 2]`: the alias table of initial states."""
    reward_noise: float
    """Standard deviation of the Gaussian noise added to each signal."""
    signals: tuple[str, ...] = eqx.field(static=True)
    max_episode_steps: int = eqx.field(static=True)

    def __init__(self, momdp: MOMDP, *, reward_noise: float = 0.0, max_episode_steps: int = 100):
        """Sample a finite MOMDP.

        Args:
            momdp: the MOMDP.
            reward_noise: standard deviation of Gaussian noise added to every signal.
            max_episode_steps: episodes are truncated after this many steps; algorithms bootstrap there.
        """
        require_whole(max_episode_steps=max_episode_steps)
        if not reward_noise >= 0:
            raise InputError(f"reward_noise is {reward_noise:g}; a standard deviation must be 0 or more.")
        if not momdp.action_mask.all():
            state, action = np.argwhere(~momdp.action_mask)[0]
            raise InputError(
                f"State {state} has no action {action}; algorithms choose among all actions in every state: let it do "
                "what another one does, or solve the MOMDP exactly."
            )
        matrix = momdp.transitions
        counts = np.diff(matrix.indptr)
        where = np.arange(int(counts.max()))[None, :] < counts[:, None]
        probability = np.zeros(where.shape)
        probability[where] = matrix.data
        outcomes = np.zeros((*where.shape, 1 + momdp.num_objectives))
        outcomes[where] = np.column_stack([matrix.indices, momdp.outcome_rewards])
        slots = np.concatenate([_alias_table(probability), outcomes], axis=-1)
        self.slots = slots.reshape(momdp.num_states, momdp.num_actions, *slots.shape[1:])
        self.n_slots = np.array(slots.shape[1], np.int32)
        self.terminal = momdp.terminal
        self.initial = _alias_table(momdp.initial[None])[0]
        self.reward_noise = reward_noise
        self.signals = momdp.signals
        self.max_episode_steps = max_episode_steps

    @property
    def spec(self) -> EnvSpec:
        num_states, num_actions = self.slots.shape[:2]
        return EnvSpec(Discrete(num_states), Discrete(num_actions), self.signals, self.max_episode_steps)

    def reset(self, key: Array) -> tuple[Array, Array]:
        first = jnp.asarray(self.initial)
        state = _draw(lambda slot: first[slot], first.shape[0], *jax.random.uniform(key, (2,)))
        return state, state

    def step(self, state: Array, action: Array, key: Array) -> Step:
        slots = jnp.asarray(self.slots)
        m = len(self.signals)
        pairs = (m + 1) // 2
        draws = compute_once(jax.random.uniform(key, (2 + 2 * pairs,)), state >= 0)
        slot = _draw(lambda slot: slots[state, action, slot, :2], self.n_slots, draws[0], draws[1])
        outcome = slots[state, action, slot, 2:]
        successor = outcome[0].astype(jnp.int32)
        signals = outcome[1:] + self.reward_noise * _normal(draws[2 : 2 + pairs], draws[2 + pairs :])[:m]
        return Step(successor, successor, signals, jnp.where(jnp.asarray(self.terminal)[successor], 0.0, 1.0))

    def momdp(self, gamma: float | tuple[float, ...] = 0.99) -> MOMDP:
        """The MOMDP that is sampled, for the exact solver (reward noise has mean 0 and does not matter there)."""
        num_states, num_actions, _, width = self.slots.shape
        slots = np.asarray(self.slots, float)[:, :, : int(self.n_slots)].reshape(num_states * num_actions, -1, width)
        probability = _probabilities(slots[..., :2])
        used = probability > 0
        indptr = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        columns, signals = slots[used][:, 2].astype(np.int32), slots[used][:, 3:]
        matrix = sp.csr_array((probability[used], columns, indptr), shape=(num_states * num_actions, num_states))
        first = _probabilities(np.asarray(self.initial, float)[None])[0]
        return from_outcomes(
            matrix, signals, num_actions, gamma, initial=first, terminal=np.asarray(self.terminal), signals=self.signals
        )


def _alias_table(probability: np.ndarray) -> np.ndarray:
    """Alias tables for rows of probabilities `[R, K]`, all rows in step: `[R, K, 2]`.

    A slot that is less likely than 1 / K gives what it leaves over to one that is more likely, which may become a
    light one in turn; every iteration finishes one slot of every row.
    """
    n_rows, n_slots = probability.shape
    rows = np.arange(n_rows)
    total = probability.sum(axis=1, keepdims=True)
    # The row of a terminal state may be empty; it is never drawn from.
    probability = np.where(total > 0, probability, np.arange(n_slots) == 0)
    weight = probability / np.where(total > 0, total, 1.0) * n_slots
    heaviest = np.argmax(weight, axis=1)
    queue = np.argsort(weight >= 1, axis=1, kind="stable")  # the light slots, then the heavy ones
    n_light = (weight < 1).sum(axis=1)
    light, heavy = np.zeros(n_rows, int), n_light.copy()
    giver = queue[:, 0].copy()
    alias = np.tile(np.arange(n_slots), (n_rows, 1))
    active = (n_light > 0) & (heavy < n_slots)
    while active.any():
        r = rows[active]
        taker = queue[r, heavy[r]]
        alias[r, giver[r]] = taker
        weight[r, taker] -= 1 - weight[r, giver[r]]
        spent = weight[r, taker] < 1
        light[r] += ~spent
        heavy[r] += spent
        giver[r] = np.where(spent, taker, queue[r, np.minimum(light[r], n_slots - 1)])
        active[r] = (heavy[r] < n_slots) & (spent | (light[r] < n_light[r]))
    # Rounding leaves a few slots unfinished at about 1; an impossible one must not become possible that way.
    unfinished = (alias == np.arange(n_slots)) & (probability <= 0)
    alias = np.where(unfinished, heaviest[:, None], alias)
    own = alias == np.arange(n_slots)
    return np.stack([np.where(own, 1.0, np.where(unfinished, 0.0, weight)), alias.astype(float)], axis=-1)


def _probabilities(table: np.ndarray) -> np.ndarray:
    """The probabilities `[R, K]` that alias tables `[R, K, 2]` stand for."""
    keep, alias = table[..., 0], table[..., 1].astype(int)
    total = keep.copy()
    np.add.at(total, (np.arange(len(keep))[:, None], alias), np.where(alias == np.arange(keep.shape[1]), 0, 1 - keep))
    return total / total.sum(axis=1, keepdims=True)


def _draw(table: Callable[[Array], Any], n_slots: Any, which: Array, keeps: Array) -> Array:
    """A slot from two uniform draws."""
    slot = jnp.minimum((which * n_slots).astype(jnp.int32), n_slots - 1)
    keep, alias = table(slot)
    return jnp.where(keeps < keep, slot, alias.astype(jnp.int32))


def _normal(radius: Array, angle: Array) -> Array:
    """Box-Muller: two standard normals from two uniforms; a logarithm and a cosine are cheaper than an inverse erf."""
    size = jnp.sqrt(-2.0 * jnp.log(1.0 - radius))
    turn = 2.0 * np.float32(np.pi) * angle
    return jnp.concatenate([size * jnp.cos(turn), size * jnp.sin(turn)])
