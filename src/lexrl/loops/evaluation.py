"""Fresh episodes with a learned policy, in either loop: nothing is learned, and training is not disturbed."""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.backend import opaque_loop
from lexrl.envs import batched, checker
from lexrl.envs.batched import over_envs
from lexrl.errors import InputError, require_whole
from lexrl.loops import keys
from lexrl.loops.host_member import HostMember, keys_at, unstack, unstack_members
from lexrl.loops.keys import Purpose
from lexrl.loops.population import Layout, Population, over_members, rewards
from lexrl.types import Algorithm, AnyArray, BatchedEnv, Env, EnvSpec, Mixture, State, Step

AT_ONCE = 100
"""Episodes that the compiled program plays at most. How many it does play is data, so that one program plays any number
of them: the choice among candidates, the evaluation and the verdict compile nothing again."""


class Evaluation(NamedTuple):
    """What each episode of each member returned, in the user's signs."""

    returns: np.ndarray
    """`[members, episodes, M]`: undiscounted, until termination or truncation."""
    discounted: np.ndarray
    """`[members, episodes, M]`: discounted."""
    lengths: np.ndarray
    """`[members, episodes]`"""

    def __repr__(self) -> str:
        """Short; the arrays are in the fields."""
        members, episodes = self.lengths.shape
        means = ", ".join(f"{mean:.4g}" for mean in self.returns.mean(axis=(0, 1)))
        return f"Evaluation({members} x {episodes} episodes, mean returns ({means}), length {self.lengths.mean():.4g})"


def evaluate(
    population: Population,
    agents: State,
    *,
    episodes: int = 100,
    gamma: float | tuple[float, ...] = 1.0,
    greedy: bool = True,
    first: int = 0,
    max_steps: int | None = None,
) -> Evaluation:
    """Play `episodes` episodes with each member's policy, with randomness that training never sees.

    The first one has the number `first`; each number has its own randomness. Those that are longer than `max_steps` are
    cut off there.
    """
    check_episodes(episodes)
    discount, longest = jnp.asarray(_discounts(gamma, population)), np.int32(_longest(population.spec, max_steps))
    # Whoever made them, they are placed alike: the program would be compiled again for another way.
    agents = jax.device_put(agents, population.seeds.sharding)
    played = []
    for begin in range(0, episodes, AT_ONCE):
        count = min(AT_ONCE, episodes - begin)
        found = _play(
            population.share,
            population.algorithms,
            population.env,
            population.seeds,
            agents,
            discount,
            np.int32(first + begin),
            np.int32(count),
            longest,
            greedy=greedy,
            layout=population.layout,
        )
        played.append([np.asarray(part)[: population.size, :count] for part in found])
    returns, discounted, lengths = (np.concatenate(parts, axis=1) for parts in zip(*played, strict=True))
    return Evaluation(population.order.unsigned(returns), population.order.unsigned(discounted), lengths)


def evaluate_on_host(
    population: Population,
    env: Any,
    agents: State,
    *,
    episodes: int = 100,
    gamma: float | tuple[float, ...] = 1.0,
    greedy: bool = True,
    first: int = 0,
    max_steps: int | None = None,
) -> Evaluation:
    """`evaluate` for an environment that is stepped from Python; with the same keys."""
    check_episodes(episodes)
    discount = _discounts(gamma, population)
    each = [jax.device_put(agent) for agent in unstack(agents, population.size)]
    spec = population.spec._replace(max_episode_steps=_longest(population.spec, max_steps))
    n = batched.num_side_by_side(env, population.algorithms.num_envs, episodes)
    with contextlib.closing(batched.make_batched(env, n)) as envs:
        played = [
            _play_on_host(member, spec, envs, n, agent, range(first, first + episodes), discount, greedy)
            for member, agent in zip(unstack_members(population), each, strict=True)
        ]
    returns, discounted, lengths = (np.stack(part) for part in zip(*played, strict=True))
    return Evaluation(population.order.unsigned(returns), population.order.unsigned(discounted), lengths)


def _longest(spec: EnvSpec, max_steps: int | None) -> int:
    """Steps of the longest episode that is played."""
    return spec.max_episode_steps if max_steps is None else min(max_steps, spec.max_episode_steps)


def _discounts(gamma: Any, population: Population) -> np.ndarray:
    """One discount for each objective."""
    count = len(population.order.objectives)
    try:
        each = np.broadcast_to(np.asarray(gamma, np.float32), (count,))
    except (TypeError, ValueError):
        each = np.array([np.nan])
    if not ((each >= 0) & (each <= 1)).all():
        raise InputError(f"gamma is {gamma!r}; give one number in [0, 1], or one for each of the {count} objectives.")
    return each


def check_episodes(episodes: int) -> None:
    """Raise an `InputError` unless there is an episode to play."""
    require_whole(**{"The number of evaluation episodes": episodes})


class Running(NamedTuple):
    """Episodes in progress, one `[M]` or each of several `[N, M]`."""

    returns: AnyArray
    discounted: AnyArray
    length: AnyArray
    weight: AnyArray
    """What the next reward is discounted by."""

    def after(self, reward: AnyArray, gamma: AnyArray) -> "Running":
        """One step later."""
        discounted = self.discounted + self.weight * reward
        return Running(self.returns + reward, discounted, self.length + np.int32(1), self.weight * gamma)


def _new(*shape: int) -> Running:
    zeros = np.zeros(shape, np.float32)
    return Running(zeros, zeros, np.zeros(shape[:-1], np.int32), zeros + 1)


