"""Value-based algorithms: Theorem 1 (and 2, for Double Q-learning) and Proposition 1."""

from typing import Any

import numpy as np

from lexrl import tolerance as tol
from lexrl.algorithms import validation
from lexrl.algorithms.double_q import DoubleQLearning
from lexrl.algorithms.exploration import EpsilonGreedy, Softmax
from lexrl.algorithms.ldqn import LDQN
from lexrl.algorithms.q_learning import QLearning
from lexrl.momdp import MOMDP
from lexrl.optimizers import optimizer_name
from lexrl.order import Order
from lexrl.schedules import Power, Schedule
from lexrl.theory import gaps
from lexrl.theory.conditions import Condition, Guarantee, Verdict, bounded, finite
from lexrl.theory.gaps import Tabular
from lexrl.types import Discrete, HasModel

_PROMISE = "the policy converges to a lexicographically optimal one"
_GREEDY = "exploration becomes greedy"


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
    own = [gaps.below_gap("tau_B", algorithm, given, process)]
    if not isinstance(algorithm, QLearning | DoubleQLearning):
        own.append(gaps.supports_itself(algorithm, given, process))
    elif algorithm.update_tolerance is not None:
        own.append(gaps.below_gap("tau_Q", algorithm, algorithm.update_tolerance, process))
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
        taus = gaps.limits(given, process) + gaps.resolutions(algorithm, process)
        bounds = [
            f"{name} by at most {taus[i] / (1 - process.gamma[i]):.4g}" for i, name in enumerate(process.signals[:2])
        ]
        promise = f"returns fall short of the optimum: {', '.join(bounds)} (tau / (1 - gamma))"
    order = gaps.update_tolerance_smaller(algorithm, given, process)
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
    return Guarantee("Sets by evidence", promise, (*common, rule, still, gaps.separates(algorithm, given, process)))


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
