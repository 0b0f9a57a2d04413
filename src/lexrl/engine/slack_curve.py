"""The learned slack curve of a sweep over tolerances: what objective 1 gives up, and what objective 2 gains.

Where the environment is finite, both are exact discounted returns of the learned policies, measured from the
lexicographic optimum, next to the best that any policy can do with that slack. Elsewhere they are returns per episode,
measured from the smallest tolerance of the sweep.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from lexrl import exact
from lexrl.colors import BLUE, INK, ORANGE
from lexrl.engine.swept import Row, Sweep
from lexrl.errors import InputError
from lexrl.report import stats
from lexrl.report.picture import Picture, drawing, finish, open_box
from lexrl.runs.optimum import GAMMA
from lexrl.runs.run import Run
from lexrl.types import HasGamma, HasModel

SETTING = "tolerance"
MOST_STATES = 5_000
"""The exact curve of larger environments takes too long."""


class Point(NamedTuple):
    """One tolerance."""

    tolerance: float
    given_up: stats.Interval
    """Of objective 1; below 0 if it was better than without the tolerance."""
    gained: stats.Interval
    """Of objective 2."""
    best: float | None
    """What objective 2 gains at best, exactly, if objective 1 gives up the tolerance."""


def points(found: Sweep) -> list[Point]:
    """The curve; empty if the sweep was over something else, or has no second objective."""
    rows = [row for row in found.rows if not row.why]
    known = [_number(row.settings.get(SETTING)) for row in rows]
    if set(found.rows[0].settings) != {SETTING} or None in known or len(found.base.order.objectives) < 2 or not rows:
        return []
    ordered = sorted(zip(known, rows, strict=True), key=lambda pair: float(pair[0] or 0))
    curve = _exact(found.base, [float(tolerance or 0) for tolerance, _ in ordered])
    signs = found.base.order.signs[:2]
    if curve is None or any(row.exact is None for row in rows):
        first = ordered[0][1]
        return [_relative(float(tolerance or 0), row, first, signs) for tolerance, row in ordered]
    optimum, gains = curve
    return [
        _absolute(float(tolerance or 0), row, signs, optimum, gain)
        for (tolerance, row), gain in zip(ordered, gains, strict=True)
    ]


def _number(given: Any) -> float | None:
    try:
        found = float(given)
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) and found >= 0 else None


def _relative(tolerance: float, row: Row, first: Row, signs: np.ndarray) -> Point:
    lost = stats.difference(signs[0] * first.returns[:, 0], signs[0] * row.returns[:, 0])
    gained = stats.difference(signs[1] * row.returns[:, 1], signs[1] * first.returns[:, 1])
    return Point(tolerance, lost, gained, None)


def _absolute(tolerance: float, row: Row, signs: np.ndarray, optimum: np.ndarray, best: float) -> Point:
    assert row.exact is not None
    reached = signs * row.exact[:, :2]
    return Point(tolerance, stats.mean(optimum[0] - reached[:, 0]), stats.mean(reached[:, 1] - optimum[1]), best)


def _exact(run: Run, slacks: list[float]) -> tuple[np.ndarray, list[float]] | None:
    """The lexicographic optimum `(J_1, J_2)`, both maximized, and what objective 2 gains by each slack at best."""
    algorithm = run.algorithm
    if not isinstance(run.env, HasModel):
        return None
    gamma = algorithm.gamma if isinstance(algorithm, HasGamma) else GAMMA
    try:
        process = run.env.momdp(run.order.discounts(gamma, run.env.spec.signals))
        if process.num_states > MOST_STATES:
            return None
        found = exact.critical_slack(process, run.order, [0.0, *slacks])
    except InputError:  # discounts that differ, or are 1
        return None
    optimum = np.asarray(found[0].returns, float)
    return optimum, [float(point.returns[1] - optimum[1]) for point in found[1:]]


def table(found: list[Point], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows of `learned-slack.csv`."""
    rows = []
    for point in found:
        row: dict[str, Any] = {"tolerance": point.tolerance}
        for what, each in ((f"{names[0]}_given_up", point.given_up), (f"{names[1]}_gained", point.gained)):
            row |= {what: each.middle, f"{what}_low": each.low, f"{what}_high": each.high}
        rows.append(row | {f"{names[1]}_gained_at_best": "" if point.best is None else point.best})
    return rows


def draw(found: list[Point], names: tuple[str, ...], title: str) -> Picture:
    """Both as functions of the tolerance."""
    x = np.array([point.tolerance for point in found])
    panels = [(f"{names[0]} given up", [point.given_up for point in found], [x, "the tolerance itself"])]
    best: list[Any] = [np.array([point.best for point in found], float), "the best that any policy can do"]
    panels.append((f"{names[1]} gained", [point.gained for point in found], best))
    with drawing(10, 4) as figure:
        for i, (label, each, (line, meaning)) in enumerate(panels):
            axes: Any = figure.add_subplot(1, 2, i + 1)
            open_box(axes)
            middle, low, high = np.array(each, float).T
            axes.errorbar(x, middle, [middle - low, high - middle], fmt="o-", color=BLUE, capsize=3, label="learned")
            if np.isfinite(line).any():
                axes.plot(x, line, color=ORANGE, ls="--", label=meaning)
            axes.set(xlabel="tolerance", ylabel=label)
            axes.legend(frameon=False)
        figure.suptitle(title, fontsize=12, color=INK, x=0.01, ha="left")
        return finish(figure)
