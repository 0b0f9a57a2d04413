"""NaN and infinity: where they first came up, and the sentence that says so."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.order import Order
from lexrl.types import AnyArray, Metrics, State


class Fault(NamedTuple):
    """The first NaN or infinity of a member; `step` is -1 while there is none."""

    step: AnyArray
    objective: AnyArray
    """Index of the objective, or -1 where the number belongs to none."""
    in_reward: AnyArray
    """It came from the environment; else the algorithm computed it."""


def no_fault() -> Fault:
    """Nothing has gone wrong yet."""
    return Fault(np.int32(-1), np.int32(-1), np.bool_(False))


def first_fault(fault: Fault, reward: Array, metrics: Metrics, step: Array) -> Fault:
    """The fault so far, else the first one in an iteration: rewards `[T, N, M]` count before metrics."""
    m = reward.shape[-1]
    bad_reward = ~jnp.isfinite(reward).all(axis=(0, 1))
    bad_metric = jnp.zeros(m, bool)
    bad_other = jnp.bool_(False)
    for value in metrics.values():
        if value.shape == (m,):
            bad_metric = bad_metric | ~jnp.isfinite(value)
        else:
            bad_other = bad_other | ~jnp.isfinite(value).all()
    bad = jnp.where(bad_reward.any(), bad_reward, bad_metric)
    found = Fault(step, jnp.where(bad.any(), jnp.argmax(bad), -1).astype(jnp.int32), bad_reward.any())
    is_new = (fault.step < 0) & (bad.any() | bad_other)
    return jax.tree.map(lambda old, new: jnp.where(is_new, new, old), fault, found)


def fault_of_state(fault: Fault, agent: State, step: AnyArray) -> Fault:
    """The fault so far, else a new one if the agent's state, which is about to be kept, is not finite."""
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(agent)]
    finite = [jnp.isfinite(leaf).all() for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)]
    bad = (fault.step < 0) & ~jnp.all(jnp.array(finite, bool))
    found = Fault(step, jnp.int32(-1), jnp.bool_(False))
    return jax.tree.map(lambda old, new: jnp.where(bad, new, old), fault, found)


def sentences(fault: Fault, seeds: Sequence[int] | np.ndarray, order: Order) -> dict[int, str]:
    """A sentence for every member that has stopped."""
    found = {}
    for index in np.flatnonzero(np.asarray(fault.step) >= 0):
        member = int(index)
        objective = int(fault.objective[member])
        name = repr(order.names[objective]) if objective >= 0 else "its loss or state"
        what = "the environment returned" if fault.in_reward[member] else "the algorithm computed"
        found[member] = f"Seed {seeds[member]} stopped at step {fault.step[member]}: {what} NaN or infinity for {name}."
    return found
