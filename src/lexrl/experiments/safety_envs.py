"""The environments of E2: their orders, what the ranking ignores, and the blind policies that frame the results."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from lexrl.algorithms.fixed_action import FixedAction
from lexrl.presets import SAFE, intersection


class EnvRow(NamedTuple):
    """An environment of the experiment."""

    title: str
    tolerance: tuple[float, float]
    """Differences of cost and reward per episode that the ranking ignores."""
    settings: Mapping[str, Any] = MappingProxyType({})
    order: str = SAFE
    reward: str = "reward"
    """The signal that algorithms with one objective maximize."""
    blind: Mapping[str, Any] = MappingProxyType({})
    """Policies that do not look, by their label, besides the random one."""
    eval_episodes: int = 100
    """Fresh episodes for each policy."""
    on_host: bool = False
    """It is stepped from Python, and so slower."""


ENVS = {
    "cart-safe": EnvRow("CartSafe", (1.0, 10.0)),
    "grid-nav": EnvRow("GridNav", (0.1, 1.0), {"map_seed": 22}),
    "intersection": EnvRow(
        "Intersection",
        (0.02, 0.02),
        order=intersection.ORDER,
        reward="arrived",
        blind={"SLOWER": FixedAction(action=0), "IDLE": FixedAction(action=1)},
        eval_episodes=2000,
        on_host=True,
    ),
}
"""To add an environment that has presets, add a line."""
