"""The corollaries of Theorem 3: when A2C, and when PPO, converges with one objective."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from lexrl.algorithms import LPPO
from lexrl.theory.case import Case, smooth_policy
from lexrl.theory.conditions import Condition, Verdict, bounded, finite, none_of
from lexrl.types import Discrete


def corollary_la2c(case: Case) -> tuple[Condition, ...]:
    """Corollary 1: A2C converges."""
    return (
        finite(case.world, case.process),
        bounded(case.world, case.process),
        _discounted(case, average=True),
        _irreducible(case),
        smooth_policy(case),
        _linear(case),
        _td0(case),
        _units(case),
        _independent(case),
        _no_constant(case),
        _weighted(case, "actor's"),
    )


def corollary_lppo(case: Case, algorithm: LPPO) -> tuple[Condition, ...]:
    """Corollary 2: PPO converges."""
    networks = algorithm.networks
    actions: Verdict = "holds" if networks.action_values else "fails"
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
        Condition(
            "critics of actions take the advantage's place", actions, f"action_values is {networks.action_values}"
        ),
        _td0(case),
        _units(case),
        _weighted(case, "actor's"),
        _weighted(case, "critics'"),
        Condition("the critics can be every policy's values", "unknown", "the values are not known"),
        _density(case),
        _penalty(algorithm),
        _kappa(algorithm),
    )


def _discounted(case: Case, *, average: bool) -> Condition:
    """Objectives of the kind a corollary speaks of; `average`: limit averages are, too."""
    text = f"objectives are discounted{' or limit averages' if average else ''}"
    if case.algorithm.average:
        return Condition(text, "holds" if average else "fails", "limit averages")
    largest = float(np.max(case.algorithm.gamma))
    return Condition(text, "holds" if largest < 1 else "fails", f"gamma is at most {largest:g}")


def _td0(case: Case) -> Condition:
    gae_lambda = float(case.algorithm.gae_lambda)
    return Condition(
        "critics are updated by TD(0)", "fails" if gae_lambda else "holds", f"gae_lambda is {gae_lambda:g}"
    )


def _units(case: Case) -> Condition:
    text = "critics learn from rewards in units that come to rest"
    if not case.algorithm.normalize_advantage:
        return Condition(text, "holds", "the unit is an average over all updates")
    mean = " and so is the mean reward" if case.algorithm.average else ""
    return Condition(text, "fails", f"the unit is a running average whose rate never falls below 0.01{mean}")


def _weighted(case: Case, whose: str) -> Condition:
    """Corollary 1 does not list this; its proof assumes it."""
    text = f"the {whose} samples are from the discounted state distribution"
    if case.algorithm.average:
        return Condition(text, "holds", "limit averages have no discount")
    if case.algorithm.discounted_states:
        return Condition(text, "holds", "the t-th step of an episode counts gamma^t")
    return Condition(text, "fails", "every step of an episode counts the same (weighted is off)")


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
    hidden, actions = case.critic_hidden_sizes, case.algorithm.networks.action_values
    others = {f"hidden layers of {hidden}": bool(hidden), "critics are of actions": actions}
    return none_of("critics of states, linear in features", others, "no hidden layers")


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
    if networks.critic_features is None:  # one-hot: the identity
        return _Features((n, n + networks.use_bias), n, True)
    matrix = np.asarray(jax.vmap(networks.critic_features)(jnp.arange(n)), float).reshape(n, -1)
    ones = np.ones((n, 1))
    matrix = np.hstack([matrix, ones]) if networks.use_bias else matrix
    rank = int(np.linalg.matrix_rank(matrix))
    return _Features((n, matrix.shape[1]), rank, int(np.linalg.matrix_rank(np.hstack([matrix, ones]))) == rank)


def _independent(case: Case) -> Condition:
    text = "features are independent"
    known = _features(case)
    if case.critic_hidden_sizes:
        return Condition(text, "unknown", "critics are not linear in features")
    if known is None:
        return Condition(text, "unknown", "what a state looks like is not known")
    (states, columns), rank = known.shape, known.rank
    bias = " (with the bias)" if case.algorithm.networks.use_bias else ""
    shown = f"{columns} features{bias} of {states} states have rank {rank}"
    return Condition(text, "holds" if rank == columns else "fails", shown)


def _no_constant(case: Case) -> Condition:
    text = "no weights make the features 1 everywhere"
    known = _features(case)
    if case.critic_hidden_sizes:
        return Condition(text, "unknown", "critics are not linear in features")
    if known is not None and not known.constant:
        return Condition(text, "holds", "a constant is not in their span")
    one_hot = known is not None and case.algorithm.networks.critic_features is None
    needed = "only the proof for limit averages needs this"
    if case.algorithm.networks.use_bias:
        return Condition(text, "fails", f"the bias does; {needed}")
    if known is None:
        return Condition(text, "unknown", "what a state looks like is not known")
    return Condition(text, "fails", f"{'one-hot features add up to 1' if one_hot else 'some do'}; {needed}")


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
        f"hidden layers of the policy: {case.algorithm.networks.hidden_sizes}": len(
            case.algorithm.networks.hidden_sizes
        )
        != 1,
        f"hidden layers of the critics: {case.critic_hidden_sizes}": len(case.critic_hidden_sizes) != 1,
        "continuous actions have a normal policy": not isinstance(case.action, Discrete),
    }
    return none_of(
        text, others, f"widths {case.algorithm.networks.hidden_sizes[-1:]} and {case.critic_hidden_sizes[-1:]}"
    )


def _density(case: Case) -> Condition:
    text = "no policy's states and actions crowd near a hyperplane through 0"
    if case.process is not None or isinstance(case.observation, Discrete):
        return Condition(text, "fails", "of finitely many, some lie on such a plane and have positive probability")
    return Condition(text, "unknown", "the distribution of states is not known")


def _penalty(algorithm: LPPO) -> Condition:
    text = "the objective is E[rho Q_i] - kappa KL(pi || pi_old)"
    if algorithm.surrogate == "clip":
        return Condition(text, "fails", "the ratio is clipped, and nothing penalised")
    return Condition(text, "holds", "penalised by the divergence of the new policy from the old")


def _kappa(algorithm: LPPO) -> Condition:
    text = "kappa > 1 in the end, for an epsilon that vanishes as networks widen"
    if algorithm.surrogate == "clip":
        return Condition(text, "fails", "there is no penalty")
    return Condition(text, "unknown", f"kappa is adapted to a divergence of {algorithm.kl_target:g}")
