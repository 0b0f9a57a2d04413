"""The host loop: the same algorithms, with worlds that are stepped from Python.

It is the compiled loop with the world outside: same keys, same order of events, same bookkeeping, so that on the same
world both give the same numbers. Members run one after the other. A world written in JAX is compiled step by step; any
other object with `spec`, `reset(key)` and `step(state, action, key)` is called as it is. If it says
`own_generator = True`, it gets a key only at its resets, and there also the state its last episode ended in; it is
asked to `close(state)` in the end; and a step may answer `cut = True` besides: the episode is over, the task is not.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.errors import InputError
from lexrl.order import Order
from lexrl.train import contract, keys
from lexrl.train.compiled import (
    Chunk,
    Fault,
    Seat,
    Tally,
    complaints,
    each_world,
    fault_of_state,
    first_fault,
    stops,
    summary,
)
from lexrl.train.evaluate import Evaluation
from lexrl.train.keys import Purpose
from lexrl.train.population import Population, Worlds, members, number
from lexrl.types import Algorithm, Env, Spec, Step, Transition


class Member(eqx.Module):
    """One learner: its settings, its seed, and how the order reads its world's signals."""

    algorithm: Any
    seed: Array
    columns: tuple[int, ...] = eqx.field(static=True)
    signs: tuple[float, ...] = eqx.field(static=True)

    @partial(jax.jit, static_argnames="spec")
    def init(self, spec: Spec) -> Any:
        return self.algorithm.init(spec, keys.stream(self.seed, Purpose.INIT))

    @jax.jit
    def act(self, learner: Any, obs: Any, time: Any) -> Array:
        """An action for every world."""
        n = self.algorithm.worlds
        act = each_world(lambda obs, key: self.algorithm.act(learner, obs, key), n)
        return act(obs, keys.at(keys.streams(self.seed, Purpose.ACT, n), time))

    @partial(jax.jit, static_argnames="greedy")
    def play(self, learner: Any, obs: Any, episode: Any, time: Any, *, greedy: bool) -> Array:
        """An action in an episode that is only watched."""
        key = keys.at(keys.stream(self.seed, Purpose.EVALUATE_ACT, episode), time)
        return self.algorithm.act(learner, obs, key, greedy=greedy)

    @jax.jit
    def update(self, seat: Seat, rollout: Transition) -> tuple[Any, Any, Fault]:
        def once_more(_: Any, learner: Any) -> Any:
            key = keys.at(keys.stream(self.seed, Purpose.UPDATE), seat.iteration)
            return self.algorithm.update(learner[0], rollout, key)

        metrics = jax.eval_shape(once_more, 0, (seat.learner, None))[1]
        # A loop of one round: XLA then compiles what is in it as it does in the compiled loop, to the last bit.
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), metrics)
        rounds = jnp.where(seat.iteration >= 0, 1, 0)
        learner, metrics = jax.lax.fori_loop(0, rounds, once_more, (seat.learner, zeros))
        metrics = {name: jnp.asarray(value, jnp.float32) for name, value in metrics.items()}
        step = (seat.iteration + 1) * self.algorithm.rollout * self.algorithm.worlds
        return learner, metrics, first_fault(seat.fault, rollout.reward, metrics, step)


