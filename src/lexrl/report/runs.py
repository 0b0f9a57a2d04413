"""Finished runs as a report reads them: from their folders, with plain arrays and nothing that learns."""

import pathlib
from typing import Any, NamedTuple

import numpy as np

from lexrl import store


class Objective(NamedTuple):
    """A signal and its direction: 1 to maximise, -1 to minimise."""

    name: str
    sign: int

    def __str__(self) -> str:
        return f"{'max' if self.sign > 0 else 'min'} {self.name}"


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
        return tuple(Objective(str(name), int(sign)) for name, sign in self.about["objectives"])

    @property
    def final(self) -> np.ndarray:
        """`[seeds, M]`: each seed's mean over the episodes of its evaluation."""
        assert self.summary is not None
        return np.array([self.summary["per_episode"][one.name] for one in self.objectives], float).T

    def curves(self, metric: str = "return") -> tuple[np.ndarray, np.ndarray]:
        """Steps `[points]`, and a metric `[points, seeds, M]`."""
        rows = [row for row in store.read_csv(self.path / store.METRICS) if row["metric"] == metric]
        steps = sorted({int(row["step"]) for row in rows})
        point = {step: i for i, step in enumerate(steps)}
        place = {int(seed): i for i, seed in enumerate(self.about["seeds"])}
        objective = {one.name: i for i, one in enumerate(self.objectives)}
        values = np.full((len(steps), len(place), len(objective)), np.nan)
        for row in rows:
            values[point[int(row["step"])], place[int(row["seed"])], objective[row["objective"]]] = float(row["value"])
        return np.array(steps), values


def read(folder: pathlib.Path) -> Found:
    """The run of a folder."""
    about = store.read_run(folder)
    if missing := [key for key in ("objectives", "seeds", "order") if key not in about]:
        raise store.Damaged(f"The file {str(folder / store.RUN)!r} is damaged: it has no {missing[0]!r}.")
    summary = store.read_json(folder / store.SUMMARY) if store.is_finished(folder) else None
    return Found(folder, about, summary)


def below(folder: pathlib.Path) -> list[pathlib.Path]:
    """All folders of runs in a folder, itself included, in the order of their names."""
    return sorted(path.parent for path in folder.rglob(store.RUN))


def ranked(found: list[Found]) -> list[Found]:
    """Finished runs of one order, the best means first."""
    signs = np.array([objective.sign for objective in found[0].objectives])
    return sorted(found, key=lambda one: tuple(-(one.final.mean(axis=0) * signs)))
