"""Action tolerance, solved exactly: what the value-based algorithms converge to.

Objective by objective, with every state held to the actions the more important objectives left:

    q_i(s, a) = r_i(s, a) + gamma_i E[v_i(s')]        v_i(s) = max_{D_{i-1}(s)} q_i(s, .)
    D_i(s)    = { a in D_{i-1}(s) : q_i(s, a) >= v_i(s) - tau_i }

`q_i` is there for every action: take it now, and stay in the restricted sets afterwards. Each level is policy iteration
(or value iteration), started from the level above; the sets come from `lex.levels`. All in double precision.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from lexrl import lex
from lexrl import tolerance as tol
from lexrl.errors import InputError
from lexrl.exact import linear
from lexrl.exact.certificate import Certificate, distances
from lexrl.exact.evaluation import evaluate, require_ends
from lexrl.momdp import MOMDP
from lexrl.order import Order, as_order

Method = Literal["auto", "dense", "sparse", "iterative", "value"]
"""How a level is solved: policy iteration with the given linear solver (`auto` picks one), or value iteration."""

_VALUE_PRECISION = 1e-10
"""Value iteration stops once its error is below this share of the largest value."""


@dataclasses.dataclass(frozen=True)
class Solution:
    """The lexicographic optimum of a finite MOMDP; every array is ordered and signed: all objectives are maximized."""

    order: Order
    objectives: tuple[str, ...]
    q: Float[np.ndarray, "M S A"]
    sets: Bool[np.ndarray, "M+1 S A"]
    """`D_0 .. D_M`; in a terminal state every action."""
    values: Float[np.ndarray, "M S"]
    """lexmax: the best each objective can have once the more important ones are served."""
    terminal: Bool[np.ndarray, " S"]
    policy: Float[np.ndarray, "S A"]
    """Uniform over `D_M`."""
    returns: Float[np.ndarray, " M"]
    """`J` of `policy`, from the initial distribution."""
    certificate: Certificate

    def __str__(self) -> str:
        shown = self.order.unsigned(self.returns)
        returns = ", ".join(f"{name} {value:.6g}" for name, value in zip(self.objectives, shown, strict=True))
        return f"{self.order}\nreturns: {returns}\n{self.certificate}"


class LevelSolution(NamedTuple):
    """One objective's optimum on restricted action sets."""

    values: Float[lex.Arr, " S"]
    q: Float[lex.Arr, "S A"]
    policy: Int[lex.Arr, " S"]
    """A best action for each state."""
    iterations: int
    residual: float
    """`max_s |v(s) - max_{D(s)} q(s, .)|`, with what rounding may hide from it."""


def solve(momdp: MOMDP, order: Order | str | None = None, *, tolerance: Any = 0.0, method: Method = "auto") -> Solution:
    """The lexicographic optimum with action tolerance.

    Args:
        momdp: the process.
        order: the objectives by importance; may be left out where there is only one signal.
        tolerance: how far below the best an action may be, as `lexrl.tolerance` reads it: a number, `"5%"`, a
            tolerance, or one for each objective. Tolerances written in the order come first.
        method: the way each level is solved; the answer is the same.
    """
    order = as_order(order, momdp.signals)
    process = momdp.ordered(order)
    tolerances = tolerances_of(order, tolerance)
    if method not in get_args(Method):
        raise InputError(f"The method is {method!r}; it should be one of {', '.join(get_args(Method))}.")
    require_ends(process)
    method = linear.choose(process) if method == "auto" else method
    spans = np.array([reach(process, i) for i in range(process.n_objectives)])
    allowed = np.ones((process.n_states, process.n_actions), bool)
    start = np.zeros(process.n_states, int)
    solved: list[LevelSolution] = []
    ties: list[float] = []
    walk = lex.Levels(allowed[:, None], np.empty((process.n_states, 0)))
    for i in range(process.n_objectives):
        level = optimize(process, i, allowed, start, method)
        solved.append(level)
        ties.append(tie_width(level.residual, spans[i]))
        walk = lex.levels(np.stack([one.q for one in solved], axis=1), widened(tolerances, ties))
        allowed, start = walk.sets[:, -1], level.policy
    return _solution(process, order, solved, walk, tolerances, spans)


