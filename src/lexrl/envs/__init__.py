"""The worlds, one file each, built by a function that documents what can be set."""

from lexrl.envs.finite import FiniteWorld, finite_world
from lexrl.envs.grid_nav import GridNav, grid_nav
from lexrl.envs.random_momdp import random_world

AnyWorld = FiniteWorld | GridNav

__all__ = ["AnyWorld", "FiniteWorld", "GridNav", "finite_world", "grid_nav", "random_world"]
