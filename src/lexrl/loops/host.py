"""The host loop: the same algorithms, with worlds that are stepped from Python.

It is the compiled loop with the world outside: same keys, same order of events, same bookkeeping, so that on the same
world both give the same numbers; and it goes on from what it yielded, bit for bit, with any world that does the same
again when it is given the same keys and actions. Members run one after the other.

A world written in JAX is compiled step by step. Others are any object with a `spec` and `crowd(n)`, which gives `n`
worlds side by side (`lexrl.envs.crowd`), or with `reset(key)` and `step(state, action, key)`.
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
from lexrl.envs.crowd import Crowd, Keys
from lexrl.envs.per_seed import Worlds
from lexrl.loops import keys
from lexrl.loops.compiled import (
    Chunk,
    Fault,
    Seat,
    Tally,
    check_length,
    complaints,
    each_world,
    fault_of_state,
    first_fault,
    order_spec,
    stops,
    summary,
)
from lexrl.loops.keys import Purpose
from lexrl.loops.population import Population
from lexrl.types import Spec, Transition


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

    def act(self, learner: Any, obs: Any, time: int) -> np.ndarray:
        """An action for every world."""
        return np.asarray(_act(self.algorithm, self.acting, learner, obs, np.uint32(time)))

    def update(self, seat: Seat, rollout: Transition) -> tuple[Any, Any, Fault]:
        return _update(self.algorithm, self.updating, seat.learner, seat.iteration, seat.fault, rollout)

    def rewards(self, signals: np.ndarray) -> np.ndarray:
        """A world's signals `[N, K]` as rewards `[N, M]`."""
        return (signals[:, self.columns] * self.signs).astype(np.float32)

    def keys(self, purpose: Purpose, worlds: Any, times: Any) -> Keys:
        """A key for each world, by its address; computed when it is asked for."""
        return lambda: _keys(self.seed, purpose, np.asarray(worlds, np.uint32), np.asarray(times, np.uint32))


def start(people: Population, env: Any) -> Seat:
    """Every member before its first step. Worlds that are not in JAX are not made yet: what they show is all 0."""
    return _together(people, [_first(one, _world(env, i), people) for i, one in enumerate(everyone(people))])


