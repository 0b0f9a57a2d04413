"""What "more important" means: the lexicographic order with tolerance, and nothing else.

For one state, from values `q[M, A]` and a slack `tau_i` per objective (Definition 1 of the paper, its index corrected):

    D_0 = all actions        D_i = { a in D_{i-1} : q_i(a) >= max_{b in D_{i-1}} q_i(b) - tau_i }      i = 1..M

Every function takes leading batch axes, works on JAX arrays (traced or not) and on NumPy arrays alike, and computes in
the precision it is given: algorithms run it in float32 on the device, the exact solver in float64 on the host.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from lexrl.errors import InputError

Arr = Any
"""A JAX or a NumPy array."""

Slack = Callable[[int, Arr, Arr, Arr], Arr]
"""`tau_i` as a function of: the objective's number, its values `[..., A]`, the set `D_{i-1}` as a mask `[..., A]`, and
the best value `[...]` in that set; one for a state `[...]`, or one for each action `[..., A]` where it depends on which
two actions are compared. `lexrl.tolerance` makes them; a plain array `[M]` will do where tau is a number."""


class Levels(NamedTuple):
    """The walk down the objectives at a state."""

    sets: Bool[Arr, "*batch M+1 A"]
    """`D_0 .. D_M` as masks: never empty, ties kept."""
    best: Float[Arr, "*batch M"]
    """lexmax: `max over D_{i-1}` of `q_i`, the best value left to each objective."""


def levels(q: Float[Arr, "*batch M A"], slack: Slack | Sequence[float] | Arr) -> Levels:
    """Walk down the objectives: the admissible sets and the best value each objective has left.

    A NaN is never admissible while any number is left to choose; where nothing but NaN is left, the set stays as it was
    and the best value is NaN, so that the fault is seen by whoever looks at the value.
    """
    if not callable(slack) and len(slack) != q.shape[-2]:
        raise InputError(f"There are {len(slack)} tolerances for {q.shape[-2]} objectives; give one for each.")
    xp = q.__array_namespace__()
    tau = slack if callable(slack) else lambda i, values, allowed, best: slack[i]
    allowed = xp.ones(q.shape[:-2] + q.shape[-1:], dtype=bool)
    sets, bests = [allowed], []
    for i in range(q.shape[-2]):
        values = q[..., i, :]
        known = allowed & ~xp.isnan(values)
        some = xp.any(known, axis=-1)
        best = xp.max(xp.where(known, values, -xp.inf), axis=-1)
        with np.errstate(invalid="ignore", divide="ignore"):  # inf - inf is NaN, which no value reaches: see below
            threshold = best[..., None] - per_action(tau(i, values, known, best), values)
        # The best action stays whatever tau is: inf - inf would else empty the set.
        keep = known & ((values >= threshold) | (values == best[..., None]))
        allowed = xp.where(some[..., None], keep, allowed)
        sets.append(allowed)
        bests.append(xp.where(some, best, xp.nan))
    return Levels(xp.stack(sets, axis=-2), xp.stack(bests, axis=-1))


def per_action(tau: Arr, values: Float[Arr, "*batch A"]) -> Arr:
    """A slack that may be one for a state, in the shape of the actions' values."""
    return tau[..., None] if 0 < np.ndim(tau) < values.ndim else tau


def gives_way(num_objectives: int) -> Float[np.ndarray, " M"]:
    """1 for every objective that another one follows, 0 for the last: there is nothing to give way to."""
    return np.where(np.arange(num_objectives) < num_objectives - 1, np.float32(1), np.float32(0))


def admissible(q: Float[Arr, "*batch M A"], slack: Slack | Sequence[float] | Arr) -> Bool[Arr, "*batch A"]:
    """`D_M`: the actions left by all objectives."""
    return levels(q, slack).sets[..., -1, :]


def lexmax(q: Float[Arr, "*batch M A"], slack: Slack | Sequence[float] | Arr) -> Float[Arr, "*batch M"]:
    """The best value left to each objective by all more important ones."""
    return levels(q, slack).best


def double_levels(
    q: Float[Arr, "*batch M A"], value: Float[Arr, "*batch M A"], slack: Slack | Sequence[float] | Arr
) -> Levels:
    """As `levels`, but the best action of each set is chosen by `q`, and worth what `value` says: double learning."""
    xp = q.__array_namespace__()
    sets = levels(q, slack).sets
    chosen = xp.argmax(xp.where(sets[..., :-1, :], q, -xp.inf), axis=-1)
    return Levels(sets, xp.take_along_axis(value, chosen[..., None], axis=-1)[..., 0])


