"""The host loop: the same algorithms, with worlds that are stepped from Python.

It is the compiled loop with the world outside: same keys, same order of events, same bookkeeping, so that on the same
world both give the same numbers; and it goes on from what it yielded, bit for bit, with any world that does the same
again when it is given the same keys and actions. Members run one after the other.

A world written in JAX is compiled step by step. Others are any object with a `spec` and `batched(n)`, which gives `n`
worlds side by side (`lexrl.types.BatchedEnv`), or with `reset(key)` and `step(state, action, key)`.
"""

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.envs import batched, checker
from lexrl.envs.per_seed import PerSeed
from lexrl.loops import keys
from lexrl.loops.compiled import (
    Chunk,
    Fault,
    Tally,
    TrainState,
    check_length,
    complaints,
    fault_of_state,
    first_fault,
    order_spec,
    over_envs,
    stops,
    summary,
)
from lexrl.loops.keys import Purpose
from lexrl.loops.population import Population
from lexrl.types import BatchedEnv, EnvSpec, Keys, Spec, Transition


class Member(NamedTuple):
    """One learner: its settings, its seed, and how the order reads its world's signals.

    It is no `eqx.Module`: looking up a method of one costs more than a step of a small world.
    """

    algorithm: Any
    seed: Array
    columns: np.ndarray
    signs: np.ndarray
    acting: Array
    """The keys for acting, a stream for each world, and the one for updating: made once, not at every step."""
    updating: Array

    def init(self, spec: Spec) -> Any:
        return _init(self.algorithm, self.seed, spec)

    def act(self, agent: Any, obs: Any, time: int) -> np.ndarray:
        """An action for every world."""
        return np.asarray(_act(self.algorithm, self.acting, agent, obs, np.uint32(time)))

    def update(self, train_state: TrainState, rollout: Transition) -> tuple[Any, Any, Fault]:
        return _update(
            self.algorithm, self.updating, train_state.agent, train_state.iteration, train_state.fault, rollout
        )

    def rewards(self, signals: np.ndarray) -> np.ndarray:
        """A world's signals `[N, K]` as rewards `[N, M]`."""
        return (signals[:, self.columns] * self.signs).astype(np.float32)

    def keys(self, purpose: Purpose, worlds: Any, times: Any) -> Keys:
        """A key for each world, by its address; computed when it is asked for."""
        return lambda: _keys(self.seed, purpose, np.asarray(worlds, np.uint32), np.asarray(times, np.uint32))


def start(population: Population, env: Any) -> TrainState:
    """Every member before its first step. Worlds that are not in JAX are not made yet: what they show is all 0."""
    return _together(
        population, [_first(one, _world(env, i), population) for i, one in enumerate(everyone(population))]
    )


