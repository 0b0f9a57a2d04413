"""Intersection: the paper's settings.

Its reward is 10 for arriving; here the signal `arrived` is 1, so that the range from 9 to 10 is 0.9 to 1. An episode
ends at its first collision: a limit of 1 on the collisions of an episode cannot bind.
"""

from lexrl.networks import Networks
from lexrl.presets import Presets
from lexrl.presets.paper import Constraints, table
from lexrl.tolerance import Relative

ORDER, REWARD = "min collision > max arrived", "max arrived"
CONSTRAINTS = Constraints("collision <= 1", "arrived in 0.9..1, collision in 0..1", "collision <= 1 with 0.95")


def paper() -> Presets:
    """Two hidden layers of 512, Adam at 0.001, an update every 32 steps on 32 transitions."""
    return table(
        Networks(hidden_sizes=(512, 512), normalize_observations=False),
        CONSTRAINTS,
        learning_rate=0.001,
        num_steps=32,
        tolerance=Relative(0.05),
        episodes_per_update=8,
        order=ORDER,
        reward=REWARD,
    )


PRESETS = {"paper": paper}
