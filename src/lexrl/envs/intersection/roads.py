"""The roads: four arms of 100 m that meet at right angles, and the lanes across the middle; y points south.

Each arm (0 south, 1 west, 2 north, 3 east) has five lanes: one that comes in, from which one can turn right, turn left
or go straight, and one that leaves by the arm to its right. The index of a lane is 5 arm + kind; of two lanes that are
equally close to a vehicle the first one counts, so that the numbers matter.

    incoming  -> right turn -> exit of the arm on the right
              -> left turn  -> exit of the arm on the left
              -> straight   -> exit of the arm across

Everything is computed in plain floating point, without linear algebra, whose last digits depend on the machine.
"""

import math
from typing import NamedTuple

import numpy as np

WIDTH, SPEED_LIMIT, ACCESS = 4.0, 10.0, 100.0
RIGHT_RADIUS = WIDTH + 5.0
LEFT_RADIUS = RIGHT_RADIUS + WIDTH
OUTER = RIGHT_RADIUS + WIDTH / 2
"""Distance from the center where the arms begin."""
INCOMING, RIGHT, LEFT, STRAIGHT, EXIT = range(5)
NUM_LANES = 20


class Lane(NamedTuple):
    """A straight lane, or a part of a circle if it has a radius."""

    x: float
    y: float
    """Where it starts, or the center of the circle."""
    priority: int
    """The lane with the higher one has the right of way."""
    length: float
    along_x: float = 0.0
    along_y: float = 0.0
    """Direction of a straight lane."""
    heading: float = 0.0
    radius: float = 0.0
    phase: float = 0.0
    """Angle on the circle where the lane starts."""
    turn: float = 0.0
    """1: clockwise as seen on the screen, where y points down; -1: counterclockwise."""


def _straight(start: tuple[float, float], end: tuple[float, float], priority: int) -> Lane:
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.sqrt(dx * dx + dy * dy)
    return Lane(*start, priority, length, dx / length, dy / length, math.atan2(dy, dx))


def _arm(arm: int) -> list[Lane]:
    """The five lanes of an arm: those of arm 0, turned."""
    angle = math.radians(90 * arm)
    c, s = math.cos(angle), math.sin(angle)

    def turned(x: float, y: float) -> tuple[float, float]:
        return c * x - s * y, s * x + c * y

    priority = 3 if arm % 2 else 1  # the road from west to east has the right of way
    side, back = WIDTH / 2, LEFT_RADIUS - WIDTH / 2
    first, last = angle + math.radians(180), angle + math.radians(270)
    right = Lane(
        *turned(OUTER, OUTER), priority, RIGHT_RADIUS * (last - first), 0.0, 0.0, 0.0, RIGHT_RADIUS, first, 1.0
    )
    first, last = angle + math.radians(0), angle + math.radians(-90)
    left = Lane(
        *turned(-back, back), priority - 1, LEFT_RADIUS * (last - first) * -1, 0.0, 0.0, 0.0, LEFT_RADIUS, first, -1.0
    )
    return [
        _straight(turned(side, ACCESS + OUTER), turned(side, OUTER), priority),
        right,
        left,
        _straight(turned(side, OUTER), turned(side, -OUTER), priority),
        _straight(turned(OUTER, side), turned(ACCESS + OUTER, side), priority),
    ]


LANES = [lane for arm in range(4) for lane in _arm(arm)]
"""By number."""


def exit_of(arm: int) -> int:
    """The lane that leaves by an arm; it belongs to the arm on its left."""
    return 5 * ((arm + 1) % 4) + EXIT


def _route(origin: int, destination: int) -> tuple[int, int, int]:
    """The lanes from one arm to another; one's own cannot be a destination."""
    kind = {1: LEFT, 2: STRAIGHT, 3: RIGHT}.get((destination - origin) % 4, INCOMING)
    return 5 * origin + INCOMING, 5 * origin + kind, exit_of(destination)


ROUTES = np.array([[_route(origin, destination) for destination in range(4)] for origin in range(4)])
"""`[origin, destination, 3]`"""


def _ends(lane: int) -> tuple[str, str]:
    """Names of the places that a lane connects."""
    arm, kind = divmod(lane, 5)
    beyond = {INCOMING: arm, RIGHT: (arm - 1) % 4, LEFT: (arm + 1) % 4, STRAIGHT: (arm + 2) % 4, EXIT: (arm - 1) % 4}
    if kind == INCOMING:
        return f"outer {arm}", f"in {arm}"
    return (f"out {beyond[kind]}", f"outer {beyond[kind]}") if kind == EXIT else (f"in {arm}", f"out {beyond[kind]}")


def _connected(lane: int) -> list[tuple[int, float]]:
    """The lane itself, those that continue it and those that lead to it, and where they begin along it."""
    start, end = _ends(lane)
    after = [(other, LANES[lane].length) for other in range(NUM_LANES) if _ends(other)[0] == end]
    before = [(other, -LANES[other].length) for other in range(NUM_LANES) if _ends(other)[1] == start]
    return [(lane, 0.0), *after, *before]


_NEARBY = [_connected(lane) for lane in range(NUM_LANES)]
NUM_CONNECTED = np.array([len(each) for each in _NEARBY])
CONNECTED = np.array([[lane for lane, _ in (each + each)[:5]] for each in _NEARBY])
OFFSETS = np.array([[offset for _, offset in (each + each)[:5]] for each in _NEARBY])

START = np.array([(lane.x, lane.y) for lane in LANES])
ALONG = np.array([(lane.along_x, lane.along_y) for lane in LANES])
LANE_HEADING = np.array([lane.heading for lane in LANES])
LENGTH = np.array([lane.length for lane in LANES])
RADIUS = np.array([lane.radius for lane in LANES])
PHASE = np.array([lane.phase for lane in LANES])
TURN = np.array([lane.turn for lane in LANES])
PRIORITY = np.array([lane.priority for lane in LANES])
IS_EXIT = np.array([lane % 5 == EXIT for lane in range(NUM_LANES)])
