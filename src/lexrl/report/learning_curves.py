"""The learning curves of one run, drawn from plain arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import EngFormatter

from lexrl.colors import BLUE, GREEN, INK, ORANGE, PURPLE, RED, SKY
from lexrl.report.picture import Picture, drawing, finish, open_box

COLORS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY)


def draw(steps: np.ndarray, returns: np.ndarray, names: Sequence[str], title: str) -> Picture:
    """One panel for each objective, the most important on the left: thin lines for seeds, their middle half shaded.

    Args:
        steps: `[points]`
        returns: `[points, seeds, M]`, in the user's signs; NaN where a seed finished no episode.
        names: the objectives, as in `min cost`.
        title: above the panels.
    """
    with drawing(4.2 * len(names) + 0.6, 3.6) as figure:
        figure.suptitle(title, color=INK, fontsize=12)
        for i, name in enumerate(names):
            axes: Any = figure.add_subplot(1, len(names), i + 1)
            open_box(axes)
            _lines(axes, steps, returns[..., i], COLORS[i % len(COLORS)])
            axes.set_title(f"{i + 1}. {name}", fontsize=11, color=INK, loc="left")
            axes.set_xlabel("steps of each seed")
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
            if i == 0:
                axes.set_ylabel("per episode while learning")
        return finish(figure)


def _lines(axes: Any, steps: np.ndarray, values: np.ndarray, color: str) -> None:
    axes.plot(steps, values, color=color, lw=0.6, alpha=0.25)
    known = np.isfinite(values).any(axis=1)
    if not known.any():
        return
    low, median, high = np.nanquantile(values[known], [0.25, 0.5, 0.75], axis=1)
    axes.fill_between(steps[known], low, high, color=color, alpha=0.3, lw=0)
    axes.plot(steps[known], median, color=color, lw=2.2)
