"""A picture of an intersection: roads, vehicles with their windscreens in front, the ego in color, crashes marked."""

import math

import numpy as np

from lexrl.colors import BLUE, FAINT, INK, ORANGE, RED, WHITE, mix
from lexrl.envs.drawing import Point, Sheet, make_sheet
from lexrl.envs.intersection.roads import OUTER, WIDTH
from lexrl.envs.intersection.state import COUNT, CRASHED, EGO, HEADING, State, X, Y

PIXELS, REACH = 600, 60.0
"""Size of the picture, and the meters from the center that it shows."""
HALF_LENGTH, HALF_WIDTH = 2.5, 1.0
GOAL = (-OUTER - 25.0, WIDTH / 2)
"""Where the ego has arrived, with y pointing north."""


def draw(state: State) -> np.ndarray:
    """A frame `[height, width, 3]` of one intersection."""
    sheet = make_sheet(PIXELS, -REACH, REACH, -REACH, REACH)
    draw_roads(sheet)
    x, y = GOAL
    sheet.box(x - 0.5, y - WIDTH / 2, x + 0.5, y + WIDTH / 2, ORANGE)
    count, ego = int(state.counters[COUNT]), int(state.counters[EGO])
    for i in sorted(range(count), key=lambda i: i == ego):
        vehicle, crashed = state.vehicles[i], bool(state.marks[i, CRASHED])
        color = RED if crashed and i == ego else BLUE if i == ego else mix(INK, 0.55)
        _draw_vehicle(sheet, vehicle, color)
        if crashed:
            _draw_cross(sheet, (float(vehicle[X]), -float(vehicle[Y])), RED if i != ego else INK)
    return sheet.frame()


def draw_roads(sheet: Sheet) -> None:
    """Two roads of two lanes each, with rounded corners between them."""
    asphalt = mix(FAINT, 0.45)
    sheet.box(-REACH, -WIDTH, REACH, WIDTH, asphalt)
    sheet.box(-WIDTH, -REACH, WIDTH, REACH, asphalt)
    sheet.box(-OUTER, -OUTER, OUTER, OUTER, asphalt)
    for i in (-1, 1):
        for j in (-1, 1):
            sheet.disc((i * OUTER, j * OUTER), OUTER - WIDTH, WHITE)
    for sign in (-1, 1):
        for start in np.arange(OUTER, REACH, 4.0).tolist():
            sheet.line([(sign * start, 0.0), (sign * (start + 2.0), 0.0)], 1.5, WHITE)
            sheet.line([(0.0, sign * start), (0.0, sign * (start + 2.0))], 1.5, WHITE)


def _draw_vehicle(sheet: Sheet, vehicle: np.ndarray, color: str) -> None:
    sheet.shape(_placed(vehicle, -HALF_LENGTH, HALF_LENGTH, HALF_WIDTH), color)
    sheet.shape(_placed(vehicle, 0.5, 1.5, 0.75 * HALF_WIDTH), mix(color, 0.35))


def _draw_cross(sheet: Sheet, center: Point, color: str) -> None:
    x, y = center
    for side in (-1, 1):
        sheet.line([(x - 1.6, y - side * 1.6), (x + 1.6, y + side * 1.6)], 3, color)


def _placed(vehicle: np.ndarray, back: float, front: float, side: float) -> list[Point]:
    """A rectangle of a vehicle in the picture, where y points up: the state's y points south."""
    x, y, heading = float(vehicle[X]), float(vehicle[Y]), float(vehicle[HEADING])
    c, s = math.cos(heading), math.sin(heading)
    local = [(back, -side), (back, side), (front, side), (front, -side)]
    return [(x + c * long - s * wide, -(y + s * long + c * wide)) for long, wide in local]
