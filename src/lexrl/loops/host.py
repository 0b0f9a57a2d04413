"""The host loop: the same algorithms, with environments that are stepped from Python.

It is the compiled loop with the environment outside: same keys, same order of events, same bookkeeping, so that on the
same environment both give the same numbers. It continues from what it yielded, bit for bit, with any environment that
can save its state, or that repeats itself when it is given the same keys and actions. Members run one after the other.

An environment written in JAX is compiled step by step. Others are any object with a `spec` and `batched(n)`, which
gives `n` environments to be stepped together, or with `reset(key)` and `step(state, action, key)`.
"""

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lexrl.envs import batched, checker
from lexrl.envs.per_seed import PerSeed
from lexrl.loops import chunks
from lexrl.loops.chunks import Chunk, EpisodeSums, Fault, Tally, TrainState, check_length, chunk_ends, summarize
from lexrl.loops.host_member import HostMember, unstack, unstack_members
from lexrl.loops.keys import Purpose
from lexrl.loops.population import Population
from lexrl.types import BatchedEnv, EnvSpec, Transition


def start(population: Population, env: Any) -> TrainState:
    """Every member before its first step. Environments outside JAX are not made yet: their observations are all 0."""
    members = unstack_members(population)
    return _stack(population, [_start(member, _env_of(env, i), population) for i, member in enumerate(members)])


