"""A finite multi-objective decision process as arrays, and random ones.

The tuple `<S, A, T, I, R, gamma>` of the paper with `M` named signals and one discount each. The transition
probabilities are one sparse matrix whether they were given dense or sparse; rewards may depend on the successor.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float

from lexrl.errors import InputError
from lexrl.order import Order, as_order


@dataclasses.dataclass(frozen=True)
class MOMDP:
    """A finite MOMDP; build it with `MOMDP.from_arrays(...)`, which checks what it is given."""

    transitions: Any
    """CSR matrix `[S * A, S]`: row `s * A + a` is the distribution of the successor of (s, a)."""
    rewards: Float[np.ndarray, "M S A"]
    """Expected signals of (s, a)."""
    outcome_rewards: Float[np.ndarray, "nonzeros M"]
    """The signals of each (s, a, s'), in the order of the matrix's stored entries."""
    gamma: Float[np.ndarray, " M"]
    initial: Float[np.ndarray, " S"]
    terminal: Bool[np.ndarray, " S"]
    signals: tuple[str, ...]
    """Names of the signals; after `ordered(...)` those of the objectives, the most important first."""

    @staticmethod
    def from_arrays(
        transitions: Any,
        rewards: Any,
        gamma: float | int | Sequence[float] | Float[np.ndarray, " M"],
        *,
        initial: Any = None,
        terminal: Sequence[int] | Bool[np.ndarray, " S"] | None = None,
        signals: Sequence[str] | None = None,
    ) -> "MOMDP":
        """A finite MOMDP from its arrays.

        Args:
            transitions: `P[S, A, S]`, or a sparse matrix `[S * A, S]` with row `s * A + a` for (s, a).
            rewards: `R[M, S, A]`, or `R[M, S, A, S]` where the successor matters.
            gamma: one discount for all signals, or one each.
            initial: distribution of the first state; uniform over the non-terminal states if not given.
            terminal: states that end the task, as indices or as a mask; what happens in them is ignored.
            signals: their names; `signal_1 ..` if not given.
        """
        matrix, n_states, n_actions = _matrix(transitions)
        rewards = np.asarray(rewards, float)
        if rewards.ndim not in (3, 4) or rewards.shape[1:] not in (
            (n_states, n_actions),
            (n_states, n_actions, n_states),
        ):
            raise InputError(
                f"The rewards have shape {rewards.shape}; for {n_states} states and {n_actions} actions they need "
                f"[M, {n_states}, {n_actions}] or [M, {n_states}, {n_actions}, {n_states}]."
            )
        if not np.isfinite(rewards).all():
            raise InputError("The rewards contain NaN or infinity; every theorem needs bounded ones: clean them first.")
        rows = np.repeat(np.arange(n_states * n_actions), np.diff(matrix.indptr))
        flat = rewards.reshape(len(rewards), n_states * n_actions, *rewards.shape[3:])
        outcome = flat[:, rows, matrix.indices].T if rewards.ndim == 4 else flat[:, rows].T
        return from_outcomes(matrix, outcome, n_actions, gamma, initial=initial, terminal=terminal, signals=signals)

    @staticmethod
    def random(
        momdp_seed: int,
        num_states: int = 256,
        num_actions: int = 4,
        num_signals: int = 2,
        *,
        gamma: float | int | Sequence[float] | Float[np.ndarray, " M"] = 0.9,
        num_successors: int | None = None,
        tie_fraction: float = 0.0,
        episodic: bool = False,
    ) -> "MOMDP":
        """A random MOMDP as in the paper's scaling experiment.

        Each (s, a) draws a density, then a mask of successors with it (at least one), then uniform weights, normalized;
        rewards are uniform in [-1, 1] for each (s, a, s').

        Args:
            momdp_seed: seed of the random MOMDP.
            num_states, num_actions, num_signals: the sizes.
            gamma: one discount for all signals, or one each.
            num_successors: number of successors of each (s, a) instead of a random density; keeps large ones sparse.
            tie_fraction: fraction of states in which the first signals do not distinguish the actions. A random MOMDP
                has a unique best policy for objective 1 almost surely, so without this the others have nothing to
                decide. In such a state all actions lead to the same successors, and the first k signals, k uniform in
                1 .. M-1, are the same for each of them.
            episodic: the last state is terminal, and every (s, a) leads there with probability at least 0.05.
        """
        rng = np.random.default_rng(momdp_seed)
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
        matrix = sp.csr_array((probabilities[order], columns[order], indptr), shape=(n_rows, num_states))
        return from_outcomes(
            matrix, rewards[order], num_actions, gamma, terminal=[num_states - 1] if episodic else None
        )

    @property
    def n_states(self) -> int:
        return self.rewards.shape[1]

    @property
    def n_actions(self) -> int:
        return self.rewards.shape[2]

    @property
    def n_objectives(self) -> int:
        return self.rewards.shape[0]

    @property
    def continuing(self) -> bool:
        """No state ends the task."""
        return not self.terminal.any()

    def ordered(self, order: "Order | str | None") -> "MOMDP":
        """The same process with its signals selected, ordered and signed by an order expression: all are maximized."""
        order = as_order(order, self.signals)
        columns = order.columns(self.signals)
        signs = order.signs.astype(float)
        return dataclasses.replace(
            self,
            rewards=self.rewards[columns] * signs[:, None, None],
            outcome_rewards=self.outcome_rewards[:, columns] * signs,
            gamma=self.gamma[columns],
            signals=order.names,
        )

    def chain(self, policy: Float[np.ndarray, "S A"]) -> tuple[Any, Float[np.ndarray, "M S"]]:
        """The Markov chain a policy makes: its transition matrix `[S, S]` (terminal rows empty) and its rewards."""
        weights = np.where(self.terminal[:, None], 0.0, policy)
        rows = np.repeat(np.arange(self.n_states), self.n_actions)
        mixer = sp.csr_array(
            (weights.ravel(), (rows, np.arange(weights.size))), shape=(self.n_states, self.n_states * self.n_actions)
        )
        return mixer @ self.transitions, np.einsum("sa,msa->ms", weights, self.rewards)

    def backup(self, values: Float[np.ndarray, " S"], objective: int) -> Float[np.ndarray, "S A"]:
        """`q(s, a) = r(s, a) + gamma E[values(s')]` for one objective; terminal states are worth 0."""
        ahead = self.transitions @ np.where(self.terminal, 0.0, values)
        q = self.rewards[objective] + self.gamma[objective] * ahead.reshape(self.n_states, self.n_actions)
        return np.where(self.terminal[:, None], 0.0, q)

    def never_ending(self) -> Bool[np.ndarray, " S"]:
        """States from which some policy avoids every terminal state for ever."""
        inside = ~self.terminal
        support = self.transitions.astype(bool).astype(float)
        while True:
            leaves = (support @ (~inside).astype(float)).reshape(self.n_states, self.n_actions) > 0
            smaller = inside & ~leaves.all(axis=1)
            if (smaller == inside).all():
                return inside
            inside = smaller


def from_outcomes(
    matrix: Any,
    outcome_rewards: Float[np.ndarray, "nonzeros M"],
    n_actions: int,
    gamma: float | int | Sequence[float] | Float[np.ndarray, " M"],
    *,
    initial: Any = None,
    terminal: Any = None,
    signals: Sequence[str] | None = None,
) -> MOMDP:
    """A MOMDP from a CSR matrix `[S * A, S]` and the signals of each of its stored entries: nothing dense is made."""
    n_states, n_objectives = matrix.shape[1], outcome_rewards.shape[1]
    if n_objectives == 0:
        raise InputError("The rewards have no signal; at least one is needed.")
    ended = _terminal(terminal, n_states)
    _check_rows(matrix, n_actions, ended)
    weights = [
        sp.csr_array((matrix.data * column, matrix.indices, matrix.indptr), shape=matrix.shape)
        for column in outcome_rewards.T
    ]
    expected = np.stack([np.asarray(weight.sum(axis=1)).reshape(n_states, n_actions) for weight in weights])
    names = tuple(signals) if signals is not None else tuple(f"signal_{i + 1}" for i in range(n_objectives))
    if len(names) != n_objectives or len(set(names)) != len(names):
        raise InputError(
            f"The signals are named {names}; {n_objectives} different names are needed, one for each of them."
        )
    return MOMDP(
        transitions=matrix,
        rewards=np.where(ended[:, None], 0.0, expected),
        outcome_rewards=np.asarray(outcome_rewards, float),
        gamma=_gamma(gamma, n_objectives),
        initial=_initial(initial, ended),
        terminal=ended,
        signals=names,
    )


def _successors(
    rng: np.random.Generator, n_rows: int, n_states: int, n_successors: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the possible transitions: a random density for each row, or as many successors for all."""
    if n_successors is None:
        mask = rng.random((n_rows, n_states)) < rng.random((n_rows, 1))
        mask[np.arange(n_rows), rng.integers(n_states, size=n_rows)] = True
        rows, columns = np.nonzero(mask)
        return rows, columns
    each = min(n_successors, n_states)
    return np.repeat(np.arange(n_rows), each), np.concatenate([_sample(rng, n_states, each) for _ in range(n_rows)])


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


def _matrix(transitions: Any) -> tuple[Any, int, int]:
    if sp.issparse(transitions):
        n_rows, n_states = transitions.shape
        if n_rows == 0 or n_rows % n_states:
            raise InputError(
                f"The sparse transitions have shape {transitions.shape}; they need a row for each state and action, "
                "[S * A, S]."
            )
        return sp.csr_array(transitions), n_states, n_rows // n_states
    dense = np.asarray(transitions, float)
    if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or 0 in dense.shape:
        raise InputError(f"The transitions have shape {dense.shape}; they need [S, A, S]: state, action, successor.")
    return sp.csr_array(dense.reshape(-1, dense.shape[2])), dense.shape[0], dense.shape[1]


def _check_rows(matrix: Any, n_actions: int, terminal: Bool[np.ndarray, " S"]) -> None:
    totals = np.asarray(matrix.sum(axis=1)).ravel()
    lowest = np.full(len(totals), np.inf)
    with np.errstate(invalid="ignore"):
        np.minimum.at(lowest, np.repeat(np.arange(len(totals)), np.diff(matrix.indptr)), matrix.data)
    wrong = np.flatnonzero((~(np.abs(totals - 1) <= 1e-6) | ~(lowest >= 0)) & ~np.repeat(terminal, n_actions))
    if len(wrong):
        state, action = divmod(int(wrong[0]), n_actions)
        more = f" (and {len(wrong) - 1} more rows)" if len(wrong) > 1 else ""
        fault = f"sum to {totals[wrong[0]]:g}" if lowest[wrong[0]] >= 0 else f"contain {lowest[wrong[0]]:g}"
        raise InputError(
            f"The transition probabilities of state {state}, action {action} {fault}{more}; "
            "each row must be non-negative and sum to 1."
        )


def _gamma(gamma: Any, n_objectives: int) -> Float[np.ndarray, " M"]:
    each = np.asarray(gamma, float)
    if each.ndim > 1 or (each.ndim == 1 and len(each) != n_objectives):
        raise InputError(
            f"Gamma has shape {each.shape}; give one number, or one for each of {n_objectives} objectives."
        )
    if not ((each >= 0) & (each <= 1)).all():
        raise InputError(f"Gamma is {gamma}; a discount lies in [0, 1].")
    return np.broadcast_to(each, (n_objectives,)).copy()


def _terminal(terminal: Any, n_states: int) -> Bool[np.ndarray, " S"]:
    if terminal is None:
        return np.zeros(n_states, bool)
    given = np.asarray(terminal)
    if given.dtype == bool and given.shape == (n_states,):
        return given.copy()
    whole = given.size == 0 or np.issubdtype(given.dtype, np.integer)
    if not whole or given.ndim != 1 or (given.size and not (0 <= given.min() <= given.max() < n_states)):
        raise InputError(
            f"The terminal states {terminal} should be indices below {n_states}, or a mask of that length."
        )
    mask = np.zeros(n_states, bool)
    mask[given.astype(int)] = True
    return mask


def _initial(initial: Any, terminal: Bool[np.ndarray, " S"]) -> Float[np.ndarray, " S"]:
    if initial is None:
        if terminal.all():
            raise InputError("Every state is terminal; at least one must not be.")
        return np.where(terminal, 0.0, 1.0) / np.sum(~terminal)
    given = np.asarray(initial, float)
    if given.shape != terminal.shape or not (given >= 0).all() or abs(given.sum() - 1) > 1e-6:
        raise InputError(
            f"The initial distribution has shape {given.shape} and sums to {given.sum():g}; "
            f"it needs {len(terminal)} non-negative numbers that sum to 1."
        )
    if (given[terminal] > 0).any():
        raise InputError("The initial distribution starts in a terminal state; every task has at least one step.")
    return given