def _solution(
    process: MOMDP,
    order: Order,
    solved: list[LevelSolution],
    walk: lex.Levels,
    tolerances: tol.Tolerances,
    spans: Float[np.ndarray, " M"],
) -> Solution:
    q = np.stack([level.q for level in solved])
    residuals = np.array([level.residual for level in solved])
    ties = [tie_width(residual, span) for residual, span in zip(residuals, spans, strict=True)]
    margins, noise = distances(q.swapaxes(0, 1)[~process.terminal], widened(tolerances, [0.0] * len(q)), ties)
    certificate = Certificate(
        objectives=process.signals,
        residuals=residuals,
        errors=residuals * spans,
        ties=np.array(ties),
        noise=noise,
        margins=margins,
        iterations=tuple(level.iterations for level in solved),
    )
    policy = lex.uniform(walk.sets[:, -1])
    return Solution(
        order=order,
        objectives=process.signals,
        q=q,
        sets=walk.sets.swapaxes(0, 1),
        values=walk.best.T,
        terminal=process.terminal,
        policy=policy,
        returns=evaluate(process, policy).returns,
        certificate=certificate,
    )


def optimize(
    process: MOMDP,
    objective: int,
    allowed: Bool[np.ndarray, "S A"],
    start: Int[np.ndarray, " S"],
    method: Method = "auto",
) -> LevelSolution:
    """The best one objective can do when every state is held to `allowed`; `start` is a policy within it."""
    if method == "value":
        values, policy, iterations = _value_iteration(process, objective, allowed)
    else:
        way = linear.choose(process) if method == "auto" else method
        values, policy, iterations = _policy_iteration(process, objective, allowed, start, way)
    q = process.backup(values, objective)
    residual = float(np.max(np.abs(values - np.max(q, axis=1, where=allowed, initial=-np.inf))))
    return LevelSolution(values, q, policy, iterations, residual + rounding(process, objective, q))


def _policy_iteration(
    process: MOMDP,
    objective: int,
    allowed: Bool[np.ndarray, "S A"],
    start: Int[np.ndarray, " S"],
    way: linear.Way,
) -> tuple[Float[np.ndarray, " S"], Int[np.ndarray, " S"], int]:
    """Evaluate, improve, until no action is better than the chosen one by more than rounding: `v` is the optimum."""
    policy, gamma = start, float(process.gamma[objective])
    values = np.zeros(process.n_states)
    iteration = 0
    while True:
        iteration += 1
        before, values = values, _evaluate(process, objective, policy, gamma, way, values)
        q = process.backup(values, objective)
        own = np.take_along_axis(q, policy[:, None], axis=1)[:, 0]
        best = np.argmax(np.where(allowed, q, -np.inf), axis=1)
        better = np.take_along_axis(q, best[:, None], axis=1)[:, 0] > own + rounding(process, objective, q)
        # No state loses by an improvement. Where one does lose as much as any gains, all that is left is noise between
        # actions that truly tie, and going on could go round in circles.
        circles = iteration > 1 and np.max(values - before) <= np.max(before - values)
        if circles or not better.any():
            return values, policy, iteration
        policy = np.where(better, best, policy)


def _evaluate(
    process: MOMDP, objective: int, policy: Int[np.ndarray, " S"], gamma: float, way: linear.Way, guess: Any
) -> Float[np.ndarray, " S"]:
    """The value of one action for each state; its chain is a choice of rows, cheaper than a mixture."""
    states = np.arange(process.n_states)
    chain = process.transitions[states * process.n_actions + policy]
    if process.terminal.any():
        chain = chain.multiply(~process.terminal[:, None]).tocsr()
    rewards = process.rewards[objective, states, policy]
    return linear.solve(way, chain, rewards[:, None], gamma, guess[:, None])[:, 0]


