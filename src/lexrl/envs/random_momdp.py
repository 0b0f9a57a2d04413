"""RandomMOMDP: the world of the paper's scaling experiment."""

import dataclasses
from typing import Any

from lexrl.envs.finite import FiniteEnv
from lexrl.envs.per_seed import PerSeed, per_seed
from lexrl.momdp import MOMDP


def random_env(
    momdp_seed: int = 0,
    num_states: int = 256,
    num_actions: int = 4,
    num_signals: int = 2,
    num_successors: int | None = None,
    tie_fraction: float = 0.0,
    reward_noise: float = 0.2,
    max_episode_steps: int = 100,
) -> FiniteEnv:
    """Random transitions and rewards, with Gaussian reward_noise on the rewards and episodes of fixed length.

    Args:
        momdp_seed: the process follows from it.
        num_states: number of num_states; the paper has 256 and 512.
        num_actions: number of num_actions.
        num_signals: number of signals, named signal_1, signal_2, ...
        num_successors: so many num_successors for each state and action; a random number each if not given.
        tie_fraction: share of num_states where the first num_signals cannot tell the num_actions apart.
        reward_noise: standard deviation of the reward_noise on each reward.
        max_episode_steps: length of an episode.
    """
    process = MOMDP.random(
        momdp_seed, num_states, num_actions, num_signals, num_successors=num_successors, tie_fraction=tie_fraction
    )
    return FiniteEnv(process, reward_noise=reward_noise, max_episode_steps=max_episode_steps)


def random_envs(count: int, first: int = 0, **settings: Any) -> PerSeed:
    """One random world for each of `count` seeds: those of `random_env` with the seeds from `first` on."""
    worlds = per_seed([random_env(first + i, **settings) for i in range(count)])
    return dataclasses.replace(worlds, recipe=(random_envs, {"count": count, "first": first, **settings}))
