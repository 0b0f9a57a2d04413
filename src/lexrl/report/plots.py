"""Pictures: each function takes plain arrays."""

import dataclasses
import io
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from lexrl.colors import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, RED, SKY
from lexrl.errors import InputError

UNDATED = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""What to leave out of each kind of file, so that the same picture has the same bytes."""


@dataclasses.dataclass(frozen=True)
class Picture:
    """A figure of matplotlib's, and what can be made of it; a notebook shows it by itself."""

    figure: Figure

    @property
    def png(self) -> bytes:
        return self._saved("png")

    @property
    def svg(self) -> bytes:
        return self._saved("svg")

    def save(self, path: str | pathlib.Path) -> None:
        """As PNG, SVG or PDF, after the name's ending."""
        path = pathlib.Path(path)
        kind = path.suffix[1:].lower()
        if kind not in UNDATED:
            raise InputError(f"A picture cannot be saved as {path.name!r}; let the name end in .png, .svg or .pdf.")
        path.write_bytes(self._saved(kind))

    def _repr_png_(self) -> bytes:
        return self.png

    def _saved(self, kind: str) -> bytes:
        buffer = io.BytesIO()
        with matplotlib.rc_context({"svg.hashsalt": "lexrl"}):  # else the names inside are random
            self.figure.savefig(buffer, format=kind, dpi=150, facecolor="white", metadata=UNDATED[kind])
        return buffer.getvalue()


def slack_curve(
    slack: np.ndarray, first: np.ndarray, second: np.ndarray, names: tuple[str, str], title: str
) -> Picture:
    """What a slack on the first objective buys of the second, from the lexicographic optimum to the other extreme.

    Args:
        slack: what is given up of objective 1, at each corner of the curve.
        first, second: the returns of the two objectives there, in the user's signs.
        names: what the objectives are called.
        title: what the picture shows.
    """
    figure, axes = _canvas(title)
    reach = _bend(slack, second)
    axes.plot([*slack, max(slack[-1], reach) * 1.05 + 1e-12], [*second, second[-1]], color=BLUE, lw=2.2, zorder=2)
    axes.plot(slack[1:], second[1:], "o", ms=3.5, color=BLUE, zorder=3)
    axes.plot(slack[0], second[0], "D", ms=9, color=RED, zorder=4, clip_on=False)
    axes.annotate(
        f"lexicographic optimum\n{names[0]} {first[0]:.3g}, {names[1]} {_shown(second[0], second[-1])}",
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
    return _settled(figure)


class Panel(NamedTuple):
    """One objective in `tolerance_curves`."""

    label: str
    """Of the vertical axis."""
    exact: np.ndarray
    """`[tolerances]`"""
    bound: np.ndarray | None = None
    """`[tolerances]`: what the exact values cannot exceed; both are then drawn in powers of ten."""
    learned: tuple[np.ndarray, np.ndarray] | None = None
    """Some tolerances, and what each seed has there: `[some]`, `[some, seeds]`."""


def tolerance_curves(tolerances: np.ndarray, panels: Sequence[Panel], gap: float, title: str) -> Picture:
    """What a tolerance on actions does to each objective, the most important one on top.

    Args:
        tolerances: all above 0; drawn in powers of ten.
        panels: what is drawn of each objective.
        gap: the first objective's smallest one: a tolerance below it does not change what that objective chooses.
        title: what the picture shows.
    """
    figure = Figure(figsize=(7.2, 2.3 * len(panels) + 0.9), layout="constrained")
    figure.suptitle(title, color=INK, fontsize=12, x=0.01, ha="left")
    grid: Any = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, panel in zip(grid, panels, strict=True):
        _plain(axes)
        axes.set(xscale="log", xlim=(tolerances[0], tolerances[-1]), ylabel=panel.label)
        axes.axvspan(tolerances[0], gap, color="#F3F3F3", lw=0, zorder=0)
        axes.axvline(gap, color=FAINT, lw=1, ls="--", zorder=1)
        _tolerance_lines(axes, tolerances, panel)
    side, shift = ("right", -6) if gap**2 > tolerances[0] * tolerances[-1] else ("left", 6)  # where there is room
    grid[0].annotate(
        f"below the gap of {gap:.2g}\nobjective 1 chooses as without tolerance", (gap, 1), (shift, -4),
        xycoords=("data", "axes fraction"), textcoords="offset points", ha=side, va="top", color=INK,
    )  # fmt: skip
    grid[-1].set_xlabel("tolerance: what an action's value may fall short by, at every state")
    handles, labels = grid[0].get_legend_handles_labels()
    if len(labels) > 1:
        figure.legend(handles, labels, loc="outside lower center", ncol=len(labels), frameon=False)
    return _settled(figure)


def _tolerance_lines(axes: Any, tolerances: np.ndarray, panel: Panel) -> None:
    shown = panel.exact
    if panel.bound is not None:
        axes.set_yscale("log")
        shown = np.where(shown > 1e-12, shown, np.nan)  # powers of ten have no place for 0
    axes.plot(tolerances, shown, color=BLUE, lw=2.2, drawstyle="steps-post", zorder=3, label="exact")
    if panel.bound is not None:
        axes.plot(tolerances, panel.bound, color=RED, lw=1.4, ls="--", label="bound")
    if panel.learned is not None:
        some, values = panel.learned
        axes.plot(some, values, "o", ms=4, color=ORANGE, alpha=0.3, mew=0, zorder=2, clip_on=False)
        axes.plot(
            some, values.mean(axis=1), "o-", ms=5, lw=1.6, color=ORANGE, zorder=4, clip_on=False,
            label="learned: the mean, and each seed",
        )  # fmt: skip


def learning_curves(steps: np.ndarray, returns: np.ndarray, names: Sequence[str], title: str) -> Picture:
    """One panel for each objective, the most important on the left: every seed thin, their middle half shaded.

    Args:
        steps: `[points]`
        returns: `[points, seeds, M]`, in the user's signs; NaN where a seed had no episode.
        names: the objectives, as in `min cost`.
        title: what the picture shows.
    """
    figure = Figure(figsize=(4.2 * len(names) + 0.6, 3.6), layout="constrained")
    figure.suptitle(title, color=INK, fontsize=12)
    colours = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY)
    for i, name in enumerate(names):
        axes: Any = figure.add_subplot(1, len(names), i + 1)
        _plain(axes)
        colour, values = colours[i % len(colours)], returns[..., i]
        axes.plot(steps, values, color=colour, lw=0.6, alpha=0.25)
        known = np.isfinite(values).any(axis=1)
        if known.any():
            low, middle, high = np.nanquantile(values[known], [0.25, 0.5, 0.75], axis=1)
            axes.fill_between(steps[known], low, high, color=colour, alpha=0.3, lw=0)
            axes.plot(steps[known], middle, color=colour, lw=2.2)
        axes.set_title(f"{i + 1}. {name}", fontsize=11, color=INK, loc="left")
        axes.set_xlabel("steps of each seed")
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        if i == 0:
            axes.set_ylabel("per episode while learning")
    return _settled(figure)


