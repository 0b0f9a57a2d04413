"""Pictures of the environments' states: each function returns an RGB frame, `[height, width, 3]`.

Zones that cost are hatched in red and obstacles dark, goals are orange, what moves is blue, and red where it is being
charged. Everything is drawn three times as large as it is shown, which makes the edges smooth.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from lexrl.colors import BLUE, FAINT, INK, ORANGE, RED, WHITE, mix

FINER = 3
Number = float | int  # beartype takes no int for a float
Point = tuple[Number, Number]


class Sheet(NamedTuple):
    """A picture in the making, in the environment's coordinates: x to the right, y upwards."""

    image: Image.Image
    pen: ImageDraw.ImageDraw
    left: float
    top: float
    scale: float
    """Pixels per unit."""

    def at(self, points: Iterable[Point]) -> list[Point]:
        return [((x - self.left) * self.scale, (self.top - y) * self.scale) for x, y in points]

    def box(self, left: Number, bottom: Number, right: Number, top: Number, color: str, round: Number = 0.0) -> None:
        corners = self.at([(left, top), (right, bottom)])
        self.pen.rounded_rectangle([*corners[0], *corners[1]], round * self.scale, fill=color)

    def shape(self, points: Iterable[Point], color: str) -> None:
        self.pen.polygon(self.at(points), fill=color)

    def disc(self, center: Point, radius: Number, color: str) -> None:
        x, y = center
        corners = self.at([(x - radius, y + radius), (x + radius, y - radius)])
        self.pen.ellipse([*corners[0], *corners[1]], fill=color)

    def line(self, points: Iterable[Point], width: Number, color: str) -> None:
        """With round ends; `width` in pixels of the finished picture."""
        dots = self.at(points)
        self.pen.line(dots, fill=color, width=round(width * FINER), joint="curve")
        half = width * FINER / 2
        for x, y in (dots[0], dots[-1]):
            self.pen.ellipse([x - half, y - half, x + half, y + half], fill=color)

    def warn(self, left: Number, bottom: Number, right: Number, top: Number) -> None:
        """Tint and hatch an area where every step costs; hatching is visible without colors, too."""
        (x_0, y_0), (x_1, y_1) = (map(round, corner) for corner in self.at([(left, top), (right, bottom)]))
        width, height = x_1 - x_0, y_1 - y_0
        part = Image.new("RGB", (width, height), mix(RED, 0.13))
        pen = ImageDraw.Draw(part)
        for start in range(-height, width, 14 * FINER):
            pen.line([(start, height), (start + height, 0)], fill=mix(RED, 0.28), width=2 * FINER)
        self.image.paste(part, (x_0, y_0))

    def frame(self) -> np.ndarray:
        return np.array(self.image.reduce(FINER))


def cart(position: float, angle: float, length: float, safe: float, track: float) -> np.ndarray:
    """A cart on its track, with a pole.

    Args:
        position: of the cart, 0 in the center.
        angle: of the pole, 0 upright, growing to the right.
        length: of the pole.
        safe: how far from the center the cart is safe.
        track: how far from the center the track ends.
    """
    half, high = track + 0.4, 1.3 * length
    sheet = make_sheet(600, -half, half, -high, high)
    for side in (-1, 1):
        sheet.warn(min(side * safe, side * track), -high, max(side * safe, side * track), high)
        sheet.box(min(side * track, side * half), -high, max(side * track, side * half), high, mix(FAINT, 0.5))
        sheet.line([(side * safe, -high), (side * safe, high)], 1.5, mix(RED, 0.6))
    sheet.line([(-track, -0.16), (track, -0.16)], 3, INK)
    for side in (-1, 1):
        sheet.line([(side * track, -0.16), (side * track, 0.1)], 5, INK)
    for wheel in (-0.14, 0.14):
        sheet.disc((position + wheel, -0.1), 0.07, INK)
    sheet.box(position - 0.27, -0.09, position + 0.27, 0.13, RED if abs(position) > safe else BLUE, 0.05)
    tip = (position + length * math.sin(angle), length * math.cos(angle))
    sheet.line([(position, 0.0), tip], 9, WHITE)
    sheet.line([(position, 0.0), tip], 6, ORANGE)
    sheet.disc(tip, 0.07, ORANGE)
    sheet.disc((position, 0.0), 0.05, INK)
    return sheet.frame()


