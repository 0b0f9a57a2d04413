"""Maps: a policy on a grid, and trajectories of a cart or on a grid, drawn from plain arrays."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lexrl.colors import BLUE, GREEN, INK, ORANGE, RED
from lexrl.report.picture import Picture, drawing, finish

COLUMNS = 5
"""Panels side by side, one for each seed."""


def grid_policy(
    size: int, obstacles: np.ndarray, goal: int, policy: np.ndarray, visits: np.ndarray, title: str
) -> Picture:
    """A grid with its obstacles, the policy as arrows, and how often each cell is visited.

    Args:
        size: cells on a side.
        obstacles: `[S]` mask.
        goal: the goal's cell.
        policy: `[S, 4]`, the probabilities of moving up, right, down, left.
        visits: `[S]`, expected (discounted) time in each cell.
        title: above the map.
    """
    with drawing(6.4, 6.6) as figure:
        axes: Any = figure.add_subplot()
        share = visits / max(visits.sum(), 1e-12)
        axes.imshow((share.reshape(size, size)) ** 0.33, cmap="Blues", vmin=0, vmax=1)
        rows, columns = np.divmod(np.arange(size**2), size)
        axes.plot(columns[obstacles], rows[obstacles], "s", color="#444444", ms=210 / size, ls="", label="obstacle")
        free = ~obstacles & (np.arange(size**2) != goal) & (np.ptp(policy, axis=1) > 1e-9)
        right, down = policy[:, 1] - policy[:, 3], policy[:, 2] - policy[:, 0]
        axes.quiver(
            columns[free], rows[free], right[free], down[free], angles="xy", scale=size * 1.3, width=0.0035, color=INK
        )
        axes.plot(goal % size, goal // size, "*", color=ORANGE, ms=min(420 / size, 24), label="goal", mec=INK)
        axes.plot(size - 1, size - 1, "o", color=RED, ms=min(200 / size, 14), label="start", mec=INK)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_title(title, fontsize=12, color=INK)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncol=3, frameon=False, markerscale=0.7)
        return finish(figure)


def cart_trajectories(
    cart: np.ndarray, tip: np.ndarray, titles: Sequence[str], boundary: float, track: float
) -> Picture:
    """Trajectories of a cart and of its pole's tip, `[seeds, episodes, T, 2]`, one panel for each seed.

    Args:
        cart, tip: positions x and y.
        titles: one for each seed.
        boundary: the cart is safe between plus and minus this x.
        track: the track ends at plus and minus this x.
    """

    def draw(axes: Any, seed: int) -> None:
        for bound in (-boundary, boundary):
            axes.axvline(bound, color="0.6", linewidth=0.8, linestyle=":")
        for episode in range(tip.shape[1]):
            axes.plot(*tip[seed, episode].T, color=ORANGE, linewidth=0.5, alpha=0.5)
        for episode in range(cart.shape[1]):
            axes.plot(*cart[seed, episode].T, color=GREEN, linewidth=1.2, alpha=0.8)
        axes.set_xlim(-track - 0.2, track + 0.2)
        axes.set_ylim(-1.25, 1.25)
        axes.set_aspect("equal")

    return _panels(draw, titles, 0.62)


def grid_trajectories(cells: np.ndarray, titles: Sequence[str], size: int, obstacles: np.ndarray, goal: int) -> Picture:
    """Trajectories on a grid, `[seeds, episodes, T]` as indices of cells, one panel for each seed."""
    background = np.ones((size, size, 3))
    background[obstacles.reshape(size, size)] = 0.75
    background[goal // size, goal % size] = (0.0, 0.62, 0.45)

    def draw(axes: Any, seed: int) -> None:
        axes.imshow(background)
        for episode in range(cells.shape[1]):
            rows, columns = np.divmod(cells[seed, episode], size)
            axes.plot(columns, rows, color=ORANGE, linewidth=1.2, alpha=0.6, solid_capstyle="round")
        axes.set_xlim(-0.5, size - 0.5)
        axes.set_ylim(size - 0.5, -0.5)

    return _panels(draw, titles, 1.0)


def crossing_trajectories(places: np.ndarray, titles: Sequence[str], width: float, outer: float) -> Picture:
    """Trajectories at a crossing, `[seeds, episodes, T, vehicles, 2]`, one panel for each seed.

    Args:
        places: positions x and y in meters, the ego first, NaN for absent vehicles; y points south.
        titles: one for each seed.
        width: of a lane.
        outer: distance from the center where the arms begin.
    """
    reach = 60.0

    def draw(axes: Any, seed: int) -> None:
        for across in (-width, 0.0, width):
            style: dict[str, Any] = {"color": "0.8", "linewidth": 0.8, "linestyle": "-" if across else ":"}
            for start, end in ((-reach, -outer), (outer, reach)):
                axes.plot([start, end], [across, across], **style)
                axes.plot([across, across], [start, end], **style)
        others = places[seed, :, :, 1:].reshape(-1, 2)
        axes.plot(*others.T, ".", color="0.6", markersize=1.5, alpha=0.35)
        for episode in range(places.shape[1]):
            path = places[seed, episode, :, 0]
            axes.plot(*path.T, color=BLUE, linewidth=1.2, alpha=0.7, solid_capstyle="round")
            axes.plot(*path[-1:].T, "o", color=BLUE, markersize=2.5)
        axes.set_xlim(-reach, reach)
        axes.set_ylim(reach, -reach)
        axes.set_aspect("equal")

    return _panels(draw, titles, 1.0)


def _panels(draw: Callable[[Any, int], None], titles: Sequence[str], height: float) -> Picture:
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
    return Picture(figure)
