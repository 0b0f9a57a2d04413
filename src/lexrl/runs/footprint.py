"""How much memory a run takes, from shapes alone: nothing is allocated to find out."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import numpy as np

from lexrl import memory, replay
from lexrl.backend import num_cores
from lexrl.envs.batched import over_envs
from lexrl.envs.per_seed import PerSeed
from lexrl.loops import keys
from lexrl.loops.keys import Purpose
from lexrl.runs.run import Run, on_host
from lexrl.types import Discrete

COPIES = 8
"""Of what a seed carries along, at the worst moment: before a chunk, in it and after it, and while a checkpoint is
written. Measured: 7.6 with replay buffers of 200 MB."""
LOWER = {
    "replay buffers": "buffer_size or the number of seeds",
    "parameters": "hidden_sizes or the number of seeds",
    "environments": "num_envs or the size of the environment",
    "rollouts": "num_steps or num_envs",
    "learning curves": "num_log_points or the number of seeds",
}


def require(run: Run) -> None:
    """Raise an error if a run does not fit into memory."""
    memory.require(estimate(run), LOWER)


def estimate(run: Run) -> dict[str, int]:
    """Bytes by what they are for."""
    seeds = len(run.seeds)
    algorithm = run.algorithm[0] if isinstance(run.algorithm, Sequence) else run.algorithm
    env: Any = run.env.one(0) if isinstance(run.env, PerSeed) else run.env
    spec = run.order.spec(env.spec)
    agent = jax.eval_shape(partial(algorithm.init, spec), keys.stream(0, Purpose.INIT))
    policy = num_bytes(jax.eval_shape(replay.emptied, agent))
    num_envs, num_steps, objectives = algorithm.num_envs, algorithm.num_steps, len(run.order.objectives)
    envs = 0
    if not on_host(env):
        streams = jax.eval_shape(lambda: keys.streams(0, Purpose.RESET, num_envs))
        envs = seeds * COPIES * num_bytes(jax.eval_shape(over_envs(env.reset, num_envs), streams))
        envs += num_bytes(jax.tree.map(np.asarray, eqx.filter(run.env, eqx.is_array)))
    transition = 2 * _cell(env.spec.observation_space) + _cell(env.spec.action_space) + 4 * objectives + 5
    return {
        "replay buffers": COPIES * seeds * (num_bytes(agent) - policy),
        "parameters": COPIES * seeds * policy,
        "environments": envs,
        # As they are collected, and once more with what is computed from them.
        "rollouts": 2 * min(seeds, num_cores()) * num_steps * num_envs * transition,
        "learning curves": 8 * run.num_log_points * seeds * 10 * objectives,
    }


def num_bytes(tree: Any) -> int:
    """Of all arrays, or shapes of arrays, in a tree."""
    return sum(int(np.prod(leaf.shape, dtype=object)) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def _cell(space: Any) -> int:
    """Bytes of one observation or action."""
    return 4 if isinstance(space, Discrete) else 4 * int(np.prod(space.shape, dtype=object))