def _value_iteration(
    process: MOMDP, objective: int, allowed: Bool[np.ndarray, "S A"]
) -> tuple[Float[np.ndarray, " S"], Int[np.ndarray, " S"], int]:
    """`v <- max_D (r + gamma P v)` until the bound `|v - v*| <= reach * |change|` is small beside the values."""
    # Below a few roundings the change stops shrinking.
    precision = max(_VALUE_PRECISION / reach(process, objective), 1e-14)
    values, iteration = np.zeros(process.n_states), 0
    while True:
        iteration += 1
        q = np.where(allowed, process.backup(values, objective), -np.inf)
        after = np.max(q, axis=1)
        change, values = np.max(np.abs(after - values)), after
        if change <= precision * np.max(np.abs(values)):
            return values, np.argmax(q, axis=1), iteration


def reach(process: MOMDP, objective: int) -> float:
    """What a residual of 1 can add up to: `1 / (1 - gamma)`, or without discount the longest expected episode.

    `|v - v*| <= residual * reach`, because the residual is paid at every step, on a best policy for one side of the
    inequality and on a greedy one for the other. Infinite where episodes can be so long that arithmetic cannot tell.
    """
    gamma = float(process.gamma[objective])
    if gamma < 1:
        return 1 / (1 - gamma)
    steps = np.where(process.terminal[:, None], 0.0, np.ones((process.n_states, process.n_actions)))
    clock = single(process, steps, 1.0)
    start = np.zeros(process.n_states, int)
    lengths = _policy_iteration(clock, 0, steps >= 0, start, linear.choose(clock))[0]
    doubt = np.max(np.abs(lengths - np.max(clock.backup(lengths, 0), axis=1)))
    believable = np.all(lengths[~process.terminal] >= 1) and doubt <= 1e-6
    return float(np.max(lengths)) if believable else np.inf


def tie_width(residual: float, span: float) -> float:
    """Actions closer than this count as tied: an action and its threshold may each be wrong by `residual * span`, a
    threshold that is relative to the best value by twice that. Where no span is known, a million steps must do."""
    return 4 * residual * (span if np.isfinite(span) else 1e6)


def tolerances_of(order: Order, tolerance: Any) -> tol.Tolerances:
    """One tolerance, or one for each objective of the order, where those written in the order come first."""
    default = tol.as_tolerance(tolerance)
    if isinstance(default, tuple) and len(default) != len(order.objectives):
        raise InputError(
            f"{len(default)} tolerances were given for {len(order.objectives)} objectives; give one, or one each."
        )
    return order.tolerances(default)


def widened(tolerances: tol.Tolerances, ties: Sequence[float]) -> lex.Slack:
    """Tolerances in the form `lex.levels` takes, each wider by its objective's tie width."""
    slack = tol.slack(tolerances)

    def tau(i: int, values: lex.Arr, allowed: lex.Arr, best: lex.Arr) -> lex.Arr:
        # A tolerance with a schedule computes in single precision; the rest of this room must not.
        return np.asarray(slack(i, values, allowed, best), np.float64) + ties[i]

    return tau


def single(process: MOMDP, rewards: Float[np.ndarray, "S A"], gamma: float) -> MOMDP:
    """The same process with one objective, which pays `rewards` on the way."""
    rows = np.repeat(np.arange(rewards.size), np.diff(process.transitions.indptr))
    return dataclasses.replace(
        process,
        rewards=rewards[None],
        outcome_rewards=rewards.ravel()[rows, None],
        gamma=np.array([gamma]),
        signals=("single",),
    )


def rounding(process: MOMDP, objective: int, values: Float[np.ndarray, "..."]) -> float:
    """How far a Bellman backup may be from itself without rounding: sums of so many products of such a size."""
    terms = np.max(np.diff(process.transitions.indptr), initial=1)
    # Expected rewards are sums themselves: what cancels in them leaves noise of the size of what went in.
    size = np.max(np.abs(values)) + np.max(np.abs(process.outcome_rewards[:, objective]), initial=0.0)
    return float(np.finfo(float).eps * (4 + np.sqrt(terms)) * size)
