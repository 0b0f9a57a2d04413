"""Sections that several experiments have: curves, tables and rankings of finished jobs, and answers to claims.

Curves and tables show interquartile means over seeds with 95 % bootstrap intervals.
"""

from collections.abc import Callable, Sequence

import numpy as np

from lexrl.experiments.schedule import Finished, finals
from lexrl.report import ranking, stats
from lexrl.report.panels import Panel, Series
from lexrl.report.sections.claims import Answer
from lexrl.report.sections.curves import Curves
from lexrl.report.sections.front import Points
from lexrl.report.sections.plane import Plane
from lexrl.report.sections.ranking import Ranking
from lexrl.report.sections.table import Cell, Table, number
from lexrl.report.stats import Interval


def curves(name: str, title: str, results: Sequence[Finished]) -> Curves:
    """The returns while learning, one panel for each objective."""
    panels = []
    for i, objective in enumerate(results[0].found.objectives):
        series = []
        for one in results:
            steps, values = one.found.curves()
            series.append(Series(one.job.label, steps, *stats.band(values[:, :, i])))
        panels.append(Panel(str(objective), f"{objective.name} per episode", False, tuple(series)))
    caption = "While learning, with exploration: the interquartile mean of the seeds and its 95 % bootstrap interval."
    return Curves(name, title, caption, "environment steps", tuple(panels))


def plane(name: str, title: str, results: Sequence[Finished]) -> Plane:
    """What the policies reach on fresh episodes, in the plane of the first two objectives."""
    first, second = results[0].found.objectives[:2]
    points = []
    for one in results:
        values, stopped = finals(one), {int(seed) for seed in one.summary["stopped"]}
        seeds = tuple(seed for seed in one.found.about["seeds"] if seed not in stopped)
        points.append(Points(one.job.label, values[:, 0], values[:, 1], seeds))
    caption = "Policies on fresh episodes: every seed small, their mean large with its 95 % intervals."
    return Plane(name, title, caption, f"{first} per episode", f"{second} per episode", tuple(points))


def final_table(name: str, title: str, results: Sequence[Finished]) -> Table:
    """What the greedy policies reach on fresh episodes."""
    objectives = results[0].found.objectives
    heads = ("algorithm", *(str(objective) for objective in objectives), "worst seed", "steps", "minutes")
    rows = []
    for one in results:
        values = finals(one)
        worst = [(one.sign * values[:, i]).min() * one.sign for i, one in enumerate(objectives)]
        minutes = one.summary["seconds"] / 60
        row = (
            Cell(one.job.label),
            *(cell(stats.bootstrap([values[:, i]])) for i in range(values.shape[1])),
            Cell(", ".join(f"{value:.4g}" for value in worst), float(worst[0])),
            number(one.job.total_timesteps),
            Cell(f"{minutes:.1f}", minutes),
        )
        rows.append(row)
    episodes = results[0].summary["eval_episodes"]
    caption = f"Greedy policies on {episodes:,} fresh episodes: interquartile mean of seeds [95 % bootstrap interval]."
    return Table(name, title, caption, heads, tuple(rows))


def rank(name: str, title: str, results: Sequence[Finished], tolerance: Sequence[float]) -> Ranking:
    """Which algorithm is better than which, objective by objective, and with what probability."""
    objectives = results[0].found.objectives
    found = ranking.rank([finals(one) for one in results], [one.sign for one in objectives], list(tolerance))
    labels = tuple(one.job.label for one in results)
    within = ", ".join(f"{one.name} {value:g}" for one, value in zip(objectives, tolerance, strict=True))
    caption = (
        "Compared objective by objective, the most important first; one decides where the means differ by more than "
        f"the tolerance ({within}). Algorithms in one class cannot be distinguished with 95 % confidence. The matrix "
        "gives the probability that the row is better than the column, by bootstrap over seeds."
    )
    classes = tuple(tuple(labels[i] for i in members) for members in found.classes)
    return Ranking(name, title, caption, labels, classes, np.round(found.over, 4))


def cell(interval: Interval) -> Cell:
    """An interval in a table, sorted by its middle."""
    return Cell(str(interval), float(interval.middle))


def decide(yes: bool, no: bool) -> Answer:
    """The answer to a claim that the seeds confirm, refute, or leave open."""
    return "yes" if yes else "no" if no else "not decidable"


def decide_by_resampling(
    violations: Callable[[np.ndarray], np.ndarray], results: Sequence[Finished]
) -> tuple[Answer, str]:
    """Whether a claim holds for the means of some jobs, by resampling their seeds, and in how many resamples it did.

    The answer is no only if one and the same part of the claim is violated in nearly every resample: noise violates
    different parts in different resamples.

    Args:
        violations: from means `[resamples, jobs, M]` to what is violated, `[resamples, parts]`.
        results: the jobs.
    """
    means = [
        ranking.resampled_means(finals(one), ranking.RESAMPLES, np.random.default_rng(i))
        for i, one in enumerate(results)
    ]
    if any(np.isnan(each).any() for each in means):
        return "not decidable", "a run has fewer than two seeds"
    violated = violations(np.stack(means, axis=1))
    share = float(1 - violated.any(axis=1).mean())
    answer = decide(share >= ranking.SURE, bool((violated.mean(axis=0) >= ranking.SURE).any()))
    return answer, f"true in {share:.0%} of the resamples of seeds"
