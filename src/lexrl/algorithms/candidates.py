"""What LDQN chooses from when training is over: the policy it learned, and the same values with less given away. The
guard sees few episodes, some of them of earlier values; fresh episodes of the final ones have the last word
(`lexrl.loops.selection`), so that a loss that the guard missed is not handed over.

    candidate 0         the policy as it is
    candidates 1, 2     objective M - 1 gives away a quarter of that, and nothing
    candidates 3, 4     objectives M - 2 and M - 1 do
    ...                 until, at last, each objective takes its best, whatever the others say

They share all values, so they cost nothing while training. With one objective there is nothing to choose.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lexrl import guard

FACTORS = (0.25, 0.0)
"""Of what an objective gives away."""


def number(num_objectives: int) -> int:
    """How many candidates there are; 0: there is nothing to choose."""
    return 1 + len(FACTORS) * (num_objectives - 1) if num_objectives > 1 else 0


def num_kept(num_objectives: int, index: Any) -> Any:
    """How many of the first objectives give away what they did."""
    return num_objectives - 1 - (index + len(FACTORS) - 1) // len(FACTORS)


def rescaled(state: guard.State, index: Array) -> guard.State:
    """The guard's state under which a candidate is played."""
    m = state.scale.shape[0]
    changed = jnp.asarray(FACTORS)[(index - 1) % len(FACTORS)]
    factor: Float[Array, " M"] = jnp.where(jnp.arange(m) < num_kept(m, index), 1.0, changed)
    return state._replace(scale=factor * state.scale)


def describe(num_objectives: int, index: int) -> dict[str, Any]:
    """What is said about a candidate that was chosen: the factor of each objective that has another one after it."""
    kept = num_kept(num_objectives, index)
    changed = FACTORS[(index - 1) % len(FACTORS)]
    return {"guard_scale_factors": [1.0] * kept + [changed] * (num_objectives - 1 - kept)}
