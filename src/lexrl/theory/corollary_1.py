"""Corollary 1 of Theorem 3: when A2C converges with one objective, and LA2C with several."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from lexrl.order import Order
from lexrl.theory import policies
from lexrl.theory.conditions import Condition, Guarantee, bounded, finite, none_of
from lexrl.theory.policies import AnyLA2C, Case
from lexrl.theory.theorem_3 import theorem_3
from lexrl.types import Discrete


def of_la2c(algorithm: AnyLA2C, env: Any, order: Order) -> tuple[Guarantee, ...]:
    """Theorem 3 and Corollary 1, for the paper's LA2C and its variants."""
    case = policies.case_of(algorithm, env, order)
    own = (
        finite(case.env, case.process),
        bounded(case.env, case.process),
        policies.discounted(case, average=True),
        _irreducible(case),
        policies.smooth_policy(case),
        _linear(case),
        policies.td_0(case),
        policies.units(case),
        _independent(case),
        _no_constant(case),
        policies.discounted_states(case, "actor's"),
    )
    return policies.guarantees("Corollary 1 (LA2C)", "local", own, theorem_3(case))


def _irreducible(case: Case) -> Condition:
    """Softmax gives every action a positive probability, so any policy reaches what all actions together reach.

    A node more stands between the terminal states and the first ones.
    """
    text = "for every policy, each state leads to each"
    if case.process is None:
        return Condition(text, "unknown", "the process is not known")
    n, process = case.process.num_states, case.process
    steps, _ = process.chain(np.full((n, process.num_actions), 1 / process.num_actions))
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
    hidden = case.critic_hidden_sizes
    return none_of(
        "critics of states, linear in features", {f"hidden layers of {hidden}": bool(hidden)}, "no hidden layers"
    )


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
