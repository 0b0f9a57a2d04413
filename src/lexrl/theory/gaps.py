"""What Theorems 1 and 2 ask of a tolerance: that it stays below the gaps between actions, in the end.

Tolerances that change with time are read off late, evidence at its upper bound; gaps are those of the exact solution.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from lexrl import exact, lex
from lexrl import tolerance as tol
from lexrl.algorithms.double_q import DoubleQLearning
from lexrl.algorithms.expected_sarsa import ExpectedSarsa
from lexrl.algorithms.q_learning import QLearning
from lexrl.algorithms.sarsa import Sarsa
from lexrl.momdp import MOMDP
from lexrl.theory.conditions import Condition, Verdict

Tabular = QLearning | Sarsa | ExpectedSarsa | DoubleQLearning

_FAR = 10**9
"""Where the limit of a tolerance in time is read off."""


def below_gap(name: str, algorithm: Tabular, tolerances: tol.Tolerances, process: MOMDP | None) -> Condition:
    """Evidence vanishes up to its resolution: the variance of every estimate goes to 0 with the learning rate, so the
    tolerance converges to tau + resolution x span. The span is at most what any policy can earn."""
    if algorithm.evidence is None:
        text, otherwise = f"0 < {name} < the smallest gap between actions that differ", "fails"
    else:
        text, otherwise = f"{name} and what evidence leaves in the end < the smallest gap", "unknown"
    return _against(text, algorithm, tolerances, process, _gaps, "no gap", otherwise)


def separates(algorithm: Tabular, given: tol.Tolerances, process: MOMDP | None) -> Condition:
    """The last objective takes its best: no tolerance of it could be too large."""
    text = "0 < tau and what evidence leaves in the end < the smallest gap, but for the last objective"
    if process is None:
        return Condition(text, "unknown", "the action values are not known")
    granted = limits(given, process)
    each = list(zip(process.signals, granted, resolutions(algorithm, process), _gaps(process), strict=True))[:-1]
    shown = [f"{one}: {tau + left:.3g} against {_shown(gap)}" for one, tau, left, gap in each]
    if any(tau >= gap or tau + left <= 0 for _, tau, left, gap in each):
        return Condition(text, "fails", "; ".join(shown))
    small = all(tau + left < gap for _, tau, left, gap in each)  # left is an upper bound: else nothing is known
    return Condition(text, "holds" if small else "unknown", "; ".join(shown) or "there is one objective")


def supports_itself(algorithm: Tabular, tolerances: tol.Tolerances, process: MOMDP | None) -> Condition:
    """The theorem's own bound on tau is not enough for rules that evaluate the policy they follow.

    A policy can support itself: under its own values its actions are within tau of the best, though they are not under
    the optimal ones. Such a policy is at most tau / (1 - gamma) from optimal, and any wrong action is at least the gap
    from it; so tau < (1 - gamma) gap excludes it (without discount the longest expected episode takes the place of
    1 / (1 - gamma)). Beyond that nothing is known.
    """
    text = "no wrong policy can support itself (on-policy rules need tau_B < gap / horizon)"

    def bounds(process: MOMDP) -> np.ndarray:
        return _gaps(process) / np.array([exact.reach(process, i) for i in range(process.num_objectives)])

    return _against(text, algorithm, tolerances, process, bounds, "no bound", "unknown")


def update_tolerance_smaller(algorithm: Tabular, given: tol.Tolerances, process: MOMDP | None) -> Condition:
    text = "tau_Q <= tau_B in the end"
    if not isinstance(algorithm, QLearning | DoubleQLearning) or algorithm.update_tolerance is None:
        return Condition(text, "holds", "they are the same")
    if process is None:
        return Condition(text, "unknown", "the action values are not known")
    behavior, update = limits(given, process), limits(algorithm.update_tolerance, process)
    shown = "; ".join(f"{a:.3g} against {b:.3g}" for a, b in zip(update, behavior, strict=True))
    return Condition(text, "holds" if (update <= behavior).all() else "fails", shown)


def _against(
    text: str,
    algorithm: Tabular,
    tolerances: tol.Tolerances,
    process: MOMDP | None,
    bounds: Callable[[MOMDP], np.ndarray],
    unbounded: str,
    otherwise: Verdict,
) -> Condition:
    """Compare each objective's tolerance with a bound; `otherwise` is the verdict where one is not below it."""
    if process is None:
        return Condition(text, "unknown", "the action values are not known")
    taus = limits(tolerances, process) + resolutions(algorithm, process)
    each = list(zip(process.signals, taus, bounds(process), strict=True))
    shown = [f"{one}: {tau:.3g} against {unbounded if np.isinf(bound) else f'{bound:.3g}'}" for one, tau, bound in each]
    holds = all(0 < tau < bound for _, tau, bound in each)
    return Condition(text, "holds" if holds else otherwise, "; ".join(shown))


def resolutions(algorithm: Tabular, process: MOMDP) -> np.ndarray:
    """What evidence adds to each tolerance in the end, at most."""
    if algorithm.evidence is None:
        return np.zeros(process.num_objectives)
    paid = process.outcome_rewards
    reach = np.array([exact.reach(process, i) for i in range(process.num_objectives)])
    # Values begin at initial_q and end with 0, whatever is paid in between.
    highest = np.maximum(np.maximum(paid.max(axis=0), 0.0) * reach, algorithm.initial_q)
    lowest = np.minimum(np.minimum(paid.min(axis=0), 0.0) * reach, algorithm.initial_q)
    return algorithm.evidence.resolution * (highest - lowest)


def limits(tolerances: tol.Tolerances, process: MOMDP) -> np.ndarray:
    """The largest tolerance over all states, per objective, as time goes on."""
    each = tolerances if isinstance(tolerances, tuple) else (tolerances,) * process.num_objectives
    late = tuple(_Late(one) for one in each)
    solution = exact.solve(process, _all_max(process), tolerance=late)
    largest = np.zeros(process.num_objectives)
    inner = tol.slack(late)

    def noted(i: int, values: Any, allowed: Any, best: Any) -> Any:
        tau = inner(i, values, allowed, best)
        largest[i] = np.max(np.broadcast_to(tau, best.shape)[~process.terminal])
        return tau

    lex.levels(solution.q.swapaxes(0, 1), noted)
    return largest


class _Late(tol.Tolerance):
    """What a tolerance is in the end."""

    base: tol.Tolerance

    def __call__(self, values: Any, allowed: Any, best: Any, time: Any) -> Any:
        return self.base(values, allowed, best, _FAR)


def _gaps(process: MOMDP) -> np.ndarray:
    return exact.action_gaps(exact.solve(process, _all_max(process))).deciding


def _shown(gap: float) -> str:
    return "no gap" if np.isinf(gap) else f"{gap:.3g}"


def _all_max(process: MOMDP) -> str:
    """The order of a process that is ordered and signed already."""
    return " > ".join(f"max {name}" for name in process.signals)
