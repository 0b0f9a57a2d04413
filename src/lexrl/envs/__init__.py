"""The worlds, one file each, built by a function that documents what can be set."""

from lexrl.envs import registration
from lexrl.envs.cart_pole import CartPole, cart_pole
from lexrl.envs.cart_safe import CartSafe, cart_safe
from lexrl.envs.cost_aware import CostAwareObservation, so_far
from lexrl.envs.finite import FiniteEnv, finite_world
from lexrl.envs.grid_nav import GridNav, grid_nav
from lexrl.envs.gym import GymEnv, gym_world
from lexrl.envs.mountain_car_safe import MountainCarSafe, mountain_car_safe
from lexrl.envs.per_seed import PerSeed, per_seed
from lexrl.envs.random_momdp import random_envs, random_world
from lexrl.envs.vector import GymVectorEnv, gym_vector_world

__all__ = [
    "CartPole",
    "CartSafe",
    "CostAwareObservation",
    "FiniteEnv",
    "GridNav",
    "GymEnv",
    "GymVectorEnv",
    "MountainCarSafe",
    "PerSeed",
    "cart_pole",
    "cart_safe",
    "finite_world",
    "grid_nav",
    "gym_vector_world",
    "gym_world",
    "mountain_car_safe",
    "per_seed",
    "random_envs",
    "random_world",
    "registration",
    "so_far",
]
