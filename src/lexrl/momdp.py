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
from lexrl.order import Order, as_order, is_name

_NOT_FINITE = "The rewards contain NaN or infinity; every theorem needs bounded ones: clean them first."


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
    action_mask: Bool[np.ndarray, "S A"]
    """Which actions there are in each state; all of them in a terminal one."""
    rewards_rest: Float[np.ndarray, "M S A"] | None = None
    """What `rewards` lose by rounding; None where they are expectations over `outcome_rewards`, rounded."""

    @staticmethod
    def from_arrays(
        transitions: Any,
        rewards: Any,
        gamma: float | int | Sequence[float] | Float[np.ndarray, " M"],
        *,
        initial: Any = None,
        terminal: Sequence[int] | Bool[np.ndarray, " S"] | None = None,
        signals: Sequence[str] | None = None,
        action_mask: Any = None,
    ) -> "MOMDP":
        """A finite MOMDP from its arrays.

        Args:
            transitions: `P[S, A, S]`, or a sparse matrix `[S * A, S]` with row `s * A + a` for (s, a).
            rewards: `R[M, S, A]`, or `R[M, S, A, S]` where the successor matters.
            gamma: one discount for all signals, or one each.
            initial: distribution of the first state; uniform over the non-terminal states if not given.
            terminal: states that end the task, as indices or as a mask; what happens in them is ignored.
            signals: their names; `signal_1 ..` if not given.
            action_mask: `[S, A]`, which actions there are in each state; all of them if not given. What `transitions`
                and `rewards` say of other actions is ignored.
        """
        matrix, num_states, num_actions = _matrix(transitions)
        rewards = as_numbers("rewards", rewards)
        if rewards.ndim not in (3, 4) or rewards.shape[1:] not in (
            (num_states, num_actions),
            (num_states, num_actions, num_states),
        ):
            raise InputError(
                f"The rewards have shape {rewards.shape}; for {num_states} states and {num_actions} actions they need "
                f"[M, {num_states}, {num_actions}] or [M, {num_states}, {num_actions}, {num_states}]."
            )
        mask = _mask(action_mask, num_states, num_actions)
        rewards = np.where(mask if rewards.ndim == 3 else mask[:, :, None], rewards, 0.0)
        if not np.isfinite(rewards).all():
            raise InputError(_NOT_FINITE)
        rows = np.repeat(np.arange(num_states * num_actions), np.diff(matrix.indptr))
        flat = rewards.reshape(len(rewards), num_states * num_actions, *rewards.shape[3:])
        outcome = flat[:, rows, matrix.indices].T if rewards.ndim == 4 else flat[:, rows].T
        found = from_outcomes(
            matrix, outcome, num_actions, gamma, initial=initial, terminal=terminal, signals=signals, action_mask=mask
        )
        if rewards.ndim == 4:
            return found
        given = np.where(found.terminal[:, None], 0.0, rewards)
        return dataclasses.replace(found, rewards=given, rewards_rest=np.zeros_like(given))

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
    def num_states(self) -> int:
        return self.rewards.shape[1]

    @property
    def num_actions(self) -> int:
        return self.rewards.shape[2]

    @property
    def num_objectives(self) -> int:
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
            rewards_rest=None if self.rewards_rest is None else self.rewards_rest[columns] * signs[:, None, None],
            gamma=self.gamma[columns],
            signals=order.names,
        )

    def chain(self, policy: Float[np.ndarray, "S A"]) -> tuple[Any, Float[np.ndarray, "M S"]]:
        """The Markov chain a policy makes: its transition matrix `[S, S]` (terminal rows empty) and its rewards."""
        weights = np.where(self.terminal[:, None], 0.0, policy)
        rows = np.repeat(np.arange(self.num_states), self.num_actions)
        mixer = sp.csr_array(
            (weights.ravel(), (rows, np.arange(weights.size))),
            shape=(self.num_states, self.num_states * self.num_actions),
        )
        return mixer @ self.transitions, np.einsum("sa,msa->ms", weights, self.rewards)

    def backup(self, values: Float[np.ndarray, " S"], objective: int) -> Float[np.ndarray, "S A"]:
        """`q(s, a) = r(s, a) + gamma E[values(s')]` for one objective; terminal states are worth 0."""
        ahead = self.transitions @ np.where(self.terminal, 0.0, values)
        q = self.rewards[objective] + self.gamma[objective] * ahead.reshape(self.num_states, self.num_actions)
        return np.where(self.terminal[:, None], 0.0, q)

    def never_ending(self) -> Bool[np.ndarray, " S"]:
        """States from which some policy avoids every terminal state for ever."""
        inside = ~self.terminal
        support = self.transitions.astype(bool).astype(float)
        while True:
            leaves = (support @ (~inside).astype(float)).reshape(self.num_states, self.num_actions) > 0
            smaller = inside & (~leaves & self.action_mask).any(axis=1)
            if (smaller == inside).all():
                return inside
            inside = smaller


