"""The state of highway-env's own environment, as ours: to compare both, or to go on from it.

env = gymnasium.make("intersection-v0")
env.reset(seed=3)
step = lexrl.Intersection().step(state_of(env), action)
"""

from typing import Any

import numpy as np

from lexrl.envs.intersection.state import (
    ACCELERATION,
    CRASHED,
    EXPONENT,
    FIRST,
    HEADING,
    HIT,
    IMPACT_X,
    IMPACT_Y,
    LANE,
    LEG,
    SPEED,
    STEERING,
    TARGET_SPEED,
    YIELDING,
    State,
    X,
    Y,
    empty_state,
)

DRIVEN = "DELTA"
"""Other vehicles have the exponent of their driver by this name."""


def state_of(env: Any) -> State:
    """The state of one intersection, from highway-env's environment."""
    inner = env.unwrapped
    road = inner.road
    numbers = {index: number for number, index in enumerate(road.network.lanes_dict())}
    state = State(*(part[0] for part in empty_state(1)))
    for i, vehicle in enumerate(road.vehicles):
        _write_vehicle(vehicle, state.vehicles[i])
        _write_marks(vehicle, state.marks[i], numbers)
    state.counters[:] = len(road.vehicles), road.vehicles.index(inner.vehicle), road.steps
    bits = inner.np_random.bit_generator.state
    halves = [part for name in ("state", "inc") for part in divmod(bits["state"][name], 2**64)]
    state.generator[:] = [*halves, bits["has_uint32"], bits["uinteger"]]
    return state


def _write_vehicle(vehicle: Any, row: np.ndarray) -> None:
    row[X], row[Y] = vehicle.position
    row[HEADING], row[SPEED], row[TARGET_SPEED] = vehicle.heading, vehicle.speed, vehicle.target_speed
    row[STEERING], row[ACCELERATION] = vehicle.action["steering"], vehicle.action["acceleration"]
    row[EXPONENT] = vars(vehicle).get(DRIVEN, 0.0)
    if vehicle.impact is not None:
        row[IMPACT_X], row[IMPACT_Y] = vehicle.impact


def _write_marks(vehicle: Any, row: np.ndarray, numbers: dict[Any, int]) -> None:
    row[CRASHED], row[HIT] = vehicle.crashed, vehicle.impact is not None
    row[LANE], row[YIELDING] = numbers[vehicle.lane_index], vars(vehicle).get("is_yielding", False)
    left = [numbers[(start, end, 0)] for start, end, _ in vehicle.route]
    row[LEG] = 3 - len(left)
    row[FIRST : FIRST + 3] = [left[0]] * (3 - len(left)) + left
