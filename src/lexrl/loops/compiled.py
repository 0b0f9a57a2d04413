"""The compiled loop: all seeds, one chunk at a time.

    collect `rollout` steps with `act`  ->  `update`  ->  again, for as many iterations as the chunk has

Training is cut into chunks. The compiled function does one chunk for every member of the population and returns; what
the host does between chunks (show, write, stop) never reaches inside. The number of iterations is data, so chunks of
any length run the same program, and give the same numbers however a run is cut.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.backend import once, traced_once
from lexrl.envs.batched import choose, over_envs
from lexrl.errors import InputError
from lexrl.loops import keys
from lexrl.loops.keys import Purpose
from lexrl.loops.population import Population, over_members, rewards
from lexrl.order import Order
from lexrl.types import METRICS, Algorithm, AnyArray, Env, Metrics, State, Transition


class Fault(NamedTuple):
    """The first NaN or infinity a member met; `step` is -1 while there is none."""

    step: AnyArray
    objective: AnyArray
    """Number of the objective, or -1 where the number belonged to none."""
    in_reward: AnyArray
    """It came from the world; else from the learner's own numbers."""


class TrainState(NamedTuple):
    """Everything a member carries from chunk to chunk."""

    agent: State
    env_state: State
    obs: AnyArray
    clock: AnyArray
    """`[N]` steps since the episode began."""
    earned: AnyArray
    """`[N, M]` rewards since the episode began."""
    iteration: AnyArray
    fault: Fault


class Tally(NamedTuple):
    """Sums over a chunk."""

    episodes: AnyArray
    returns: AnyArray
    lengths: AnyArray
    updates: AnyArray
    metrics: dict[str, AnyArray]


IN_RETURN_UNITS = frozenset(name for name, metric in METRICS.items() if metric.in_return_units)
"""A learner's own numbers that stand for returns, and are therefore shown in the user's signs."""


class Chunk(NamedTuple):
    """What happened in a chunk, for every member."""

    steps: int
    """Environment steps of each member so far."""
    train_states: TrainState
    metrics: dict[str, np.ndarray]
    """`[members]` or `[members, M]`; NaN where nothing was seen, or where a member has stopped."""
    faults: dict[int, str]
    """Members that have stopped, and why."""


def start(population: Population) -> TrainState:
    """Every member before its first step."""
    return _start(
        population.share,
        population.algorithms,
        population.env,
        population.seeds,
        spec=order_spec(population),
        **population.static,
    )