def as_numbers(name: str, given: Any) -> Float[np.ndarray, " ..."]:
    """An array of floats, or a sentence that says why there is none."""
    try:
        array = np.asarray(given)
        if array.dtype.kind == "c":
            raise TypeError
        return array.astype(float, copy=False)
    except (TypeError, ValueError):
        raise InputError(
            f"The {name} cannot be read as an array of numbers: every row needs the same length, and every entry must "
            "be a number."
        ) from None


def from_outcomes(
    matrix: Any,
    outcome_rewards: Float[np.ndarray, "nonzeros M"],
    num_actions: int,
    gamma: float | int | Sequence[float] | Float[np.ndarray, " M"],
    *,
    initial: Any = None,
    terminal: Any = None,
    signals: Sequence[str] | None = None,
    action_mask: Any = None,
) -> MOMDP:
    """A MOMDP from a CSR matrix `[S * A, S]` and the signals of each of its stored entries: nothing dense is made."""
    num_states, num_objectives = matrix.shape[1], outcome_rewards.shape[1]
    if num_objectives == 0:
        raise InputError("The rewards have no signal; at least one is needed.")
    if not np.isfinite(outcome_rewards).all():
        raise InputError(_NOT_FINITE)
    ended = _terminal(terminal, num_states)
    mask = _mask(action_mask, num_states, num_actions)
    if (none := np.flatnonzero(~mask.any(axis=1) & ~ended)).size:
        raise InputError(
            f"The action mask leaves no action in state {none[0]}; a state that is not terminal needs one."
        )
    _check_rows(matrix, num_actions, ~(mask & ~ended[:, None]).ravel())
    ignored = ended[:, None] if not np.isfinite(matrix.data).all() else np.zeros((num_states, 1), bool)
    matrix, outcome_rewards = _without_masked(matrix, outcome_rewards, mask & ~ignored)
    matrix = _normalized(matrix)
    weights = [
        sp.csr_array((matrix.data * column, matrix.indices, matrix.indptr), shape=matrix.shape)
        for column in outcome_rewards.T
    ]
    expected = np.stack([np.asarray(weight.sum(axis=1)).reshape(num_states, num_actions) for weight in weights])
    return MOMDP(
        transitions=matrix,
        rewards=np.where(mask & ~ended[:, None], expected, 0.0),
        outcome_rewards=np.asarray(outcome_rewards, float),
        gamma=_gamma(gamma, num_objectives),
        initial=_initial(initial, ended),
        terminal=ended,
        signals=_names(signals, num_objectives),
        action_mask=mask | ended[:, None],
    )


def _names(signals: Any, num_objectives: int) -> tuple[str, ...]:
    names = tuple(signals) if signals is not None else tuple(f"signal_{i + 1}" for i in range(num_objectives))
    if len(names) != num_objectives or len(set(names)) != len(names):
        raise InputError(
            f"The signals are named {names}; {num_objectives} different names are needed, one for each of them."
        )
    if unreadable := [name for name in names if not is_name(name)]:
        raise InputError(
            f"A signal is named {unreadable[0]!r}, which an order cannot name; write a word without spaces and without "
            "any of '<>=+±'."
        )
    return names


def _mask(action_mask: Any, num_states: int, num_actions: int) -> Bool[np.ndarray, "S A"]:
    if action_mask is None:
        return np.ones((num_states, num_actions), bool)
    given = as_numbers("entries of the action mask", action_mask)
    if given.shape != (num_states, num_actions):
        raise InputError(f"The action mask has shape {given.shape}; it needs {(num_states, num_actions)}.")
    if not np.isin(given, (0, 1)).all():
        raise InputError(
            f"The action mask contains {given[~np.isin(given, (0, 1))][0]!s}; it needs true or 1 where there is the "
            "action and false or 0 where not."
        )
    return given.astype(bool)


def _normalized(matrix: Any) -> Any:
    """Rows that sum to 1 but for a few roundings, which is where they stay as they are."""
    totals, counts = np.asarray(matrix.sum(axis=1)).ravel(), np.diff(matrix.indptr)
    off = (np.abs(totals - 1) > np.finfo(float).eps * counts) & (totals > 0)
    if not off.any():
        return matrix
    data = matrix.data / np.repeat(np.where(off, totals, 1.0), counts)
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _without_masked(matrix: Any, outcome_rewards: Any, mask: Bool[np.ndarray, "S A"]) -> tuple[Any, Any]:
    """The same without the rows of actions that there are not."""
    if mask.all():
        return matrix, outcome_rewards
    lengths = np.where(mask.ravel(), np.diff(matrix.indptr), 0)
    kept = np.repeat(mask.ravel(), np.diff(matrix.indptr))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return sp.csr_array((matrix.data[kept], matrix.indices[kept], indptr), shape=matrix.shape), outcome_rewards[kept]


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


