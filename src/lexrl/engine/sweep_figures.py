"""What a sweep found, as small multiples."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lexrl.colors import BLUE, INK, RED
from lexrl.engine.swept import Sweep
from lexrl.report import stats
from lexrl.report.picture import Picture, drawing, finish, open_box

MAX_TICKS = 5
"""With more values than so many, ticks are where matplotlib puts them."""


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


def _panel(axes: Any, found: Any, name: str, i: int) -> None:
    from matplotlib import ticker  # takes its time to import

    open_box(axes)
    given = [str(row.settings[name]) for row in found.rows]
    places, ticks, log = _places(given)
    first, last = min(places), max(places)
    for position, (row, aside) in enumerate(zip(found.rows, _beside(given), strict=True)):
        place = places[position] * (last / first) ** aside if log else places[position] + aside * ((last - first) or 1)
        middle, low, high = stats.mean(row.returns[:, i])
        color, above = (RED, 3) if position == found.winner else (BLUE, 2)
        axes.errorbar(
            [place], [middle], [[middle - low], [high - middle]], fmt="o", ms=4, color=color, zorder=above,
            alpha=1 if position == found.winner else 0.5,
        )  # fmt: skip
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    if ticks:
        axes.set_xticks([place for place, _ in ticks], [text for _, text in ticks])


def _beside(given: Sequence[str]) -> list[float]:
    """How far aside each is drawn, as a share of the axis, so that those of the same value do not hide each other."""
    number = {value: iter(range(given.count(value))) for value in given}
    return [
        (next(number[value]) - (given.count(value) - 1) / 2) * min(0.02, 0.15 / given.count(value)) for value in given
    ]


def _places(given: Sequence[str]) -> tuple[list[float], list[tuple[float, str]], bool]:
    """Where values are drawn; ticks for a few of them, or for names; and whether on a logarithmic scale."""
    names = list(dict.fromkeys(given))
    try:
        numbers = [float(value) for value in given]
    except ValueError:
        return [float(names.index(value)) for value in given], [(float(k), one) for k, one in enumerate(names)], False
    spread = np.array(numbers)
    if (spread > 0).all() and spread.max() / spread.min() > 30:
        return numbers, [], True
    few = sorted((float(name), name) for name in names) if len(names) <= MAX_TICKS else []
    gap = np.diff([place for place, _ in few]).min(initial=np.inf)
    return numbers, few if gap > np.ptp(spread) / 10 else [], False