def uniform(allowed: Bool[Arr, "*batch A"]) -> Float[Arr, "*batch A"]:
    """The greedy lexicographic choice: every admissible action is as good as any other."""
    xp = allowed.__array_namespace__()
    weight = xp.where(allowed, 1.0, 0.0)
    return weight / xp.sum(weight, axis=-1, keepdims=True)


def epsilon_greedy(
    q: Float[Arr, "*batch M A"], slack: Slack | Sequence[float] | Arr, epsilon: Arr | float
) -> Float[Arr, "*batch A"]:
    """Algorithm 1 as probabilities: with `epsilon` any action, else one of `D_M`, both uniformly."""
    return (1.0 - epsilon) * uniform(admissible(q, slack)) + epsilon / q.shape[-1]


def best_of(q: Float[Arr, "*batch M A"], walk: Levels) -> Bool[Arr, "*batch M A"]:
    """The best actions of each objective in what the more important ones left: what would be played if the order ended
    with it. Where no value is a number, all that is left."""
    xp = q.__array_namespace__()
    left = walk.sets[..., :-1, :]
    best = left & (q == walk.best[..., None])
    return xp.where(xp.any(best, axis=-1, keepdims=True), best, left)


def prefix_greedy(
    q: Float[Arr, "*batch M A"], slack: Slack | Sequence[float] | Arr, epsilon: Arr | float
) -> Float[Arr, "*batch A"]:
    """Epsilon-greedy that explores within every prefix of the order: with `epsilon` one of `D_0 .. D_{M-1}` is drawn,
    else `D_M`, and in it any action."""
    xp = q.__array_namespace__()
    each = uniform(levels(q, slack).sets)
    return (1.0 - epsilon) * each[..., -1, :] + epsilon * xp.mean(each[..., :-1, :], axis=-2)


def softmax(
    q: Float[Arr, "*batch M A"], slack: Slack | Sequence[float] | Arr, temperature: Arr | float
) -> Float[Arr, "*batch A"]:
    """Lexicographic softmax: an action is as unlikely as it falls short of the first set that excludes it.

    `p(a) ~ exp(-d(a) / temperature)`, where `d(a) = 0` on `D_M` and else `max_{D_{i-1}} q_i - q_i(a)` for the first `i`
    with `a` outside `D_i`. As the temperature goes to 0 this becomes uniform on `D_M`.
    """
    xp = q.__array_namespace__()
    sets, best = levels(q, slack)
    leaves = sets[..., :-1, :] & ~sets[..., 1:, :]
    with np.errstate(invalid="ignore"):
        short = xp.sum(xp.where(leaves, best[..., None] - q, 0.0), axis=-2)
    short = xp.where(xp.isnan(short), xp.inf, short)
    with np.errstate(invalid="ignore", divide="ignore"):
        weight = xp.where(short > 0, xp.exp(-short / temperature), 1.0)  # at temperature 0 too
    return weight / xp.sum(weight, axis=-1, keepdims=True)


class Gap(NamedTuple):
    """How far returns are from the lexicographic optimum."""

    shortfall: Float[Arr, " M"]
    """`J*_i - J_i`, objective by objective. Below 0 is possible only beneath a level that was not reached."""
    level: int | None
    """The first objective (0-based) that falls short by more than its tolerance; None: optimal within tolerance."""


def enough(returns: Float[Arr, "*batch M"], limits: Float[Arr, " M"] | None) -> Float[Arr, "*batch M"]:
    """What returns count for: an objective with a limit counts only up to it. NaN stays NaN."""
    if limits is None:
        return returns
    return returns.__array_namespace__().minimum(returns, limits)


def gap(
    achieved: Float[Arr, " M"],
    best: Float[Arr, " M"],
    tolerance: Sequence[float] | Arr,
    limits: Float[Arr, " M"] | None = None,
) -> Gap:
    """Distance to the optimum, objective by objective, and the first one where the tolerance does not cover it.

    Shortfalls beneath that level say little: what is gained there was bought with a more important objective. `limits`
    are the returns that are enough, infinite where more is always better.
    """
    shortfall = enough(best, limits) - enough(achieved, limits)
    exceeded = [i for i in range(len(shortfall)) if not shortfall[i] <= tolerance[i]]
    return Gap(shortfall, exceeded[0] if exceeded else None)


