"""Ground truth by enumeration, and small worlds to enumerate; written without the code under test."""

import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp

from lexrl.momdp import MOMDP, from_outcomes


def order_of(world: MOMDP) -> str:
    return " > ".join(f"max {name}" for name in world.signals)


def all_policies(world: MOMDP) -> np.ndarray:
    """Every deterministic policy, `[n, S]`."""
    return np.array(list(itertools.product(range(world.num_actions), repeat=world.num_states)))


def chain_of(world: MOMDP, policies: np.ndarray) -> np.ndarray:
    dense = world.transitions.toarray().reshape(world.num_states, world.num_actions, world.num_states)
    chains = dense[np.arange(world.num_states), policies]
    return np.where(world.terminal[:, None], 0.0, chains)


def all_values(world: MOMDP) -> np.ndarray:
    """Values of every deterministic policy, `[n, M, S]`."""
    policies = all_policies(world)
    chains, states = chain_of(world, policies), np.arange(world.num_states)
    eye = np.eye(world.num_states)
    values = [
        np.linalg.solve(eye - world.gamma[i] * chains, world.rewards[i][states, policies][..., None])[..., 0]
        for i in range(world.num_objectives)
    ]
    return np.stack(values, axis=1)


def lexicographic_best(candidates: np.ndarray, tie: float = 1e-9) -> np.ndarray:
    """The lexicographically largest of vectors `[n, M]`."""
    for i in range(candidates.shape[1]):
        candidates = candidates[candidates[:, i] >= candidates[:, i].max() - tie]
    return candidates.max(axis=0)


def best_values(world: MOMDP) -> np.ndarray:
    """State by state, the lexicographically best values any deterministic policy has, `[M, S]`."""
    values = all_values(world)
    return np.stack([lexicographic_best(values[:, :, s]) for s in range(world.num_states)], axis=1)


def integer_world(seed: int, objectives: int, *, states: int = 4, actions: int = 3, gamma: Any = 0.9) -> MOMDP:
    """Deterministic moves and rewards 0 or 1: full of ties between different ways."""
    rng = np.random.default_rng(seed)
    transitions = np.eye(states)[rng.integers(states, size=(states, actions))]
    return MOMDP.from_arrays(transitions, rng.integers(0, 2, (objectives, states, actions)), gamma)


def staircase(seed: int, objectives: int, *, states: int = 5, actions: int = 3) -> MOMDP:
    """Every move goes to a higher number, the last state is terminal, gamma is 1, rewards are tenths."""
    rng = np.random.default_rng(seed)
    transitions = np.zeros((states, actions, states))
    for s in range(states):
        for a in range(actions):
            transitions[s, a, rng.integers(min(s + 1, states - 1), states, size=2)] += 0.5
    transitions /= transitions.sum(axis=2, keepdims=True)
    rewards = rng.integers(0, 3, (objectives, states, actions)) / 10
    return MOMDP.from_arrays(transitions, rewards, 1.0, terminal=[states - 1])


def grid(side: int, *, gamma: float = 0.99, slip: float = 0.1, seed: int = 0) -> MOMDP:
    """Four moves on a square with obstacles; from the bottom right corner to the top right one."""
    states = np.arange(side * side)
    row, column = np.divmod(states, side)
    moves = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    ways = [np.clip(row + y, 0, side - 1) * side + np.clip(column + x, 0, side - 1) for y, x in moves]
    parts = [(states * 4 + a, ways[b], slip / 4 + (1 - slip) * (a == b)) for a in range(4) for b in range(4)]
    rows, columns = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    weights = np.repeat([part[2] for part in parts], len(states))
    matrix = sp.csr_array((weights, (rows, columns)), shape=(4 * len(states), len(states)))
    matrix.sum_duplicates()
    obstacle = np.random.default_rng(seed).random(len(states)) < 0.3
    goal = side - 1
    signals = np.stack([100.0 * (matrix.indices == goal), 1.0 * obstacle[matrix.indices]], axis=1)
    start = np.eye(len(states))[-1]
    return from_outcomes(matrix, signals, 4, gamma, initial=start, terminal=[goal], signals=["reward", "cost"])
