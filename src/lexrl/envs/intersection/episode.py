"""One intersection: a decision of the ego, what follows from it, and what is observed."""

import math
from typing import no_type_check

import numpy as np

from lexrl.envs.intersection import lanes, motion, traffic
from lexrl.envs.intersection.compiled import compiled
from lexrl.envs.intersection.roads import IS_EXIT
from lexrl.envs.intersection.state import (
    COUNT,
    CRASHED,
    EGO,
    HEADING,
    LANE,
    MAX_VEHICLES,
    NUM_ROWS,
    POSITION_RANGE,
    SPEED,
    SPEED_RANGE,
    TARGET_SPEED,
    X,
    Y,
)

FAR, BEHIND = 200.0, -10.0
"""Vehicles at this distance, or as far behind along the ego's lane, are not observed."""
ARRIVED = 25.0
"""Meters along an exit where the ego has arrived."""
SLOWER, IDLE, FASTER = range(3)
NUM_SPEEDS, SPEED_STEP = 3, 4.5
"""The ego's target speeds are 0, 4.5 and 9 m/s."""


@compiled
@no_type_check
def choose_speed(ego, action):
    """The target speed after an action: one more or less than the one nearest to the current speed."""
    if action == IDLE:
        return
    top = (NUM_SPEEDS - 1) * SPEED_STEP
    nearest = min(max(round(ego[SPEED] / top * (NUM_SPEEDS - 1)), 0), NUM_SPEEDS - 1)
    index = min(max(nearest + (1 if action == FASTER else -1), 0), NUM_SPEEDS - 1)
    ego[TARGET_SPEED] = index * SPEED_STEP


@compiled
@no_type_check
def step(vehicles, marks, counters, generator, action, settings, signals, obs):
    """One second: signals and the observation of what it leads to; then vehicles leave and join. True: it ended."""
    choose_speed(vehicles[counters[EGO]], action)
    for _ in range(motion.FREQUENCY):
        motion.substep(vehicles, marks, counters, settings[2])
    ego, mark = vehicles[counters[EGO]], marks[counters[EGO]]
    crashed = mark[CRASHED] == 1
    arrived = IS_EXIT[mark[LANE]] and lanes.along(mark[LANE], ego[X], ego[Y]) >= ARRIVED
    signals[0], signals[1] = crashed, arrived
    observe(vehicles, marks, counters, obs)
    traffic.clear(vehicles, marks, counters)
    traffic.spawn(vehicles, marks, counters, generator, 0.0, (1.0, 1.0), settings[1], False)
    return crashed or arrived


@compiled
@no_type_check
def observe(vehicles, marks, counters, obs):
    """Write the observation: rows of vehicles, sorted by how far they are along the ego's lane; the rest is 0."""
    ego, count = counters[EGO], counters[COUNT]
    lane = marks[ego, LANE]
    own = lanes.along(lane, vehicles[ego, X], vehicles[ego, Y])
    found, distances = np.empty(MAX_VEHICLES, np.int64), np.empty(MAX_VEHICLES)
    seen = 0
    for i in range(count):
        if i == ego or not traffic.gap(vehicles, ego, i) < FAR:
            continue
        ahead = lanes.along(lane, vehicles[i, X], vehicles[i, Y]) - own
        if not ahead > BEHIND:
            continue
        place = seen
        while place > 0 and distances[place - 1] > abs(ahead):
            found[place], distances[place] = found[place - 1], distances[place - 1]
            place -= 1
        found[place], distances[place] = i, abs(ahead)
        seen += 1
    obs[:] = 0.0
    write_row(vehicles[ego], obs[0])
    for row in range(min(seen, NUM_ROWS - 1)):
        write_row(vehicles[found[row]], obs[row + 1])


@compiled
@no_type_check
def scaled(value, limit):
    """From [-limit, limit] to [-1, 1], clipped, in highway-env's order of operations."""
    return min(max(-1 + (value + limit) * 2 / (limit + limit), -1.0), 1.0)


@compiled
@no_type_check
def write_row(vehicle, row):
    """The features of a vehicle."""
    c, s = math.cos(vehicle[HEADING]), math.sin(vehicle[HEADING])
    row[0] = 1.0
    row[1], row[2] = scaled(vehicle[X], POSITION_RANGE), scaled(vehicle[Y], POSITION_RANGE)
    row[3], row[4] = scaled(vehicle[SPEED] * c, SPEED_RANGE), scaled(vehicle[SPEED] * s, SPEED_RANGE)
    row[5], row[6] = c, s
