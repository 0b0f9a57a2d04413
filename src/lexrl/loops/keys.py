"""Randomness by address: the key of a draw is a function of (seed, purpose, env, time), not of what was drawn before.

So a stopped run resumes with the numbers it would have had, a seed does not depend on its neighbors, and the compiled
and the host loop draw the same.

Keys are ordinary typed JAX keys (`jax.random.uniform(key)`, `split`, `fold_in` all work) of a generator of our own:
Threefry-2x32 with the time as half of its counter. Moving to the next step is then writing one integer, where JAX's
own keys would hash; and the twenty rounds are unrolled, so that they fuse with the loop that uses them.
"""

import enum
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.random import define_prng_impl

from lexrl.backend import inline_jit


class Purpose(enum.IntEnum):
    """What a draw is for; each purpose has a stream of its own."""

    INIT = 0
    RESET = 1
    ACT = 2
    STEP = 3
    UPDATE = 4
    EVALUATE_RESET = 5
    EVALUATE_ACT = 6
    EVALUATE_STEP = 7
    PREDICT = 8
    EVALUATE_BEGIN = 9


def stream(seed: Any, purpose: Purpose, env: Any = 0) -> Array:
    """The keys of one purpose in one environment of one seed; `at` picks the one of a time."""
    a, b = _threefry_rolled(jnp.uint32(seed), jnp.uint32(purpose), jnp.uint32(env), jnp.uint32(0x6C657872))
    return jax.random.wrap_key_data(jnp.stack([a, b, jnp.uint32(0)]), impl=_IMPLEMENTATION)


def streams(seed: Any, purpose: Purpose, num_envs: int) -> Array:
    """One stream for each environment."""
    return jax.vmap(lambda env: stream(seed, purpose, env))(jnp.arange(num_envs, dtype=jnp.uint32))


def at(key: Array, time: Any) -> Array:
    """The key of a time, from a stream (or an array of streams)."""
    data = jax.random.key_data(key)
    moved = jnp.stack([data[..., 0], data[..., 1], jnp.broadcast_to(jnp.uint32(time), data.shape[:-1])], axis=-1)
    return jax.random.wrap_key_data(moved, impl=_IMPLEMENTATION)


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def _threefry(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """Threefry-2x32, 20 rounds (Salmon et al. 2011): the counter (x0, x1) under the key (k0, k1)."""
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for group in range(5):
        for bits in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = x0 ^ ((x1 << np.uint32(bits)) | (x1 >> np.uint32(32 - bits)))
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


@inline_jit
def _threefry_rolled(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Array, Array]:
    """The same numbers from a program a tenth as long: for keys that are made once, where compiling is what costs."""
    keys = jnp.stack(jnp.broadcast_arrays(k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA)))
    x0, x1 = (jnp.broadcast_to(x, jnp.broadcast_shapes(*map(jnp.shape, (k0, k1, x0, x1)))) for x in (x0, x1))

    def group(i: Array, x: tuple[Array, Array]) -> tuple[Array, Array]:
        def rotate(j: Array, x: tuple[Array, Array]) -> tuple[Array, Array]:
            bits = jnp.asarray(_ROTATIONS, jnp.uint32)[i % 2, j]
            total = x[0] + x[1]
            return total, total ^ ((x[1] << bits) | (x[1] >> (np.uint32(32) - bits)))

        x0, x1 = jax.lax.fori_loop(0, 4, rotate, x)
        return x0 + keys[(i + 1) % 3], x1 + keys[(i + 2) % 3] + jnp.uint32(i) + np.uint32(1)

    return jax.lax.fori_loop(0, 5, group, (x0 + keys[0], x1 + keys[1]))


# Bits, splits and folds of one key must differ: each has its own tweak of the key.
_SPLIT, _FOLD = np.uint32(0x73706C69), np.uint32(0x666F6C64)


def _seed(seed: Array) -> Array:
    return jnp.stack([jnp.uint32(0), seed.astype(jnp.uint32), jnp.uint32(0)])


def _random_bits(key: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    n = math.prod(shape)
    if n <= 2:  # unrolled, so that each number fuses with its use
        words = [_threefry(key[0], key[1], key[2], np.uint32(i)) for i in range(n)]
        a, b = (jnp.stack([word[j] for word in words]) if n else jnp.zeros(0, jnp.uint32) for j in (0, 1))
    else:
        a, b = _threefry(key[0], key[1], key[2], jnp.arange(n, dtype=jnp.uint32))
    if bit_width == 64:
        return (a.astype(jnp.uint64) << np.uint64(32) | b.astype(jnp.uint64)).reshape(shape)
    return a.astype(f"uint{bit_width}").reshape(shape)


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    count = jnp.arange(math.prod(shape), dtype=jnp.uint32)
    a, b = _threefry_rolled(key[0], key[1] ^ _SPLIT, key[2], count)
    return jnp.stack([a, b, jnp.zeros_like(a)], axis=-1).reshape(*shape, 3)


def _fold_in(key: Array, data: Any) -> Array:
    a, b = _threefry_rolled(key[0], key[1] ^ _FOLD, key[2], data.astype(jnp.uint32))
    return jnp.stack([a, b, jnp.uint32(0)])


_IMPLEMENTATION = define_prng_impl(
    key_shape=(3,), seed=_seed, split=_split, random_bits=_random_bits, fold_in=_fold_in, name="lexrl", tag="lex"
)
