"""The right of way: every seven sub-steps, whoever would meet a vehicle with a higher priority must stop.

Each vehicle is expected to go on along its route at its speed. Where two rectangles, half as long again as vehicles,
would overlap within 2.75 s, the vehicle on the lane with the lower priority wants a speed of 0; if both lanes are
alike, the one behind. The ego obeys only its actions, but others yield to it.

Two details are those of highway-env: the coordinate along the *closest* lane is used on the lane that is *followed*,
and points are turned by the rectangle's angle, not back by it, before they are compared with its sides.
"""

import math
from typing import no_type_check

import numpy as np

from lexrl.envs.intersection import lanes
from lexrl.envs.intersection.compiled import compiled
from lexrl.envs.intersection.roads import LENGTH, PRIORITY, SPEED_LIMIT
from lexrl.envs.intersection.state import (
    COUNT,
    EGO,
    FIRST,
    HEADING,
    LANE,
    LEG,
    MAX_VEHICLES,
    SPEED,
    TARGET_SPEED,
    YIELDING,
    X,
    Y,
)

NUM_TIMES, STEP = 11, 0.25
"""How many times ahead are compared, and the seconds between them."""
REACH = 5.0
"""Vehicles whose centers are further apart do not meet."""
HALF_LONG, HALF_WIDE = 1.5 * 5.0 / 2, 0.9 * 2.0 / 2
"""Half the sides of the rectangles."""
CORNERS = np.array([(i * HALF_LONG, j * HALF_WIDE) for i in (-1, 0, 1) for j in (-1, 0, 1)])
"""Corners, middles of sides and center."""


@compiled
@no_type_check
def predict(vehicle, mark, expected):
    """Positions and headings along the route at a constant speed, `[times, 3]`."""
    s = lanes.along(mark[LANE], vehicle[X], vehicle[Y])
    for i in range(NUM_TIMES):
        ahead, leg = s + vehicle[SPEED] * (STEP * (i + 1)), mark[LEG]
        while leg < 2 and ahead > LENGTH[mark[FIRST + leg]]:
            ahead -= LENGTH[mark[FIRST + leg]]
            leg += 1
        lane = mark[FIRST + leg]
        expected[i, 0], expected[i, 1] = lanes.center_at(lane, ahead)
        expected[i, 2] = lanes.heading_at(lane, ahead)


@compiled
@no_type_check
def reaches_into(one, other):
    """Whether a corner of one rectangle lies inside the other, as highway-env turns it."""
    c, s = math.cos(one[2]), math.sin(one[2])
    c_other, s_other = math.cos(other[2]), math.sin(other[2])
    for i in range(9):
        dx = c * CORNERS[i, 0] - s * CORNERS[i, 1] + one[0] - other[0]
        dy = s * CORNERS[i, 0] + c * CORNERS[i, 1] + one[1] - other[1]
        long, wide = c_other * dx - s_other * dy, s_other * dx + c_other * dy
        if -HALF_LONG <= long <= HALF_LONG and -HALF_WIDE <= wide <= HALF_WIDE:
            return True
    return False


@compiled
@no_type_check
def will_meet(one, other):
    """Whether two predictions `[times, 3]` come too close."""
    for i in range(NUM_TIMES):
        dx, dy = other[i, 0] - one[i, 0], other[i, 1] - one[i, 1]
        if math.sqrt(dx * dx + dy * dy) > REACH:
            continue
        if reaches_into(one[i], other[i]) or reaches_into(other[i], one[i]):
            return True
    return False


@compiled
@no_type_check
def ahead_of(one, other):
    """How far in front of a vehicle another one is."""
    dx, dy = other[X] - one[X], other[Y] - one[Y]
    return math.cos(one[HEADING]) * dx + math.sin(one[HEADING]) * dy


@compiled
@no_type_check
def who_yields(i, j, vehicles, marks):
    """The one of two vehicles that must stop."""
    first, second = PRIORITY[marks[i, LANE]], PRIORITY[marks[j, LANE]]
    if first != second:
        return j if first > second else i
    return i if ahead_of(vehicles[i], vehicles[j]) > ahead_of(vehicles[j], vehicles[i]) else j


@compiled
@no_type_check
def enforce(vehicles, marks, counters):
    """Let those go who had to stop, and find those who must stop now."""
    count = counters[COUNT]
    expected = np.empty((MAX_VEHICLES, NUM_TIMES, 3))
    for i in range(count):
        if marks[i, YIELDING]:
            vehicles[i, TARGET_SPEED], marks[i, YIELDING] = SPEED_LIMIT, 0
        predict(vehicles[i], marks[i], expected[i])
    for i in range(count - 1):
        for j in range(i + 1, count):
            slow = who_yields(i, j, vehicles, marks) if will_meet(expected[i], expected[j]) else -1
            if slow >= 0 and slow != counters[EGO]:
                vehicles[slow, TARGET_SPEED], marks[slow, YIELDING] = 0.0, 1
