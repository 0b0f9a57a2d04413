"""Non-negative least squares from inner products alone, inside a compiled program.

    min | g + sum_j mu_j g_j |^2    over mu >= 0

from `gram[j, k] = g_j . g_k` and `products[j] = g_j . g`: by Lawson and Hanson's active set method, which keeps a set
of vectors with a positive weight, solves for these alone, and stops where the conditions of Karush, Kuhn and Tucker
hold. Vectors may be nearly parallel, repeated or zero, and of any length: weights are found for unit vectors.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from lexrl.backend import fusion_barrier

_MOST_STEPS = 12
"""Linear systems for each vector before giving up; twice the number of vectors is usually plenty."""


class _State(NamedTuple):
    weights: Float[Array, " M"]
    positive: Bool[Array, " M"]
    """Which vectors may have a weight now."""
    steps: Array
    done: Array


def weights(
    gram: Float[Array, "M M"], products: Float[Array, " M"], size: Float[Array, ""], allowed: Bool[Array, " M"]
) -> Float[Array, " M"]:
    """`mu`, with 0 for vectors that are not allowed; `size` is the length of `g`."""
    lengths = jnp.sqrt(jnp.diagonal(gram))
    allowed = allowed & (lengths > 0) & (size > 0)
    unit = jnp.where(lengths > 0, 1 / jnp.where(lengths > 0, lengths, 1.0), 0.0)
    scale = jnp.where(size > 0, size, 1.0)
    given = fusion_barrier((gram * unit[:, None] * unit, products * unit * fusion_barrier(1.0 / scale)))
    found = fusion_barrier(_unit_weights(*given, allowed))
    return found * scale * unit


def _unit_weights(
    gram: Float[Array, "M M"], products: Float[Array, " M"], allowed: Bool[Array, " M"]
) -> Float[Array, " M"]:
    m, noise = gram.shape[0], 8 * jnp.finfo(gram.dtype).eps

    def solve(positive: Array) -> Array:
        """The weights that are best if only these vectors have one, of whatever sign."""
        both = positive[:, None] & positive
        system = jnp.where(both, gram, 0.0) + jnp.where(positive, noise, 1.0) * jnp.eye(m, dtype=gram.dtype)
        return _solve(system, jnp.where(positive, -products, 0.0))

    def step(state: _State) -> _State:
        wanted = solve(state.positive)
        below = state.positive & (wanted <= 0)
        # Either go as far as no weight turns negative, and drop those that reach 0 ...
        ratio = jnp.where(below, state.weights / jnp.where(below, state.weights - wanted, 1.0), jnp.inf)
        part = jnp.clip(jnp.min(ratio), 0.0, 1.0)
        between = jnp.where(state.positive, state.weights + part * (wanted - state.weights), 0.0)
        kept = state.positive & ~(below & (ratio <= part))
        # ... or, where none does, take in the vector that the rest would profit from most.
        gradient = -(jnp.sum(gram * wanted, axis=1) + products)
        gain = jnp.where(allowed & ~state.positive, gradient, -jnp.inf)
        more = jnp.max(gain) > noise * (1 + jnp.sum(jnp.abs(wanted)))
        joined = state.positive | (more & (jnp.arange(m) == jnp.argmax(gain)))
        stuck = jnp.any(below)
        return _State(
            jnp.where(stuck, jnp.where(kept, jnp.maximum(between, 0.0), 0.0), wanted),
            jnp.where(stuck, kept, joined),
            state.steps + 1,
            ~stuck & ~more,
        )

    start = _State(jnp.zeros_like(products), jnp.zeros_like(allowed), jnp.zeros((), jnp.int32), jnp.array(False))
    last = jax.lax.while_loop(lambda state: ~state.done & (state.steps < _MOST_STEPS * m), step, start)
    return jnp.maximum(last.weights, 0.0)


def _solve(system: Float[Array, "M M"], right: Float[Array, " M"]) -> Float[Array, " M"]:
    """The solution of a positive definite system, by elimination, which needs no pivots there. A library's solver is
    another one for many systems at once than for one, and rounds differently; so does a division by one number, which
    XLA may turn into a product."""

    def eliminate(k: Array, rows: Array) -> Array:
        row = rows[k] * fusion_barrier(1.0 / rows[k, k])
        others = rows - fusion_barrier(rows[:, k, None] * row)
        return jnp.where((jnp.arange(rows.shape[0]) == k)[:, None], row, others)

    rows = jnp.concatenate([system, right[:, None]], axis=1)
    return jax.lax.fori_loop(0, right.shape[0], eliminate, rows)[:, -1]
