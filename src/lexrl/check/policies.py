"""Learners of policies: Theorem 3 and its corollaries for LA2C and LPPO.

Theorem 3 lifts what is known of one objective to several, on time-scales

    beta_i / alpha -> 0        eta_i / beta_i -> 0        beta_i / eta_{i-1} -> 0        tau = o(beta_M)

where alpha is `critic_rate`, beta_i is `rate` times the i-th `dual.beta`, and eta_0 .. eta_M are `dual.eta`. What is
known of one objective (that A2C or PPO converges) comes from the corollary.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from lexrl import tolerance as tol
from lexrl.algos import LA2C, LPPO
from lexrl.algos import actor_critic as ac
from lexrl.check.conditions import Condition, Guarantee, Verdict, bounded, finite, weakest
from lexrl.momdp import MOMDP
from lexrl.order import Order
from lexrl.schedules import Constant, Schedule, vanishes_against
from lexrl.types import Box, Discrete

_FAR = 10**9
"""Where the limit of a rate is read off."""

_DISCOUNTED = "samples are from the discounted state distribution"


class Case(NamedTuple):
    """What is to be checked."""

    algorithm: LA2C | LPPO
    world: Any
    observation: Discrete | Box
    action: Discrete | Box
    process: MOMDP | None
    """The finite process behind the world, where it is known."""
    order: Order

    @property
    def m(self) -> int:
        return len(self.order.objectives)


def guarantees(algorithm: LA2C | LPPO, world: Any, order: Order) -> tuple[Guarantee, ...]:
    """Theorem 3 and the algorithm's corollary."""
    case = _case(algorithm, world, order)
    ac.check_lengths(algorithm, case.m)
    algorithm.dual.check(case.m)
    own = _theorem(case)
    if isinstance(algorithm, LA2C):
        name, kind, needed = "Corollary 1 (LA2C)", "local", _corollary_la2c(case)
    else:
        name, kind, needed = "Corollary 2 (LPPO)", "global", _corollary_lppo(case, algorithm)
    alone = weakest(needed)
    one = Condition(
        "with one objective the algorithm converges",
        "holds" if alone == "holds" else "unknown",
        f"by {name}, whose conditions {'hold' if alone == 'holds' else 'fail' if alone == 'fails' else 'are unknown'}",
    )
    rest = Condition("Theorem 3's own conditions", weakest(own), "see there")
    return (
        Guarantee("Theorem 3", f"the policy converges to a lexicographic {kind} epsilon-optimum", (*own, one)),
        Guarantee(name, f"almost surely a lexicographic {kind} epsilon-optimum is reached", (*needed, rest)),
    )


def _case(algorithm: LA2C | LPPO, world: Any, order: Order) -> Case:
    if isinstance(world, MOMDP):
        spaces = Discrete(world.n_states), Discrete(world.n_actions)
        return Case(algorithm, world, *spaces, world.ordered(order), order)
    process = world.momdp(0.5).ordered(order) if hasattr(world, "momdp") else None  # no condition is about its gamma
    return Case(algorithm, world, world.spec.observation, world.spec.action, process, order)


def _theorem(case: Case) -> tuple[Condition, ...]:
    rates = _rates(case)
    return (
        _smooth_policy(case),
        _smooth_critics(case),
        _same_form(case),
        bounded(case.world, case.process),
        _in_unit_interval(rates),
        _robbins_monro(rates),
        _time_scales("beta_i / alpha", [(beta, rates.alpha) for beta in rates.beta]),
        _time_scales("eta_i / beta_i", list(zip(rates.eta[1:], rates.beta, strict=True))),
        _time_scales("beta_i / eta_{i-1}", list(zip(rates.beta, rates.eta[:-1], strict=True))),
        _tolerance(case, rates.beta[-1]),
        _plain_steps(case),
        _plain_prices(case),
        Condition("parameters are kept in a compact set", "unknown", "parameters are not projected"),
    )


def _smooth_policy(case: Case) -> Condition:
    networks = case.algorithm.networks
    return _smooth("the policy is twice continuously differentiable", networks.hidden, networks.activation)


def _smooth_critics(case: Case) -> Condition:
    networks = case.algorithm.networks
    return _smooth("critics are continuously differentiable", _critic_hidden(case), networks.activation)


def _smooth(text: str, hidden: tuple[int, ...], activation: str) -> Condition:
    if not hidden:
        return Condition(text, "holds", "no hidden layers")
    if activation == "relu":
        return Condition(text, "fails", "relu has no derivative at 0")
    return Condition(text, "holds", f"{activation} is smooth")


