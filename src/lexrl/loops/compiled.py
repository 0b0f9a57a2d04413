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
from lexrl.envs.batched import choose, each_world
from lexrl.errors import InputError
from lexrl.loops import keys
from lexrl.loops.keys import Purpose
from lexrl.loops.population import Population, over_members, rewards
from lexrl.order import Order
from lexrl.types import Algorithm, Env, Metrics, Numbers, State, Transition


class Fault(NamedTuple):
    """The first NaN or infinity a member met; `step` is -1 while there is none."""

    step: Numbers
    objective: Numbers
    """Number of the objective, or -1 where the number belonged to none."""
    in_reward: Numbers
    """It came from the world; else from the learner's own numbers."""


class Seat(NamedTuple):
    """Everything a member carries from chunk to chunk."""

    learner: State
    world: State
    obs: Numbers
    clock: Numbers
    """`[N]` steps since the episode began."""
    earned: Numbers
    """`[N, M]` rewards since the episode began."""
    iteration: Numbers
    fault: Fault


class Tally(NamedTuple):
    """Sums over a chunk."""

    episodes: Numbers
    returns: Numbers
    lengths: Numbers
    updates: Numbers
    metrics: dict[str, Numbers]


OF_RETURNS = frozenset({"level", "floor", "value"})
"""A learner's own numbers that stand for returns, and are therefore shown in the user's signs."""


class Chunk(NamedTuple):
    """What happened in a chunk, for every member."""

    steps: int
    """Environment steps of each member so far."""
    seats: Seat
    metrics: dict[str, np.ndarray]
    """`[members]` or `[members, M]`; NaN where nothing was seen, or where a member has stopped."""
    faults: dict[int, str]
    """Members that have stopped, and why."""


def start(people: Population) -> Seat:
    """Every member before its first step."""
    return _start(people.share, people.algorithms, people.env, people.seeds, spec=order_spec(people), **people.static)


