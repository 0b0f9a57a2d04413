"""Vehicles and lanes: coordinates along and across a lane, and which lane is the closest.

Along a straight lane with start p and direction d, a point q has the coordinates

    s = (q - p) . d                    r = (q - p) . d'            d' is d turned by 90 degrees

and along a part of a circle with center p, radius R, initial phase a and turn t = +-1

    s = t R wrap(angle(q - p) - a)     r = t (R - |q - p|)
"""

import math
from typing import no_type_check

from lexrl.envs.intersection.compiled import compiled
from lexrl.envs.intersection.roads import ALONG, LANE_HEADING, LENGTH, NUM_LANES, PHASE, RADIUS, START, TURN

MARGIN = 5.0
"""Meters before the start and after the end of a lane that still belong to it: a vehicle's length."""


@compiled
@no_type_check
def wrap(angle):
    """The angle in [-pi, pi)."""
    shifted = angle + math.pi
    full = 2 * math.pi
    return (shifted if 0.0 <= shifted < full else shifted % full) - math.pi


@compiled
@no_type_check
def along(lane, x, y):
    """How far along a lane a point is."""
    dx, dy = x - START[lane, 0], y - START[lane, 1]
    if RADIUS[lane] == 0.0:
        return dx * ALONG[lane, 0] + dy * ALONG[lane, 1]
    # The phase is added and taken away again as in highway-env, which rounds twice.
    phase = PHASE[lane] + wrap(math.atan2(dy, dx) - PHASE[lane])
    return TURN[lane] * (phase - PHASE[lane]) * RADIUS[lane]


@compiled
@no_type_check
def across(lane, x, y):
    """How far to the side of a lane's center line a point is."""
    dx, dy = x - START[lane, 0], y - START[lane, 1]
    if RADIUS[lane] == 0.0:
        return dx * -ALONG[lane, 1] + dy * ALONG[lane, 0]
    return TURN[lane] * (RADIUS[lane] - math.sqrt(dx * dx + dy * dy))


@compiled
@no_type_check
def heading_at(lane, s):
    """The heading of a lane."""
    if RADIUS[lane] == 0.0:
        return LANE_HEADING[lane]
    return TURN[lane] * s / RADIUS[lane] + PHASE[lane] + math.pi / 2 * TURN[lane]


@compiled
@no_type_check
def center_at(lane, s):
    """A point on a lane's center line."""
    if RADIUS[lane] == 0.0:
        return START[lane, 0] + s * ALONG[lane, 0], START[lane, 1] + s * ALONG[lane, 1]
    phase = TURN[lane] * s / RADIUS[lane] + PHASE[lane]
    return START[lane, 0] + RADIUS[lane] * math.cos(phase), START[lane, 1] + RADIUS[lane] * math.sin(phase)


@compiled
@no_type_check
def is_within(lane, s):
    """Whether a coordinate along a lane belongs to it."""
    return -MARGIN <= s < LENGTH[lane] + MARGIN


@compiled
@no_type_check
def distance(lane, x, y, heading, best):
    """|r| + what s is beyond the lane's ends + the angle to the lane; anything larger than `best` as soon as it is."""
    far = abs(across(lane, x, y))
    if far > best:
        return far
    s = along(lane, x, y)
    far = far + max(s - LENGTH[lane], 0.0) + max(0.0 - s, 0.0)
    if far > best:
        return far
    return far + abs(wrap(heading - heading_at(lane, s)))


@compiled
@no_type_check
def closest_lane(x, y, heading, guess):
    """The lane with the smallest distance, of equal ones the first. A good guess only saves time."""
    closest, best = guess, distance(guess, x, y, heading, math.inf)
    for lane in range(NUM_LANES):
        if lane == guess:
            continue
        far = distance(lane, x, y, heading, best)
        if far < best or (far == best and lane < closest):
            closest, best = lane, far
    return closest