def _same_form(case: Case) -> Condition:
    algorithm = case.algorithm
    gain = "Q_i" if algorithm.networks.actions else "A_i"
    if isinstance(algorithm, LA2C):
        form = f"E[log pi {gain}]"
    elif algorithm.surrogate == "penalised":
        form = f"E[rho {gain}] - kappa KL"
    else:
        form = f"E[rho {gain}], clipped"
    return Condition("the same form of objective for all", "holds", f"K_i = {form}")


class Rate(NamedTuple):
    """A rate and its name."""

    name: str
    schedule: Schedule

    def __str__(self) -> str:
        return f"{self.name} = {self.schedule}"


class Rates(NamedTuple):
    """All rates of Theorem 3."""

    alpha: Rate
    beta: tuple[Rate, ...]
    eta: tuple[Rate, ...]

    def all(self) -> tuple[Rate, ...]:
        return (self.alpha, *self.beta, *self.eta)


class _Product(Schedule):
    """Two schedules multiplied: their exponents add up."""

    a: Schedule
    b: Schedule

    def __call__(self, n: Any) -> Any:
        return self.a(n) * self.b(n)

    def robbins_monro(self) -> bool:
        return _sums(self) is None

    def vanishes(self) -> bool:
        return self.decay() > 0

    def decay(self) -> float:
        return self.a.decay() + self.b.decay()

    def __str__(self) -> str:
        if self.b == Constant(1.0):
            return str(self.a)
        return f"({self.a}) x ({self.b})"


def _rates(case: Case) -> Rates:
    dual, rate = case.algorithm.dual, case.algorithm.rate
    betas = dual.beta if isinstance(dual.beta, tuple) else (dual.beta,) * case.m
    etas = dual.eta if isinstance(dual.eta, tuple) else (dual.eta,) * (case.m + 1)
    return Rates(
        Rate("alpha", case.algorithm.critic_rate),
        tuple(Rate(f"beta_{i}", _Product(rate, beta)) for i, beta in enumerate(betas, 1)),
        tuple(Rate(f"eta_{i}", eta) for i, eta in enumerate(etas)),
    )


def _in_unit_interval(rates: Rates) -> Condition:
    text = "every rate lies in [0, 1]"
    outside = [str(rate) for rate in rates.all() if not all(0 <= rate.schedule(n) <= 1 for n in (1, _FAR))]
    if outside:
        return Condition(text, "fails", ", ".join(outside))
    largest = max(rates.all(), key=lambda rate: rate.schedule(1))
    return Condition(text, "holds", f"the largest is {largest}")


def _robbins_monro(rates: Rates) -> Condition:
    text = "every rate: its sum diverges, its sum of squares converges"
    faults: dict[str, list[str]] = {}
    for rate in rates.all():
        if fault := _sums(rate.schedule):
            faults.setdefault(fault, []).append(str(rate))
    if not faults:
        return Condition(text, "holds", ", ".join(map(str, rates.all())))
    shown = "; ".join(f"{fault}: {', '.join(which)}" for fault, which in faults.items())
    usual = " (constant rates are the practical default, and the theorem does not cover them)"
    return Condition(text, "fails", shown + (usual if "constant" in faults else ""))


def _sums(rate: Schedule) -> str | None:
    """What is wrong with a rate's sums, if something is."""
    p = rate.decay()
    if p == 0:
        return "constant"
    if p <= 0.5 + 1e-9:
        return "squares do not converge"
    if math.isinf(p):
        return "0 in the end"
    return "the sum converges" if p > 1 + 1e-9 else None


def _time_scales(text: str, pairs: Iterable[tuple[Rate, Rate]]) -> Condition:
    """Each first rate must vanish against the second."""
    shown, holds = [], True
    for slow, fast in pairs:
        holds &= vanishes_against(slow.schedule, fast.schedule)
        shown.append(f"{slow.name} / {fast.name} {_ratio(slow.schedule.decay(), fast.schedule.decay())}")
    return Condition(f"{text} -> 0", "holds" if holds else "fails", "; ".join(shown))


def _ratio(slow: float, fast: float) -> str:
    if math.isinf(fast):
        return "divides by a rate that is 0 in the end"
    if math.isinf(slow):
        return "is 0 in the end"
    exponent = round(fast - slow, 9)
    return f"is like n^{exponent:g}" if exponent else "does not vanish"


