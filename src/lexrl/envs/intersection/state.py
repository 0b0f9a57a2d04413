"""The state of intersections side by side, as fixed arrays; and the columns that vehicles have in them."""

from typing import NamedTuple

import numpy as np

MAX_VEHICLES = 32
"""Room for vehicles on one intersection; 19 are the most that were seen in 60,000 episodes."""

X, Y, HEADING, SPEED, STEERING, ACCELERATION, IMPACT_X, IMPACT_Y, TARGET_SPEED, EXPONENT = range(10)
"""Columns of `State.vehicles`. The impact moves a vehicle in the next sub-step; the exponent is the driver's own, of
the intelligent driver model."""
CRASHED, HIT, LANE, FIRST, SECOND, THIRD, LEG, YIELDING = range(8)
"""Columns of `State.marks`: flags, the closest lane, the three lanes of the route and which of them is followed."""
COUNT, EGO, SUBSTEPS = range(3)
"""Columns of `State.counters`: vehicles, the ego's place among them, sub-steps since the first vehicles appeared."""
NUM_ROWS, NUM_FEATURES = 15, 7
"""Of the observation: the ego first, then others, the nearest along its lane first; features presence, x, y, vx, vy,
cos and sin of the heading."""
POSITION_RANGE, SPEED_RANGE = 100.0, 20.0
"""What is observed as 1."""


class State(NamedTuple):
    """`N` intersections. The order of vehicles matters: collisions and rights of way are resolved pair by pair."""

    vehicles: np.ndarray
    """`[N, MAX_VEHICLES, 10]` of float64"""
    marks: np.ndarray
    """`[N, MAX_VEHICLES, 8]` of int64"""
    counters: np.ndarray
    """`[N, 3]` of int64"""
    generator: np.ndarray
    """`[N, 6]` of uint64: a random generator each (`generator.py`)."""


def empty_state(n: int) -> State:
    """Before the first reset."""
    return State(
        np.zeros((n, MAX_VEHICLES, 10)),
        np.zeros((n, MAX_VEHICLES, 8), np.int64),
        np.zeros((n, 3), np.int64),
        np.zeros((n, 6), np.uint64),
    )
