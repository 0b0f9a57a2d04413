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
SHAPES: tuple[tuple[Corner, ...], ...] = (
    (),
    ((-3.5, -3.5), (3.5, -3.5), (3.5, 3.5), (-3.5, 3.5)),
    ((0, -4.6), (4.4, 3), (-4.4, 3)),
    ((0, -4.8), (4.8, 0), (0, 4.8), (-4.8, 0)),
    ((0, 4.6), (4.4, -3), (-4.4, -3)),
    ((-1.5, -4.5), (1.5, -4.5), (1.5, -1.5), (4.5, -1.5), (4.5, 1.5), (1.5, 1.5), (1.5, 4.5), (-1.5, 4.5),
     (-1.5, 1.5), (-4.5, 1.5), (-4.5, -1.5), (-1.5, -1.5)),
    ((0, -4.5), (4.3, -1.4), (2.7, 3.7), (-2.7, 3.7), (-4.3, -1.4)),
    ((-4.2, -2.1), (-2.1, -4.2), (0, -2.1), (2.1, -4.2), (4.2, -2.1), (2.1, 0), (4.2, 2.1), (2.1, 4.2), (0, 2.1),
     (-2.1, 4.2), (-4.2, 2.1), (-2.1, 0)),
    ((0, -4.6), (4, -2.3), (4, 2.3), (0, 4.6), (-4, 2.3), (-4, -2.3)),
)  # fmt: skip
"""Markers by their corners; the one without corners is a circle."""
CIRCLE = "M10 6a4 4 0 1 0 8 0a4 4 0 1 0-8 0z"
"""In a swatch."""

Palette = Mapping[str, int]
"""The number of each label's style."""


def color(number: int) -> int:
    """The number of a style's color in `LIGHT` and `DARK`."""
    return number % len(LIGHT)


def dash(number: int) -> str:
    """The dash pattern; styles that share a color have different ones."""
    return DASHES[(number + 2 * (number // len(LIGHT))) % len(DASHES)]


def dashes(number: int) -> list[float]:
    """The dash pattern as a list of lengths, as in Vega-Lite."""
    return [float(each) for each in dash(number).split()] or [1.0, 0.0]


def variable(number: int) -> str:
    """The CSS variable that holds a style's color."""
    return f"var(--k{color(number)})"


def shape(number: int) -> str:
    """The marker as Vega-Lite has it: a path within the unit square; styles that share a color have different ones."""
    corners = _corners(number)
    return "M" + "L".join(f"{x / 5:.3g},{y / 5:.3g}" for x, y in corners) + "Z" if corners else "circle"


def swatch(label: str, styles: Palette) -> str:
    """A short piece of a label's line as SVG, for legends and tables."""
    if label not in styles:
        return "<svg class='swatch exact' viewBox='0 0 28 12' aria-hidden=true><path class=m d='M1 6h26'/></svg>"
    number, corners = styles[label], _corners(styles[label])
    pattern = f" stroke-dasharray='{dash(number)}'" if dash(number) else ""
    outline = "M" + "L".join(f"{x + 14:g} {y + 6:g}" for x, y in corners) + "z" if corners else CIRCLE
    return (
        f"<svg class='swatch k{color(number)}' viewBox='0 0 28 12' aria-hidden=true>"
        f"<path class=m{pattern} d='M1 6h26'/><path class=end d='{outline}'/></svg>"
    )


def _corners(number: int) -> tuple[Corner, ...]:
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
