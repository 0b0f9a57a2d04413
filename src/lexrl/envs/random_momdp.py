"""RandomMOMDP: the world of the paper's scaling experiment."""

import dataclasses
from typing import Any

from lexrl.envs.finite import FiniteWorld, finite_world
from lexrl.envs.per_seed import Worlds, per_seed
from lexrl.momdp import random_momdp


def random_world(
    seed: int = 0,
    states: int = 256,
    actions: int = 4,
    objectives: int = 2,
    successors: int | None = None,
    ties: float = 0.0,
    noise: float = 0.2,
    max_steps: int = 100,
) -> FiniteWorld:
    """Random transitions and rewards, with Gaussian noise on the rewards and episodes of fixed length.

    Args:
        seed: the process follows from it.
        states: number of states; the paper has 256 and 512.
        actions: number of actions.
        objectives: number of signals, named signal_1, signal_2, ...
        successors: so many successors for each state and action; a random number each if not given.
        ties: share of states where the first objectives cannot tell the actions apart.
        noise: standard deviation of the noise on each reward.
        max_steps: length of an episode.
    """
    process = random_momdp(seed, states, actions, objectives, successors=successors, ties=ties)
    return finite_world(process, noise=noise, max_steps=max_steps)


def random_worlds(count: int, first: int = 0, **settings: Any) -> Worlds:
    """One random world for each of `count` seeds: those of `random_world` with the seeds from `first` on."""
    worlds = per_seed([random_world(first + i, **settings) for i in range(count)])
    return dataclasses.replace(worlds, recipe=(random_worlds, {"count": count, "first": first, **settings}))
