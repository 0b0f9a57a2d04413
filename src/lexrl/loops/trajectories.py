"""What learned policies see, step by step, in fresh episodes: the paths they take."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.loops.evaluation import begin
from lexrl.loops.population import Population, over_members
from lexrl.types import Algorithm, Env, State


class Paths(NamedTuple):
    """Observations along episodes."""

    seen: np.ndarray
    """`[members, episodes, T + 1, ...]`: after an episode's end, its last observation again."""
    lengths: np.ndarray
    """`[members, episodes]`: steps."""


def paths(population: Population, agents: State, episodes: int) -> Paths:
    """The first episodes of an evaluation with each member's greedy policy, as they are seen."""
    seen, lengths = _walk(
        population.share,
        population.algorithms,
        population.env,
        population.seeds,
        agents,
        episodes=episodes,
        **population.static,
    )
    return Paths(np.asarray(seen)[: population.size], np.asarray(lengths)[: population.size])


@partial(jax.jit, static_argnames=("episodes", "per_seed_env", "columns", "signs", "mesh"))
def _walk(share, algorithms, env, seeds, agents, *, episodes, per_seed_env, columns, signs, mesh):
    def one(algorithm: Algorithm, env: Env, seed: Array, agent: State) -> Any:
        def episode(number: Array) -> Any:
            (world, obs), play = begin(algorithm, env, seed, agent, number, True)

            def turn(carry: Any, time: Array) -> Any:
                world, obs, on = carry
                answer = play(world, obs, time)
                after = (answer.state, answer.obs, on & (answer.discount > 0))
                kept = jax.tree.map(lambda new, old: jnp.where(on, new, old), after, (world, obs, on))
                return kept, (kept[1], on)

            times = jnp.arange(env.spec.max_episode_steps)
            _, (later, on) = jax.lax.scan(turn, (world, obs, jnp.bool_(True)), times)
            return jnp.concatenate([obs[None], later]), on.sum()

        return jax.lax.map(episode, jnp.arange(episodes))

    return over_members(one, mesh, (False, not per_seed_env, False, False))(share, algorithms, env, seeds, agents)
