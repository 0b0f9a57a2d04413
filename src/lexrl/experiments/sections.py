"""What experiments show, as plain data: a report draws it without knowing what was run.

Every function gives a section of `experiment.json`: curves, tables, rankings, claims. Curves and tables are
interquartile means over seeds with 95 % bootstrap intervals.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from lexrl.experiments.schedule import Finished, finals
from lexrl.report import ranking, stats
from lexrl.report.stats import Interval

Section = dict[str, Any]
Seen = Literal["yes", "no", "not decidable"]


def curves(name: str, title: str, done: Sequence[Finished], caption: str = "") -> Section:
    """The returns while learning, one panel for each objective."""
    panels = []
    for i, objective in enumerate(done[0].found.objectives):
        series = []
        for one in done:
            steps, values = one.found.curves()
            band = stats.band(values[:, :, i])
            series.append(
                {
                    "label": one.job.label,
                    "x": steps.tolist(),
                    **{part: numbers(values) for part, values in band._asdict().items()},
                }
            )
        panels.append({"title": str(objective), "y": f"{objective.name} per episode", "log": False, "series": series})
    told = "While learning, with exploration: the interquartile mean of the seeds and its 95 % bootstrap interval."
    return {
        "kind": "curves",
        "name": name,
        "title": title,
        "caption": f"{told} {caption}".strip(),
        "x": "environment steps",
        "panels": panels,
    }


def final_table(name: str, title: str, done: Sequence[Finished], caption: str = "") -> Section:
    """What the greedy policies reach on fresh episodes."""
    objectives = done[0].found.objectives
    heads = ["algorithm", *(str(objective) for objective in objectives), "worst seed", "steps", "minutes"]
    rows = []
    for one in done:
        values = finals(one)
        worst = [(one.sign * values[:, i]).min() * one.sign for i, one in enumerate(objectives)]
        minutes = one.summary["seconds"] / 60
        rows.append(
            [
                one.job.label,
                *(cell(stats.bootstrap([values[:, i]])) for i in range(values.shape[1])),
                {"value": float(worst[0]), "text": ", ".join(f"{value:.4g}" for value in worst)},
                {"value": one.job.steps, "text": f"{one.job.steps:,}"},
                {"value": minutes, "text": f"{minutes:.1f}"},
            ]
        )
    told = "Greedy policies on 100 fresh episodes: interquartile mean of the seeds [95 % bootstrap interval]."
    return table(name, title, heads, rows, f"{told} {caption}".strip())


def table(name: str, title: str, heads: Sequence[str], rows: Sequence[Any], caption: str = "") -> Section:
    return {"kind": "table", "name": name, "title": title, "caption": caption, "heads": list(heads), "rows": list(rows)}


def ranks(name: str, title: str, done: Sequence[Finished], tolerance: Sequence[float]) -> Section:
    """Who is better than whom, objective by objective, and how sure that is."""
    objectives = done[0].found.objectives
    found = ranking.ranking([finals(one) for one in done], [one.sign for one in objectives], list(tolerance))
    labels = [one.job.label for one in done]
    within = ", ".join(f"{one.name} {value:g}" for one, value in zip(objectives, tolerance, strict=True))
    return {
        "kind": "ranking",
        "name": name,
        "title": title,
        "caption": (
            "Compared objective by objective, the most important first; one decides where the means differ by more "
            f"than the tolerance ({within}). Learners in one class are not told apart with 95 % confidence. The matrix "
            "gives the probability that the row is better than the column, by bootstrap over seeds."
        ),
        "labels": labels,
        "classes": [[labels[i] for i in members] for members in found.classes],
        "matrix": np.round(found.over, 4).tolist(),
    }


def claims(title: str, rows: Sequence[tuple[str, Seen, str]]) -> Section:
    """What the paper says, and whether it is seen here."""
    return {
        "kind": "claims",
        "title": title,
        "rows": [{"claim": claim, "seen": seen, "numbers": numbers} for claim, seen, numbers in rows],
    }


def text(title: str, words: str) -> Section:
    return {"kind": "text", "title": title, "text": words}


def cell(interval: Interval) -> dict[str, Any]:
    """An interval as a table shows it."""
    return {"value": None if not np.isfinite(interval.middle) else float(interval.middle), "text": str(interval)}


def seen(yes: bool, no: bool) -> Seen:
    """What a claim is answered with: what is sure, or that the seeds do not tell."""
    return "yes" if yes else "no" if no else "not decidable"


def seen_in_resamples(violations: Callable[[np.ndarray], np.ndarray], runs: Sequence[Finished]) -> tuple[Seen, str]:
    """Whether something is true of the runs' means, by drawing their seeds anew, and how often it was in the draws.

    It is false only if one and the same part of it is violated nearly always: noise violates now this, now that.

    Args:
        violations: from means `[resamples, runs, M]` to what is violated, `[resamples, parts]`.
    """
    drawn = [
        ranking.resampled_means(finals(one), ranking.RESAMPLES, np.random.default_rng(i)) for i, one in enumerate(runs)
    ]
    if any(np.isnan(each).any() for each in drawn):
        return "not decidable", "a run has fewer than two seeds"
    violated = violations(np.stack(drawn, axis=1))
    share = float(1 - violated.any(axis=1).mean())
    answer = seen(share >= ranking.SURE, bool((violated.mean(axis=0) >= ranking.SURE).any()))
    return answer, f"so in {share:.0%} of the resamples of seeds"


def numbers(values: Iterable[float]) -> list[float | None]:
    """Numbers as JSON can hold them: five digits, and null for what is not known."""
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in values]
