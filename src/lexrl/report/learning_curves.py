"""The learning curves of one run, from plain arrays: sections of a page, and one chart."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lexrl.report import marks, palette, panels
from lexrl.report.chart import Chart
from lexrl.report.marks import Axis
from lexrl.report.panels import Panel, Series
from lexrl.report.sections.curves import Curves

MEDIAN, THRESHOLD = "median of the seeds", "threshold"
MAX_SEEDS = 20
"""Lines of single seeds; more would be a cloud, which the shaded middle half shows as well."""


class Learned(NamedTuple):
    """What a run measured while it learned, in the user's signs."""

    steps: np.ndarray
    """`[points]`"""
    metrics: Mapping[str, np.ndarray]
    """`[points, seeds]` or `[points, seeds, M]`; at least `episode_return`, NaN where a seed finished no episode."""
    objectives: Sequence[str]
    """As in `min cost`."""
    names: Sequence[str]
    """As in `cost`."""
    seeds: Sequence[int]


def draw(learned: Learned, title: str) -> Chart:
    """One panel for each objective, the most important on the left: thin lines for seeds, their middle half shaded."""
    drawn, known = returns(learned).panels, (MEDIAN,)
    across = Axis("steps of each seed", marks.fit([learned.steps], False))
    styles = palette.assign([known])
    return Chart(marks.together(title, [panels.spec(each, across, known, styles, panels.lines) for each in drawn]))


def sections(learned: Learned) -> list[Curves]:
    """The returns, and for an algorithm with stages what it keeps in each."""
    kept = thresholds(learned)
    return [returns(learned), *([kept] if kept is not None else [])]


def returns(learned: Learned) -> Curves:
    """Returns per episode while learning."""
    drawn = [
        Panel(
            f"{i + 1}. {objective}", f"{learned.names[i]} per episode, while learning", False,
            (_middle(learned, learned.metrics["episode_return"][..., i]),),
            _seeds(learned, learned.metrics["episode_return"][..., i]), _stages(learned),
        )
        for i, objective in enumerate(learned.objectives)
    ]  # fmt: skip
    marked = " A stage begins where half of the seeds have reached it." if _stages(learned) else ""
    caption = f"Every seed thin, their median thick, their middle half shaded.{marked}"
    return Curves("curves", "Learning curves", caption, "steps of each seed", tuple(drawn))


def thresholds(learned: Learned) -> Curves | None:
    """What a stage must keep of the objectives before it, and what the algorithm estimates; None without stages."""
    if not {"stage", "threshold", "return_estimate"} <= learned.metrics.keys():
        return None
    drawn = []
    for i, objective in enumerate(learned.objectives[:-1]):
        # Before its stage is over an objective has no threshold yet.
        passed = learned.metrics["stage"] > i + 1
        threshold = np.where(passed, learned.metrics["threshold"][..., i], np.nan)
        if np.isfinite(threshold).any():
            lines = (
                _middle(learned, learned.metrics["return_estimate"][..., i]),
                _middle(learned, threshold)._replace(label=THRESHOLD),
            )
            name = f"{learned.names[i]}, discounted"
            drawn.append(Panel(f"{i + 1}. {objective}", name, False, lines, (), _stages(learned)))
    if not drawn:
        return None
    caption = "The discounted return as the algorithm estimates it, and the threshold that later stages keep to."
    return Curves("thresholds", "What later stages keep", caption, "steps of each seed", tuple(drawn))


def _middle(learned: Learned, values: np.ndarray) -> Series:
    """The median of the seeds that are known, and their quartiles."""
    low, median, high = (np.full(len(values), np.nan) for _ in range(3))
    known = np.isfinite(values).any(axis=1)
    if known.any():
        low[known], median[known], high[known] = np.nanquantile(values[known], [0.25, 0.5, 0.75], axis=1)
    return Series(MEDIAN, learned.steps.astype(float), median, low, high)


def _seeds(learned: Learned, values: np.ndarray) -> tuple[Series, ...]:
    none = np.full(len(values), np.nan)
    steps = learned.steps.astype(float)
    columns = list(zip(learned.seeds, values.T, strict=True))
    return tuple(Series(f"seed {seed}", steps, column, none, none) for seed, column in columns[:MAX_SEEDS])


def _stages(learned: Learned) -> tuple[tuple[float, str], ...]:
    """Where each stage after the first begins."""
    if "stage" not in learned.metrics:
        return ()
    half = np.nanmedian(learned.metrics["stage"], axis=1)
    found = []
    for stage in range(2, len(learned.names) + 1):
        reached = np.flatnonzero(half >= stage)
        if reached.size:
            found.append((float(learned.steps[reached[0]]), f"stage {stage}: {learned.names[stage - 1]}"))
    return tuple(found)