def advance(people: Population, env: Any, seats: Seat, steps: int, *, chunks: int = 50) -> Iterator[Chunk]:
    """Go on from `seats` until each member has taken `steps` steps in all."""
    check_length(steps, chunks)
    members, each = everyone(people), apart(seats, people.size)
    per_iteration = people.algorithms.rollout * people.algorithms.worlds
    done = max(int(seat.iteration) for seat in each)
    ends = stops(-(-steps // per_iteration), chunks, done)
    with contextlib.ExitStack() as stack:
        lives = [_revived(stack, one, _world(env, i), each[i]) for i, one in enumerate(members)] if ends else []
        for stop in ends:
            parts = [_chunk(one, people.spec, *life, stop - done) for one, life in zip(members, lives, strict=True)]
            lives = [(crowd, seat) for (crowd, _), (seat, _) in zip(lives, parts, strict=True)]
            done, together = stop, _together(people, [seat for seat, _ in parts])
            tally = jax.tree.map(lambda *leaves: np.stack(leaves), *[tally for _, tally in parts])
            fault = jax.tree.map(lambda leaf: np.asarray(leaf)[: people.size], together.fault)
            faults = complaints(fault, np.asarray(people.seeds), people.order)
            yield Chunk(done * per_iteration, together, summary(tally, people.order), faults)


def everyone(people: Population) -> list[Member]:
    """Each member on its own."""
    columns = people.order.columns(people.spec.objectives)
    each = apart((people.algorithms, people.seeds), people.size)
    placed = [jax.device_put(one) for one in each]
    return [
        Member(algorithm, seed, columns, people.order.signs, *_streams(seed, algorithm.worlds))
        for algorithm, seed in placed
    ]


def _world(env: Any, place: int) -> Any:
    return env.one(place) if isinstance(env, Worlds) else env


def apart(stacked: Any, count: int) -> list[Any]:
    """Trees of every member, as NumPy arrays."""
    arrays = jax.tree.map(np.asarray, stacked)
    return [jax.tree.map(lambda leaf, place=place: leaf[place], arrays) for place in range(count)]


def _together(people: Population, each: Sequence[Seat]) -> Seat:
    """Members stacked, with the population's padding."""
    padded = [*each, *[each[-1]] * (len(people.seeds) - len(each))]
    return jax.device_put(jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *padded))


def _first(one: Member, env: Any, people: Population) -> Seat:
    spec, n = people.spec, one.algorithm.worlds
    if isinstance(env, eqx.Module):
        crowd = batched.Compiled(env)
        obs = crowd.reset(np.ones(n, bool), one.keys(Purpose.RESET, np.arange(n), 0))
        world = crowd.state
    else:
        obs, world = batched.blank(spec.observation, n), batched.no_trail(spec, n)
    none = np.int32(-1)
    return Seat(
        learner=one.init(order_spec(people)),
        world=world,
        obs=obs,
        clock=np.zeros(n, np.int32),
        earned=np.zeros((n, len(one.columns)), np.float32),
        iteration=np.int32(0),
        fault=Fault(none, none, np.bool_(False)),
    )


def _revived(stack: contextlib.ExitStack, one: Member, env: Any, seat: Seat) -> tuple[Any, Seat]:
    """A member's worlds where they were, to be closed by the stack; none for a member that has stopped."""
    if int(seat.fault.step) >= 0:
        return None, seat
    lanes, time = np.arange(one.algorithm.worlds), int(seat.iteration) * one.algorithm.rollout
    crowd = stack.enter_context(contextlib.closing(batched.alive(env, len(lanes))))
    crowd, obs = batched.revived(
        crowd,
        seat.world,
        seat.obs,
        time,
        partial(one.keys, Purpose.RESET, lanes),
        partial(one.keys, Purpose.STEP, lanes),
    )
    checker.check_seen(env.spec, obs[0], "reset")
    return crowd, seat._replace(learner=jax.device_put(seat.learner), obs=obs)


def _chunk(one: Member, spec: Spec, crowd: Any, seat: Seat, iterations: int) -> tuple[Seat, Tally]:
    """As many iterations as asked for; a member that has met a NaN does nothing, and keeps what it was before."""
    if int(seat.fault.step) >= 0:
        return seat, _silence(one, spec, seat)
    before, tally = seat, None
    for _ in range(iterations):
        seat, more = _iterate(one, spec, crowd, seat)
        tally = jax.tree.map(np.add, jax.tree.map(np.zeros_like, more) if tally is None else tally, more)
        if int(seat.fault.step) >= 0:
            break
    seat = seat._replace(world=crowd.state, fault=fault_of_state(seat, one.algorithm))
    if int(seat.fault.step) >= 0:
        seat = before._replace(fault=seat.fault, iteration=seat.iteration)
    assert tally is not None
    return seat, tally


def _silence(one: Member, spec: Spec, seat: Seat) -> Tally:
    """What a member that has stopped has to tell: nothing, in the shapes of the others."""
    t, n, m = one.algorithm.rollout, one.algorithm.worlds, len(one.columns)
    seen, chosen, numbers = (
        batched.blank(spec.observation, t, n),
        batched.blank(spec.action, t, n),
        np.zeros((t, n), np.float32),
    )
    rollout = Transition(seen, chosen, np.zeros((t, n, m), np.float32), numbers, seen, np.zeros((t, n), bool))
    _, metrics, _ = jax.eval_shape(one.update, seat._replace(world=None), rollout)
    zero = np.float32(0)
    zeros: Any = {name: np.zeros(value.shape, value.dtype) for name, value in metrics.items()}
    return Tally(zero, np.zeros(m, np.float32), zero, zero, zeros)


def _iterate(one: Member, spec: Spec, crowd: Crowd, seat: Seat) -> tuple[Seat, Tally]:
    """One turn of the loop: collect a rollout, learn from it."""
    begin = int(seat.iteration) * one.algorithm.rollout
    seen, counts = [], []
    for time in range(begin, begin + one.algorithm.rollout):
        seat, transition, count = _step(one, spec, crowd, seat, time)
        seen.append(transition)
        counts.append(count)
    rollout = Transition(*(np.stack(parts) for parts in zip(*seen, strict=True)))
    learner, metrics, fault = one.update(seat, rollout)
    episodes, returns, lengths = (sum(parts) for parts in zip(*counts, strict=True))
    told = {name: np.asarray(value) for name, value in metrics.items()}  # cheaper than jax.device_get
    tally = Tally(episodes, returns, lengths, np.float32(1.0), told)
    return seat._replace(learner=learner, iteration=seat.iteration + np.int32(1), fault=fault), tally


def _step(one: Member, spec: Spec, crowd: Crowd, seat: Seat, time: int) -> tuple[Seat, Transition, Any]:
    """One step of every world of a member, with the bookkeeping of its episodes."""
    lanes = np.arange(one.algorithm.worlds)
    actions = one.act(seat.learner, seat.obs, time)
    answers = crowd.step(actions, one.keys(Purpose.STEP, lanes, time))
    checker.check_answers(spec, answers)
    reward = one.rewards(answers.signals)
    clock, earned = seat.clock + np.int32(1), seat.earned + reward
    last = (answers.discount == 0) | (clock >= spec.max_steps) | answers.cut
    seen = Transition(seat.obs, actions, reward, answers.discount, answers.obs, last)
    ended = last.astype(np.float32)
    counts = (ended.sum(), (earned * ended[:, None]).sum(axis=0), (clock * ended).sum(dtype=np.float32))
    obs = answers.obs
    if last.any():
        # The reset of time t + 1: time 0 was the first of all.
        obs = batched.renewed(crowd, last, obs, one.keys(Purpose.RESET, lanes, time + 1))
        clock, earned = np.where(last, np.int32(0), clock), np.where(last[:, None], np.float32(0), earned)
    return seat._replace(obs=obs, clock=clock, earned=earned), seen, counts


@partial(jax.jit, static_argnames="spec")
def _init(algorithm: Any, seed: Array, spec: Spec) -> Any:
    return algorithm.init(spec, keys.stream(seed, Purpose.INIT))


@partial(jax.jit, static_argnames="worlds")
def _streams(seed: Array, worlds: int) -> tuple[Array, Array]:
    return keys.streams(seed, Purpose.ACT, worlds), keys.stream(seed, Purpose.UPDATE)


@jax.jit
def _act(algorithm: Any, streams: Array, learner: Any, obs: Array, time: Array) -> Array:
    act = each_world(lambda obs, key: algorithm.act(learner, obs, key), algorithm.worlds)
    return act(obs, keys.at(streams, time))


@jax.jit
def _update(
    algorithm: Any, stream: Array, learner: Any, iteration: Array, fault: Fault, rollout: Transition
) -> tuple[Any, Any, Fault]:
    def once_more(_: Any, learner: Any) -> Any:
        return algorithm.update(learner[0], rollout, keys.at(stream, iteration))

    metrics = jax.eval_shape(once_more, 0, (learner, None))[1]
    # A loop of one round: XLA then compiles what is in it as it does in the compiled loop, to the last bit.
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), metrics)
    rounds = jnp.where(iteration >= 0, 1, 0)
    learner, metrics = jax.lax.fori_loop(0, rounds, once_more, (learner, zeros))
    metrics = {name: jnp.asarray(value, jnp.float32) for name, value in metrics.items()}
    step = (iteration + 1) * algorithm.rollout * algorithm.worlds
    return learner, metrics, first_fault(fault, rollout.reward, metrics, step)


@partial(jax.jit, static_argnames="purpose")
def _keys(seed: Array, purpose: Purpose, worlds: Array, times: Array) -> Array:
    return addressed(seed, purpose, worlds, times)


def addressed(seed: Array, purpose: Purpose, worlds: Array, times: Array) -> Array:
    """The key of each world, at a time for all or one each."""
    return jax.vmap(lambda world, time: keys.at(keys.stream(seed, purpose, world), time))(
        worlds, jnp.broadcast_to(times, worlds.shape)
    )