def hill(position: float, left: float, right: float, boundary: float, goal: float) -> np.ndarray:
    """A car between two hills.

    Args:
        position: of the car.
        left, right: the track's ends.
        boundary: every step to its left costs.
        goal: where the flag is.
    """
    sheet = make_sheet(600, left - 0.03, right + 0.03, -0.05, 1.2)
    sheet.warn(left - 0.03, -0.05, boundary, 1.2)
    sheet.line([(boundary, -0.05), (boundary, 1.2)], 1.5, mix(RED, 0.6))
    ground = [(x, _height(x)) for x in np.linspace(left - 0.06, right + 0.06, 200).tolist()]
    sheet.shape([*ground, (right + 0.06, -0.1), (left - 0.06, -0.1)], mix(FAINT, 0.55))
    sheet.line(ground, 3, mix(INK, 0.8))
    foot = _height(goal)
    sheet.line([(goal, foot), (goal, foot + 0.19)], 3, INK)
    sheet.shape([(goal, foot + 0.19), (goal + 0.11, foot + 0.15), (goal, foot + 0.11)], ORANGE)
    tilt = math.atan2(_height(position + 1e-3) - _height(position - 1e-3), 2e-3)

    def on_car(points: Iterable[Point]) -> list[Point]:
        """Points of a level car that stands in the origin, where they are on the slope."""
        c, s = math.cos(tilt), math.sin(tilt)
        return [(position + c * x - s * y, _height(position) + s * x + c * y) for x, y in points]

    color = RED if position < boundary else BLUE
    sheet.shape(on_car(_rounded(-0.075, 0.022, 0.075, 0.058, 0.012)), color)
    sheet.shape(on_car([(-0.052, 0.055), (-0.034, 0.088), (0.026, 0.088), (0.046, 0.055)]), color)
    sheet.shape(on_car([(-0.038, 0.058), (-0.027, 0.079), (-0.007, 0.079), (-0.007, 0.058)]), mix(color, 0.2))
    sheet.shape(on_car([(0.003, 0.058), (0.003, 0.079), (0.02, 0.079), (0.032, 0.058)]), mix(color, 0.2))
    for wheel in on_car([(-0.043, 0.022), (0.043, 0.022)]):
        sheet.disc(wheel, 0.022, INK)
        sheet.disc(wheel, 0.008, FAINT)
    return sheet.frame()


def grid(size: int, obstacles: np.ndarray, goal: int, cell: int) -> np.ndarray:
    """A grid with obstacles.

    Args:
        size: rows and columns.
        obstacles: `[S]` mask of the cells that cost.
        goal: the goal's cell.
        cell: where the agent is.
    """
    sheet = make_sheet(600, -0.2, size + 0.2, -size - 0.2, 0.2)
    thick = 0.06 * sheet.scale / FINER
    for position in range(size + 1):
        sheet.line([(0, -position), (size, -position)], thick, mix(FAINT, 0.6))
        sheet.line([(position, 0), (position, -size)], thick, mix(FAINT, 0.6))
    for number in np.flatnonzero(obstacles).tolist():
        row, column = divmod(number, size)
        sheet.box(column + 0.04, -row - 0.96, column + 0.96, -row - 0.04, mix(INK, 0.75), 0.12)
    row, column = divmod(goal, size)
    sheet.shape(_star((column + 0.5, -row - 0.53), 0.46), ORANGE)
    row, column = divmod(cell, size)
    sheet.disc((column + 0.5, -row - 0.5), 0.4, WHITE)
    sheet.disc((column + 0.5, -row - 0.5), 0.34, RED if obstacles[cell] else BLUE)
    return sheet.frame()


def make_sheet(width: int, left: Number, right: Number, bottom: Number, top: Number) -> Sheet:
    """An empty picture of a part of the plane, `width` pixels across."""
    scale = width / (right - left)
    # Video players expect even numbers of pixels.
    size = width, 2 * round((top - bottom) * scale / 2)
    image = Image.new("RGB", (size[0] * FINER, size[1] * FINER), WHITE)
    return Sheet(image, ImageDraw.Draw(image), left, top, scale * FINER)


def _height(x: float) -> float:
    return 0.5 + 0.42 * math.sin(3 * x)


def _rounded(left: float, bottom: float, right: float, top: float, round: float) -> list[Point]:
    """A rectangle with round corners as a polygon, which can be turned."""
    corners = [(right, top, 0), (left, top, 1), (left, bottom, 2), (right, bottom, 3)]
    points = []
    for x, y, quarter in corners:
        center = x - math.copysign(round, x - (left + right) / 2), y - math.copysign(round, y - (bottom + top) / 2)
        turns = (math.pi / 2 * (quarter + part / 6) for part in range(7))
        points += [(center[0] + round * math.cos(turn), center[1] + round * math.sin(turn)) for turn in turns]
    return points


def _star(center: Point, radius: Number) -> list[Point]:
    turns = [(math.pi * part / 5, radius if part % 2 == 0 else 0.42 * radius) for part in range(10)]
    return [(center[0] + r * math.sin(turn), center[1] + r * math.cos(turn)) for turn, r in turns]
