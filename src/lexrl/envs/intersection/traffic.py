"""Traffic: who is on the roads in the beginning, who joins later, and who leaves."""

import math
from typing import no_type_check

import numpy as np

from lexrl.envs.intersection import generator as random
from lexrl.envs.intersection import lanes, motion
from lexrl.envs.intersection.compiled import compiled
from lexrl.envs.intersection.roads import IS_EXIT, LANE_HEADING, LENGTH, ROUTES, SPEED_LIMIT
from lexrl.envs.intersection.state import (
    COUNT,
    EGO,
    EXPONENT,
    FIRST,
    HEADING,
    LANE,
    MAX_VEHICLES,
    SPEED,
    SUBSTEPS,
    TARGET_SPEED,
    X,
    Y,
)

WARM_UP = 45
"""Sub-steps before the ego appears."""
INITIAL_PROBABILITY = 0.6
"""That a vehicle of the beginning is there at all."""
MIN_GAP, EGO_GAP = 15.0, 20.0
"""Meters from other vehicles in which none appears, and from the ego in which none may be in the beginning."""
EGO_SPEED = 9.0
"""What the ego wants at first."""
LEAVES = 20.0
"""Meters before the end of an exit where vehicles are removed."""
DESTINATION = 1
"""The ego comes from arm 0 and turns left."""


@compiled
@no_type_check
def add(vehicles, marks, counters, origin, destination, place, speed):
    """A new vehicle on an arm, after all others; its place among them."""
    me = counters[COUNT]
    counters[COUNT] += 1
    lane = ROUTES[origin, destination, 0]
    vehicles[me, :], marks[me, :] = 0.0, 0
    vehicles[me, X], vehicles[me, Y] = lanes.center_at(lane, place)
    vehicles[me, HEADING], vehicles[me, SPEED], vehicles[me, TARGET_SPEED] = LANE_HEADING[lane], speed, speed
    marks[me, FIRST : FIRST + 3] = ROUTES[origin, destination]
    marks[me, LANE] = lanes.closest_lane(vehicles[me, X], vehicles[me, Y], vehicles[me, HEADING], lane)
    return me


@compiled
@no_type_check
def gap(vehicles, i, j):
    """The distance of two vehicles' centers."""
    dx, dy = vehicles[j, X] - vehicles[i, X], vehicles[j, Y] - vehicles[i, Y]
    return math.sqrt(dx * dx + dy * dy)


@compiled
@no_type_check
def spawn(vehicles, marks, counters, generator, place, spread, probability, go_straight):
    """Try to add a vehicle at a place along a random arm, with a random destination; draws are in highway-env's order.

    `spread` scales the deviations of place and speed.
    """
    if counters[COUNT] == MAX_VEHICLES or random.uniform(generator) > probability:
        return
    origin, destination = random.two_of_four(generator)
    destination = (origin + 2) % 4 if go_straight else destination
    place = place + 5.0 + random.normal(generator) * spread[0]
    speed = 8.0 + random.normal(generator) * spread[1]
    me = add(vehicles, marks, counters, origin, destination, place, speed)
    for other in range(me):
        if gap(vehicles, other, me) < MIN_GAP:
            counters[COUNT] = me
            return
    vehicles[me, EXPONENT] = 3.5 + random.uniform(generator)


@compiled
@no_type_check
def keep(vehicles, marks, counters, staying):
    """Remove the vehicles that do not stay; the others keep their order."""
    kept = 0
    for i in range(counters[COUNT]):
        if not staying[i]:
            continue
        if i == counters[EGO]:
            counters[EGO] = kept
        if kept < i:
            vehicles[kept], marks[kept] = vehicles[i], marks[i]
        kept += 1
    counters[COUNT] = kept


@compiled
@no_type_check
def clear(vehicles, marks, counters):
    """Remove the vehicles that are about to leave."""
    staying = np.ones(MAX_VEHICLES, np.bool_)
    for i in range(counters[COUNT]):
        lane = marks[i, LANE]
        if i != counters[EGO] and IS_EXIT[lane]:
            staying[i] = lanes.along(lane, vehicles[i, X], vehicles[i, Y]) < LENGTH[lane] - LEAVES
    keep(vehicles, marks, counters, staying)


@compiled
@no_type_check
def begin(vehicles, marks, counters, generator, settings):
    """A new episode: traffic that has driven for three seconds, one more vehicle that goes straight, and the ego."""
    places, connected_lanes = settings[0], settings[2]
    counters[COUNT], counters[EGO], counters[SUBSTEPS] = 0, -1, 0
    for i in range(len(places)):
        spawn(vehicles, marks, counters, generator, places[i], (1.0, 1.0), INITIAL_PROBABILITY, False)
    for _ in range(WARM_UP):
        motion.substep(vehicles, marks, counters, connected_lanes)
    spawn(vehicles, marks, counters, generator, 60.0, (0.1, 0.0), 1.0, True)
    place = 60.0 + 5.0 * (1.0 + random.normal(generator))
    ego = add(vehicles, marks, counters, 0, DESTINATION, place, SPEED_LIMIT)
    vehicles[ego, TARGET_SPEED], counters[EGO] = EGO_SPEED, ego
    staying = np.ones(MAX_VEHICLES, np.bool_)
    for i in range(ego):
        staying[i] = gap(vehicles, ego, i) >= EGO_GAP
    keep(vehicles, marks, counters, staying)
