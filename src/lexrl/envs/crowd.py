"""Several worlds side by side that are stepped from Python: what the host loop asks of them, whatever they are."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jax import Array

Keys = Callable[[], Array]
"""Gives one key for each world; worlds that draw from generators of their own never ask for a step's."""


class BatchedStep(NamedTuple):
    """What `N` worlds answer to their actions."""

    obs: np.ndarray
    """`[N, ...]`: the true successors, never the first observations of next episodes."""
    signals: np.ndarray
    """`[N, K]`"""
    discount: np.ndarray
    """`[N]`: 0 where the task ended, else 1."""
    cut: np.ndarray
    """`[N]`: the world itself has cut the episode off, though the task has not ended."""


@runtime_checkable
class BatchedEnv(Protocol):
    """`N` worlds in the middle of their episodes. They are alive: every call changes them."""

    def reset(self, which: np.ndarray, keys: Keys) -> np.ndarray:
        """New episodes in some worlds (`which` is a mask); what all show, meaningless where nothing was reset."""
        ...

    def step(self, actions: np.ndarray, keys: Keys) -> BatchedStep: ...
    def close(self) -> None: ...
