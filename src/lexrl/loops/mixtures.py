"""Slack that is obeyed and used: the best mixture of policies, from the episodes that each of them played.

With slack the best policy is a mixture: policies at the corners of what is possible, one of them drawn for each
episode. The probabilities `p` of the candidates `c` are found by one linear program after the other:

    p^i = argmax_p sum_c p_c J_i(c)        such that        sum_c p_c excess_j(c) <= 0        for all j < i

`J_i(c)` is the mean return less its standard error, next to the best candidate's. `excess_j(c)` is what the candidate
loses of objective j compared with `p^j`, beyond what it may: with slack the loss plus a standard error less the slack,
so that the slack is obeyed with confidence; without slack the loss beyond two standard errors, as what cannot be told
apart is no loss. A solution is at a corner, so at most M policies are mixed.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

DOUBT = 2.0
"""Standard errors that are no loss."""


class Walk(NamedTuple):
    """The mixtures on the way down the objectives."""

    weights: Float[np.ndarray, "M candidates"]
    """`p^i`, the best for each objective within the slack of the more important ones; the last is the result."""

    @property
    def support(self) -> np.ndarray:
        """The candidates that any of them needs."""
        return np.flatnonzero(self.weights.max(axis=0))


def best_mixtures(
    returns: Float[np.ndarray, "candidates episodes views M"],
    slack: Float[np.ndarray, " M"],
    *,
    single: bool = False,
    confidence: float = 1.0,
) -> Walk:
    """Walk down the objectives. All candidates played the same episodes; the first view of their returns, discounted,
    is what slack is granted on, and the others count where there is none.

    `single`: no mixtures, one candidate. `confidence`: standard errors that returns are assumed to be worse than they
    look, where there is slack.
    """
    usable = np.all(np.isfinite(returns), axis=(1, 2, 3))
    usable = usable if np.any(usable) else np.arange(len(returns)) == 0
    known = np.nan_to_num(returns[usable])
    rows, limits, found = np.zeros((0, len(known))), np.zeros(0), []
    for i, tau in enumerate(slack):
        weights = _solve(_in_units(_gain(known[:, :, :1, i], confidence))[:, 0], rows, limits, single)
        found.append(weights)
        loss = np.tensordot(weights, known[..., i], 1) - known[..., i]
        new = _in_units(_excess(loss, tau, confidence)).T
        rows = np.concatenate([rows, new])
        limits = np.concatenate([limits, np.maximum(new @ weights, 0.0)])  # so that p^i itself is always admissible
    weights = np.zeros((len(slack), len(returns)))
    weights[:, usable] = found
    return Walk(weights)


def _gain(returns: Float[np.ndarray, "candidates episodes 1"], confidence: float) -> Float[np.ndarray, "candidates 1"]:
    """What each candidate gains at least, compared with the best: of two that look alike, the more certain one is
    better."""
    mean = returns.mean(axis=1)
    return mean - confidence * _standard_error(returns - returns[np.argmax(mean)])


def _excess(
    loss: Float[np.ndarray, "candidates episodes views"], tau: float, confidence: float
) -> Float[np.ndarray, "candidates judged"]:
    """What each candidate loses beyond what it may; with slack only in the first view."""
    mean, error = loss.mean(axis=1), _standard_error(loss)
    beyond_doubt = np.maximum(mean - DOUBT * error, 0.0)
    if tau == 0:
        return beyond_doubt
    return np.minimum(mean + confidence * error - tau, beyond_doubt)[:, :1]


def _standard_error(samples: Float[np.ndarray, "candidates episodes views"]) -> Float[np.ndarray, "candidates views"]:
    """Of the mean over episodes."""
    n = samples.shape[1]
    return samples.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else np.zeros((len(samples), samples.shape[2]))


def _in_units(values: Float[np.ndarray, "candidates views"]) -> Float[np.ndarray, "candidates views"]:
    """Divided by their largest size, as solvers compare with absolute tolerances."""
    largest = np.abs(values - values[:1]).max(axis=0) + np.abs(values).max(axis=0)
    return values / np.where(largest > 0, largest, 1.0)


def _solve(
    gain: Float[np.ndarray, " candidates"],
    rows: Float[np.ndarray, "constraints candidates"],
    limits: Float[np.ndarray, " constraints"],
    single: bool,
) -> Float[np.ndarray, " candidates"]:
    """The probabilities that maximize the gain within the limits."""
    if single or not len(rows):
        admissible = (rows <= limits[:, None]).all(axis=0)
        return np.eye(len(gain))[np.argmax(np.where(admissible, gain, -np.inf))]
    from scipy.optimize import linprog  # it takes its time to import

    answer = linprog(-gain, rows, limits, np.ones((1, len(gain))), np.ones(1), method="highs-ds")
    weights = np.where(answer.x > 1e-6, answer.x, 0.0)
    return weights / weights.sum()