class Comparison(NamedTuple):
    """Which of two vectors of returns is lexicographically better, and which objective decided."""

    winner: int
    """1: the first is better; -1: the second; 0: equal within tolerance everywhere."""
    level: int | None
    """The objective (0-based) that decided; None if none did."""


def compare(
    first: Float[Arr, " M"] | Sequence[float],
    second: Float[Arr, " M"] | Sequence[float],
    tolerance: Sequence[float],
    limits: Float[Arr, " M"] | None = None,
) -> Comparison:
    """Walk the objectives; the first difference larger than its tolerance decides. NaN loses to any number.

    Beyond its limit an objective makes no difference.
    """
    pair = (enough(np.asarray(one, float), limits) for one in (first, second))
    for i, (a, b, tau) in enumerate(zip(*pair, tolerance, strict=True)):
        if a == b or (a != a and b != b):
            continue
        if a - b > tau or b != b:
            return Comparison(1, i)
        if b - a > tau or a != a:
            return Comparison(-1, i)
    return Comparison(0, None)


def choose(
    returns: Float[np.ndarray, "candidates episodes views M"],
    slack: Float[np.ndarray, " M"],
    limits: Float[np.ndarray, " M"] | None = None,
    *,
    margin: Float[np.ndarray, "views M"] | float = 0.0,
    standard_errors: float = 2.0,
) -> int:
    """The lexicographically best of several policies that played the same episodes, as far as can be told.

    The first is chosen unless another one beats it: by so many standard errors of the mean difference, episode by
    episode, and where there is no slack by more than the `margin`, in the first objective in which the two differ that
    much; a more important objective may lose its slack. Then those that come after it are compared with the new one.
    Returns have several views (discounted and undiscounted); the slack is granted on the first, and the others count
    where there is none. Mean returns count up to the `limits`, whatever the view.
    """
    chosen = 0
    for i in range(1, len(returns)):
        if outplays(returns[i], returns[chosen], slack, limits, margin=margin, standard_errors=standard_errors):
            chosen = i
    return chosen


def outplays(
    challenger: Float[np.ndarray, "episodes views M"],
    champion: Float[np.ndarray, "episodes views M"],
    slack: Float[np.ndarray, " M"],
    limits: Float[np.ndarray, " M"] | None = None,
    *,
    margin: Float[np.ndarray, "views M"] | float = 0.0,
    standard_errors: float = 2.0,
) -> bool:
    """Does one policy beat another over the same episodes? With the rules of `choose`."""
    gain = challenger - champion
    error = gain.std(axis=0, ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.zeros(gain.shape[1:])
    doubt = np.maximum(standard_errors * error, np.where(slack > 0, 0.0, margin))
    judged = np.stack([np.ones_like(slack, bool), *[slack == 0] * (gain.shape[1] - 1)])
    difference = enough(challenger.mean(axis=0), limits) - enough(champion.mean(axis=0), limits)
    better = ((difference > doubt + slack) & judged).any(axis=0)
    worse = ((difference < -doubt - slack) & judged).any(axis=0)
    decided = np.flatnonzero(better | worse)
    return len(decided) > 0 and not bool(worse[decided[0]])


class Estimate(NamedTuple):
    """Returns of a policy that were measured."""

    mean: Float[Arr, " M"]
    standard_error: Float[Arr, " M"]


def beats(
    challenger: Estimate,
    incumbent: Estimate,
    slack: Float[Arr, " M"] | Sequence[float],
    *,
    standard_errors: float = 2.0,
) -> Bool[Arr, ""]:
    """Is the challenger better, lexicographically and with confidence?

    The first objective decides in which the two differ by more than its slack and so many standard errors of their
    difference. Where none does, the incumbent stays. NaN is worse than any number, and equal to itself.
    """
    xp = challenger.mean.__array_namespace__()
    error = xp.sqrt(challenger.standard_error**2 + incumbent.standard_error**2)
    margin = xp.asarray(slack) + standard_errors * error
    lost, unknown = xp.isnan(challenger.mean), xp.isnan(incumbent.mean)
    gain = xp.where(lost & unknown, 0.0, challenger.mean - incumbent.mean)
    better, worse = (gain > margin) | (unknown & ~lost), (-gain > margin) | (lost & ~unknown)
    undecided_before = xp.cumsum(xp.asarray(better | worse, dtype=int), axis=-1) <= 1
    return xp.any(better & undecided_before, axis=-1)