class _Shrinking(NamedTuple):
    """What is known of a tolerance in time."""

    decay: float
    """It vanishes at least like `n^-decay`."""
    fixed: bool
    """Its size does not depend on the objective's level."""


def _tolerance(case: Case, beta: Rate) -> Condition:
    """`tau_t > 0` keeps the constraints satisfiable, and it must vanish faster than the slowest policy step."""
    text = f"tau > 0 and tau = o(beta_M), for all but the last objective (M = {case.m})"
    given = case.order.tolerances(case.algorithm.tolerance)
    each = given[:-1] if isinstance(given, tuple) else (given,) * (case.m - 1)
    if not each:
        return Condition(text, "holds", "one objective restricts nobody")
    verdicts = [_tolerance_verdict(one, beta) for one in each]
    shown = "; ".join(
        f"tau_{i} = {one}: {why}" for i, (one, (_, why)) in enumerate(zip(each, verdicts, strict=True), 1)
    )
    return Condition(text, weakest(Condition(text, verdict, why) for verdict, why in verdicts), shown)


def _tolerance_verdict(tolerance: tol.Tolerance, beta: Rate) -> tuple[Verdict, str]:
    known = _shrinking(tolerance)
    if known is None:
        return "unknown", "how fast it shrinks is not known"
    if math.isinf(known.decay):
        return "fails", "0 in the end"
    slowest = beta.schedule.decay()
    if not known.decay - slowest > 1e-9:
        against = f"beta_M is like n^-{slowest:g}"
        return "fails", "constant" if known.decay == 0 else f"like n^-{known.decay:g}, but {against}"
    if not known.fixed:
        return "unknown", f"vanishes like n^-{known.decay:g} or faster, but is 0 where the level is"
    return "holds", f"like n^-{known.decay:g}, and beta_M like n^-{slowest:g}"


def _shrinking(tolerance: tol.Tolerance) -> _Shrinking | None:
    match tolerance:
        case tol.Absolute():
            return _Shrinking(0.0 if tolerance.amount > 0 else math.inf, True)
        case tol.Relative():
            return _Shrinking(0.0 if tolerance.share > 0 else math.inf, False)
        case tol.Rounding():
            return _Shrinking(0.0 if tolerance.step > 0 else math.inf, False)
        case tol.Scheduled():
            base = _shrinking(tolerance.base)
            return base and _Shrinking(base.decay + tolerance.schedule.decay(), base.fixed)
        case tol.Sum():
            terms = [_shrinking(term) for term in tolerance.terms]
            known = [term for term in terms if term is not None]
            if len(known) < len(terms):
                return None
            return _Shrinking(
                min(term.decay for term in known), any(term.fixed and term.decay < math.inf for term in known)
            )
    return None


def _plain_steps(case: Case) -> Condition:
    algorithm, optimiser = case.algorithm, case.algorithm.networks.optimiser
    clipped = isinstance(algorithm, LPPO) and algorithm.surrogate == "clipped" and case.m > 1
    others = {
        f"the optimiser is {optimiser.method}": optimiser.method != "sgd",
        f"gradients are no longer than {optimiser.longest:g}": optimiser.longest > 0,
        "advantages are standardised": algorithm.standardise,
        f"there is a bonus for entropy, {algorithm.entropy}": not algorithm.entropy.vanishes(),
        "the clipped objective of a sum is not the sum of clipped ones": clipped,
        "one objective moves the policy at a time (sequential)": algorithm.dual.sequential,
        "terms of second order are added": algorithm.dual.second_order,
    }
    return _none_of("steps are plain, along the gradient of sum_i c_i K_i", others, "sgd, nothing added")


def _plain_prices(case: Case) -> Condition:
    text = "prices are plain: lambda_j + eta (k_j - tau - K_j), or 0 if that is negative"
    dual = case.algorithm.dual
    if case.m == 1:
        return Condition(text, "holds", "one objective has no price")
    if dual.scaled:
        return Condition(text, "fails", "distances are measured in standard deviations (scaled)")
    if math.isfinite(dual.ceiling):
        return Condition(text, "unknown", f"no price rises above {dual.ceiling:g}, and a higher one may be needed")
    return Condition(text, "holds", f"eta counts per {dual.window:g} episodes, no ceiling")


def _none_of(text: str, others: dict[str, bool], otherwise: str) -> Condition:
    """Fails with all that are true."""
    found = [what for what, true in others.items() if true]
    return Condition(text, "fails" if found else "holds", "; ".join(found) or otherwise)


