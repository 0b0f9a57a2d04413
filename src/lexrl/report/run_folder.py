"""Finished runs as a report reads them: from their folders, with plain arrays and nothing that learns."""

import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl import store
from lexrl.report import ranking
from lexrl.report.ranking import Verdict


class Objective(NamedTuple):
    """A signal and its direction, 1 to maximise and -1 to minimise: an order's objective without its tolerance."""

    name: str
    sign: int

    def __str__(self) -> str:
        return f"{'max' if self.sign > 0 else 'min'} {self.name}"


def objectives(order: Any) -> tuple[Objective, ...]:
    """What an order is about, the most important first."""
    return tuple(Objective(one.name, one.sign) for one in order.objectives)


class Found(NamedTuple):
    """A run's folder."""

    path: pathlib.Path
    about: dict[str, Any]
    """`run.json`"""
    summary: dict[str, Any] | None
    """`summary.json`; None for a run that is not finished."""

    @property
    def title(self) -> str:
        return str(self.about.get("title") or self.path.name)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The most important first."""
        return tuple(Objective(*each) for each in self.about["objectives"])

    @property
    def final(self) -> np.ndarray:
        """`[seeds, M]`: each seed's mean over the episodes of its evaluation."""
        assert self.summary is not None
        return np.array([self.summary["per_episode"][one.name] for one in self.objectives], float).T

    def curves(self) -> tuple[np.ndarray, np.ndarray]:
        """Steps `[points]`, and the returns `[points, seeds, M]`."""
        steps, metrics = store.read_curves(self.path, self.about["seeds"], [one.name for one in self.objectives])
        return steps, metrics["episode_return"]


def read(folder: pathlib.Path) -> Found:
    """The run of a folder."""
    about = store.read_run(folder)
    if not store.is_finished(folder):
        return Found(folder, about, None)
    return Found(folder, about, store.read_summary(folder, about["seeds"], [name for name, _ in about["objectives"]]))


def below(folder: pathlib.Path) -> list[pathlib.Path]:
    """All folders of runs in a folder, itself included, in the order of their names."""
    return sorted(path.parent for path in folder.rglob(store.RUN))


class Placed(NamedTuple):
    """A run among others of its order."""

    run: Found
    place: int
    """Its class, from 1: runs of one class are not told apart by their seeds."""
    verdict: str
    """Against the run above it."""


def ranked(found: Sequence[Found]) -> list[Placed]:
    """Finished runs of one order, the best first."""
    objectives = found[0].objectives
    result = ranking.rank([one.final for one in found], [one.sign for one in objectives])
    rows: list[Placed] = []
    above = None
    for place, members in enumerate(result.classes, 1):
        for i in members:
            verdict = "" if above is None else _told(result.verdicts[i][above], objectives)
            rows.append(Placed(found[i], place, verdict))
            above = i
    return rows


def _told(verdict: Verdict, objectives: Sequence[Objective]) -> str:
    """A verdict on a run against the one above it, in words."""
    if np.isnan(verdict.over):
        return "one seed alone tells nothing"
    if verdict.winner and verdict.by is not None:
        word, chance = ("better", verdict.over) if verdict.winner > 0 else ("worse", verdict.under)
        return f"{word} {objectives[verdict.by].name}: {chance:.0%} sure"
    if verdict.equal > 0.95:
        return "equal"
    return f"not told apart: better with {verdict.over:.0%}"
