"""Fresh episodes in worlds that are stepped from Python, with the keys of the compiled evaluation."""

import contextlib
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from lexrl.envs import batched, checker
from lexrl.envs.batched import over_envs
from lexrl.loops.evaluation import Evaluation, begun, check_episodes
from lexrl.loops.host import Member, addressed, apart, everyone
from lexrl.loops.keys import Purpose
from lexrl.loops.population import Population
from lexrl.types import BatchedEnv, EnvSpec


def evaluate(
    population: Population, env: Any, agents: Any, *, episodes: int = 100, gamma: Any = 1.0, greedy: bool = True
) -> Evaluation:
    """`lexrl.loops.evaluation.evaluate` for a world that is stepped from Python."""
    check_episodes(episodes)
    discount = np.broadcast_to(np.asarray(gamma, np.float32), (len(population.order.objectives),))
    each = [jax.device_put(agent) for agent in apart(agents, population.size)]
    with contextlib.closing(batched.make_batched(env, population.algorithms.num_envs)) as crowd:
        played = [
            _play(one, population.spec, crowd, agent, episodes, discount, greedy)
            for one, agent in zip(everyone(population), each, strict=True)
        ]
    returns, discounted, lengths = (np.stack(part) for part in zip(*played, strict=True))
    return Evaluation(population.order.unsigned(returns), population.order.unsigned(discounted), lengths)


class Outing(NamedTuple):
    """Episodes so far, one for each world."""

    total: np.ndarray
    """`[N, M]`: what they paid."""
    worth: np.ndarray
    """`[N, M]`: the same with discounts."""
    clock: np.ndarray
    weight: np.ndarray
    """`[N, M]`: what the next reward counts."""

    @staticmethod
    def new(n: int, m: int) -> "Outing":
        zeros = np.zeros((n, m), np.float32)
        return Outing(zeros, zeros, np.zeros(n, np.int32), zeros + 1)

    def after(self, reward: np.ndarray, gamma: np.ndarray) -> "Outing":
        """One step later."""
        worth = self.worth + self.weight * reward
        return Outing(self.total + reward, worth, self.clock + np.int32(1), self.weight * gamma)

    def anew(self, which: np.ndarray) -> "Outing":
        """Some of them from the beginning."""
        fresh = Outing.new(*self.total.shape)
        return Outing(
            *(
                np.where(which.reshape(-1, *[1] * (new.ndim - 1)), new, old)
                for new, old in zip(fresh, self, strict=True)
            )
        )


def _play(
    one: Member, spec: EnvSpec, crowd: BatchedEnv, agent: Any, episodes: int, gamma: np.ndarray, greedy: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What each episode paid, without and with discount, and its length.

    Worlds play side by side. One that is through goes on with the next episode; those beyond the last do not count.
    """
    n = one.algorithm.num_envs
    number, upcoming, so_far = np.arange(n), n, Outing.new(n, len(gamma))
    outcomes: dict[int, tuple[Any, ...]] = {}
    obs = crowd.reset(np.ones(n, bool), one.keys(Purpose.EVALUATE_RESET, number, 0))
    checker.check_observation(spec, obs[0], "reset")
    while True:
        actions = np.asarray(_act(one.algorithm, one.seed, agent, obs, number, so_far.clock, greedy=greedy))
        answers = crowd.step(actions, one.keys(Purpose.EVALUATE_STEP, number, so_far.clock))
        checker.check_batched_step(spec, answers)
        obs, so_far = answers.obs, so_far.after(one.rewards(answers.signals), gamma)
        last = (answers.discount == 0) | (so_far.clock >= spec.max_episode_steps) | answers.truncated
        outcomes |= {int(number[i]): tuple(part[i] for part in so_far[:3]) for i in np.flatnonzero(last)}
        if outcomes.keys() >= set(range(episodes)):
            break
        if last.any():
            number = np.where(last, upcoming - 1 + np.cumsum(last), number)
            upcoming += int(last.sum())
            obs = batched.reset_where(crowd, last, obs, one.keys(Purpose.EVALUATE_RESET, number, 0))
            so_far = so_far.anew(last)
    returns, discounted, lengths = zip(*(outcomes[episode] for episode in range(episodes)), strict=True)
    return np.array(returns), np.array(discounted), np.array(lengths)


@partial(jax.jit, static_argnames="greedy")
def _act(algorithm: Any, seed: Array, agent: Any, obs: Array, episodes: Array, times: Array, *, greedy: bool) -> Array:
    def act(obs: Array, key: Array, episode: Array) -> Array:
        return algorithm.act(begun(algorithm, agent, seed, episode), obs, key, greedy=greedy)

    return over_envs(act, algorithm.num_envs)(obs, addressed(seed, Purpose.EVALUATE_ACT, episodes, times), episodes)
