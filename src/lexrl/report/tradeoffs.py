"""Trade-offs between objectives: what a slack or a tolerance costs and buys, drawn from plain arrays."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl.colors import BLUE, FAINT, INK, ORANGE, RED
from lexrl.report.picture import Picture, drawing, finish, open_box


def slack_curve(
    slack: np.ndarray, first: np.ndarray, second: np.ndarray, names: tuple[str, str], title: str
) -> Picture:
    """What a slack on the first objective buys of the second, from the lexicographic optimum to the other extreme.

    Args:
        slack: on objective 1, at each corner of the curve.
        first, second: the returns of the two objectives there, in the user's signs.
        names: of the two objectives.
        title: above the axes.
    """
    with drawing(7.2, 4.2) as figure:
        axes: Any = figure.add_subplot()
        open_box(axes)
        axes.set_title(title, fontsize=12, color=INK, loc="left")
        reach = _x_limit(slack, second)
        axes.plot([*slack, max(slack[-1], reach) * 1.05 + 1e-12], [*second, second[-1]], color=BLUE, lw=2.2, zorder=2)
        axes.plot(slack[1:], second[1:], "o", ms=3.5, color=BLUE, zorder=3)
        axes.plot(slack[0], second[0], "D", ms=9, color=RED, zorder=4, clip_on=False)
        axes.annotate(
            f"lexicographic optimum\n{names[0]} {first[0]:.3g}, {names[1]} {_nearly(second[0], second[-1])}",
            (slack[0], second[0]), (14, 10), textcoords="offset points", color=RED, va="bottom",
        )  # fmt: skip
        axes.axhline(second[-1], color=FAINT, lw=1, ls="--", zorder=1)
        axes.annotate(
            f"best {names[1]} with no regard to {names[0]}: {second[-1]:.3g}",
            (1, second[-1]), (-4, -5), xycoords=("axes fraction", "data"), textcoords="offset points",
            ha="right", va="top", color=INK,
        )  # fmt: skip
        axes.set_xlim(-0.02 * reach, reach)
        axes.set_xlabel(f"slack on {names[0]}: how much worse than its best it may be")
        axes.set_ylabel(f"best {names[1]} within that slack")
        return finish(figure)


class ToleranceCurve(NamedTuple):
    """One objective in `tolerance_curves`."""

    label: str
    """Of the vertical axis."""
    exact: np.ndarray
    """`[tolerances]`"""
    bound: np.ndarray | None = None
    """`[tolerances]`: an upper bound on the exact values; with it the axis is logarithmic."""
    learned: tuple[np.ndarray, np.ndarray] | None = None
    """Some tolerances, and what each seed reached there: `[some]`, `[some, seeds]`."""


def tolerance_curves(tolerances: np.ndarray, curves: Sequence[ToleranceCurve], gap: float, title: str) -> Picture:
    """What a tolerance on actions does to each objective, the most important one on top.

    Args:
        tolerances: all above 0; the axis is logarithmic.
        curves: one for each objective.
        gap: the smallest action gap of objective 1: below it a tolerance does not change the actions it selects.
        title: above the panels.
    """
    with drawing(7.2, 2.3 * len(curves) + 0.9) as figure:
        figure.suptitle(title, color=INK, fontsize=12, x=0.01, ha="left")
        grid: Any = figure.subplots(len(curves), 1, sharex=True, squeeze=False)[:, 0]
        for axes, curve in zip(grid, curves, strict=True):
            open_box(axes)
            axes.set(xscale="log", xlim=(tolerances[0], tolerances[-1]), ylabel=curve.label)
            axes.axvspan(tolerances[0], gap, color="#F3F3F3", lw=0, zorder=0)
            axes.axvline(gap, color=FAINT, lw=1, ls="--", zorder=1)
            _tolerance_lines(axes, tolerances, curve)
        side, shift = ("right", -6) if gap**2 > tolerances[0] * tolerances[-1] else ("left", 6)  # where there is room
        grid[0].annotate(
            f"below the gap of {gap:.2g}\nobjective 1 chooses as without tolerance", (gap, 1), (shift, -4),
            xycoords=("data", "axes fraction"), textcoords="offset points", ha=side, va="top", color=INK,
        )  # fmt: skip
        grid[-1].set_xlabel("tolerance: what an action's value may fall short by, at every state")
        handles, labels = grid[0].get_legend_handles_labels()
        if len(labels) > 1:
            figure.legend(handles, labels, loc="outside lower center", ncol=len(labels), frameon=False)
        return finish(figure)


def _tolerance_lines(axes: Any, tolerances: np.ndarray, curve: ToleranceCurve) -> None:
    shown = curve.exact
    if curve.bound is not None:
        axes.set_yscale("log")
        shown = np.where(shown > 1e-12, shown, np.nan)  # a logarithmic axis has no place for 0
    axes.plot(tolerances, shown, color=BLUE, lw=2.2, drawstyle="steps-post", zorder=3, label="exact")
    if curve.bound is not None:
        axes.plot(tolerances, curve.bound, color=RED, lw=1.4, ls="--", label="bound")
    if curve.learned is not None:
        some, values = curve.learned
        axes.plot(some, values, "o", ms=4, color=ORANGE, alpha=0.3, mew=0, zorder=2, clip_on=False)
        axes.plot(
            some, values.mean(axis=1), "o-", ms=5, lw=1.6, color=ORANGE, zorder=4, clip_on=False,
            label="learned: the mean, and each seed",
        )  # fmt: skip


def _x_limit(slack: np.ndarray, second: np.ndarray) -> float:
    """1.5 times the slack at which the curve has reached 99.9 % of its rise."""
    rise = second[-1] - second[0]
    nearly = slack[np.argmax(second >= second[-1] - 1e-3 * rise)] if rise > 0 else slack[-1]
    return float(nearly) * 1.5 or 1.0


def _nearly(value: float, largest: float) -> str:
    return "≈ 0" if abs(value) < 1e-9 * abs(largest) else f"{value:.3g}"