def _matrix(transitions: Any) -> tuple[Any, int, int]:
    if sp.issparse(transitions):
        n_rows, num_states = transitions.shape
        if 0 in (n_rows, num_states) or n_rows % num_states:
            raise InputError(
                f"The sparse transitions have shape {transitions.shape}; they need a row for each state and action, "
                "[S * A, S]."
            )
        return sp.csr_array(transitions), num_states, n_rows // num_states
    dense = as_numbers("transitions", transitions)
    if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or 0 in dense.shape:
        raise InputError(f"The transitions have shape {dense.shape}; they need [S, A, S]: state, action, successor.")
    return sp.csr_array(dense.reshape(-1, dense.shape[2])), dense.shape[0], dense.shape[1]


def _check_rows(matrix: Any, num_actions: int, ignored: Bool[np.ndarray, " rows"]) -> None:
    lowest = np.full(matrix.shape[0], np.inf)
    with np.errstate(invalid="ignore"):
        totals = np.asarray(matrix.sum(axis=1)).ravel()
        np.minimum.at(lowest, np.repeat(np.arange(len(totals)), np.diff(matrix.indptr)), matrix.data)
    wrong = np.flatnonzero((~(np.abs(totals - 1) <= 1e-6) | ~(lowest >= 0)) & ~ignored)
    if len(wrong):
        state, action = divmod(int(wrong[0]), num_actions)
        more = f" (and {len(wrong) - 1} more rows)" if len(wrong) > 1 else ""
        fault = f"sum to {totals[wrong[0]]:g}" if lowest[wrong[0]] >= 0 else f"contain {lowest[wrong[0]]:g}"
        raise InputError(
            f"The transition probabilities of state {state}, action {action} {fault}{more}; "
            "each row must be non-negative and sum to 1."
        )


def _gamma(gamma: Any, num_objectives: int) -> Float[np.ndarray, " M"]:
    try:
        each = np.asarray(gamma, float)
    except (TypeError, ValueError):
        raise InputError(f"Gamma is {gamma!r}; give one number, or one for each objective.") from None
    if each.ndim > 1 or (each.ndim == 1 and len(each) != num_objectives):
        raise InputError(
            f"Gamma has shape {each.shape}; give one number, or one for each of {num_objectives} objectives."
        )
    if not ((each >= 0) & (each <= 1)).all():
        raise InputError(f"Gamma is {gamma}; a discount lies in [0, 1].")
    return np.broadcast_to(each, (num_objectives,)).copy()


def _terminal(terminal: Any, num_states: int) -> Bool[np.ndarray, " S"]:
    if terminal is None:
        return np.zeros(num_states, bool)
    as_numbers("terminal states", terminal)
    given = np.asarray(terminal)
    if given.dtype == bool and given.shape == (num_states,):
        return given.copy()
    whole = given.size == 0 or np.issubdtype(given.dtype, np.integer)
    if not whole or given.ndim != 1 or (given.size and not (0 <= given.min() <= given.max() < num_states)):
        raise InputError(
            f"The terminal states {terminal} should be indices below {num_states}, or a mask of that length."
        )
    mask = np.zeros(num_states, bool)
    mask[given.astype(int)] = True
    return mask


def _initial(initial: Any, terminal: Bool[np.ndarray, " S"]) -> Float[np.ndarray, " S"]:
    if initial is None:
        if terminal.all():
            raise InputError("Every state is terminal; at least one must not be.")
        return np.where(terminal, 0.0, 1.0) / np.sum(~terminal)
    given = as_numbers("initial probabilities", initial)
    if given.shape != terminal.shape or not (given >= 0).all() or abs(given.sum() - 1) > 1e-6:
        raise InputError(
            f"The initial distribution has shape {given.shape} and sums to {given.sum():g}; "
            f"it needs {len(terminal)} non-negative numbers that sum to 1."
        )
    if (given[terminal] > 0).any():
        raise InputError("The initial distribution starts in a terminal state; every task has at least one step.")
    # As rows of transitions: but for a few roundings, which stay as they are.
    return given if abs(given.sum() - 1) <= np.finfo(float).eps * len(given) else given / given.sum()