def train(
    algorithm: Algorithm | Sequence[Algorithm],
    env: Env | Worlds,
    order: Order,
    seeds: Sequence[int],
    steps: int,
    *,
    chunks: int = 50,
) -> Iterator[Chunk]:
    """Train one learner for each seed for `steps` environment steps, yielding after each of `chunks` parts."""
    if steps < 1 or chunks < 1:
        raise InputError(f"Training for {steps} steps in {chunks} parts cannot be; both must be 1 or more.")
    each = members(algorithm, env, seeds)
    worlds = [env.one(i) if isinstance(env, Worlds) else env for i in range(len(seeds))]
    spec = worlds[0].spec
    columns, signs = tuple(map(int, order.columns(spec.objectives))), tuple(map(float, order.signs))
    people = [
        Member(jax.tree.map(lambda leaf: jnp.asarray(number(leaf)), one), jnp.uint32(seed), columns, signs)
        for one, seed in zip(each, seeds, strict=True)
    ]
    seats = [_start(one, world, order.spec(spec)) for one, world in zip(people, worlds, strict=True)]
    per_iteration = each[0].rollout * each[0].worlds
    done, tallies = 0, [None] * len(people)
    try:
        for stop in stops(-(-steps // per_iteration), chunks):
            parts = [_chunk(*part, stop - done) for part in zip(people, worlds, seats, tallies, strict=True)]
            seats, tallies, done = [seat for seat, _ in parts], [tally for _, tally in parts], stop
            tally = jax.tree.map(lambda *leaves: np.stack(leaves), *tallies)
            together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[seat._replace(world=None) for seat in seats])
            faults = complaints(together.fault, seeds, order)
            yield Chunk(done * per_iteration, together, summary(tally, order), faults)
    finally:
        for world, seat in zip(worlds, seats, strict=True):
            _close(world, seat.world)


def evaluate(
    people: Population, env: Any, learners: Any, *, episodes: int = 100, gamma: Any = 1.0, greedy: bool = True
) -> Evaluation:
    """`lexrl.train.evaluate.evaluate` for a world that is stepped from Python."""
    if episodes < 1:
        raise InputError(f"{episodes} episodes tell nothing; evaluate on 1 or more.")
    columns, signs = people.static["columns"], people.static["signs"]
    discount = np.broadcast_to(np.asarray(gamma, np.float32), (len(columns),))
    played, state = [], None
    try:
        for place in range(people.size):
            algorithm, seed, learner = jax.tree.map(
                lambda leaf, place=place: jnp.asarray(np.asarray(leaf)[place]),
                (people.algorithms, people.seeds, learners),
            )
            one = Member(algorithm, seed, columns, signs)
            played.append([])
            for number in range(episodes):
                state, *outcome = _episode(one, env, state, learner, number, discount, greedy)
                played[-1].append(outcome)
    finally:
        _close(env, [] if state is None else [state])
    returns, discounted, lengths = (np.array([[one[part] for one in member] for member in played]) for part in range(3))
    return Evaluation(people.order.unsigned(returns), people.order.unsigned(discounted), lengths)


def _episode(
    one: Member, env: Any, state: Any, learner: Any, number: int, gamma: np.ndarray, greedy: bool
) -> tuple[Any, Any, Any, int]:
    """The state an episode ended in, what it paid, without and with discount, and its length."""
    state, obs = _reset(env, _key(one.seed, Purpose.EVALUATE_RESET, number, 0), state)
    total, worth, weight = np.zeros((3, len(gamma)), np.float32)
    weight = weight + 1
    for time in range(env.spec.max_steps):
        action = np.asarray(one.play(learner, obs, np.uint32(number), np.uint32(time), greedy=greedy))
        answer = _answer(env, state, action, _step_key(env, one.seed, number, time, Purpose.EVALUATE_STEP))
        reward = np.asarray(answer.signals)[np.array(one.columns)] * np.asarray(one.signs, np.float32)
        total, worth, weight = total + reward, worth + weight * reward, weight * gamma
        state, obs = answer.state, np.asarray(answer.obs)
        if float(answer.discount) == 0 or _cut(answer):
            return state, total, worth, time + 1
    return state, total, worth, env.spec.max_steps


def _start(one: Member, env: Any, spec: Spec) -> Seat:
    n = one.algorithm.worlds
    first = [_reset(env, _key(one.seed, Purpose.RESET, world, 0)) for world in range(n)]
    none = jnp.int32(-1)
    return Seat(
        learner=one.init(spec),
        world=[state for state, _ in first],
        obs=np.stack([obs for _, obs in first]),
        clock=np.zeros(n, np.int32),
        earned=np.zeros((n, len(one.columns)), np.float32),
        iteration=jnp.int32(0),
        fault=Fault(none, none, jnp.bool_(False)),
    )


def _chunk(one: Member, env: Any, seat: Seat, previous: Any, iterations: int) -> tuple[Seat, Any]:
    """As many iterations as asked for; a member that has met a NaN does nothing, and keeps what it was before."""
    if int(seat.fault.step) >= 0:
        return seat, jax.tree.map(np.zeros_like, previous)
    before, tally = seat, None
    while tally is None or (int(tally.updates) < iterations and int(seat.fault.step) < 0):
        begin = int(seat.iteration) * one.algorithm.rollout
        seen, counts = [], []
        for time in range(begin, begin + one.algorithm.rollout):
            seat, transition, count = _step(one, env, seat, time)
            seen.append(transition)
            counts.append(count)
        rollout = jax.tree.map(lambda *leaves: np.stack(leaves), *seen)
        learner, metrics, fault = one.update(seat._replace(world=None), rollout)
        seat = seat._replace(learner=learner, iteration=seat.iteration + 1, fault=fault)
        episodes, returns, lengths = (sum(parts) for parts in zip(*counts, strict=True))
        more = Tally(episodes, returns, lengths, np.float32(1.0), metrics)
        more = jax.tree.map(np.asarray, more)
        tally = more if tally is None else jax.tree.map(np.add, tally, more)
    seat = seat._replace(fault=fault_of_state(seat, one.algorithm))
    if int(seat.fault.step) >= 0:
        seat = before._replace(fault=seat.fault, iteration=seat.iteration)
    return seat, tally


def _step(one: Member, env: Any, seat: Seat, time: int) -> tuple[Seat, Transition, Any]:
    """One step of every world of a member, with the bookkeeping of its episodes."""
    actions = np.asarray(one.act(seat.learner, seat.obs, np.uint32(time)))
    steps = [
        _answer(env, state, action, _step_key(env, one.seed, world, time))
        for world, (state, action) in enumerate(zip(seat.world, actions, strict=True))
    ]
    signals = np.stack([np.asarray(step.signals) for step in steps])
    reward = (signals[:, one.columns] * np.asarray(one.signs, np.float32)).astype(np.float32)
    discount = np.array([float(step.discount) for step in steps], np.float32)
    following = np.stack([np.asarray(step.obs) for step in steps])
    clock, earned = seat.clock + 1, seat.earned + reward
    last = (discount == 0) | (clock >= env.spec.max_steps) | np.array([_cut(step) for step in steps])
    seen = Transition(seat.obs, actions, reward, discount, following, last)
    ended = last.astype(np.float32)
    counts = (ended.sum(), (earned * ended[:, None]).sum(axis=0), (clock * ended).sum(dtype=np.float32))
    world, obs = [step.state for step in steps], following.copy()
    for i in np.flatnonzero(last):
        world[i], obs[i] = _reset(env, _key(one.seed, Purpose.RESET, i, time + 1), world[i])
    clock, earned = np.where(last, 0, clock).astype(np.int32), np.where(last[:, None], np.float32(0), earned)
    return seat._replace(world=world, obs=obs, clock=clock, earned=earned), seen, counts


def _step_key(env: Any, seed: Array, world: int, time: int, purpose: Purpose = Purpose.STEP) -> Array | None:
    """None for a world that draws from a generator of its own, which it was given at its reset."""
    return None if getattr(env, "own_generator", False) else _key(seed, purpose, world, time)


@partial(jax.jit, static_argnames="purpose")
def _key(seed: Array, purpose: Purpose, world: Any, time: Any) -> Array:
    return keys.at(keys.stream(seed, purpose, world), time)


def _reset(env: Any, key: Array, previous: Any = None) -> tuple[Any, Any]:
    if isinstance(env, eqx.Module):
        return _jitted_reset(env, key)
    state, obs = env.reset(key, previous) if getattr(env, "own_generator", False) else env.reset(key)
    contract.check_seen(env.spec, obs, "reset")
    return state, obs


def _answer(env: Any, state: Any, action: Any, key: Array | None) -> Any:
    if isinstance(env, eqx.Module):
        return _jitted_step(env, state, action, key)
    answer = env.step(state, action, key)
    contract.check_answer(env.spec, answer)
    return answer


def _cut(answer: Any) -> bool:
    """Did the world itself cut the episode off?"""
    return bool(getattr(answer, "cut", False))


def _close(env: Any, states: Sequence[Any]) -> None:
    """Let a world with a generator of its own put away what its states hold."""
    if getattr(env, "own_generator", False):
        for state in states:
            env.close(state)


@jax.jit
def _jitted_reset(env: Any, key: Array) -> Any:
    return env.reset(key)


@jax.jit
def _jitted_step(env: Any, state: Any, action: Any, key: Array) -> Step:
    return env.step(state, action, key)
