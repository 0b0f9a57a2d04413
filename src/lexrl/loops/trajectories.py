"""Trajectories of learned policies: what they observe, step by step, in fresh episodes."""

import contextlib
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.envs import batched
from lexrl.loops.evaluation import begin_episode, draw_component
from lexrl.loops.host_member import HostMember, keys_at, unstack, unstack_members
from lexrl.loops.keys import Purpose
from lexrl.loops.population import Layout, Population, over_members
from lexrl.types import Algorithm, BatchedEnv, Env, EnvSpec, State


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


def record_trajectories_on_host(population: Population, env: Any, agents: State, episodes: int) -> Trajectories:
    """`record_trajectories` for an environment that is stepped from Python; with the same keys."""
    each = [jax.device_put(agent) for agent in unstack(agents, population.size)]
    with contextlib.closing(batched.make_batched(env, episodes)) as envs:
        recorded = [
            _record_member(member, population.spec, envs, agent, episodes)
            for member, agent in zip(unstack_members(population), each, strict=True)
        ]
    observations, lengths = zip(*recorded, strict=True)
    return Trajectories(np.stack(observations), np.stack(lengths))


def _record_member(
    member: HostMember, spec: EnvSpec, envs: BatchedEnv, agent: State, episodes: int
) -> tuple[np.ndarray, np.ndarray]:
    """All episodes of a member side by side; those that have ended go on unseen."""
    numbers, lengths = np.arange(episodes), np.zeros(episodes, int)
    obs = envs.reset(np.ones(episodes, bool), member.keys(Purpose.EVALUATE_RESET, numbers, 0))
    seen, running = [obs], np.ones(episodes, bool)
    for time in range(spec.max_episode_steps):
        actions = _act(member.algorithm, member.seed, agent, obs, numbers, np.uint32(time))
        step = envs.step(np.asarray(actions), member.keys(Purpose.EVALUATE_STEP, numbers, time))
        obs = np.where(running.reshape(-1, *[1] * (obs.ndim - 1)), step.obs, obs)
        seen.append(obs)
        lengths += running
        running = running & (step.discount > 0) & ~step.truncated
    return np.stack(seen, axis=1), lengths


@jax.jit
def _act(algorithm: Any, seed: Array, agent: State, obs: Array, episodes: Array, time: Array) -> Array:
    def act(obs: Array, key: Array, episode: Array) -> Array:
        return algorithm.act(draw_component(algorithm, agent, seed, episode), obs, key, greedy=True)

    return jax.vmap(act)(obs, keys_at(seed, Purpose.EVALUATE_ACT, episodes, time), episodes)


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
