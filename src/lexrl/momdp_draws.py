"""Random transitions and rewards, as in the paper's scaling experiment: see `MOMDP.random`."""

from typing import Any

import numpy as np
import scipy.sparse as sp


def draw(
    rng: np.random.Generator,
    num_states: int,
    num_actions: int,
    num_signals: int,
    num_successors: int | None,
    tie_fraction: float,
    episodic: bool,
) -> tuple[Any, np.ndarray]:
    """A CSR matrix `[S * A, S]`, and the signals `[nonzeros, M]` of each of its stored entries."""
    n_rows = num_states * num_actions
    rows, columns = _successors(rng, n_rows, num_states, num_successors)
    weights = 1.0 - rng.random(len(rows))  # in (0, 1]: a chosen successor is a possible one
    rewards = rng.uniform(-1.0, 1.0, (len(rows), num_signals))
    if tie_fraction > 0 and num_signals > 1:
        rows, columns, weights, rewards = _plant_ties(
            rng, rows, columns, weights, rewards, num_states, num_actions, tie_fraction
        )
    matrix = sp.csr_array((weights, (rows, columns)), shape=(n_rows, num_states))
    totals = np.asarray(matrix.sum(axis=1))
    probabilities = weights / totals[rows]
    if episodic:
        rows, columns, probabilities, rewards = _with_exit(rows, columns, probabilities, rewards, num_states)
    order = np.lexsort((columns, rows))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_rows))])
    return sp.csr_array((probabilities[order], columns[order], indptr), shape=(n_rows, num_states)), rewards[order]


def _successors(
    rng: np.random.Generator, n_rows: int, num_states: int, num_successors: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the possible transitions: a random density for each row, or as many successors for all."""
    if num_successors is None:
        mask = rng.random((n_rows, num_states)) < rng.random((n_rows, 1))
        mask[np.arange(n_rows), rng.integers(num_states, size=n_rows)] = True
        rows, columns = np.nonzero(mask)
        return rows, columns
    each = min(num_successors, num_states)
    return np.repeat(np.arange(n_rows), each), np.concatenate([_sample(rng, num_states, each) for _ in range(n_rows)])


def _sample(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    return np.sort(rng.choice(n, size=k, replace=False))


def _plant_ties(rng: Any, rows: Any, columns: Any, weights: Any, rewards: Any, states: int, actions: int, ties: float):
    """In a share of the states, copy action 0's successors to every action and the rewards of the first objectives."""
    parts = []
    bounds = np.searchsorted(rows, np.arange(states * actions + 1))
    for state in range(states):
        first = slice(bounds[state * actions], bounds[state * actions + 1])
        tied = rng.integers(1, rewards.shape[1]) if rng.random() < ties else 0
        for action in range(actions):
            row = state * actions + action
            own = slice(bounds[row], bounds[row + 1])
            if not tied:
                parts.append((rows[own], columns[own], weights[own], rewards[own]))
                continue
            n = first.stop - first.start
            lower = rng.uniform(-1.0, 1.0, (n, rewards.shape[1] - tied))
            parts.append(
                (np.full(n, row), columns[first], weights[first], np.hstack([rewards[first][:, :tied], lower]))
            )
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def _with_exit(rows: Any, columns: Any, probabilities: Any, rewards: Any, states: int):
    """Move 5 % of every row's probability to the last state, with no reward on the way out."""
    extra = np.unique(rows)
    rows = np.concatenate([rows, extra])
    columns = np.concatenate([columns, np.full(len(extra), states - 1)])
    probabilities = np.concatenate([0.95 * probabilities, np.full(len(extra), 0.05)])
    rewards = np.concatenate([rewards, np.zeros((len(extra), rewards.shape[1]))])
    # A row may hold the exit twice; keep one entry, with the mean of what it pays.
    keys, where = np.unique(rows * states + columns, return_inverse=True)
    total = np.bincount(where, probabilities)
    paid = np.stack([np.bincount(where, probabilities * column) / total for column in rewards.T], axis=1)
    return keys // states, keys % states, total, paid
