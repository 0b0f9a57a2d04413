"""Trajectories of learned policies: what they observe, step by step, in fresh episodes."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.loops.evaluation import begin_episode
from lexrl.loops.population import Layout, Population, over_members
from lexrl.types import Algorithm, Env, State


class Trajectories(NamedTuple):
    """Observations along episodes."""

    observations: np.ndarray
    """`[members, episodes, T + 1, ...]`: after the end of an episode its last observation is repeated."""
    lengths: np.ndarray
    """`[members, episodes]`: steps."""


def record_trajectories(population: Population, agents: State, episodes: int) -> Trajectories:
    """The first episodes of an evaluation with each member's greedy policy."""
    observations, lengths = _record(
        population.share,
        population.algorithms,
        population.env,
        population.seeds,
        agents,
        episodes=episodes,
        layout=population.layout,
    )
    return Trajectories(np.asarray(observations)[: population.size], np.asarray(lengths)[: population.size])


@partial(jax.jit, static_argnames=("episodes", "layout"))
def _record(share, algorithms, env, seeds, agents, *, episodes, layout: Layout):
    def record_member(algorithm: Algorithm, env: Env, seed: Array, agent: State) -> Any:
        def record(episode: Array) -> Any:
            (env_state, first), step_env = begin_episode(algorithm, env, seed, agent, episode, True)

            def body(carry: Any, time: Array) -> Any:
                env_state, obs, running = carry
                step = step_env(env_state, obs, time)
                after = (step.state, step.obs, running & (step.discount > 0))
                kept = jax.tree.map(lambda new, old: jnp.where(running, new, old), after, carry)
                return kept, (kept[1], running)

            times = jnp.arange(env.spec.max_episode_steps)
            _, (later, running) = jax.lax.scan(body, (env_state, first, jnp.bool_(True)), times)
            return jnp.concatenate([first[None], later]), running.sum()

        return jax.lax.map(record, jnp.arange(episodes))

    shared = (False, not layout.per_seed_env, False, False)
    return over_members(record_member, layout.mesh, shared)(share, algorithms, env, seeds, agents)
