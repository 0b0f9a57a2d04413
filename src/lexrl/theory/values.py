"""Value-based algorithms: Theorem 1 (and 2, for Double Q-learning) and Proposition 1."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lexrl import exact, lex
from lexrl import tolerance as tol
from lexrl.algorithms import validation
from lexrl.algorithms.double_q import DoubleQLearning
from lexrl.algorithms.expected_sarsa import ExpectedSarsa
from lexrl.algorithms.exploration import EpsilonGreedy, Softmax
from lexrl.algorithms.ldqn import LDQN
from lexrl.algorithms.q_learning import QLearning
from lexrl.algorithms.sarsa import Sarsa
from lexrl.momdp import MOMDP
from lexrl.optimizers import optimizer_name
from lexrl.order import Order
from lexrl.schedules import Power, Schedule
from lexrl.theory.conditions import Condition, Guarantee, Verdict, bounded, finite
from lexrl.types import Discrete, HasModel

Tabular = QLearning | Sarsa | ExpectedSarsa | DoubleQLearning

_PROMISE = "the policy converges to a lexicographically optimal one"
_GREEDY = "exploration becomes greedy"
_FAR = 10**9
"""Where the limit of a tolerance in time is read off."""


def guarantees(algorithm: Tabular, env: Any, order: Order) -> tuple[Guarantee, ...]:
    """Theorem 1 or 2, Proposition 1, and with evidence what it is known to converge to, for a tabular algorithm."""
    given = order.tolerances(algorithm.tolerance)
    process = _process(env, algorithm, order)
    length = None if isinstance(env, MOMDP) else env.spec.max_episode_steps
    rates = _rates(algorithm, process, length)
    common = (finite(env, process), bounded(env, process), _discounts(process), *rates)
    if process is not None and (process.gamma == 1).any() and process.never_ending().any():
        process = None  # no values exist that tolerances could be held against
    found = (_convergence(algorithm, process, given, common), _proposition(algorithm, process, given, common))
    return found if algorithm.evidence is None else (*found, _by_evidence(algorithm, process, given, common))


def of_network(algorithm: LDQN, env: Any, order: Order) -> tuple[Guarantee, ...]:
    """Theorem 1 for a Q-network: it is about tables, each entry of which is updated separately."""
    seen = Discrete(env.num_states) if isinstance(env, MOMDP) else env.spec.observation_space
    parts = [
        *network_parts(algorithm),
        *([] if isinstance(seen, Discrete) else [f"observations in {seen}"]),
    ]
    shown = f"a network approximates them ({', '.join(parts)})" if parts else "each Q(s, a) has a weight of its own"
    table = Condition("values are a table", "fails" if parts else "holds", shown)
    others = [
        "batches from a replay buffer",
        "the Huber loss",
        *([] if algorithm.optimizer == "sgd" else [optimizer_name(algorithm.optimizer)]),
        *([f"gradients clipped to norm {algorithm.max_grad_norm:g}"] if algorithm.max_grad_norm > 0 else []),
        *([f"cross targets of {algorithm.num_members} members"] if algorithm.num_members > 1 else []),
        *(["target networks"] if algorithm.target_update_interval else []),
    ]
    steps = Condition("updates are Q-learning's, of each transition as it comes", "fails", f"here: {', '.join(others)}")
    greedy: Verdict = "holds" if algorithm.epsilon.vanishes() else "fails"
    rest = (_robbins_monro(algorithm.learning_rate), Condition(_GREEDY, greedy, f"epsilon is {algorithm.epsilon}"))
    return (Guarantee("Theorem 1", _PROMISE, (table, steps, *rest)),)


def network_parts(algorithm: LDQN) -> list[str]:
    """What makes the network more than a table."""
    if algorithm.network is not None:
        return ["a custom network"]
    hidden = [f"hidden layers of {algorithm.hidden_sizes}"] if algorithm.hidden_sizes else []
    return hidden + (["biases"] if algorithm.use_bias else [])


def _convergence(algorithm: Tabular, process: MOMDP | None, given: tol.Tolerances, common: Any) -> Guarantee:
    name = "Theorem 2 (Double Q-learning)" if isinstance(algorithm, DoubleQLearning) else "Theorem 1"
    own = [_below_gap("tau_B", algorithm, given, process)]
    if not isinstance(algorithm, QLearning | DoubleQLearning):
        own.append(_supports_itself(algorithm, given, process))
    elif algorithm.update_tolerance is not None:
        own.append(_below_gap("tau_Q", algorithm, algorithm.update_tolerance, process))
    if algorithm.guard is not None:
        own.append(Condition("the tolerance converges", "unknown", "the guard scales it by the returns it measures"))
    return Guarantee(name, _PROMISE, (*common, _greedy_in_the_limit(algorithm), *own))


def _proposition(algorithm: Tabular, process: MOMDP | None, given: tol.Tolerances, common: Any) -> Guarantee:
    covered = not isinstance(algorithm, DoubleQLearning) and (
        not isinstance(algorithm, QLearning) or isinstance(algorithm.exploration, EpsilonGreedy)
    )
    rule = Condition(
        "an update rule and an exploration the proposition covers",
        "holds" if covered else "fails",
        f"{type(algorithm).__name__}, {type(algorithm.exploration).__name__}",
    )
    if process is None or (process.gamma == 1).any():
        promise = "J_i falls short of the optimum by at most tau_i / (1 - gamma_i), for the first two objectives"
    else:
        taus = _limits(given, process) + _resolutions(algorithm, process)
        bounds = [
            f"{name} by at most {taus[i] / (1 - process.gamma[i]):.4g}" for i, name in enumerate(process.signals[:2])
        ]
        promise = f"returns fall short of the optimum: {', '.join(bounds)} (tau / (1 - gamma))"
    order = _update_tolerance_smaller(algorithm, given, process)
    return Guarantee("Proposition 1", promise, (*common, _greedy_in_the_limit(algorithm), rule, order))


def _by_evidence(algorithm: Tabular, process: MOMDP | None, given: tol.Tolerances, common: Any) -> Guarantee:
    """Not of the paper; the proof is in docs/tabular.md. It is about the sets, and so about the greedy policy:
    exploration need not vanish."""
    off_policy = isinstance(algorithm, QLearning | DoubleQLearning)
    rule = Condition(
        "the values do not depend on the policy that is followed",
        "holds" if off_policy else "unknown",
        type(algorithm).__name__,
    )
    still = Condition(
        "the tolerance converges",
        "holds" if algorithm.guard is None else "unknown",
        "there is no guard" if algorithm.guard is None else "the guard scales it by the returns it measures",
    )
    promise = "from some time on the learned sets are those of the lexicographic optimum, and so is the greedy policy"
    return Guarantee("Sets by evidence", promise, (*common, rule, still, _separates(algorithm, given, process)))


def _separates(algorithm: Tabular, given: tol.Tolerances, process: MOMDP | None) -> Condition:
    """The last objective takes its best: no tolerance of it could be too large."""
    text = "0 < tau and what evidence leaves in the end < the smallest gap, but for the last objective"
    if process is None:
        return Condition(text, "unknown", "the action values are not known")
    granted = _limits(given, process)
    each = list(zip(process.signals, granted, _resolutions(algorithm, process), _gaps(process), strict=True))[:-1]
    shown = [f"{one}: {tau + left:.3g} against {_shown(gap)}" for one, tau, left, gap in each]
    if any(tau >= gap or tau + left <= 0 for _, tau, left, gap in each):
        return Condition(text, "fails", "; ".join(shown))
    small = all(tau + left < gap for _, tau, left, gap in each)  # left is an upper bound: else nothing is known
    return Condition(text, "holds" if small else "unknown", "; ".join(shown) or "there is one objective")


def _shown(gap: float) -> str:
    return "no gap" if np.isinf(gap) else f"{gap:.3g}"


def _process(env: Any, algorithm: Tabular, order: Order) -> MOMDP | None:
    if isinstance(env, MOMDP):
        return env.ordered(order)
    if not isinstance(env, HasModel) or not isinstance(env.spec.observation_space, Discrete):
        return None
    validation.require_per_objective(len(order.objectives), gamma=algorithm.gamma, tolerance=algorithm.tolerance)
    return env.momdp(order.discounts(algorithm.gamma, env.spec.signals)).ordered(order)


def _discounts(process: MOMDP | None) -> Condition:
    text = "every gamma < 1, or every policy ends"
    if process is None:
        return Condition(text, "unknown", "the process is not known")
    largest = process.gamma.max()
    if largest < 1:
        return Condition(text, "holds", f"gamma is at most {largest:g}")
    stuck = int(process.never_ending().sum())
    if stuck:
        return Condition(text, "fails", f"gamma is 1, and from {stuck} states a policy can go on forever")
    return Condition(text, "holds", "gamma is 1, and every policy ends")


def _rates(algorithm: Tabular, process: MOMDP | None, length: int | None) -> tuple[Condition, Condition]:
    alpha = _robbins_monro(algorithm.alpha if algorithm.min_alpha.vanishes() else algorithm.min_alpha)
    text = "every action is tried forever in every state"
    rate = _exploration(algorithm)
    if isinstance(algorithm.exploration, Softmax):
        return alpha, Condition(text, "unknown", f"softmax with temperature {rate} explores as values allow")
    if not _sum_diverges(rate):
        return alpha, Condition(text, "fails", f"the sum of epsilon = {rate} converges")
    if process is None:
        return alpha, Condition(text, "unknown", "which states can be reached is not known")
    missed = _unreachable(process, length)
    if missed:
        cut = "" if length is None else f" in episodes of {length} steps"
        return alpha, Condition(text, "fails", f"{missed} states cannot be reached from the first ones{cut}")
    return alpha, Condition(text, "holds", f"epsilon is {rate}, and every state can be reached")


def _robbins_monro(alpha: Schedule) -> Condition:
    text = "learning rates: sums diverge, sums of squares converge"
    return Condition(text, "holds" if alpha.robbins_monro() else "fails", f"alpha is {alpha}")


def _greedy_in_the_limit(algorithm: Tabular) -> Condition:
    rate = _exploration(algorithm)
    name = "the temperature" if isinstance(algorithm.exploration, Softmax) else "epsilon"
    verdict: Verdict = "holds" if rate.vanishes() else "fails"
    return Condition(_GREEDY, verdict, f"{name} is {rate}")


def _below_gap(name: str, algorithm: Tabular, tolerances: tol.Tolerances, process: MOMDP | None) -> Condition:
    """Evidence vanishes up to its resolution: the variance of every estimate goes to 0 with the learning rate, so the
    tolerance converges to tau + resolution x span. The span is at most what any policy can earn."""
    if algorithm.evidence is None:
        text, otherwise = f"0 < {name} < the smallest gap between actions that differ", "fails"
    else:
        text, otherwise = f"{name} and what evidence leaves in the end < the smallest gap", "unknown"
    return _against(text, algorithm, tolerances, process, _gaps, "no gap", otherwise)


def _resolutions(algorithm: Tabular, process: MOMDP) -> np.ndarray:
    """What evidence adds to each tolerance in the end, at most."""
    if algorithm.evidence is None:
        return np.zeros(process.num_objectives)
    paid = process.outcome_rewards
    reach = np.array([exact.reach(process, i) for i in range(process.num_objectives)])
    # Values begin at initial_q and end with 0, whatever is paid in between.
    highest = np.maximum(np.maximum(paid.max(axis=0), 0.0) * reach, algorithm.initial_q)
    lowest = np.minimum(np.minimum(paid.min(axis=0), 0.0) * reach, algorithm.initial_q)
    return algorithm.evidence.resolution * (highest - lowest)


def _supports_itself(algorithm: Tabular, tolerances: tol.Tolerances, process: MOMDP | None) -> Condition:
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
    taus = _limits(tolerances, process) + _resolutions(algorithm, process)
    each = list(zip(process.signals, taus, bounds(process), strict=True))
    shown = [f"{one}: {tau:.3g} against {unbounded if np.isinf(bound) else f'{bound:.3g}'}" for one, tau, bound in each]
    holds = all(0 < tau < bound for _, tau, bound in each)
    return Condition(text, "holds" if holds else otherwise, "; ".join(shown))


def _gaps(process: MOMDP) -> np.ndarray:
    return exact.action_gaps(exact.solve(process, _all_max(process))).deciding


def _update_tolerance_smaller(algorithm: Tabular, given: tol.Tolerances, process: MOMDP | None) -> Condition:
    text = "tau_Q <= tau_B in the end"
    if not isinstance(algorithm, QLearning | DoubleQLearning) or algorithm.update_tolerance is None:
        return Condition(text, "holds", "they are the same")
    if process is None:
        return Condition(text, "unknown", "the action values are not known")
    behavior, update = _limits(given, process), _limits(algorithm.update_tolerance, process)
    shown = "; ".join(f"{a:.3g} against {b:.3g}" for a, b in zip(update, behavior, strict=True))
    return Condition(text, "holds" if (update <= behavior).all() else "fails", shown)


class _Late(tol.Tolerance):
    """What a tolerance is in the end."""

    base: tol.Tolerance

    def __call__(self, values: Any, allowed: Any, best: Any, time: Any) -> Any:
        return self.base(values, allowed, best, _FAR)


def _limits(tolerances: tol.Tolerances, process: MOMDP) -> np.ndarray:
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


def _exploration(algorithm: Tabular) -> Schedule:
    exploration = algorithm.exploration
    return exploration.temperature if isinstance(exploration, Softmax) else exploration.epsilon


def _sum_diverges(rate: Schedule) -> bool:
    if isinstance(rate, Power):
        return rate.exponent <= 1 and rate.scale > 0
    return not rate.vanishes()


def _unreachable(process: MOMDP, length: int | None) -> int:
    """States where no sequence of actions leads to a step in an episode; in terminal ones nothing is tried."""
    steps, _ = process.chain(np.full((process.num_states, process.num_actions), 1 / process.num_actions))
    reached = process.initial > 0
    for _ in range(process.num_states if length is None else length - 1):
        wider = reached | (reached.astype(float) @ steps > 0)
        if (wider == reached).all():
            break
        reached = wider
    return int((~reached & ~process.terminal).sum())


def _all_max(process: MOMDP) -> str:
    """The order of a process that is ordered and signed already."""
    return " > ".join(f"max {name}" for name in process.signals)
