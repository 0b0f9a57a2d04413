"""Action tolerance, solved exactly: what the value-based algorithms converge to.

Objective by objective, with every state held to the actions the more important objectives left:

    q_i(s, a) = r_i(s, a) + gamma_i E[v_i(s')]        v_i(s) = max_{D_{i-1}(s)} q_i(s, .)
    D_i(s)    = { a in D_{i-1}(s) : q_i(s, a) >= v_i(s) - tau_i }

`q_i` is there for every action: take it now, and stay in the restricted sets afterwards. Each level is policy
iteration, started from the level above. An action is in a set by the exact comparison of its value with the
threshold at that state: no width is taken from anywhere else.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from lexrl import doubled, lex
from lexrl import tolerance as tol
from lexrl.errors import InputError
from lexrl.exact import backups, linear
from lexrl.exact.backups import Judged
from lexrl.exact.certificate import Certificate, NearTie, largest
from lexrl.exact.clock import Clock, Progress
from lexrl.exact.evaluation import evaluate, require_momdp
from lexrl.exact.policy_iteration import LevelSolution, Method, is_proper, optimize
from lexrl.exact.proper import ends, proper_policy, require_ends, states
from lexrl.momdp import MOMDP
from lexrl.order import Order, as_order


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

    def sentences(self) -> tuple[str, ...]:
        """What is known of the solution, one sentence for each objective, then what is wrong."""
        return self.certificate.sentences()

    def summary(self) -> dict[str, Any]:
        """What is known of the solution, for a file."""
        return {"errors": self.certificate.errors.tolist(), "sentences": self.sentences()}

    def __str__(self) -> str:
        shown = self.order.unsigned(self.returns)
        returns = ", ".join(f"{name} {value:.6g}" for name, value in zip(self.objectives, shown, strict=True))
        return f"{self.order}\nreturns: {returns}\n{self.certificate}"


class Level(NamedTuple):
    """One objective, solved: its optimum, and the set it leaves."""

    optimum: LevelSolution
    judged: Judged


def solve(
    momdp: MOMDP,
    order: Order | str | None = None,
    *,
    tolerance: Any = 0.0,
    method: Method = "auto",
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """The lexicographic optimum with action tolerance.

    Args:
        momdp: the process.
        order: the objectives by importance; may be left out where there is only one signal.
        tolerance: how far below the best an action may be, as `lexrl.tolerance` reads it: a number, `"5%"`, a
            tolerance, or one for each objective. Tolerances written in the order come first.
        method: the way each policy is found; the answer is the same.
        time_limit: seconds after which the policy found so far is returned; its certificate then says what is open.
        progress: called with a `Progress` at every iteration.
    """
    order = as_order(order, require_momdp(momdp).signals)
    refuse_limits(order)
    process = momdp.ordered(order)
    tolerances = tolerances_of(order, tolerance)
    if method not in get_args(Method):
        raise InputError(f"The method is {method!r}; it should be one of {', '.join(get_args(Method))}.")
    clock = Clock(time_limit, progress)
    start = first_policy(process)
    way: Method = linear.choose(process) if method == "auto" else method
    allowed, levels = process.action_mask, []
    for i in range(process.num_objectives):
        optimum = optimize(process, i, allowed, start_within(process, i, allowed, start), way, clock)
        if optimum.bound > 0:  # time ran out: what is found is a policy, and the others have no choice left
            levels += [Level(optimum, _only(process, optimum))]
            levels += [_followed(process, k, optimum, way) for k in range(i + 1, process.num_objectives)]
            break
        levels.append(Level(optimum, judge_level(process, i, optimum, allowed, tolerances)))
        allowed, start = levels[-1].judged.reached, optimum.policy
    exact = all(not level.judged.slack.any() for level in levels)
    return _solution(process, order, levels, clock, exact=exact)


def first_policy(process: MOMDP) -> Int[np.ndarray, " S"]:
    """A policy to start from; one that ends where gamma is 1."""
    require_ends(process)
    if (process.gamma == 1).any() and process.never_ending().any():
        return proper_policy(process, process.action_mask)
    return np.argmax(process.action_mask, axis=1)


def start_within(
    process: MOMDP, i: int, allowed: Bool[np.ndarray, "S A"], start: Int[np.ndarray, " S"]
) -> Int[np.ndarray, " S"]:
    """The policy to start from at objective i, or another one within the sets: where its gamma is 1, one that ends,
    which objectives with a discount need not have cared about."""
    if process.gamma[i] < 1 or is_proper(process, start):
        return start
    found = proper_policy(process, allowed)
    if (stuck := np.flatnonzero(found < 0)).size:
        raise InputError(
            f"Gamma is 1 for {process.signals[i]}, but from {states(stuck)} no policy that "
            f"{', '.join(process.signals[:i])} leaves is sure to reach a terminal state; give {process.signals[i]} a "
            "gamma below 1."
        )
    return found


def endless(process: MOMDP, policy: Float[np.ndarray, "S A"]) -> Int[np.ndarray, " n"]:
    """States from which a policy never ends, where that matters: some gamma is 1."""
    if not (process.gamma == 1).any():
        return np.zeros(0, int)
    return np.flatnonzero(~ends(process, process.chain(policy)[0]))


def finite_slack(process: MOMDP, i: int, slack: Any) -> Float[np.ndarray, " ..."]:
    """The tolerance of objective i, which is a number."""
    found = np.asarray(slack, np.float64)
    if not np.isfinite(found).all():
        raise InputError(
            f"The tolerance of {process.signals[i]} is {np.max(found):g}; with it nothing is lost by leaving "
            f"{process.signals[i]} out of the order: do that, or give a finite number."
        )
    return found


def judge_level(
    process: MOMDP, i: int, optimum: LevelSolution, allowed: Bool[np.ndarray, "S A"], tolerances: tol.Tolerances
) -> Judged:
    """The actions that objective i leaves of the allowed ones."""
    best = optimum.values.value.hi
    slack = finite_slack(process, i, tol.slack(tolerances)(i, optimum.backup.q, allowed, best))
    slack = np.broadcast_to(slack, best.shape).copy()
    return backups.judge(process, i, optimum.values, optimum.values, optimum.backup, allowed, slack, optimum.known)


def _only(process: MOMDP, optimum: LevelSolution) -> Judged:
    """Nothing but what the policy does."""
    chosen = np.arange(process.num_actions) == optimum.policy[:, None]
    nothing = (np.zeros(0, int), np.zeros(0))
    return Judged(chosen | process.terminal[:, None], np.zeros(process.num_states), np.inf, 0.0, nothing, nothing)


def _followed(process: MOMDP, i: int, above: LevelSolution, way: Method) -> Level:
    """An objective that gets what the policy of a more important one gives it."""
    chosen = _only(process, above).reached & process.action_mask
    optimum = optimize(process, i, chosen, start_within(process, i, chosen, above.policy), way)
    return Level(optimum, _only(process, optimum))


def _solution(process: MOMDP, order: Order, levels: list[Level], clock: Clock, *, exact: bool) -> Solution:
    sets = np.stack([process.action_mask, *(level.judged.reached for level in levels)])
    policy = lex.uniform(sets[-1])
    if (never := endless(process, policy)).size:
        name = process.signals[int(np.argmax(process.gamma == 1))]
        raise InputError(
            f"Gamma is 1 for {name}, but from {states(never)} the best policy for the less important objectives never "
            "ends; give all objectives the same gamma."
        )
    values = np.stack([level.optimum.values.value.hi for level in levels])
    return Solution(
        order=order,
        objectives=process.signals,
        q=np.stack([level.optimum.backup.q for level in levels]),
        sets=sets,
        values=values,
        terminal=process.terminal,
        policy=policy,
        # Without tolerance the values are those of the policy, and have more digits than an evaluation of it.
        returns=values @ process.initial if exact else evaluate(process, policy).returns,
        certificate=certificate_of(process, levels, time_fault(process, levels, clock)),
    )


def certificate_of(process: MOMDP, levels: list[Level], faults: tuple[str, ...]) -> Certificate:
    """What the levels know about themselves."""
    rounded, undecided = [one.judged.rounded for one in levels], [one.judged.undecided for one in levels]
    return Certificate(
        objectives=process.signals,
        residuals=np.array([level.optimum.residual for level in levels]),
        errors=np.array([_error(level.optimum) for level in levels]),
        noise=np.array([level.judged.noise for level in levels]),
        margins=np.array([level.judged.margin for level in levels]),
        num_rounded=np.array([len(index) for index, _ in rounded]),
        rounded=_near_ties(process, rounded),
        num_undecided=np.array([len(index) for index, _ in undecided]),
        undecided=_near_ties(process, undecided),
        iterations=tuple(level.optimum.iterations for level in levels),
        faults=faults,
    )


def _near_ties(process: MOMDP, each: list[Any]) -> tuple[NearTie, ...]:
    named = zip(process.signals, each, strict=True)
    return tuple(one for name, pair in named for one in largest(name, process.num_actions, *pair))


def _error(optimum: LevelSolution) -> float:
    """Of values rounded to doubles."""
    rounding = np.finfo(float).eps / 2 * np.abs(optimum.values.value.hi)
    return float(np.max(optimum.values.error + rounding)) + optimum.bound


def time_fault(process: MOMDP, levels: list[Level], clock: Clock) -> tuple[str, ...]:
    """What is open because time ran out."""
    for i, level in enumerate(levels):
        if level.optimum.bound > 0:
            rest = f"; {', '.join(process.signals[i + 1 :])} come from the same policy" if i + 1 < len(levels) else ""
            bound = level.optimum.bound
            far = f"may be up to {bound:.3g} below its optimum" if np.isfinite(bound) else "may be below its optimum"
            return (f"Stopped after {clock.seconds:.3g} s: {process.signals[i]} {far}{rest}.",)
    return ()


def reach(process: MOMDP, objective: int) -> float:
    """What a residual of 1 can add up to: `1 / (1 - gamma)`, or without discount the longest expected episode.

    Infinite where some policy never ends, or episodes can be so long that arithmetic cannot tell.
    """
    gamma = float(process.gamma[objective])
    if gamma < 1:
        return 1 / (1 - gamma)
    if process.never_ending().any():
        return np.inf
    steps = np.where(process.terminal[:, None] | ~process.action_mask, 0.0, 1.0)
    clock = backups.single(process, doubled.exactly(steps), 1.0, "steps")
    lengths = optimize(clock, 0, process.action_mask, np.argmax(process.action_mask, axis=1)).values
    sure = (lengths.error <= 1e-6 * np.maximum(lengths.value.hi, 1.0)).all()
    believable = sure and np.all(lengths.value.hi[~process.terminal] >= 1)
    return float(np.max(lengths.value.hi)) if believable else np.inf


def refuse_limits(order: Order) -> None:
    """A limit is about the return of a whole policy."""
    if order.limited:
        raise InputError(
            f"The order '{order}' has a limit, which is about the return of a whole policy: use policy tolerance "
            "(`lexrl.exact.solve_slack`, or `lexrl solve --tolerance policy`)."
        )


def tolerances_of(order: Order, tolerance: Any) -> tol.Tolerances:
    """One tolerance, or one for each objective of the order, where those written in the order come first."""
    default = tol.as_tolerance(tolerance)
    if isinstance(default, tuple) and len(default) != len(order.objectives):
        raise InputError(
            f"{len(default)} tolerances were given for {len(order.objectives)} objectives; give one, or one each."
        )
    return order.tolerances(default)
