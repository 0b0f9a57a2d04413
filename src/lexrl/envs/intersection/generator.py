"""NumPy's random generator, compiled: the same seed gives the same numbers as `numpy.random.default_rng(seed)`.

A generator is six numbers of 64 bits: the state and the increment of PCG64, high and low half each; whether half of a
number is left over from a draw of 32 bits, and that half. Seeds have 32 bits.
"""

import math
from typing import no_type_check

import numpy as np

from lexrl.envs.intersection.compiled import compiled

MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
"""Of PCG64, which steps by `state = state * MULTIPLIER + increment` modulo 2^128."""
TAIL = 3.6541528853610087963519472518
"""Where the ziggurat's lowest layer, the tail of the normal distribution, begins."""


def _layers() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ziggurat of NumPy's normal distribution: widths of its 256 layers, where they are certain, and densities.

    The widths are read off NumPy: a draw of 64 bits whose lowest 8 name a layer and whose others say 1 returns its
    width over 2^52. The state before such a draw is found by stepping backwards from the one that yields it.
    """
    generator = np.random.Generator(np.random.PCG64(0))
    back = pow(MULTIPLIER, -1, 2**128)
    widths = np.zeros(256)
    for layer in range(256):
        state = {"state": (layer + 512 - 1) * back % 2**128, "inc": 1}
        generator.bit_generator.state = {"bit_generator": "PCG64", "state": state, "has_uint32": 0, "uinteger": 0}
        widths[layer] = generator.standard_normal()
    edges = widths * 2.0**52
    inner = np.concatenate([[TAIL], [0.0], edges[1:-1]])
    densities = np.concatenate([[1.0], np.exp(-0.5 * edges[1:] ** 2)])
    return widths, (inner / edges * 2.0**52).astype(np.uint64), densities


WIDTHS, CERTAIN, DENSITIES = _layers()
HIGH, LOW = np.uint64(MULTIPLIER >> 64), np.uint64(MULTIPLIER % 2**64)
HALF = np.uint64(0xFFFFFFFF)
U = np.uint64


@compiled
@no_type_check
def multiply(a, b):
    """The product of two numbers of 64 bits: high and low half."""
    a_high, a_low, b_high, b_low = a >> U(32), a & HALF, b >> U(32), b & HALF
    low = a_low * b_low
    middle = a_high * b_low + (low >> U(32))
    other = a_low * b_high + (middle & HALF)
    return a_high * b_high + (middle >> U(32)) + (other >> U(32)), a * b


@compiled
@no_type_check
def advance(generator):
    """One step of PCG64."""
    high, low = multiply(generator[1], LOW)
    high = high + generator[0] * LOW + generator[1] * HIGH
    total = low + generator[3]
    generator[0] = high + generator[2] + (U(1) if total < low else U(0))
    generator[1] = total


@compiled
@no_type_check
def next_64(generator):
    """64 random bits."""
    advance(generator)
    mixed, turn = generator[0] ^ generator[1], generator[0] >> U(58)
    return (mixed >> turn) | (mixed << ((U(64) - turn) & U(63)))


@compiled
@no_type_check
def next_32(generator):
    """32 random bits; the other half of 64 is kept for the next time."""
    if generator[4] == U(1):
        generator[4] = U(0)
        return generator[5]
    bits = next_64(generator)
    generator[4], generator[5] = U(1), bits >> U(32)
    return bits & HALF


@compiled
@no_type_check
def uniform(generator):
    """A number in [0, 1)."""
    return (next_64(generator) >> U(11)) * (1.0 / 9007199254740992.0)


@compiled
@no_type_check
def integer(generator, largest):
    """An integer from 0 to `largest`, by Lemire's method."""
    count = U(largest + 1)
    product = next_32(generator) * count
    threshold = (HALF - U(largest)) % count
    while (product & HALF) < threshold:
        product = next_32(generator) * count
    return np.int64(product >> U(32))


@compiled
@no_type_check
def two_of_four(generator):
    """Two different integers from 0 to 3 in random order, as `choice(4, 2, replace=False)` draws them."""
    first, second = integer(generator, 2), integer(generator, 3)
    second = 3 if second == first else second
    return (second, first) if integer(generator, 1) == 0 else (first, second)


@compiled
@no_type_check
def normal(generator):
    """A standard normal number, by the ziggurat method."""
    while True:
        bits = next_64(generator)
        layer, size = np.int64(bits & U(255)), (bits >> U(9)) & U(0xFFFFFFFFFFFFF)
        x = size * WIDTHS[layer]
        x = -x if (bits >> U(8)) & U(1) else x
        if size < CERTAIN[layer]:
            return x
        if layer == 0:
            beyond = tail(generator)
            return -beyond if (size >> U(8)) & U(1) else beyond
        step = (DENSITIES[layer - 1] - DENSITIES[layer]) * uniform(generator)
        if step + DENSITIES[layer] < math.exp(-0.5 * x * x):
            return x


@compiled
@no_type_check
def tail(generator):
    """A normal number beyond the tail's beginning."""
    while True:
        x = -(1.0 / TAIL) * math.log1p(-uniform(generator))
        y = -math.log1p(-uniform(generator))
        if y + y > x * x:
            return TAIL + x


@compiled
@no_type_check
def seed_generator(generator, seed):
    """Seed a generator with 32 bits, as NumPy's `SeedSequence` does."""
    pool = np.zeros(4, np.uint64)
    factor = U(0x43B0D7E5)
    for i in range(4):
        pool[i], factor = hashed(U(seed) if i == 0 else U(0), factor, U(0x931E8875))
    for source in range(4):
        for target in range(4):
            if source != target:
                value, factor = hashed(pool[source], factor, U(0x931E8875))
                mixed = (U(0xCA01F9DD) * pool[target] - U(0x4973F715) * value) & HALF
                pool[target] = mixed ^ (mixed >> U(16))
    words = np.zeros(8, np.uint64)
    factor = U(0x8B51F9DD)
    for i in range(8):
        words[i], factor = hashed(pool[i % 4], factor, U(0x58F38DED))
    state_high, state_low = words[0] | (words[1] << U(32)), words[2] | (words[3] << U(32))
    increment_high, increment_low = words[4] | (words[5] << U(32)), words[6] | (words[7] << U(32))
    generator[2] = (increment_high << U(1)) | (increment_low >> U(63))
    generator[3] = (increment_low << U(1)) | U(1)
    generator[0], generator[1], generator[4], generator[5] = U(0), U(0), U(0), U(0)
    advance(generator)
    total = generator[1] + state_low
    generator[0] = generator[0] + state_high + (U(1) if total < state_low else U(0))
    generator[1] = total
    advance(generator)


@compiled
@no_type_check
def hashed(value, factor, multiplier):
    """One round of `SeedSequence`'s hash, in 32 bits; and the next factor."""
    value = value ^ factor
    factor = (factor * multiplier) & HALF
    value = (value * factor) & HALF
    return value ^ (value >> U(16)), factor
