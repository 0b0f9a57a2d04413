"""`lexrl compare RUN RUN ...`: finished runs side by side."""

import dataclasses
import pathlib
from typing import Any

import numpy as np
import tyro
from rich.table import Table

from lexrl import store
from lexrl.cli.arguments import parse
from lexrl.cli.console import console, print_json, show_line
from lexrl.errors import InputError
from lexrl.order import parse as parse_order
from lexrl.report import run_folder, stats
from lexrl.report.run_folder import RunFolder, rank_runs
from lexrl.tolerance import Absolute, of_returns


@dataclasses.dataclass(frozen=True)
class Compare:
    """Rank finished runs of the same order, the best first; of two, say which is better and what decides."""

    runs: tyro.conf.Positional[tuple[pathlib.Path, ...]]
    """The runs' folders."""
    json: bool = False
    """Print the ranking as JSON."""


def main(argv: list[str]) -> None:
    """Read the runs and print the ranking."""
    args = parse(Compare, argv, "lexrl compare")
    if len(args.runs) < 2:
        raise InputError(f"Comparing takes two or more folders, but {len(args.runs)} was given.")
    found = [run_folder.read(folder) for folder in args.runs]
    for one in found:
        store.require_finished(one.path)
    if len({one.objectives for one in found}) > 1:
        listed = "; ".join(f"{one.path} has '{one.about['order']}'" for one in found)
        raise InputError(f"The runs have different orders and cannot be ranked: {listed}.")
    if len({one.env_name for one in found}) > 1:
        listed = "; ".join(f"{one.path} is on {one.env_name}" for one in found)
        raise InputError(f"The runs are on different environments and cannot be ranked: {listed}.")
    tolerance = _tolerances(found)
    if args.json:
        print_json({"ranking": _as_json(found, tolerance)} | _verdict_as_json(found, tolerance))
        return
    console.print(_ranking(found, tolerance))
    if len(found) == 2:
        show_line(*run_folder.in_words(found[0], found[1], tolerance))


def _as_json(found: list[RunFolder], tolerance: np.ndarray) -> list[dict[str, Any]]:
    """Rows of the ranking: its class, its means, and the verdict against the run above."""
    rows = []
    for row in rank_runs(found, tolerance):
        means = {one.name: float(row.run.final[:, i].mean()) for i, one in enumerate(row.run.objectives)}
        rows.append({"class": row.rank, "run": str(row.run.path), "means": means, "against_above": row.compared})
    return rows


def _verdict_as_json(found: list[RunFolder], tolerance: np.ndarray) -> dict[str, Any]:
    """Of two runs: whether it is decided which is better, and the sentence."""
    if len(found) != 2:
        return {}
    status, sentence = run_folder.in_words(found[0], found[1], tolerance)
    return {"verdict": {"status": "undecided" if status == "undecided" else "decided", "sentence": sentence}}


def _tolerances(found: list[RunFolder]) -> np.ndarray:
    """Differences up to which two runs are equal `[M]`: what the order of the first grants, at the mean of all."""
    order = parse_order(found[0].about["order"])
    means = np.concatenate([one.final for one in found]).mean(axis=0)
    return np.asarray(of_returns(order.tolerances(Absolute(0.0)), means, 1), float)


def _ranking(found: list[RunFolder], tolerance: np.ndarray) -> Table:
    """The best first, in classes that the seeds separate; and what separates each run from the one above it."""
    objectives = found[0].objectives
    table = Table(title="Greedy policies per episode: mean of seeds [95 % interval]", title_justify="left", box=None)
    for column in ("class", "", *(str(objective) for objective in objectives), "against the one above"):
        table.add_column(column)
    for row in rank_runs(found, tolerance):
        shown = [str(stats.mean(row.run.final[:, i])) for i in range(len(objectives))]
        table.add_row(str(row.rank), str(row.run.path), *shown, row.compared)
    return table