def _critic_hidden(case: Case) -> tuple[int, ...]:
    networks = case.algorithm.networks
    return networks.hidden if networks.critic_hidden is None else networks.critic_hidden


def _discounted(case: Case, *, average: bool) -> Condition:
    """Objectives of the kind a corollary speaks of; `average`: limit averages are, too."""
    text = f"objectives are discounted{' or limit averages' if average else ''}"
    if case.algorithm.average:
        return Condition(text, "holds" if average else "fails", "limit averages")
    largest = float(np.max(case.algorithm.gamma))
    return Condition(text, "holds" if largest < 1 else "fails", f"gamma is at most {largest:g}")


def _td0(case: Case) -> Condition:
    trace = float(case.algorithm.trace)
    return Condition("critics are updated by TD(0)", "fails" if trace else "holds", f"trace is {trace:g}")


def _units(case: Case) -> Condition:
    text = "critics learn from rewards in units that come to rest"
    if not case.algorithm.standardise:
        return Condition(text, "holds", "the unit is an average over all updates")
    mean = " and so is the mean reward" if case.algorithm.average else ""
    return Condition(text, "fails", f"the unit is a running average whose rate never falls below 0.01{mean}")


def _weighted(case: Case, whose: str) -> Condition:
    """Corollary 1 does not list this; its proof assumes it."""
    text = f"the {whose} {_DISCOUNTED}"
    if case.algorithm.average:
        return Condition(text, "holds", "limit averages have no discount")
    if case.algorithm.weighted:
        return Condition(text, "holds", "the t-th step of an episode counts gamma^t")
    return Condition(text, "fails", "every step of an episode counts the same (weighted is off)")


def _corollary_la2c(case: Case) -> tuple[Condition, ...]:
    return (
        finite(case.world, case.process),
        bounded(case.world, case.process),
        _discounted(case, average=True),
        _irreducible(case),
        _smooth_policy(case),
        _linear(case),
        _td0(case),
        _units(case),
        _independent(case),
        _no_constant(case),
        _weighted(case, "actor's"),
    )


def _irreducible(case: Case) -> Condition:
    """Softmax gives every action a chance, so what any policy reaches is what all actions together reach.

    A node more stands between the terminal states and the first ones.
    """
    text = "for every policy, each state leads to each"
    if case.process is None:
        return Condition(text, "unknown", "the process is not known")
    n, process = case.process.n_states, case.process
    steps, _ = process.chain(np.full((n, process.n_actions), 1 / process.n_actions))
    ends, begins = sp.csr_array(process.terminal[:, None] * 1.0), sp.csr_array((process.initial > 0)[None, :] * 1.0)
    graph = sp.csr_array(sp.block_array([[steps, ends], [begins, None]]))
    graph.eliminate_zeros()
    reached = csgraph.breadth_first_order(graph, n, return_predecessors=False)
    _, labels = csgraph.connected_components(graph, directed=True, connection="strong")
    reached = reached[reached < n]
    classes = len(np.unique(labels[reached]))
    shown = f"of {len(reached)} states that can be reached (of {n})"
    if classes == 1:
        return Condition(text, "holds", f"{shown}, each leads to each; after a terminal one comes a first one")
    return Condition(text, "fails", f"{shown}, not each leads to each: they fall into {classes} classes")


def _linear(case: Case) -> Condition:
    hidden, actions = _critic_hidden(case), case.algorithm.networks.actions
    others = {f"hidden layers of {hidden}": bool(hidden), "critics are of actions": actions}
    return _none_of("critics of states, linear in features", others, "no hidden layers")


class _Features(NamedTuple):
    """What is to be known of the matrix of features `[S, c]`, a bias being a feature that is 1 everywhere."""

    shape: tuple[int, int]
    rank: int
    constant: bool
    """Some weights make 1 of the features everywhere."""


def _features(case: Case) -> _Features | None:
    networks = case.algorithm.networks
    if not isinstance(case.observation, Discrete):
        return None
    n = case.observation.n
    if networks.features is None:  # one-hot: the identity
        return _Features((n, n + networks.bias), n, True)
    matrix = np.asarray(jax.vmap(networks.features)(jnp.arange(n)), float).reshape(n, -1)
    ones = np.ones((n, 1))
    matrix = np.hstack([matrix, ones]) if networks.bias else matrix
    rank = int(np.linalg.matrix_rank(matrix))
    return _Features((n, matrix.shape[1]), rank, int(np.linalg.matrix_rank(np.hstack([matrix, ones]))) == rank)


