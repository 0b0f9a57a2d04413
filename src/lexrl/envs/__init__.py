"""The worlds, one file each, built by a function that documents what can be set."""

from lexrl.envs.cart_safe import CartSafe, cart_safe
from lexrl.envs.finite import FiniteWorld, finite_world
from lexrl.envs.grid_nav import GridNav, grid_nav
from lexrl.envs.random_momdp import random_world

__all__ = ["CartSafe", "FiniteWorld", "GridNav", "cart_safe", "finite_world", "grid_nav", "random_world"]
