"""Worlds by their names: ours, and Gymnasium's."""

import re
from collections.abc import Callable
from typing import Any, get_type_hints

from lexrl.envs.cart_pole import CartPole
from lexrl.envs.cart_safe import CartSafe
from lexrl.envs.grid_nav import GridNav
from lexrl.envs.gym import GymEnv
from lexrl.envs.mountain_car_safe import MountainCarSafe
from lexrl.envs.random_momdp import random_env
from lexrl.errors import InputError

WORLDS: dict[str, Callable[..., Any]] = {
    "cart-safe": CartSafe,
    "grid-nav": GridNav.generate,
    "mountain-car-safe": MountainCarSafe,
    "random-momdp": random_env,
    "cart-pole": CartPole,
}


def world(name: str, **settings: Any) -> Any:
    """The world of a name: `"cart-safe"`, or a Gymnasium environment, `"gym:CartPole-v1"` or just `"CartPole-v1"`."""
    if name in WORLDS:
        return WORLDS[name](**settings)
    if (inside := in_gymnasium(name)) is not None:
        return GymEnv(inside, **settings)
    raise InputError(
        f"There is no world {name!r}; there are {', '.join(WORLDS)}, and Gymnasium's environments as in "
        "gym:CartPole-v1."
    )


def in_gymnasium(name: str) -> str | None:
    """The name in Gymnasium, if it is one: with the prefix `gym:`, or ending in a version."""
    if name.startswith("gym:"):
        return name.removeprefix("gym:")
    return name if re.search(r"-v\d+$", name) else None


def name_of(world: Any) -> str:
    """What a world is called."""
    for name, make in WORLDS.items():
        if kind(make) is type(world):
            return name
    recipe = getattr(world, "recipe", None)
    return str(recipe[1]["env_id"]) if recipe is not None else type(world).__name__


def kind(make: Callable[..., Any]) -> Any:
    """The type of what a builder builds, as it says itself."""
    return make if isinstance(make, type) else get_type_hints(make)["return"]
