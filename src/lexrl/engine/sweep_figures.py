"""What a sweep found, as small multiples."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lexrl.colors import BLUE, INK, RED
from lexrl.engine.sweeps import Sweep
from lexrl.report import stats
from lexrl.report.picture import Picture, drawing, finish, open_box


def small_multiples(found: Sweep) -> Picture:
    """A panel for each setting and objective: the returns of all combinations, by the value of that setting."""
    settings, objectives = list(found.rows[0].settings), found.confirmation.objectives
    width = min(4 * len(settings), 16)
    with drawing(max(width, 5), 2.6 * len(objectives)) as figure:
        panels: Any = figure.subplots(len(objectives), len(settings), squeeze=False)
        for i, objective in enumerate(objectives):
            for k, name in enumerate(settings):
                _panel(panels[i, k], found, name, i)
                panels[i, k].set_xlabel(name if i == len(objectives) - 1 else "")
                panels[i, k].set_ylabel(str(objective) if k == 0 else "", color=INK)
        return finish(figure)


def _panel(axes: Any, found: Sweep, name: str, i: int) -> None:
    open_box(axes)
    given = [str(row.settings[name]) for row in found.rows]
    places, ticks, log = _places(given)
    for position, row in enumerate(found.rows):
        middle, low, high = stats.mean(row.returns[:, i])
        color, above = (RED, 3) if position == found.winner else (BLUE, 2)
        axes.errorbar(
            [places[position]], [middle], [[middle - low], [high - middle]], fmt="o", ms=4, color=color, zorder=above,
            alpha=1 if position == found.winner else 0.5,
        )  # fmt: skip
    if log:
        axes.set_xscale("log")
    if ticks:
        axes.set_xticks(range(len(ticks)), ticks)


def _places(given: Sequence[str]) -> tuple[list[float], list[str], bool]:
    """Where values are drawn; their names if they are no numbers; and whether on a logarithmic scale."""
    try:
        numbers = [float(value) for value in given]
    except ValueError:
        names = list(dict.fromkeys(given))
        return [float(names.index(value)) for value in given], names, False
    spread = np.array(numbers)
    return numbers, [], bool((spread > 0).all() and spread.max() / spread.min() > 30)
