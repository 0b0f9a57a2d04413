"""What policies return, measured while training: some environments play without exploration, and a guard compares.

Of `N` environments the first `N / 2` (or fewer, so that all policies get equally many) play the policies of the first i
objectives alone, for i = M, M-1, .. 1 in turns; for i = M that is the full policy. The others are free to explore.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lexrl.guard import Guard
from lexrl.guard import State as GuardState
from lexrl.tolerance import Tolerances
from lexrl.types import Transition


class Measured(NamedTuple):
    """The guard, and the episodes that the measuring environments are in."""

    guard: GuardState
    earned: Float[Array, "n 2 M"]
    """Returns so far, discounted and undiscounted."""
    weight: Float[Array, "n 2 M"]
    """What the next reward is multiplied by."""
    num_updates: Int[Array, ""]
    num_episodes: Int[Array, ""]
    """Of all environments."""


def num_measuring(num_envs: int, num_objectives: int) -> int:
    """How many environments measure; with one objective there is nothing to compare."""
    return num_envs // 2 // num_objectives * num_objectives if num_objectives > 1 else 0


def num_served(env: Any, num_objectives: int) -> Any:
    """How many objectives the policy serves that is played in a measuring environment."""
    return num_objectives - env % num_objectives


def init(guard: Guard, num_envs: int, num_objectives: int) -> Measured:
    """Before the first step."""
    nothing = jnp.zeros((num_envs, 2, num_objectives))
    return Measured(guard.init(num_objectives), nothing, nothing + 1, jnp.int32(0), jnp.int32(0))


def follow(
    guard: Guard,
    measured: Measured,
    rollout: Transition,
    gamma: Float[Array, " M"],
    tolerance: Tolerances,
    *,
    valid: Bool[Array, ""],
) -> Measured:
    """After a rollout of all environments: the guard judges the episodes that ended in it; none before the policies
    have learned anything, when they are not `valid`."""
    n, m = measured.earned.shape[0], gamma.shape[0]
    discounts = jnp.stack([gamma, jnp.ones(m)])
    served, time = num_served(jnp.arange(n), m), measured.num_updates + 1

    def judge(before: GuardState, seen: tuple[Array, Array, Array]) -> tuple[GuardState, None]:
        which, earned, last = seen
        after = guard.update(before, which, earned, tolerance, time)
        return jax.tree.map(lambda new, old: jnp.where(last & valid, new, old), after, before), None

    def step(carry: tuple[GuardState, Array, Array], now: tuple[Array, Array]) -> Any:
        before, earned, weight = carry
        reward, last = now
        earned = earned + weight * reward[:, None]
        seen = (served, earned, last)
        after = jax.lax.cond(last.any(), lambda: jax.lax.scan(judge, before, seen)[0], lambda: before)
        ended = last[:, None, None]
        return (after, jnp.where(ended, 0.0, earned), jnp.where(ended, 1.0, weight * discounts)), None

    begin = (measured.guard, measured.earned, measured.weight)
    (judged, earned, weight), _ = jax.lax.scan(step, begin, (rollout.reward[:, :n], rollout.last[:, :n]))
    return Measured(judged, earned, weight, time, measured.num_episodes + rollout.last.sum())