def advance(
    population: Population, env: Any, train_states: TrainState, steps: int, *, num_log_points: int = 50
) -> Iterator[Chunk]:
    """Continue from `train_states` until each member has taken `steps` steps in all."""
    check_length(steps, num_log_points)
    members, states = unstack_members(population), unstack(train_states, population.size)
    per_iteration = population.algorithms.num_steps * population.algorithms.num_envs
    done = max(int(state.iteration) for state in states)
    ends = chunk_ends(-(-steps // per_iteration), num_log_points, done)
    with contextlib.ExitStack() as stack:
        live = [_restore(stack, member, _env_of(env, i), states[i]) for i, member in enumerate(members)] if ends else []
        for end in ends:
            parts = [
                _chunk(member, population.spec, *one, end - done) for member, one in zip(members, live, strict=True)
            ]
            live = [(envs, state) for (envs, _), (state, _) in zip(live, parts, strict=True)]
            done, stacked = end, _stack(population, [state for state, _ in parts])
            tally = jax.tree.map(lambda *leaves: np.stack(leaves), *[tally for _, tally in parts])
            fault = jax.tree.map(lambda leaf: np.asarray(leaf)[: population.size], stacked.fault)
            stopped = chunks.sentences(fault, np.asarray(population.seeds), population.order)
            yield Chunk(done * per_iteration, stacked, summarize(tally, population.order), stopped)


def _env_of(env: Any, member: int) -> Any:
    return env.one(member) if isinstance(env, PerSeed) else env


def _stack(population: Population, states: Sequence[TrainState]) -> TrainState:
    """All members in one tree, with the population's padding. Environments stay on the host, in any precision."""
    padded = [*states, *[states[-1]] * (len(population.seeds) - len(states))]
    stacked = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *padded)
    return jax.device_put(stacked._replace(env_state=None))._replace(env_state=stacked.env_state)


def _start(member: HostMember, env: Any, population: Population) -> TrainState:
    spec, n = population.spec, member.algorithm.num_envs
    if isinstance(env, eqx.Module):
        envs = batched.CompiledEnvs(env)
        obs = envs.reset(np.ones(n, bool), member.keys(Purpose.RESET, np.arange(n), 0))
        env_state = envs.save()
    else:
        obs, env_state = batched.zeros(spec.observation_space, n), batched.empty_state(env, spec, n)
    return TrainState(
        agent=member.init(population.agent_spec),
        env_state=env_state,
        obs=obs,
        episode_step=np.zeros(n, np.int32),
        episode_return=np.zeros((n, len(member.columns)), np.float32),
        iteration=np.int32(0),
        fault=chunks.no_fault(),
    )


def _restore(stack: contextlib.ExitStack, member: HostMember, env: Any, state: TrainState) -> tuple[Any, TrainState]:
    """A member's environments where they were, to be closed by the stack; none for a member that has stopped."""
    if int(state.fault.step) >= 0:
        return None, state
    indices, time = np.arange(member.algorithm.num_envs), int(state.iteration) * member.algorithm.num_steps
    envs = stack.enter_context(contextlib.closing(batched.make_batched(env, len(indices))))
    envs, obs = batched.restore(
        envs,
        state.env_state,
        state.obs,
        time,
        partial(member.keys, Purpose.RESET, indices),
        partial(member.keys, Purpose.STEP, indices),
    )
    checker.check_observation(env.spec, obs[0], "reset")
    return envs, state._replace(agent=jax.device_put(state.agent), obs=obs)


def _chunk(
    member: HostMember, spec: EnvSpec, envs: Any, before: TrainState, iterations: int
) -> tuple[TrainState, Tally]:
    """As many iterations as asked for; a member that has met a NaN does nothing, and keeps what it was before."""
    if int(before.fault.step) >= 0:
        return before, _empty_tally(member, spec, before)
    state, tally = before, None
    for _ in range(iterations):
        state, more = _iterate(member, spec, envs, state)
        tally = jax.tree.map(np.add, jax.tree.map(np.zeros_like, more) if tally is None else tally, more)
        if int(state.fault.step) >= 0:
            break
    step = state.iteration * member.algorithm.num_steps * member.algorithm.num_envs
    state = state._replace(env_state=envs.save(), fault=_fault_of_state(state.fault, state.agent, step))
    if int(state.fault.step) >= 0:
        state = before._replace(fault=state.fault, iteration=state.iteration)
    assert tally is not None
    return state, tally


def _fault_of_state(fault: Fault, agent: Any, step: np.int32) -> Fault:
    """As `chunks.fault_of_state`; in NumPy, where it need not be compiled for every shape."""
    floats = [leaf for leaf in jax.tree.leaves(agent) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    if int(fault.step) >= 0 or all(np.isfinite(np.asarray(leaf)).all() for leaf in floats):
        return fault
    return Fault(step, np.int32(-1), np.bool_(False))


def _empty_tally(member: HostMember, spec: EnvSpec, state: TrainState) -> Tally:
    """Of a member that has stopped: zeros, in the shapes of the others."""
    t, n, m = member.algorithm.num_steps, member.algorithm.num_envs, len(member.columns)
    obs, actions = batched.zeros(spec.observation_space, t, n), batched.zeros(spec.action_space, t, n)
    discount = np.zeros((t, n), np.float32)
    rollout = Transition(obs, actions, np.zeros((t, n, m), np.float32), discount, obs, np.zeros((t, n), bool))
    _, metrics, _ = jax.eval_shape(member.update, state._replace(env_state=None), rollout)
    zero = np.float32(0)
    zeros: Any = {name: np.zeros(value.shape, value.dtype) for name, value in metrics.items()}
    return Tally(EpisodeSums(zero, np.zeros(m, np.float32), zero), zero, zeros)


def _iterate(member: HostMember, spec: EnvSpec, envs: BatchedEnv, state: TrainState) -> tuple[TrainState, Tally]:
    """Collect a rollout, learn from it, look for NaN and infinity."""
    state, rollout, episodes = _collect(member, spec, envs, state)
    agent, metrics, fault = member.update(state, rollout)
    arrays = {name: np.asarray(value) for name, value in metrics.items()}  # cheaper than jax.device_get
    tally = Tally(episodes, np.float32(1.0), arrays)
    return state._replace(agent=agent, iteration=state.iteration + np.int32(1), fault=fault), tally


def _collect(
    member: HostMember, spec: EnvSpec, envs: BatchedEnv, state: TrainState
) -> tuple[TrainState, Transition, EpisodeSums]:
    """`num_steps` steps of all `N` environments: a rollout `[T, N]`, and sums over the episodes that ended in it."""
    begin = int(state.iteration) * member.algorithm.num_steps
    transitions, sums = [], []
    for time in range(begin, begin + member.algorithm.num_steps):
        state, transition, more = _step_envs(member, spec, envs, state, time)
        transitions.append(transition)
        sums.append(more)
    rollout = Transition(*(np.stack(parts) for parts in zip(*transitions, strict=True)))
    return state, rollout, EpisodeSums(*(sum(parts) for parts in zip(*sums, strict=True)))


def _step_envs(
    member: HostMember, spec: EnvSpec, envs: BatchedEnv, state: TrainState, time: int
) -> tuple[TrainState, Transition, EpisodeSums]:
    """One step of all `N` environments: transitions `[N]`, and sums over the episodes that ended."""
    indices = np.arange(member.algorithm.num_envs)
    actions = member.act(state.agent, state.obs, time)
    step = envs.step(actions, member.keys(Purpose.STEP, indices, time))
    checker.check_batched_step(spec, step)
    reward = member.rewards(step.signals)
    episode_step, episode_return = state.episode_step + np.int32(1), state.episode_return + reward
    last = (step.discount == 0) | (episode_step >= spec.max_episode_steps) | step.truncated
    transition = Transition(state.obs, actions, reward, step.discount, step.obs, last)
    ended = last.astype(np.float32)
    lengths = (episode_step * ended).sum(dtype=np.float32)
    sums = EpisodeSums(ended.sum(), (episode_return * ended[:, None]).sum(axis=0), lengths)
    obs = step.obs
    if last.any():
        # The reset of time t + 1: time 0 was the very first one.
        obs = batched.reset_where(envs, last, obs, member.keys(Purpose.RESET, indices, time + 1))
        episode_step = np.where(last, np.int32(0), episode_step)
        episode_return = np.where(last[:, None], np.float32(0), episode_return)
    return state._replace(obs=obs, episode_step=episode_step, episode_return=episode_return), transition, sums
