"""A finite multi-objective decision process: its arrays, and what follows from them.

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
from lexrl.momdp_arrays import (
    as_gamma,
    as_initial,
    as_mask,
    as_matrix,
    as_names,
    as_numbers,
    as_terminal,
    check_rows,
    normalized,
    without_masked,
)
from lexrl.momdp_draws import draw
from lexrl.order import Order, as_order

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
        matrix, num_states, num_actions = as_matrix(transitions)
        rewards = as_numbers("rewards", rewards)
        if rewards.ndim not in (3, 4) or rewards.shape[1:] not in (
            (num_states, num_actions),
            (num_states, num_actions, num_states),
        ):
            raise InputError(
                f"The rewards have shape {rewards.shape}; for {num_states} states and {num_actions} actions they need "
                f"[M, {num_states}, {num_actions}] or [M, {num_states}, {num_actions}, {num_states}]."
            )
        mask = as_mask(action_mask, num_states, num_actions)
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
        matrix, outcome_rewards = draw(
            np.random.default_rng(momdp_seed),
            num_states,
            num_actions,
            num_signals,
            num_successors,
            tie_fraction,
            episodic,
        )
        terminal = [num_states - 1] if episodic else None
        return from_outcomes(matrix, outcome_rewards, num_actions, gamma, terminal=terminal)

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
    ended = as_terminal(terminal, num_states)
    mask = as_mask(action_mask, num_states, num_actions)
    if (none := np.flatnonzero(~mask.any(axis=1) & ~ended)).size:
        raise InputError(
            f"The action mask leaves no action in state {none[0]}; a state that is not terminal needs one."
        )
    check_rows(matrix, num_actions, ~(mask & ~ended[:, None]).ravel())
    ignored = ended[:, None] if not np.isfinite(matrix.data).all() else np.zeros((num_states, 1), bool)
    matrix, outcome_rewards = without_masked(matrix, outcome_rewards, mask & ~ignored)
    matrix = normalized(matrix)
    weights = [
        sp.csr_array((matrix.data * column, matrix.indices, matrix.indptr), shape=matrix.shape)
        for column in outcome_rewards.T
    ]
    expected = np.stack([np.asarray(weight.sum(axis=1)).reshape(num_states, num_actions) for weight in weights])
    return MOMDP(
        transitions=matrix,
        rewards=np.where(mask & ~ended[:, None], expected, 0.0),
        outcome_rewards=np.asarray(outcome_rewards, float),
        gamma=as_gamma(gamma, num_objectives),
        initial=as_initial(initial, ended),
        terminal=ended,
        signals=as_names(signals, num_objectives),
        action_mask=mask | ended[:, None],
    )
