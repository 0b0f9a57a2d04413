"""The worlds, one file each, built by a function that documents what can be set."""

from lexrl.envs import registration
from lexrl.envs.cart_pole import CartPole
from lexrl.envs.cart_safe import CartSafe
from lexrl.envs.cost_aware import CostAwareObservation, so_far
from lexrl.envs.finite import FiniteEnv
from lexrl.envs.grid_nav import GridNav
from lexrl.envs.gym import GymEnv
from lexrl.envs.mountain_car_safe import MountainCarSafe
from lexrl.envs.per_seed import PerSeed, per_seed
from lexrl.envs.random_momdp import random_env, random_envs
from lexrl.envs.vector import GymVectorEnv

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
    "per_seed",
    "random_env",
    "random_envs",
    "registration",
    "so_far",
]
