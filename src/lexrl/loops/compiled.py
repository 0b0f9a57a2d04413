"""The compiled loop: all seeds, one chunk at a time.

    collect `num_steps` steps with `act`  ->  `update`  ->  again, for as many iterations as the chunk has

Training is cut into chunks. The compiled function does one chunk for every member of the population and returns; what
the host does between chunks (show, write, stop) never reaches inside. The number of iterations is data, so chunks of
any length run the same program, and give the same numbers however a run is cut.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.backend import compute_once, inline_jit, opaque_loop
from lexrl.envs.batched import choose, over_envs
from lexrl.loops import chunks, keys
from lexrl.loops.chunks import Chunk, EpisodeSums, Tally, TrainState, check_length, chunk_ends, summarize
from lexrl.loops.keys import Purpose
from lexrl.loops.population import Layout, Population, act_in_training, over_members, rewards
from lexrl.types import Algorithm, Env, Metrics, Transition


def start(population: Population) -> TrainState:
    """Every member before its first step."""
    return _start(
        population.share,
        population.algorithms,
        population.env,
        population.seeds,
        spec=population.agent_spec,
        layout=population.layout,
    )


def advance(
    population: Population, train_states: TrainState, steps: int, *, num_log_points: int = 50
) -> Iterator[Chunk]:
    """Continue from `train_states` until each member has taken `steps` steps in all."""
    check_length(steps, num_log_points)
    per_iteration = population.algorithms.num_steps * population.algorithms.num_envs
    done = int(np.asarray(train_states.iteration)[: population.size].max())
    for end in chunk_ends(-(-steps // per_iteration), num_log_points, done):
        train_states, tally = _chunk(
            population.share,
            population.algorithms,
            population.env,
            population.seeds,
            train_states,
            jnp.int32(end - done),
            layout=population.layout,
        )
        done = end
        fault, tally = jax.tree.map(lambda leaf: np.asarray(leaf)[: population.size], (train_states.fault, tally))
        stopped = chunks.sentences(fault, np.asarray(population.seeds), population.order)
        yield Chunk(done * per_iteration, train_states, summarize(tally, population.order), stopped)


@partial(jax.jit, static_argnames=("spec", "layout"))
def _start(share, algorithms, env, seeds, *, spec, layout: Layout):
    def start_member(algorithm: Algorithm, env: Env, seed: Array) -> TrainState:
        n, m = algorithm.num_envs, len(layout.columns)
        env_state, obs = over_envs(env.reset, n)(keys.at(keys.streams(seed, Purpose.RESET, n), 0))
        return TrainState(
            agent=algorithm.init(spec, keys.stream(seed, Purpose.INIT)),
            env_state=env_state,
            obs=obs,
            episode_step=jnp.zeros(n, jnp.int32),
            episode_return=jnp.zeros((n, m)),
            iteration=jnp.int32(0),
            fault=jax.tree.map(jnp.asarray, chunks.no_fault()),
        )

    return over_members(start_member, layout.mesh, (False, not layout.per_seed_env, False))(
        share, algorithms, env, seeds
    )


@partial(jax.jit, static_argnames="layout")
def _chunk(share, algorithms, env, seeds, train_states, iterations, *, layout: Layout):
    def train_member(
        algorithm: Algorithm, env: Env, seed: Array, before: TrainState, iterations: Array
    ) -> tuple[TrainState, Tally]:
        member = Member.make(algorithm, env, seed, layout)
        iterate_member = inline_jit(lambda state: iterate(member, state))
        shapes = jax.eval_shape(iterate_member, before)[1]
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

        def body(_: Array, carry: tuple[TrainState, Tally]) -> tuple[TrainState, Tally]:
            state, more = iterate_member(carry[0])
            return state, jax.tree.map(jnp.add, carry[1], more)

        # A member that has met a NaN does nothing any more, and keeps what it was before the chunk that broke it.
        num_rounds = jnp.where(before.fault.step >= 0, 0, iterations)
        after, tally = opaque_loop(num_rounds, body, (before, zeros))
        fault = chunks.fault_of_state(after.fault, after.agent, after.iteration * member.steps_per_iteration)
        kept = jax.tree.map(lambda old, new: jnp.where(fault.step >= 0, old, new), before, after)
        return kept._replace(fault=fault, iteration=after.iteration), tally

    shared = (False, not layout.per_seed_env, False, False, True)
    return over_members(train_member, layout.mesh, shared)(share, algorithms, env, seeds, train_states, iterations)


class Member(NamedTuple):
    """One member of the population: its settings, its environment, and its streams of keys."""

    algorithm: Algorithm
    env: Env
    layout: Layout
    act_keys: Array
    """`[N]`, as the next two."""
    step_keys: Array
    reset_keys: Array
    update_key: Array

    @classmethod
    def make(cls, algorithm: Algorithm, env: Env, seed: Array, layout: Layout) -> "Member":
        update_key = keys.stream(seed, Purpose.UPDATE)
        act, step, reset = (
            keys.streams(seed, purpose, algorithm.num_envs) for purpose in (Purpose.ACT, Purpose.STEP, Purpose.RESET)
        )
        return cls(algorithm, env, layout, act, step, reset, update_key)

    @property
    def steps_per_iteration(self) -> int:
        """Of all its environments."""
        return self.algorithm.num_steps * self.algorithm.num_envs


def iterate(member: Member, state: TrainState) -> tuple[TrainState, Tally]:
    """Collect a rollout, learn from it, look for NaN and infinity."""
    state, rollout, episodes = collect(member, state)
    state, metrics = learn(member, state, rollout)
    state = check_finite(member, state, rollout, metrics)
    return state._replace(iteration=state.iteration + 1), Tally(episodes, jnp.float32(1.0), metrics)


def collect(member: Member, state: TrainState) -> tuple[TrainState, Transition, EpisodeSums]:
    """`num_steps` steps of all `N` environments: a rollout `[T, N]`, and sums over the episodes that ended in it."""
    begin, length = state.iteration * member.algorithm.num_steps, member.algorithm.num_steps
    if length == 1:
        state, seen = step_envs(member, state, begin)
        rollout, sums = jax.tree.map(lambda leaf: leaf[None], seen)
    else:
        state, (rollout, sums) = jax.lax.scan(partial(step_envs, member), state, begin + jnp.arange(length))
    return state, rollout, jax.tree.map(lambda leaf: leaf.sum(axis=0), sums)


def learn(member: Member, state: TrainState, rollout: Transition) -> tuple[TrainState, Metrics]:
    """One update of the agent."""
    agent, metrics = member.algorithm.update(state.agent, rollout, keys.at(member.update_key, state.iteration))
    return state._replace(agent=agent), {name: jnp.asarray(value, jnp.float32) for name, value in metrics.items()}


def check_finite(member: Member, state: TrainState, rollout: Transition, metrics: Metrics) -> TrainState:
    """Note the first reward or metric that is NaN or infinite."""
    step = (state.iteration + 1) * member.steps_per_iteration
    return state._replace(fault=chunks.first_fault(state.fault, rollout.reward, metrics, step))


def step_envs(member: Member, state: TrainState, time: Array) -> tuple[TrainState, tuple[Transition, EpisodeSums]]:
    """One step of all `N` environments: transitions `[N]`, and sums over the episodes that ended."""
    algorithm, env, layout = member.algorithm, member.env, member.layout
    n = algorithm.num_envs
    chosen = act_in_training(algorithm, state.agent, state.obs, keys.at(member.act_keys, time))
    action = compute_once(chosen, time >= 0)
    step = compute_once(over_envs(env.step, n)(state.env_state, action, keys.at(member.step_keys, time)), time >= 0)
    reward = rewards(step.signals, layout.columns, layout.signs)
    episode_step, episode_return = state.episode_step + 1, state.episode_return + reward
    last = (step.discount == 0) | (episode_step >= env.spec.max_episode_steps)
    transition = Transition(state.obs, action, reward, step.discount, step.obs, last)
    ended = last.astype(jnp.float32)
    sums = EpisodeSums(ended.sum(), (episode_return * ended[:, None]).sum(axis=0), (episode_step * ended).sum())
    # The reset of time t + 1: time 0 was the very first one.
    env_state, obs = jax.lax.cond(
        last.any(),
        lambda: choose(last, over_envs(env.reset, n)(keys.at(member.reset_keys, time + 1)), (step.state, step.obs)),
        lambda: (step.state, step.obs),
    )
    state = state._replace(
        env_state=env_state,
        obs=obs,
        episode_step=jnp.where(last, 0, episode_step),
        episode_return=jnp.where(last[:, None], 0.0, episode_return),
    )
    return state, (transition, sums)
