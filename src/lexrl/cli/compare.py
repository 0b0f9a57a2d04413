"""`lexrl compare RUN RUN ...`: finished runs side by side."""

import dataclasses
import pathlib

import tyro
from rich.table import Table

from lexrl import store
from lexrl.cli.console import console
from lexrl.cli.parsing import parse
from lexrl.errors import InputError
from lexrl.report import run_folder, stats
from lexrl.report.run_folder import RunFolder, rank_runs


@dataclasses.dataclass(frozen=True)
class Compare:
    """Rank finished runs of the same order, the best first."""

    runs: tyro.conf.Positional[tuple[pathlib.Path, ...]]
    """The runs' folders."""


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
    console.print(_ranking(found))


def _ranking(found: list[RunFolder]) -> Table:
    """The best first, in classes that the seeds separate; and what separates each run from the one above it."""
    objectives = found[0].objectives
    table = Table(title="Greedy policies per episode: mean of seeds [95 % interval]", title_justify="left", box=None)
    for column in ("class", "", *(str(objective) for objective in objectives), "against the one above"):
        table.add_column(column)
    for row in rank_runs(found):
        shown = [str(stats.mean(row.run.final[:, i])) for i in range(len(objectives))]
        table.add_row(str(row.rank), str(row.run.path), *shown, row.verdict)
    return table
