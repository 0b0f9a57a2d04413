"""The environments, one file each; the adapters for Gymnasium's; and what makes an environment of a name or an object.

Names are loaded when they are used, so that an environment in JAX does not import Gymnasium.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lexrl.envs.cart_pole import CartPole
    from lexrl.envs.cart_safe import CartSafe
    from lexrl.envs.checker import check_env
    from lexrl.envs.cost_aware import CostAwareObservation
    from lexrl.envs.factory import as_env, env_name, make_env
    from lexrl.envs.finite import FiniteEnv
    from lexrl.envs.grid_nav import GridNav
    from lexrl.envs.gym import GymEnv
    from lexrl.envs.mountain_car_safe import MountainCarSafe
    from lexrl.envs.per_seed import PerSeed
    from lexrl.envs.random_momdp import random_env
    from lexrl.envs.vector import GymVectorEnv

_MODULES = {
    "CartPole": "cart_pole",
    "CartSafe": "cart_safe",
    "CostAwareObservation": "cost_aware",
    "FiniteEnv": "finite",
    "GridNav": "grid_nav",
    "GymEnv": "gym",
    "GymVectorEnv": "vector",
    "MountainCarSafe": "mountain_car_safe",
    "PerSeed": "per_seed",
    "as_env": "factory",
    "check_env": "checker",
    "env_name": "factory",
    "make_env": "factory",
    "random_env": "random_momdp",
}

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
    "as_env",
    "check_env",
    "env_name",
    "make_env",
    "random_env",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