def _independent(case: Case) -> Condition:
    text = "features are independent"
    known = _features(case)
    if _critic_hidden(case):
        return Condition(text, "unknown", "critics are not linear in features")
    if known is None:
        return Condition(text, "unknown", "what a state looks like is not known")
    (states, columns), rank = known.shape, known.rank
    bias = " (with the bias)" if case.algorithm.networks.bias else ""
    shown = f"{columns} features{bias} of {states} states have rank {rank}"
    return Condition(text, "holds" if rank == columns else "fails", shown)


def _no_constant(case: Case) -> Condition:
    text = "no weights make the features 1 everywhere"
    known = _features(case)
    if _critic_hidden(case):
        return Condition(text, "unknown", "critics are not linear in features")
    if known is not None and not known.constant:
        return Condition(text, "holds", "a constant is not in their span")
    one_hot = known is not None and case.algorithm.networks.features is None
    needed = "only the proof for limit averages needs this"
    if case.algorithm.networks.bias:
        return Condition(text, "fails", f"the bias does; {needed}")
    if known is None:
        return Condition(text, "unknown", "what a state looks like is not known")
    return Condition(text, "fails", f"{'one-hot features add up to 1' if one_hot else 'some do'}; {needed}")


def _corollary_lppo(case: Case, algorithm: LPPO) -> tuple[Condition, ...]:
    networks = algorithm.networks
    actions: Verdict = "holds" if networks.actions else "fails"
    relu: Verdict = "holds" if networks.activation == "relu" else "fails"
    conflict = "Theorem 3 wants a policy that is twice differentiable, which relu is not"
    return (
        _compact(case),
        bounded(case.world, case.process),
        _discounted(case, average=False),
        _two_layers(case),
        Condition("activations are relu", relu, f"{networks.activation} ({conflict})"),
        Condition(
            "first weights: input normal with variance 1 / d, output uniform in [-1, 1]",
            "fails",
            "output weights are normal and small (0.01 / sqrt(width) in the actor, 0.1 / sqrt(width) in the critic)",
        ),
        Condition("critics of actions take the advantage's place", actions, f"actions is {networks.actions}"),
        _td0(case),
        _units(case),
        _weighted(case, "actor's"),
        _weighted(case, "critics'"),
        Condition("the critics can be every policy's values", "unknown", "the values are not known"),
        _density(case),
        _penalty(algorithm),
        _kappa(algorithm),
    )


def _compact(case: Case) -> Condition:
    text = "the state space is compact, actions are finite"
    if not isinstance(case.action, Discrete):
        return Condition(text, "fails", f"actions are in {case.action}")
    seen = case.observation
    if isinstance(seen, Discrete) or (math.isfinite(seen.low) and math.isfinite(seen.high)):
        return Condition(text, "holds", f"{seen}, {case.action}")
    return Condition(text, "unknown", f"observations are in {seen}")


def _two_layers(case: Case) -> Condition:
    text = "a softmax policy and critics with one hidden layer"
    others = {
        f"hidden layers of the policy: {case.algorithm.networks.hidden}": len(case.algorithm.networks.hidden) != 1,
        f"hidden layers of the critics: {_critic_hidden(case)}": len(_critic_hidden(case)) != 1,
        "continuous actions have a normal policy": not isinstance(case.action, Discrete),
    }
    return _none_of(text, others, f"widths {case.algorithm.networks.hidden[-1:]} and {_critic_hidden(case)[-1:]}")


def _density(case: Case) -> Condition:
    text = "no policy's states and actions crowd near a hyperplane through 0"
    if case.process is not None or isinstance(case.observation, Discrete):
        return Condition(text, "fails", "of finitely many, some lie on such a plane and have positive probability")
    return Condition(text, "unknown", "the distribution of states is not known")


def _penalty(algorithm: LPPO) -> Condition:
    text = "the objective is E[rho Q_i] - kappa KL(pi || pi_old)"
    if algorithm.surrogate == "clipped":
        return Condition(text, "fails", "the ratio is clipped, and nothing penalised")
    return Condition(text, "holds", "penalised by the divergence of the new policy from the old")


def _kappa(algorithm: LPPO) -> Condition:
    text = "kappa > 1 in the end, for an epsilon that vanishes as networks widen"
    if algorithm.surrogate == "clipped":
        return Condition(text, "fails", "there is no penalty")
    return Condition(text, "unknown", f"kappa is adapted to a divergence of {algorithm.divergence:g}")