@partial(jax.jit, static_argnames=("greedy", "layout"))
def _play(share, algorithms, env, seeds, agents, gamma, first, count, longest, *, greedy, layout: Layout):
    def play_member(algorithm: Algorithm, env: Env, seed: Array, agent: State, *numbers: Array) -> Any:
        gamma, first, count, longest = numbers

        def play(episode: Array) -> Any:
            (env_state, obs), step_env = begin_episode(algorithm, env, seed, agent, episode, greedy)

            def body(carry: Any) -> Any:
                env_state, obs, running, _ = carry
                step = step_env(env_state, obs, running.length)
                running = running.after(rewards(step.signals, layout.columns, layout.signs), gamma)
                goes_on = (step.discount > 0) & (running.length < longest)
                return step.state, step.obs, running, goes_on

            new = jax.tree.map(jnp.asarray, _new(len(layout.columns)))
            _, _, running, _ = jax.lax.while_loop(lambda carry: carry[-1], body, (env_state, obs, new, jnp.bool_(True)))
            return running[:3]

        def play_one(i: Array, done: Any) -> Any:
            return jax.tree.map(lambda all_, one: all_.at[i].set(one), done, play(first + i))

        shapes = jax.eval_shape(play, first)
        return opaque_loop(
            count, play_one, jax.tree.map(lambda leaf: jnp.zeros((AT_ONCE, *leaf.shape), leaf.dtype), shapes)
        )

    shared = (False, not layout.per_seed_env, False, False, *[True] * 4)
    numbers = (gamma, first, count, longest)
    return over_members(play_member, layout.mesh, shared)(share, algorithms, env, seeds, agents, *numbers)


def begin_episode(
    algorithm: Algorithm, env: Env, seed: Array, agent: State, episode: Array, greedy: bool
) -> tuple[tuple[Any, Array], Callable[[Any, Array, Array], Step]]:
    """State and first observation of a member's evaluation episode, and the function that takes a step in it."""
    act, step, reset = (
        keys.stream(seed, purpose, episode)
        for purpose in (Purpose.EVALUATE_ACT, Purpose.EVALUATE_STEP, Purpose.EVALUATE_RESET)
    )
    player = draw_component(algorithm, agent, seed, episode)

    def step_env(env_state: Any, obs: Array, time: Array) -> Step:
        action = algorithm.act(player, obs, keys.at(act, time), greedy=greedy)
        return env.step(env_state, action, keys.at(step, time))

    return env.reset(reset), step_env


def draw_component(algorithm: Any, agent: State, seed: Any, episode: Any) -> State:
    """The agent state that plays an episode: of a mixture, the component drawn for it."""
    return _draw_component(algorithm, agent, seed, episode) if isinstance(algorithm, Mixture) else agent


@jax.jit
def _draw_component(algorithm: Any, agent: State, seed: Array, episode: Array) -> State:
    return algorithm.begin(agent, keys.at(keys.stream(seed, Purpose.EVALUATE_BEGIN, episode), 0))


def _play_on_host(
    member: HostMember,
    spec: EnvSpec,
    envs: BatchedEnv,
    n: int,
    agent: State,
    episodes: range,
    gamma: np.ndarray,
    greedy: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns, discounted returns and lengths of the episodes with these numbers.

    `n` environments play side by side; where an episode has ended, the next one begins. Those beyond the last do not
    count.
    """
    episode, running = episodes.start + np.arange(n), _new(n, len(gamma))
    upcoming = episodes.start + n
    outcomes: dict[int, tuple[Any, ...]] = {}
    obs = envs.reset(np.ones(n, bool), member.keys(Purpose.EVALUATE_RESET, episode, 0))
    checker.check_observation(spec, obs[0], "reset")
    while True:
        actions = _act(member.algorithm, member.seed, agent, obs, episode, running.length, greedy=greedy)
        step = envs.step(np.asarray(actions), member.keys(Purpose.EVALUATE_STEP, episode, running.length))
        checker.check_batched_step(spec, step)
        obs, running = step.obs, running.after(member.rewards(step.signals), gamma)
        last = (step.discount == 0) | (running.length >= spec.max_episode_steps) | step.truncated
        outcomes |= {int(episode[i]): tuple(part[i] for part in running[:3]) for i in np.flatnonzero(last)}
        if outcomes.keys() >= set(episodes):
            break
        if last.any():
            episode = np.where(last, upcoming - 1 + np.cumsum(last), episode)
            upcoming += int(last.sum())
            obs = batched.reset_where(envs, last, obs, member.keys(Purpose.EVALUATE_RESET, episode, 0))
            running = _restart(running, last)
    returns, discounted, lengths = zip(*(outcomes[number] for number in episodes), strict=True)
    return np.array(returns), np.array(discounted), np.array(lengths)


def _restart(running: Running, which: np.ndarray) -> Running:
    """Some of the episodes from the beginning."""
    fresh = _new(*running.returns.shape)
    where = [which.reshape(-1, *[1] * (leaf.ndim - 1)) for leaf in fresh]
    return Running(*map(np.where, where, fresh, running))


@partial(jax.jit, static_argnames="greedy")
def _act(algorithm: Any, seed: Array, agent: Any, obs: Array, episodes: Array, times: Array, *, greedy: bool) -> Array:
    def act(obs: Array, key: Array, episode: Array) -> Array:
        return algorithm.act(draw_component(algorithm, agent, seed, episode), obs, key, greedy=greedy)

    return over_envs(act, len(episodes))(obs, keys_at(seed, Purpose.EVALUATE_ACT, episodes, times), episodes)