def grid_map(
    size: int, obstacles: np.ndarray, goal: int, policy: np.ndarray, visits: np.ndarray, title: str
) -> Picture:
    """A grid with its obstacles, the policy as arrows, and how often each cell is visited.

    Args:
        size: cells on a side.
        obstacles: `[S]` mask.
        goal: the goal's cell.
        policy: `[S, 4]`, moves up, right, down, left.
        visits: `[S]`, expected (discounted) time in each cell.
        title: what the picture shows.
    """
    figure = Figure(figsize=(6.4, 6.6), layout="constrained")
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
    return _settled(figure)


def _canvas(title: str) -> tuple[Figure, Any]:
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes: Any = figure.add_subplot()
    _plain(axes)
    axes.set_title(title, fontsize=12, color=INK, loc="left")
    return figure, axes


def _settled(figure: Figure) -> Picture:
    """With a layout that is found once: every time it is found anew it is a little different, and so are the bytes."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return Picture(figure)


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK)
    axes.grid(color="#EEEEEE", lw=0.8)
    axes.set_axisbelow(True)


def _bend(slack: np.ndarray, second: np.ndarray) -> float:
    """How far to the right the picture goes: to where the curve has all but a thousandth of its rise, and half more."""
    rise = second[-1] - second[0]
    nearly = slack[np.argmax(second >= second[-1] - 1e-3 * rise)] if rise > 0 else slack[-1]
    return float(nearly) * 1.5 or 1.0


def _shown(value: float, largest: float) -> str:
    return "≈ 0" if abs(value) < 1e-9 * abs(largest) else f"{value:.3g}"