def advance(people: Population, seats: Seat, steps: int, *, chunks: int = 50) -> Iterator[Chunk]:
    """Go on from `seats` until each member has taken `steps` steps in all."""
    check_length(steps, chunks)
    per_iteration = people.algorithms.rollout * people.algorithms.worlds
    done = int(np.asarray(seats.iteration)[: people.size].max())
    for stop in stops(-(-steps // per_iteration), chunks, done):
        iterations = jnp.int32(stop - done)
        seats, tally = _chunk(
            people.share, people.algorithms, people.env, people.seeds, seats, iterations, **people.static
        )
        done = stop
        fault, tally = jax.tree.map(lambda leaf: np.asarray(leaf)[: people.size], (seats.fault, tally))
        faults = complaints(fault, np.asarray(people.seeds), people.order)
        yield Chunk(done * per_iteration, seats, summary(tally, people.order), faults)


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


def order_spec(people: Population) -> Any:
    """The world as the learners see it."""
    return people.order.spec(people.spec)


@partial(jax.jit, static_argnames=("spec", "own_world", "columns", "signs", "mesh"))
def _start(share, algorithms, env, seeds, *, spec, own_world, columns, signs, mesh):
    def one(algorithm: Algorithm, env: Env, seed: Array) -> Seat:
        n, m = algorithm.worlds, len(columns)
        world, obs = each_world(env.reset, n)(keys.at(keys.streams(seed, Purpose.RESET, n), 0))
        none = jnp.int32(-1)
        return Seat(
            learner=algorithm.init(spec, keys.stream(seed, Purpose.INIT)),
            world=world,
            obs=obs,
            clock=jnp.zeros(n, jnp.int32),
            earned=jnp.zeros((n, m)),
            iteration=jnp.int32(0),
            fault=Fault(none, none, jnp.bool_(False)),
        )

    return over_members(one, mesh, (False, not own_world, False))(share, algorithms, env, seeds)


@partial(jax.jit, static_argnames=("own_world", "columns", "signs", "mesh"))
def _chunk(share, algorithms, env, seeds, seats, iterations, *, own_world, columns, signs, mesh):
    def one(algorithm: Algorithm, env: Env, seed: Array, seat: Seat, iterations: Array) -> tuple[Seat, Tally]:
        iterate = traced_once(iteration(algorithm, env, seed, columns, signs))
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(iterate, seat)[1])

        def body(_: Array, carry: tuple[Seat, Tally]) -> tuple[Seat, Tally]:
            seat, more = iterate(carry[0])
            return seat, jax.tree.map(jnp.add, carry[1], more)

        # A member that has met a NaN does nothing any more, and keeps what it was before the chunk that broke it.
        rounds = jnp.where(seat.fault.step >= 0, 0, iterations)
        after, tally = jax.lax.fori_loop(0, rounds, body, (seat, zeros))
        after = after._replace(fault=fault_of_state(after, algorithm))
        broken = after.fault.step >= 0
        kept = jax.tree.map(lambda old, new: jnp.where(broken, old, new), seat, after)
        return kept._replace(fault=after.fault, iteration=after.iteration), tally

    shared = (False, not own_world, False, False, True)
    return over_members(one, mesh, shared)(share, algorithms, env, seeds, seats, iterations)


def iteration(
    algorithm: Algorithm, env: Env, seed: Array, columns: tuple[int, ...], signs: tuple[float, ...]
) -> Callable[[Seat], tuple[Seat, Tally]]:
    """One turn of the loop for one member: collect a rollout, learn from it."""
    n, length = algorithm.worlds, algorithm.rollout
    update_key = keys.stream(seed, Purpose.UPDATE)
    step_worlds = stepper(algorithm, env, seed, columns, signs)

    def iterate(seat: Seat) -> tuple[Seat, Tally]:
        begin = seat.iteration * length
        if length == 1:
            seat, (seen, counts) = step_worlds(seat, begin)
            seen, counts = jax.tree.map(lambda leaf: leaf[None], (seen, counts))
        else:
            seat, (seen, counts) = jax.lax.scan(step_worlds, seat, begin + jnp.arange(length))
        learner, metrics = algorithm.update(seat.learner, seen, keys.at(update_key, seat.iteration))
        metrics = {name: jnp.asarray(value, jnp.float32) for name, value in metrics.items()}
        fault = first_fault(seat.fault, seen.reward, metrics, (seat.iteration + 1) * length * n)
        episodes, returns, lengths = jax.tree.map(lambda leaf: leaf.sum(axis=0), counts)
        tally = Tally(episodes, returns, lengths, jnp.float32(1.0), metrics)
        return seat._replace(learner=learner, iteration=seat.iteration + 1, fault=fault), tally

    return iterate


def stepper(algorithm: Algorithm, env: Env, seed: Array, columns: tuple[int, ...], signs: tuple[float, ...]) -> Any:
    """One step of every world of a member, with the bookkeeping of its episodes."""
    n, max_steps = algorithm.worlds, env.spec.max_steps
    act_keys, step_keys, reset_keys = (
        keys.streams(seed, purpose, n) for purpose in (Purpose.ACT, Purpose.STEP, Purpose.RESET)
    )

    def step_worlds(seat: Seat, time: Array) -> tuple[Seat, Any]:
        act = each_world(lambda obs, key: algorithm.act(seat.learner, obs, key), n)
        action = once(act(seat.obs, keys.at(act_keys, time)), time >= 0)
        step = once(each_world(env.step, n)(seat.world, action, keys.at(step_keys, time)), time >= 0)
        reward = rewards(step.signals, columns, signs)
        clock, earned = seat.clock + 1, seat.earned + reward
        last = (step.discount == 0) | (clock >= max_steps)
        seen = Transition(seat.obs, action, reward, step.discount, step.obs, last)
        ended = last.astype(jnp.float32)
        counts = (ended.sum(), (earned * ended[:, None]).sum(axis=0), (clock * ended).sum())
        # The reset of time t + 1: time 0 was the first of all.
        world, obs = jax.lax.cond(
            last.any(),
            lambda: choose(last, each_world(env.reset, n)(keys.at(reset_keys, time + 1)), (step.state, step.obs)),
            lambda: (step.state, step.obs),
        )
        clock, earned = jnp.where(last, 0, clock), jnp.where(last[:, None], 0.0, earned)
        return seat._replace(world=world, obs=obs, clock=clock, earned=earned), (seen, counts)

    return step_worlds


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


def fault_of_state(seat: Seat, algorithm: Algorithm) -> Fault:
    """The fault there is, or a new one if the learner is about to be kept with a number that is none."""
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(seat.learner)]
    finite = [jnp.isfinite(leaf).all() for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)]
    bad = (seat.fault.step < 0) & ~jnp.all(jnp.array(finite, bool))
    found = Fault(seat.iteration * algorithm.rollout * algorithm.worlds, jnp.int32(-1), jnp.bool_(False))
    return jax.tree.map(lambda old, new: jnp.where(bad, new, old), seat.fault, found)


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
            "return": order.unsigned(tally.returns / tally.episodes[:, None]),
            "length": tally.lengths / tally.episodes,
        }
        for name, total in tally.metrics.items():
            mean = np.asarray(total) / tally.updates.reshape(-1, *[1] * (total.ndim - 1))
            means[name] = order.unsigned(mean) if name in OF_RETURNS and mean.ndim == 2 else mean
    return {"episodes": np.asarray(tally.episodes), **means}
