"""Fresh episodes with a learned policy: nothing is learned, nothing of the training is disturbed."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lexrl.errors import InputError
from lexrl.loops import keys
from lexrl.loops.keys import Purpose
from lexrl.loops.population import Population, over_members, rewards
from lexrl.types import Algorithm, Env, State, Step


class Evaluation(NamedTuple):
    """What each member earned in each episode, in the user's signs."""

    returns: np.ndarray
    """`[members, episodes, M]`: plain sums, until the task ended or the time was up."""
    discounted: np.ndarray
    """`[members, episodes, M]`: the same with discounts."""
    lengths: np.ndarray
    """`[members, episodes]`"""


def evaluate(
    population: Population,
    agents: State,
    *,
    episodes: int = 100,
    gamma: float | tuple[float, ...] = 1.0,
    greedy: bool = True,
) -> Evaluation:
    """Play `episodes` episodes with each member's policy, with randomness that training never sees."""
    check_episodes(episodes)
    m = len(population.order.objectives)
    discount = jnp.broadcast_to(jnp.asarray(gamma, jnp.float32), (m,))
    played = _play(
        population.share,
        population.algorithms,
        population.env,
        population.seeds,
        agents,
        discount,
        episodes=episodes,
        greedy=greedy,
        **population.static,
    )
    returns, discounted, lengths = (np.asarray(part)[: population.size] for part in played)
    return Evaluation(population.order.unsigned(returns), population.order.unsigned(discounted), lengths)


def check_episodes(episodes: int) -> None:
    """Complain about a number of episodes that cannot be played."""
    if episodes < 1:
        raise InputError(f"{episodes} episodes tell nothing; evaluate on 1 or more.")


@partial(jax.jit, static_argnames=("episodes", "greedy", "per_seed_env", "columns", "signs", "mesh"))
def _play(share, algorithms, env, seeds, agents, gamma, *, episodes, greedy, per_seed_env, columns, signs, mesh):
    def one(algorithm: Algorithm, env: Env, seed: Array, agent: State, gamma: Array) -> Any:
        def episode(number: Array) -> Any:
            (world, obs), play = begin(algorithm, env, seed, agent, number, greedy)

            def goes_on(carry: Any) -> Array:
                return carry[-1]

            def turn(carry: Any) -> Any:
                world, obs, time, total, worth, weight, _ = carry
                answer = play(world, obs, time)
                reward = rewards(answer.signals, columns, signs)
                on = (answer.discount > 0) & (time + 1 < env.spec.max_episode_steps)
                return (
                    answer.state, answer.obs, time + 1, total + reward, worth + weight * reward, weight * gamma, on,
                )  # fmt: skip

            zeros = jnp.zeros(len(columns))
            start = (world, obs, jnp.int32(0), zeros, zeros, jnp.ones(len(columns)), jnp.bool_(True))
            _, _, time, total, worth, _, _ = jax.lax.while_loop(goes_on, turn, start)
            return total, worth, time

        return jax.lax.map(episode, jnp.arange(episodes))

    shared = (False, not per_seed_env, False, False, True)
    return over_members(one, mesh, shared)(share, algorithms, env, seeds, agents, gamma)


def begin(
    algorithm: Algorithm, env: Env, seed: Array, agent: State, number: Array, greedy: bool
) -> tuple[tuple[Any, Array], Callable[[Any, Array, Array], Step]]:
    """A world and what is seen of it when a member's episode of this number begins; and its step at a time of it."""
    act, step, reset = (
        keys.stream(seed, purpose, number)
        for purpose in (Purpose.EVALUATE_ACT, Purpose.EVALUATE_STEP, Purpose.EVALUATE_RESET)
    )
    player = begun(algorithm, agent, seed, number)

    def play(world: Any, obs: Array, time: Array) -> Step:
        action = algorithm.act(player, obs, keys.at(act, time), greedy=greedy)
        return env.step(world, action, keys.at(step, time))

    return env.reset(reset), play


def begun(algorithm: Any, agent: State, seed: Any, episode: Any) -> State:
    """The state that plays an episode: where the policy is a mixture, one of its parts is drawn for it."""
    if not hasattr(algorithm, "begin"):
        return agent
    return _begun(algorithm, agent, seed, episode)


@jax.jit
def _begun(algorithm: Any, agent: State, seed: Array, episode: Array) -> State:
    return algorithm.begin(agent, keys.at(keys.stream(seed, Purpose.EVALUATE_BEGIN, episode), 0))
