"""How vehicles are driven: steering along the route, the intelligent driver model, and the bicycle model of motion.

Steering is a controller of the heading inside one of the lateral position: with the coordinates (s, r) on the lane that
is followed and the lane's heading h a little ahead,

    h_ref   = h(s + 0.1 v) + clip(arcsin(clip(-r / (0.6 v), -1, 1)), -pi/4, pi/4)
    beta    = arcsin(clip(5/2 / v * 5 wrap(h_ref - heading), -1, 1))
    delta   = clip(arctan(2 tan beta), -pi/3, pi/3)

The acceleration of other vehicles is that of the intelligent driver model, with the gap d to the vehicle in front, the
speed v_t they would like, and an exponent of each driver's own,

    gap*    = 7 + 1.5 v + v dv / (2 sqrt(18))
    a       = 6 (1 - (v / v_t)^exponent - (gap* / d)^2), clipped to +-6

and that of the ego a = (v_target - v) / 0.6. All move by a bicycle model with the slip beta = arctan(tan(delta) / 2),

    x' = v cos(heading + beta)    y' = v sin(heading + beta)    heading' = v sin(beta) / 2.5    v' = a
"""

import math
from typing import no_type_check

from lexrl.envs.intersection import lanes
from lexrl.envs.intersection.compiled import compiled
from lexrl.envs.intersection.roads import CONNECTED, LENGTH, NUM_CONNECTED, OFFSETS, SPEED_LIMIT
from lexrl.envs.intersection.state import (
    ACCELERATION,
    COUNT,
    CRASHED,
    EGO,
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
    X,
    Y,
)

LATERAL_GAIN, HEADING_GAIN, SPEED_GAIN = 1 / 0.6, 1 / 0.2, 1 / 0.6
PURSUIT = 0.5 * 0.2
"""Seconds ahead that the heading of the lane is taken."""
HALF_LENGTH = 2.5
MAX_STEERING, MAX_ACCELERATION, MAX_SPEED = math.pi / 3, 6.0, 40.0
JAM_DISTANCE, TIME_GAP, COMFORT = 7.0, 1.5, 6.0
BRAKING = 2 * math.sqrt(18.0)
SIDE = 3.0
"""A vehicle is on a lane if its center is not further from the center line: half a lane, and a meter."""


@compiled
@no_type_check
def not_zero(x):
    """A number to divide by."""
    if abs(x) > 1e-2:
        return x
    return 1e-2 if x >= 0 else -1e-2


@compiled
@no_type_check
def clip(x, limit):
    """The number, between -limit and limit."""
    return min(max(x, -limit), limit)


@compiled
@no_type_check
def follow_route(vehicle, mark):
    """Near the end of a lane, go on to the next one of the route. Vehicles leave before the last one ends."""
    lane = mark[FIRST + mark[LEG]]
    if mark[LEG] < 2 and lanes.along(lane, vehicle[X], vehicle[Y]) > LENGTH[lane] - HALF_LENGTH:
        mark[LEG] += 1


@compiled
@no_type_check
def steer(vehicle, mark):
    """Set the steering angle."""
    lane, speed = mark[FIRST + mark[LEG]], not_zero(vehicle[SPEED])
    ahead = lanes.along(lane, vehicle[X], vehicle[Y]) + vehicle[SPEED] * PURSUIT
    lateral = -LATERAL_GAIN * lanes.across(lane, vehicle[X], vehicle[Y])
    correction = clip(math.asin(clip(lateral / speed, 1.0)), math.pi / 4)
    reference = lanes.heading_at(lane, ahead) + correction
    rate = HEADING_GAIN * lanes.wrap(reference - vehicle[HEADING])
    slip = math.asin(clip(HALF_LENGTH / speed * rate, 1.0))
    vehicle[STEERING] = clip(math.atan(2 * math.tan(slip)), MAX_STEERING)


@compiled
@no_type_check
def find_front(me, lane, vehicles, count, reach):
    """The next vehicle on a lane, -1 if there is none; on the first `reach` of the lanes connected with it."""
    s = lanes.along(lane, vehicles[me, X], vehicles[me, Y])
    front, nearest = -1, math.inf
    for other in range(count):
        if other == me:
            continue
        for i in range(reach):
            near = CONNECTED[lane, i]
            if abs(lanes.across(near, vehicles[other, X], vehicles[other, Y])) > SIDE:
                continue
            place = lanes.along(near, vehicles[other, X], vehicles[other, Y])
            if lanes.is_within(near, place):
                place += OFFSETS[lane, i]
                front, nearest = (other, place) if s <= place <= nearest else (front, nearest)
                break
    return front


