"""Folders of runs as a report reads them: plain arrays, no agents."""

import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl import store
from lexrl import verdict as judged
from lexrl.report import ranking, stats
from lexrl.report.ranking import Odds


class Direction(NamedTuple):
    """A signal and its sign, 1 to maximize and -1 to minimize, or its limit: an objective without its tolerance."""

    name: str
    sign: int
    limit: float | None = None
    """The return that is enough, in the signal's own sign."""

    def __str__(self) -> str:
        if self.limit is not None:
            return f"{self.name} {'>=' if self.sign > 0 else '<='} {self.limit:g}"
        return f"{'max' if self.sign > 0 else 'min'} {self.name}"


class RunFolder(NamedTuple):
    """What the folder of a run holds."""

    path: pathlib.Path
    about: dict[str, Any]
    """`run.json`"""
    summary: dict[str, Any] | None
    """`summary.json`; None for a run that is not finished."""

    @property
    def title(self) -> str:
        return str(self.about.get("title") or self.path.name)

    @property
    def objectives(self) -> tuple[Direction, ...]:
        """The most important first."""
        return tuple(Direction(*each) for each in self.about["objectives"])

    @property
    def total_timesteps(self) -> int:
        return self.about["total_timesteps"]

    @property
    def env(self) -> Any:
        """The environment's name and settings, as JSON."""
        return self.about.get("env")

    @property
    def env_name(self) -> str:
        """What the environment is called: its name, or the kind of an instance."""
        return next((str(self.about["env"][key]) for key in ("name", "kind", "custom") if key in self.about["env"]), "")

    @property
    def verdict(self) -> judged.Verdict | None:
        """Was the priority kept? None for a run without a verdict."""
        found = None if self.summary is None else self.summary.get("verdict")
        return None if found is None else judged.from_json(found)

    @property
    def final(self) -> np.ndarray:
        """`[seeds, M]`: each seed's mean over the episodes of its evaluation."""
        assert self.summary is not None
        return np.array([self.summary["per_episode"][one.name] for one in self.objectives], float).T

    def curves(self) -> tuple[np.ndarray, np.ndarray]:
        """Steps `[points]`, and the returns `[points, seeds, M]`."""
        steps, metrics = self.metrics()
        return steps, metrics["episode_return"]

    def metrics(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Steps `[points]`, and every metric, `[points, seeds]` or `[points, seeds, M]`."""
        return store.read_curves(self.path, self.about["seeds"], [one.name for one in self.objectives])


def read(folder: pathlib.Path) -> RunFolder:
    """Read the run of a folder."""
    about = store.read_run(folder)
    if not store.is_finished(folder):
        store.require_own_curves(folder)
        return RunFolder(folder, about, None)
    summary = store.read_summary(folder, about["seeds"], [one[0] for one in about["objectives"]])
    store.require_files(folder, summary)
    return RunFolder(folder, about, summary)


def below(folder: pathlib.Path) -> list[pathlib.Path]:
    """All folders of runs in a folder, itself included, sorted by name."""
    return sorted(path.parent for path in folder.rglob(store.RUN))


def titles(found: Sequence[RunFolder]) -> list[str]:
    """A title for each run; those that share one are told apart by the names of their folders."""
    each = [one.title for one in found]
    return [
        title if each.count(title) == 1 else f"{title} ({one.path.name})"
        for title, one in zip(each, found, strict=True)
    ]


class RankedRun(NamedTuple):
    """A run among others with the same order."""

    run: RunFolder
    rank: int
    """Its class, from 1: the seeds do not distinguish the runs of one class."""
    compared: str
    """With the run above it."""


def rank_runs(found: Sequence[RunFolder], tolerance: ranking.Tolerance = 0.0) -> list[RankedRun]:
    """Finished runs with the same order, the best first."""
    objectives, result = found[0].objectives, _ranked(found, tolerance)
    rows: list[RankedRun] = []
    above = None
    for rank, members in enumerate(result.classes, 1):
        for i in members:
            compared = "" if above is None else _in_words(result.odds[i][above], objectives)
            rows.append(RankedRun(found[i], rank, compared))
            above = i
    return rows


def in_words(first: RunFolder, second: RunFolder, tolerance: ranking.Tolerance = 0.0) -> tuple[judged.Status, str]:
    """Which of two runs is lexicographically better, with which confidence, and which objective decides.

    The status is "kept" where it is decided, equal runs included.
    """
    found = _ranked([first, second], tolerance).odds[0][1]
    if np.isnan(found.over):
        return "undecided", "Not decidable: the runs need two or more seeds each."
    if found.equal >= ranking.SURE:
        return "kept", f"The two are equal within the tolerances of the order, {found.equal:.0%} sure."
    if not found.winner or found.by is None:
        more = f"{first.path} is better with probability {found.over:.0%}, {second.path} with {found.under:.0%}"
        return "undecided", f"Not decidable with {len(first.final)} and {len(second.final)} seeds: {more}."
    better, worse = (first, second) if found.winner > 0 else (second, first)
    name, i = first.objectives[found.by].name, found.by
    values = f"{stats.mean(better.final[:, i])} against {stats.mean(worse.final[:, i])}"
    sure = max(found.over, found.under)
    return (
        "kept",
        f"{better.path} is lexicographically better, decided at objective {name!r}: {values}, {sure:.0%} sure.",
    )


def _ranked(found: Sequence[RunFolder], tolerance: ranking.Tolerance) -> ranking.Standings:
    objectives = found[0].objectives
    limits = [one.limit for one in objectives]
    return ranking.rank([one.final for one in found], [one.sign for one in objectives], tolerance, limits=limits)


def _in_words(odds: Odds, objectives: Sequence[Direction]) -> str:
    """How a run compares with the one above it."""
    if np.isnan(odds.over):
        return "not comparable with one seed"
    if odds.winner and odds.by is not None:
        word, probability = ("better", odds.over) if odds.winner > 0 else ("worse", odds.under)
        return f"{word} {objectives[odds.by].name}: {probability:.0%} sure"
    if odds.equal > 0.95:
        return "equal"
    return f"undecided: better with probability {odds.over:.0%}"
