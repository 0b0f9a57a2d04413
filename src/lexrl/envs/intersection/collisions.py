"""Collisions of rectangles, by separating axes.

Two rectangles overlap if their shadows overlap on the normals of all sides. With the displacement of the next sub-step
added to the shadows it is known whether they *will* overlap: then both are pushed apart along the axis on which they
overlap least. As in highway-env, the search goes on with the second rectangle's normals after one of the first's has
separated them.
"""

import math
from typing import no_type_check

import numpy as np

from lexrl.envs.intersection.compiled import compiled
from lexrl.envs.intersection.state import (
    COUNT,
    CRASHED,
    HEADING,
    HIT,
    IMPACT_X,
    IMPACT_Y,
    SPEED,
    X,
    Y,
)

DIAGONAL = math.sqrt(5.0**2 + 2.0**2)
CORNERS = np.array([(-2.5, -1.0), (-2.5, 1.0), (2.5, 1.0), (2.5, -1.0)])


@compiled
@no_type_check
def corners_of(vehicle, corners):
    """The corners of a vehicle."""
    c, s = math.cos(vehicle[HEADING]), math.sin(vehicle[HEADING])
    for i in range(4):
        corners[i, 0] = c * CORNERS[i, 0] - s * CORNERS[i, 1] + vehicle[X]
        corners[i, 1] = s * CORNERS[i, 0] + c * CORNERS[i, 1] + vehicle[Y]


@compiled
@no_type_check
def shadow(corners, nx, ny):
    """The smallest and the largest coordinate of a rectangle's corners along a normal."""
    least, most = math.inf, -math.inf
    for i in range(4):
        place = corners[i, 0] * nx + corners[i, 1] * ny
        least, most = min(least, place), max(most, place)
    return least, most


@compiled
@no_type_check
def separation(least_a, most_a, least_b, most_b):
    """The distance of two intervals, negative if they overlap."""
    return least_b - most_a if least_a < least_b else least_a - most_b


@compiled
@no_type_check
def middle_of(corners, axis):
    """The center of a rectangle."""
    return (corners[0, axis] + corners[1, axis] + corners[2, axis] + corners[3, axis]) / 4


@compiled
@no_type_check
def collide(a, b, dx, dy):
    """Whether two rectangles overlap, whether they will, and how far the first one is then pushed.

    `dx, dy` is the first one's displacement relative to the second one's.
    """
    overlap, will_overlap = True, True
    smallest, push_x, push_y = math.inf, 0.0, 0.0
    for polygon in (a, b):
        for i in range(4):
            following = (i + 1) % 4
            nx, ny = -polygon[following, 1] + polygon[i, 1], polygon[following, 0] - polygon[i, 0]
            norm = math.sqrt(nx * nx + ny * ny)
            nx, ny = nx / norm, ny / norm
            (least_a, most_a), (least_b, most_b) = shadow(a, nx, ny), shadow(b, nx, ny)
            overlap = overlap and separation(least_a, most_a, least_b, most_b) <= 0
            moved = nx * dx + ny * dy
            least_a, most_a = (least_a + moved, most_a) if moved < 0 else (least_a, most_a + moved)
            gap = separation(least_a, most_a, least_b, most_b)
            will_overlap = will_overlap and gap <= 0
            if not overlap and not will_overlap:
                break
            if abs(gap) < smallest:
                smallest = abs(gap)
                towards = (middle_of(a, 0) - middle_of(b, 0)) * nx + (middle_of(a, 1) - middle_of(b, 1)) * ny
                push_x, push_y = (nx, ny) if towards > 0 else (-nx, -ny)
    return overlap, will_overlap, smallest * push_x, smallest * push_y


@compiled
@no_type_check
def resolve(i, j, vehicles, marks, dt):
    """Crashes and impacts of two vehicles that are close."""
    a, b = np.empty((4, 2)), np.empty((4, 2))
    corners_of(vehicles[i], a)
    corners_of(vehicles[j], b)
    dx = vehicles[i, SPEED] * math.cos(vehicles[i, HEADING]) * dt
    dy = vehicles[i, SPEED] * math.sin(vehicles[i, HEADING]) * dt
    dx -= vehicles[j, SPEED] * math.cos(vehicles[j, HEADING]) * dt
    dy -= vehicles[j, SPEED] * math.sin(vehicles[j, HEADING]) * dt
    overlap, will_overlap, push_x, push_y = collide(a, b, dx, dy)
    if will_overlap:
        vehicles[i, IMPACT_X], vehicles[i, IMPACT_Y] = push_x / 2, push_y / 2
        vehicles[j, IMPACT_X], vehicles[j, IMPACT_Y] = -push_x / 2, -push_y / 2
        marks[i, HIT], marks[j, HIT] = 1, 1
    if overlap:
        marks[i, CRASHED], marks[j, CRASHED] = 1, 1


@compiled
@no_type_check
def resolve_all(vehicles, marks, counters, dt):
    """All pairs, in order: of several impacts on a vehicle the last one counts."""
    count = counters[COUNT]
    for i in range(count):
        for j in range(i + 1, count):
            dx, dy = vehicles[j, X] - vehicles[i, X], vehicles[j, Y] - vehicles[i, Y]
            if math.sqrt(dx * dx + dy * dy) <= DIAGONAL + vehicles[i, SPEED] * dt:
                resolve(i, j, vehicles, marks, dt)
