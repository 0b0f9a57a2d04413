"""The style of each label in every chart of a page: a color, a dash pattern and a marker, in light and dark mode.

The colors stay distinguishable for any color vision (simulated) and have a contrast of 3 to 1 with the background.
"""

from collections.abc import Mapping, Sequence

LIGHT = (
    "#0059CA", "#CF730A", "#0E8F4F", "#835499", "#B42217", "#5399E3", "#C68293", "#672824", "#271C3A",
)  # fmt: skip
DARK = (
    "#4C8DFF", "#FFAF1F", "#35E287", "#B48BDC", "#F05626", "#96E0FE", "#FF85B5", "#B18068", "#F8FFDE",
)  # fmt: skip
DASHES = ("", "7 3", "2 2.5", "9 3 2 3", "14 4")
"""As in SVG: lengths of dashes and gaps; the first is a solid line."""
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
"""Markers: the name in matplotlib and the corners; the one without corners is a circle."""

Palette = Mapping[str, int]
"""The number of each label's style."""


def color(number: int) -> int:
    """The number of a style's color in `LIGHT` and `DARK`."""
    return number % len(LIGHT)


def dash(number: int) -> str:
    """The dash pattern; styles that share a color have different ones."""
    return DASHES[(number + 2 * (number // len(LIGHT))) % len(DASHES)]


def marker(number: int) -> str:
    """The marker's name in matplotlib; styles that share a color have different ones."""
    return _shape(number)[0]


def outline(number: int, size: float = 1.0) -> str:
    """The marker as an SVG path relative to its center."""
    corners = _shape(number)[1]
    if not corners:
        radius = f"{4 * size:.3g}"
        return f"m-{radius} 0a{radius} {radius} 0 1 0 {8 * size:.3g} 0a{radius} {radius} 0 1 0-{8 * size:.3g} 0z"
    steps = [(x - a, y - b) for (a, b), (x, y) in zip([(0, 0), *corners], corners, strict=False)]
    return "m" + "l".join(f"{size * x:.3g} {size * y:.3g}" for x, y in steps) + "z"


def _shape(number: int) -> tuple[str, tuple[Corner, ...]]:
    return SHAPES[(number + number // len(LIGHT)) % len(SHAPES)]


def assign(chapters: Sequence[Sequence[str]]) -> dict[str, int]:
    """A style for each label: the same in all chapters, with different colors within a chapter while they last."""
    styles: dict[str, int] = {}
    for labels in chapters:
        seen = {color(styles[label]) for label in labels if label in styles}
        for label in labels:
            if label in styles:
                continue
            taken = set(styles.values())
            free = [number for number in range(len(styles) + len(LIGHT) + 1) if number not in taken]
            fresh = [number for number in free if color(number) not in seen]
            styles[label] = (fresh or free)[0]
            seen.add(color(styles[label]))
    return styles