def advance(
    population: Population, env: Any, train_states: TrainState, steps: int, *, num_log_points: int = 50
) -> Iterator[Chunk]:
    """Go on from `seats` until each member has taken `steps` steps in all."""
    check_length(steps, num_log_points)
    members, each = everyone(population), apart(train_states, population.size)
    per_iteration = population.algorithms.num_steps * population.algorithms.num_envs
    done = max(int(train_state.iteration) for train_state in each)
    ends = stops(-(-steps // per_iteration), num_log_points, done)
    with contextlib.ExitStack() as stack:
        lives = [_revived(stack, one, _world(env, i), each[i]) for i, one in enumerate(members)] if ends else []
        for stop in ends:
            parts = [_chunk(one, population.spec, *life, stop - done) for one, life in zip(members, lives, strict=True)]
            lives = [(crowd, train_state) for (crowd, _), (train_state, _) in zip(lives, parts, strict=True)]
            done, together = stop, _together(population, [train_state for train_state, _ in parts])
            tally = jax.tree.map(lambda *leaves: np.stack(leaves), *[tally for _, tally in parts])
            fault = jax.tree.map(lambda leaf: np.asarray(leaf)[: population.size], together.fault)
            faults = complaints(fault, np.asarray(population.seeds), population.order)
            yield Chunk(done * per_iteration, together, summary(tally, population.order), faults)


def everyone(population: Population) -> list[Member]:
    """Each member on its own."""
    columns = population.order.columns(population.spec.signals)
    each = apart((population.algorithms, population.seeds), population.size)
    placed = [jax.device_put(one) for one in each]
    return [
        Member(algorithm, seed, columns, population.order.signs, *_streams(seed, algorithm.num_envs))
        for algorithm, seed in placed
    ]


def _world(env: Any, place: int) -> Any:
    return env.one(place) if isinstance(env, PerSeed) else env


def apart(stacked: Any, count: int) -> list[Any]:
    """Trees of every member, as NumPy arrays."""
    arrays = jax.tree.map(np.asarray, stacked)
    return [jax.tree.map(lambda leaf, place=place: leaf[place], arrays) for place in range(count)]


def _together(population: Population, each: Sequence[TrainState]) -> TrainState:
    """Members stacked, with the population's padding."""
    padded = [*each, *[each[-1]] * (len(population.seeds) - len(each))]
    return jax.device_put(jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *padded))


def _first(one: Member, env: Any, population: Population) -> TrainState:
    spec, n = population.spec, one.algorithm.num_envs
    if isinstance(env, eqx.Module):
        crowd = batched.CompiledEnvs(env)
        obs = crowd.reset(np.ones(n, bool), one.keys(Purpose.RESET, np.arange(n), 0))
        world = crowd.state
    else:
        obs, world = batched.zeros(spec.observation_space, n), batched.empty_trail(spec, n)
    none = np.int32(-1)
    return TrainState(
        agent=one.init(order_spec(population)),
        env_state=world,
        obs=obs,
        clock=np.zeros(n, np.int32),
        earned=np.zeros((n, len(one.columns)), np.float32),
        iteration=np.int32(0),
        fault=Fault(none, none, np.bool_(False)),
    )


def _revived(stack: contextlib.ExitStack, one: Member, env: Any, train_state: TrainState) -> tuple[Any, TrainState]:
    """A member's worlds where they were, to be closed by the stack; none for a member that has stopped."""
    if int(train_state.fault.step) >= 0:
        return None, train_state
    lanes, time = np.arange(one.algorithm.num_envs), int(train_state.iteration) * one.algorithm.num_steps
    crowd = stack.enter_context(contextlib.closing(batched.make_batched(env, len(lanes))))
    crowd, obs = batched.restore(
        crowd,
        train_state.env_state,
        train_state.obs,
        time,
        partial(one.keys, Purpose.RESET, lanes),
        partial(one.keys, Purpose.STEP, lanes),
    )
    checker.check_observation(env.spec, obs[0], "reset")
    return crowd, train_state._replace(agent=jax.device_put(train_state.agent), obs=obs)


def _chunk(
    one: Member, spec: EnvSpec, crowd: Any, train_state: TrainState, iterations: int
) -> tuple[TrainState, Tally]:
    """As many iterations as asked for; a member that has met a NaN does nothing, and keeps what it was before."""
    if int(train_state.fault.step) >= 0:
        return train_state, _silence(one, spec, train_state)
    before, tally = train_state, None
    for _ in range(iterations):
        train_state, more = _iterate(one, spec, crowd, train_state)
        tally = jax.tree.map(np.add, jax.tree.map(np.zeros_like, more) if tally is None else tally, more)
        if int(train_state.fault.step) >= 0:
            break
    train_state = train_state._replace(env_state=crowd.state, fault=fault_of_state(train_state, one.algorithm))
    if int(train_state.fault.step) >= 0:
        train_state = before._replace(fault=train_state.fault, iteration=train_state.iteration)
    assert tally is not None
    return train_state, tally


def _silence(one: Member, spec: EnvSpec, train_state: TrainState) -> Tally:
    """What a member that has stopped has to tell: nothing, in the shapes of the others."""
    t, n, m = one.algorithm.num_steps, one.algorithm.num_envs, len(one.columns)
    seen, chosen, numbers = (
        batched.zeros(spec.observation_space, t, n),
        batched.zeros(spec.action_space, t, n),
        np.zeros((t, n), np.float32),
    )
    rollout = Transition(seen, chosen, np.zeros((t, n, m), np.float32), numbers, seen, np.zeros((t, n), bool))
    _, metrics, _ = jax.eval_shape(one.update, train_state._replace(env_state=None), rollout)
    zero = np.float32(0)
    zeros: Any = {name: np.zeros(value.shape, value.dtype) for name, value in metrics.items()}
    return Tally(zero, np.zeros(m, np.float32), zero, zero, zeros)


def _iterate(one: Member, spec: EnvSpec, crowd: BatchedEnv, train_state: TrainState) -> tuple[TrainState, Tally]:
    """One turn of the loop: collect a rollout, learn from it."""
    begin = int(train_state.iteration) * one.algorithm.num_steps
    seen, counts = [], []
    for time in range(begin, begin + one.algorithm.num_steps):
        train_state, transition, count = _step(one, spec, crowd, train_state, time)
        seen.append(transition)
        counts.append(count)
    rollout = Transition(*(np.stack(parts) for parts in zip(*seen, strict=True)))
    agent, metrics, fault = one.update(train_state, rollout)
    episodes, returns, lengths = (sum(parts) for parts in zip(*counts, strict=True))
    told = {name: np.asarray(value) for name, value in metrics.items()}  # cheaper than jax.device_get
    tally = Tally(episodes, returns, lengths, np.float32(1.0), told)
    return train_state._replace(agent=agent, iteration=train_state.iteration + np.int32(1), fault=fault), tally


def _step(
    one: Member, spec: EnvSpec, crowd: BatchedEnv, train_state: TrainState, time: int
) -> tuple[TrainState, Transition, Any]:
    """One step of every world of a member, with the bookkeeping of its episodes."""
    lanes = np.arange(one.algorithm.num_envs)
    actions = one.act(train_state.agent, train_state.obs, time)
    answers = crowd.step(actions, one.keys(Purpose.STEP, lanes, time))
    checker.check_batched_step(spec, answers)
    reward = one.rewards(answers.signals)
    clock, earned = train_state.clock + np.int32(1), train_state.earned + reward
    last = (answers.discount == 0) | (clock >= spec.max_episode_steps) | answers.truncated
    seen = Transition(train_state.obs, actions, reward, answers.discount, answers.obs, last)
    ended = last.astype(np.float32)
    counts = (ended.sum(), (earned * ended[:, None]).sum(axis=0), (clock * ended).sum(dtype=np.float32))
    obs = answers.obs
    if last.any():
        # The reset of time t + 1: time 0 was the first of all.
        obs = batched.reset_where(crowd, last, obs, one.keys(Purpose.RESET, lanes, time + 1))
        clock, earned = np.where(last, np.int32(0), clock), np.where(last[:, None], np.float32(0), earned)
    return train_state._replace(obs=obs, clock=clock, earned=earned), seen, counts


@partial(jax.jit, static_argnames="spec")
def _init(algorithm: Any, seed: Array, spec: Spec) -> Any:
    return algorithm.init(spec, keys.stream(seed, Purpose.INIT))


@partial(jax.jit, static_argnames="worlds")
def _streams(seed: Array, worlds: int) -> tuple[Array, Array]:
    return keys.streams(seed, Purpose.ACT, worlds), keys.stream(seed, Purpose.UPDATE)


@jax.jit
def _act(algorithm: Any, streams: Array, agent: Any, obs: Array, time: Array) -> Array:
    act = over_envs(lambda obs, key: algorithm.act(agent, obs, key), algorithm.num_envs)
    return act(obs, keys.at(streams, time))


@jax.jit
def _update(
    algorithm: Any, stream: Array, agent: Any, iteration: Array, fault: Fault, rollout: Transition
) -> tuple[Any, Any, Fault]:
    def once_more(_: Any, agent: Any) -> Any:
        return algorithm.update(agent[0], rollout, keys.at(stream, iteration))

    metrics = jax.eval_shape(once_more, 0, (agent, None))[1]
    # A loop of one round: XLA then compiles what is in it as it does in the compiled loop, to the last bit.
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), metrics)
    rounds = jnp.where(iteration >= 0, 1, 0)
    agent, metrics = jax.lax.fori_loop(0, rounds, once_more, (agent, zeros))
    metrics = {name: jnp.asarray(value, jnp.float32) for name, value in metrics.items()}
    step = (iteration + 1) * algorithm.num_steps * algorithm.num_envs
    return agent, metrics, first_fault(fault, rollout.reward, metrics, step)


@partial(jax.jit, static_argnames="purpose")
def _keys(seed: Array, purpose: Purpose, worlds: Array, times: Array) -> Array:
    return addressed(seed, purpose, worlds, times)


def addressed(seed: Array, purpose: Purpose, worlds: Array, times: Array) -> Array:
    """The key of each world, at a time for all or one each."""
    return jax.vmap(lambda world, time: keys.at(keys.stream(seed, purpose, world), time))(
        worlds, jnp.broadcast_to(times, worlds.shape)
    )
