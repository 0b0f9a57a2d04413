"""How each learner looks in every chart of a page: one colour, one dash and one marker, by day and by night.

The colours keep their distance for any colour vision (simulated), and have a contrast of 3 to 1 with their ground.
"""

import math
from collections.abc import Mapping, Sequence

LIGHT = (
    "#0059CA", "#CF730A", "#0E8F4F", "#835499", "#B42217", "#5399E3", "#C68293", "#672824", "#271C3A",
)  # fmt: skip
DARK = (
    "#4C8DFF", "#FFAF1F", "#35E287", "#B48BDC", "#F05626", "#96E0FE", "#FF85B5", "#B18068", "#F8FFDE",
)  # fmt: skip
DASHES = ("", "7 3", "2 2.5", "9 3 2 3", "14 4")
"""As in SVG: lengths of strokes and gaps; the first is a solid line."""
Corner = tuple[float | int, float | int]
SHAPES: tuple[tuple[str, tuple[Corner, ...]], ...] = (
    ("o", ()),
    ("s", ((-3.5, -3.5), (3.5, -3.5), (3.5, 3.5), (-3.5, 3.5))),
    ("^", ((0, -4.6), (4.4, 3), (-4.4, 3))),
    ("D", ((0, -4.8), (4.8, 0), (0, 4.8), (-4.8, 0))),
    ("v", ((0, 4.6), (4.4, -3), (-4.4, -3))),
    ("P", ((-1.5, -4.5), (1.5, -4.5), (1.5, -1.5), (4.5, -1.5), (4.5, 1.5), (1.5, 1.5), (1.5, 4.5), (-1.5, 4.5),
           (-1.5, 1.5), (-4.5, 1.5), (-4.5, -1.5), (-1.5, -1.5))),
    ("p", ((0, -4.5), (4.3, -1.4), (2.7, 3.7), (-2.7, 3.7), (-4.3, -1.4))),
    ("X", ((-4.2, -2.1), (-2.1, -4.2), (0, -2.1), (2.1, -4.2), (4.2, -2.1), (2.1, 0), (4.2, 2.1), (2.1, 4.2),
           (0, 2.1), (-2.1, 4.2), (-4.2, 2.1), (-2.1, 0))),
    ("h", ((0, -4.6), (4, -2.3), (4, 2.3), (0, 4.6), (-4, 2.3), (-4, -2.3))),
)  # fmt: skip
"""Markers: their names in matplotlib, and their corners; the one without corners is a circle."""

Looks = Mapping[str, int]
"""The number of each label's look."""


def colour(number: int) -> int:
    return number % len(LIGHT)


def dash(number: int) -> str:
    """Labels with one colour have different dashes."""
    return DASHES[(number + 2 * (number // len(LIGHT))) % len(DASHES)]


def marker(number: int) -> str:
    """The name of a marker in matplotlib; labels with one colour have different ones."""
    return _shape(number)[0]


def outline(number: int, size: float = 1.0) -> str:
    """A marker as an SVG path around the point where it begins."""
    corners = _shape(number)[1]
    if not corners:
        radius = f"{4 * size:.3g}"
        return f"m-{radius} 0a{radius} {radius} 0 1 0 {8 * size:.3g} 0a{radius} {radius} 0 1 0-{8 * size:.3g} 0z"
    steps = [(x - a, y - b) for (a, b), (x, y) in zip([(0, 0), *corners], corners, strict=False)]
    return "m" + "l".join(f"{size * x:.3g} {size * y:.3g}" for x, y in steps) + "z"


def _shape(number: int) -> tuple[str, tuple[Corner, ...]]:
    return SHAPES[(number + number // len(LIGHT)) % len(SHAPES)]


def assigned(chapters: Sequence[Sequence[str]]) -> dict[str, int]:
    """A look for each label: the same in all chapters, and within one of different colours while there are any."""
    looks: dict[str, int] = {}
    for labels in chapters:
        seen = {colour(looks[label]) for label in labels if label in looks}
        for label in labels:
            if label in looks:
                continue
            taken = set(looks.values())
            free = [number for number in range(len(looks) + len(LIGHT) + 1) if number not in taken]
            fresh = [number for number in free if colour(number) not in seen]
            looks[label] = (fresh or free)[0]
            seen.add(colour(looks[label]))
    return looks


def log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Round numbers between two positive ones: three to seven where there are as many."""
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        ticks = [each * 10.0**power for power in decades for each in steps if low <= each * 10.0**power <= high]
        if len(ticks) >= 3:
            break
    return tuple(ticks[:: math.ceil(len(ticks) / 7) or 1])
