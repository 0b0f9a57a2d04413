"""The arrays of a finite MOMDP as they are given: read, checked, and in the form in which they are kept."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float

from lexrl.errors import InputError
from lexrl.order import is_name


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


def as_matrix(transitions: Any) -> tuple[Any, int, int]:
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


def as_mask(action_mask: Any, num_states: int, num_actions: int) -> Bool[np.ndarray, "S A"]:
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


def check_rows(matrix: Any, num_actions: int, ignored: Bool[np.ndarray, " rows"]) -> None:
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


def normalized(matrix: Any) -> Any:
    """Rows that sum to 1 but for a few roundings, which is where they stay as they are."""
    totals, counts = np.asarray(matrix.sum(axis=1)).ravel(), np.diff(matrix.indptr)
    off = (np.abs(totals - 1) > np.finfo(float).eps * counts) & (totals > 0)
    if not off.any():
        return matrix
    data = matrix.data / np.repeat(np.where(off, totals, 1.0), counts)
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def without_masked(matrix: Any, outcome_rewards: Any, mask: Bool[np.ndarray, "S A"]) -> tuple[Any, Any]:
    """The same without the rows of actions that there are not."""
    if mask.all():
        return matrix, outcome_rewards
    lengths = np.where(mask.ravel(), np.diff(matrix.indptr), 0)
    kept = np.repeat(mask.ravel(), np.diff(matrix.indptr))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return sp.csr_array((matrix.data[kept], matrix.indices[kept], indptr), shape=matrix.shape), outcome_rewards[kept]


def as_names(signals: Any, num_objectives: int) -> tuple[str, ...]:
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


def as_gamma(gamma: Any, num_objectives: int) -> Float[np.ndarray, " M"]:
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


def as_terminal(terminal: Any, num_states: int) -> Bool[np.ndarray, " S"]:
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


def as_initial(initial: Any, terminal: Bool[np.ndarray, " S"]) -> Float[np.ndarray, " S"]:
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