def advance(
    population: Population, train_states: TrainState, steps: int, *, num_log_points: int = 50
) -> Iterator[Chunk]:
    """Go on from `seats` until each member has taken `steps` steps in all."""
    check_length(steps, num_log_points)
    per_iteration = population.algorithms.num_steps * population.algorithms.num_envs
    done = int(np.asarray(train_states.iteration)[: population.size].max())
    for stop in stops(-(-steps // per_iteration), num_log_points, done):
        iterations = jnp.int32(stop - done)
        train_states, tally = _chunk(
            population.share,
            population.algorithms,
            population.env,
            population.seeds,
            train_states,
            iterations,
            **population.static,
        )
        done = stop
        fault, tally = jax.tree.map(lambda leaf: np.asarray(leaf)[: population.size], (train_states.fault, tally))
        faults = complaints(fault, np.asarray(population.seeds), population.order)
        yield Chunk(done * per_iteration, train_states, summary(tally, population.order), faults)


def check_length(steps: int, chunks: int) -> None:
    """Complain about training that cannot be."""
    if steps < 1 or chunks < 1:
        raise InputError(f"Training for {steps} steps in {chunks} parts cannot be; both must be 1 or more.")


def stops(total: int, chunks: int, done: int = 0) -> list[int]:
    """Where chunks end, in iterations: as even as can be, whatever was done before.

    Of ten chunks or more the first is a tenth as long as it would be, so that who watches soon sees something.
    """
    early = -(-total // (10 * chunks)) if chunks >= 10 else 0
    rest, parts = total - early, chunks - (early > 0)
    ends = {early + -(-rest * (part + 1) // parts) for part in range(parts)} | {early}
    return sorted(ends - set(range(done + 1)))


def order_spec(population: Population) -> Any:
    """The world as the learners see it."""
    return population.order.spec(population.spec)


@partial(jax.jit, static_argnames=("spec", "per_seed_env", "columns", "signs", "mesh"))
def _start(share, algorithms, env, seeds, *, spec, per_seed_env, columns, signs, mesh):
    def one(algorithm: Algorithm, env: Env, seed: Array) -> TrainState:
        n, m = algorithm.num_envs, len(columns)
        env_state, obs = over_envs(env.reset, n)(keys.at(keys.streams(seed, Purpose.RESET, n), 0))
        none = jnp.int32(-1)
        return TrainState(
            agent=algorithm.init(spec, keys.stream(seed, Purpose.INIT)),
            env_state=env_state,
            obs=obs,
            clock=jnp.zeros(n, jnp.int32),
            earned=jnp.zeros((n, m)),
            iteration=jnp.int32(0),
            fault=Fault(none, none, jnp.bool_(False)),
        )

    return over_members(one, mesh, (False, not per_seed_env, False))(share, algorithms, env, seeds)


@partial(jax.jit, static_argnames=("per_seed_env", "columns", "signs", "mesh"))
def _chunk(share, algorithms, env, seeds, train_states, iterations, *, per_seed_env, columns, signs, mesh):
    def one(
        algorithm: Algorithm, env: Env, seed: Array, train_state: TrainState, iterations: Array
    ) -> tuple[TrainState, Tally]:
        iterate = traced_once(iteration(algorithm, env, seed, columns, signs))
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(iterate, train_state)[1])

        def body(_: Array, carry: tuple[TrainState, Tally]) -> tuple[TrainState, Tally]:
            train_state, more = iterate(carry[0])
            return train_state, jax.tree.map(jnp.add, carry[1], more)

        # A member that has met a NaN does nothing any more, and keeps what it was before the chunk that broke it.
        rounds = jnp.where(train_state.fault.step >= 0, 0, iterations)
        after, tally = jax.lax.fori_loop(0, rounds, body, (train_state, zeros))
        after = after._replace(fault=fault_of_state(after, algorithm))
        broken = after.fault.step >= 0
        kept = jax.tree.map(lambda old, new: jnp.where(broken, old, new), train_state, after)
        return kept._replace(fault=after.fault, iteration=after.iteration), tally

    shared = (False, not per_seed_env, False, False, True)
    return over_members(one, mesh, shared)(share, algorithms, env, seeds, train_states, iterations)


def iteration(
    algorithm: Algorithm, env: Env, seed: Array, columns: tuple[int, ...], signs: tuple[float, ...]
) -> Callable[[TrainState], tuple[TrainState, Tally]]:
    """One turn of the loop for one member: collect a rollout, learn from it."""
    n, length = algorithm.num_envs, algorithm.num_steps
    update_key = keys.stream(seed, Purpose.UPDATE)
    step_envs = stepper(algorithm, env, seed, columns, signs)

    def iterate(train_state: TrainState) -> tuple[TrainState, Tally]:
        begin = train_state.iteration * length
        if length == 1:
            train_state, (seen, counts) = step_envs(train_state, begin)
            seen, counts = jax.tree.map(lambda leaf: leaf[None], (seen, counts))
        else:
            train_state, (seen, counts) = jax.lax.scan(step_envs, train_state, begin + jnp.arange(length))
        agent, metrics = algorithm.update(train_state.agent, seen, keys.at(update_key, train_state.iteration))
        metrics = {name: jnp.asarray(value, jnp.float32) for name, value in metrics.items()}
        fault = first_fault(train_state.fault, seen.reward, metrics, (train_state.iteration + 1) * length * n)
        episodes, returns, lengths = jax.tree.map(lambda leaf: leaf.sum(axis=0), counts)
        tally = Tally(episodes, returns, lengths, jnp.float32(1.0), metrics)
        return train_state._replace(agent=agent, iteration=train_state.iteration + 1, fault=fault), tally

    return iterate


def stepper(algorithm: Algorithm, env: Env, seed: Array, columns: tuple[int, ...], signs: tuple[float, ...]) -> Any:
    """One step of every world of a member, with the bookkeeping of its episodes."""
    n, max_episode_steps = algorithm.num_envs, env.spec.max_episode_steps
    act_keys, step_keys, reset_keys = (
        keys.streams(seed, purpose, n) for purpose in (Purpose.ACT, Purpose.STEP, Purpose.RESET)
    )

    def step_envs(train_state: TrainState, time: Array) -> tuple[TrainState, Any]:
        act = over_envs(lambda obs, key: algorithm.act(train_state.agent, obs, key), n)
        action = once(act(train_state.obs, keys.at(act_keys, time)), time >= 0)
        step = once(over_envs(env.step, n)(train_state.env_state, action, keys.at(step_keys, time)), time >= 0)
        reward = rewards(step.signals, columns, signs)
        clock, earned = train_state.clock + 1, train_state.earned + reward
        last = (step.discount == 0) | (clock >= max_episode_steps)
        seen = Transition(train_state.obs, action, reward, step.discount, step.obs, last)
        ended = last.astype(jnp.float32)
        counts = (ended.sum(), (earned * ended[:, None]).sum(axis=0), (clock * ended).sum())
        # The reset of time t + 1: time 0 was the first of all.
        env_state, obs = jax.lax.cond(
            last.any(),
            lambda: choose(last, over_envs(env.reset, n)(keys.at(reset_keys, time + 1)), (step.state, step.obs)),
            lambda: (step.state, step.obs),
        )
        clock, earned = jnp.where(last, 0, clock), jnp.where(last[:, None], 0.0, earned)
        return train_state._replace(env_state=env_state, obs=obs, clock=clock, earned=earned), (seen, counts)

    return step_envs


def first_fault(fault: Fault, reward: Array, metrics: Metrics, step: Array) -> Fault:
    """Remember the first number that is none: rewards `[T, N, M]` first, then the learner's own numbers."""
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


def fault_of_state(train_state: TrainState, algorithm: Algorithm) -> Fault:
    """The fault there is, or a new one if the learner is about to be kept with a number that is none."""
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(train_state.agent)]
    finite = [jnp.isfinite(leaf).all() for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)]
    bad = (train_state.fault.step < 0) & ~jnp.all(jnp.array(finite, bool))
    found = Fault(train_state.iteration * algorithm.num_steps * algorithm.num_envs, jnp.int32(-1), jnp.bool_(False))
    return jax.tree.map(lambda old, new: jnp.where(bad, new, old), train_state.fault, found)


def complaints(fault: Fault, seeds: Sequence[int] | np.ndarray, order: Order) -> dict[int, str]:
    """A sentence for every member that has stopped."""
    sentences = {}
    for place in np.flatnonzero(np.asarray(fault.step) >= 0):
        member = int(place)
        number = int(fault.objective[member])
        name = repr(order.names[number]) if number >= 0 else "its loss or state"
        what = "the world paid" if fault.in_reward[member] else "the learner computed"
        sentences[member] = (
            f"Seed {seeds[member]} stopped at step {fault.step[member]}: {what} NaN or infinity for {name}."
        )
    return sentences


def summary(tally: Tally, order: Order) -> dict[str, np.ndarray]:
    """A chunk's sums as means, in the user's signs; NaN where no episode ended."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = {
            "episode_return": order.unsigned(tally.returns / tally.episodes[:, None]),
            "episode_length": tally.lengths / tally.episodes,
        }
        for name, total in tally.metrics.items():
            mean = np.asarray(total) / tally.updates.reshape(-1, *[1] * (total.ndim - 1))
            means[name] = order.unsigned(mean) if name in IN_RETURN_UNITS and mean.ndim == 2 else mean
    return {"num_episodes": np.asarray(tally.episodes), **means}
