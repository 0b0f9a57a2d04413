"""What Python calls: resets and steps of several intersections at once, spread over the cores."""

import itertools
import os
import pathlib
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import no_type_check

import numpy as np

from lexrl.envs.intersection import episode, traffic
from lexrl.envs.intersection import generator as random
from lexrl.envs.intersection.compiled import entry_point
from lexrl.envs.intersection.state import NUM_FEATURES, NUM_ROWS, State

Settings = tuple[np.ndarray, float, bool]
"""Places of the vehicles in the beginning, the probability that one joins, and whether drivers look beyond their lane:
see `Intersection`."""
MODULES = (
    "batch", "collisions", "compiled", "drivers", "episode", "generator", "lanes", "motion", "right_of_way", "roads",
    "state", "traffic",
)  # fmt: skip
"""What is compiled."""
Kernel = Callable[..., None]
"""Works on the intersections from `first` to `last`, without the interpreter's lock."""


def _build(fingerprint: int) -> Kernel:
    """The kernel. What was compiled is kept on disk and found again by the value of `fingerprint`, among others."""

    @entry_point
    @no_type_check
    def advance(
        first, last, resets, seeds, actions, vehicles, marks, counters, generators, settings, obs, signals, discount
    ):
        for i in range(first, last if fingerprint >= 0 else first):
            if resets[i]:
                random.seed_generator(generators[i], seeds[i])
                traffic.begin(vehicles[i], marks[i], counters[i], generators[i], settings)
                episode.observe(vehicles[i], marks[i], counters[i], obs[i])
            elif actions[i] >= 0:
                ended = episode.step(
                    vehicles[i], marks[i], counters[i], generators[i], actions[i], settings, signals[i], obs[i]
                )
                discount[i] = 0.0 if ended else 1.0

    return advance


@cache
def kernel() -> Kernel:
    """The kernel, compiled anew after a change of any module here: numba itself looks only at the caller's."""
    here = pathlib.Path(__file__).parent
    return _build(zlib.crc32(b"".join((here / f"{name}.py").read_bytes() for name in MODULES)))


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="intersection")


def advance(
    state: State, resets: np.ndarray, seeds: np.ndarray, actions: np.ndarray, settings: Settings
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Begin new episodes where `resets` says so, each from a seed of 32 bits; elsewhere take the action, if it is >= 0.

    Returns observations, signals and discounts, meaningless where nothing was done. A part of the intersections is
    computed on each core.
    """
    n = len(resets)
    obs = np.zeros((n, NUM_ROWS, NUM_FEATURES), np.float32)
    signals, discount = np.zeros((n, 2), np.float32), np.ones(n, np.float32)
    given = (np.ascontiguousarray(resets, bool), *(np.ascontiguousarray(each, np.int64) for each in (seeds, actions)))
    arguments = (*given, *state, settings, obs, signals, discount)
    workers = min(n, os.cpu_count() or 1)
    ends = np.linspace(0, n, workers + 1).astype(int).tolist()
    parts = list(itertools.pairwise(ends))
    waiting = [_pool(workers).submit(kernel(), *part, *arguments) for part in parts[1:]]
    kernel()(*parts[0], *arguments)
    for one in waiting:
        one.result()
    return obs, signals, discount