@compiled
@no_type_check
def intelligent_driver(me, front, vehicles, lane):
    """The acceleration behind a vehicle in front (-1: none), with distances along a lane."""
    speed = vehicles[me, SPEED]
    wanted = not_zero(min(max(vehicles[me, TARGET_SPEED], 0.0), SPEED_LIMIT))
    acceleration = COMFORT * (1 - math.pow(max(speed, 0.0) / abs(wanted), vehicles[me, EXPONENT]))
    if front < 0:
        return acceleration
    gap = lanes.along(lane, vehicles[front, X], vehicles[front, Y]) - lanes.along(
        lane, vehicles[me, X], vehicles[me, Y]
    )
    c, s = math.cos(vehicles[me, HEADING]), math.sin(vehicles[me, HEADING])
    dvx = speed * c - vehicles[front, SPEED] * math.cos(vehicles[front, HEADING])
    dvy = speed * s - vehicles[front, SPEED] * math.sin(vehicles[front, HEADING])
    wanted_gap = JAM_DISTANCE + speed * TIME_GAP + speed * (dvx * c + dvy * s) / BRAKING
    ratio = wanted_gap / not_zero(gap)
    return acceleration - COMFORT * (ratio * ratio)


@compiled
@no_type_check
def decide(vehicles, marks, counters, connected_lanes):
    """Steering and acceleration of every vehicle; those that have crashed decide nothing, but for the ego."""
    count = counters[COUNT]
    for me in range(count):
        vehicle, mark = vehicles[me], marks[me]
        is_ego = me == counters[EGO]
        if mark[CRASHED] and not is_ego:
            continue
        follow_route(vehicle, mark)
        steer(vehicle, mark)
        if is_ego:
            vehicle[ACCELERATION] = SPEED_GAIN * (vehicle[TARGET_SPEED] - vehicle[SPEED])
            continue
        lane, target = mark[LANE], mark[FIRST + mark[LEG]]
        front = find_front(me, lane, vehicles, count, NUM_CONNECTED[lane] if connected_lanes else 1)
        acceleration = intelligent_driver(me, front, vehicles, lane)
        if lane != target:
            front = find_front(me, target, vehicles, count, NUM_CONNECTED[target] if connected_lanes else 1)
            acceleration = min(acceleration, intelligent_driver(me, front, vehicles, lane))
        vehicle[ACCELERATION] = clip(acceleration, MAX_ACCELERATION)


@compiled
@no_type_check
def move(vehicle, mark, dt):
    """One sub-step of the bicycle model. Crashed vehicles brake; an impact moves a vehicle, which then has crashed."""
    if mark[CRASHED]:
        vehicle[STEERING], vehicle[ACCELERATION] = 0.0, -1.0 * vehicle[SPEED]
    if vehicle[SPEED] > MAX_SPEED:
        vehicle[ACCELERATION] = min(vehicle[ACCELERATION], MAX_SPEED - vehicle[SPEED])
    elif vehicle[SPEED] < -MAX_SPEED:
        vehicle[ACCELERATION] = max(vehicle[ACCELERATION], -MAX_SPEED - vehicle[SPEED])
    slip = math.atan(0.5 * math.tan(vehicle[STEERING]))
    vehicle[X] += vehicle[SPEED] * math.cos(vehicle[HEADING] + slip) * dt
    vehicle[Y] += vehicle[SPEED] * math.sin(vehicle[HEADING] + slip) * dt
    if mark[HIT]:
        vehicle[X] += vehicle[IMPACT_X]
        vehicle[Y] += vehicle[IMPACT_Y]
        mark[CRASHED], mark[HIT] = 1, 0
    vehicle[HEADING] += vehicle[SPEED] * math.sin(slip) / HALF_LENGTH * dt
    vehicle[SPEED] += vehicle[ACCELERATION] * dt
    mark[LANE] = lanes.closest_lane(vehicle[X], vehicle[Y], vehicle[HEADING], mark[LANE])
