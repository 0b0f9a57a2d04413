"""Finished runs as a report reads them: from their folders, with plain arrays and nothing that learns."""

import pathlib
from typing import Any, NamedTuple

import numpy as np

from lexrl import store


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
        return steps, metrics["return"]


def read(folder: pathlib.Path) -> Found:
    """The run of a folder."""
    about = store.read_run(folder)
    if not store.is_finished(folder):
        return Found(folder, about, None)
    return Found(folder, about, store.read_summary(folder, about["seeds"], [name for name, _ in about["objectives"]]))


def below(folder: pathlib.Path) -> list[pathlib.Path]:
    """All folders of runs in a folder, itself included, in the order of their names."""
    return sorted(path.parent for path in folder.rglob(store.RUN))


def ranked(found: list[Found]) -> list[Found]:
    """Finished runs of one order, the best means first."""
    signs = np.array([objective.sign for objective in found[0].objectives])
    return sorted(found, key=lambda one: tuple(-(one.final.mean(axis=0) * signs)))
