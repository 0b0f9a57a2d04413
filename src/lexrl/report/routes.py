"""Pictures of paths: one small panel for each seed, all its episodes on top of each other."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lexrl.colors import GREEN, ORANGE
from lexrl.report.plots import Picture

COLUMNS = 5


def cart(body: np.ndarray, tip: np.ndarray, titles: Sequence[str], safe: float, track: float) -> bytes:
    """Paths of a cart's body and its pole's tip, `[seeds, episodes, T, 2]`, between the bounds of what is safe."""

    def draw(axes: Any, place: int) -> None:
        for bound in (-safe, safe):
            axes.axvline(bound, color="0.6", linewidth=0.8, linestyle=":")
        for episode in range(tip.shape[1]):
            axes.plot(*tip[place, episode].T, color=ORANGE, linewidth=0.5, alpha=0.5)
        for episode in range(body.shape[1]):
            axes.plot(*body[place, episode].T, color=GREEN, linewidth=1.2, alpha=0.8)
        axes.set_xlim(-track - 0.2, track + 0.2)
        axes.set_ylim(-1.25, 1.25)
        axes.set_aspect("equal")

    return _panels(draw, titles, 0.62)


def grid(cells: np.ndarray, titles: Sequence[str], size: int, obstacles: np.ndarray, goal: int) -> bytes:
    """Paths through a grid, `[seeds, episodes, T]` as numbers of cells."""
    ground = np.ones((size, size, 3))
    ground[obstacles.reshape(size, size)] = 0.75
    ground[goal // size, goal % size] = (0.0, 0.62, 0.45)

    def draw(axes: Any, place: int) -> None:
        axes.imshow(ground)
        for episode in range(cells.shape[1]):
            rows, columns = np.divmod(cells[place, episode], size)
            axes.plot(columns, rows, color=ORANGE, linewidth=1.2, alpha=0.6, solid_capstyle="round")
        axes.set_xlim(-0.5, size - 0.5)
        axes.set_ylim(size - 0.5, -0.5)

    return _panels(draw, titles, 1.0)


def _panels(draw: Any, titles: Sequence[str], height: float) -> bytes:
    """A panel for each title, five in a row."""
    rows = -(-len(titles) // COLUMNS)
    figure = Figure(figsize=(10.0, rows * (2.0 * height + 0.3)))
    for place, title in enumerate(titles):
        axes = figure.add_subplot(rows, min(COLUMNS, len(titles)), place + 1)
        draw(axes, place)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_title(title, fontsize=8)
    figure.tight_layout(pad=0.4)
    return Picture(figure).png
