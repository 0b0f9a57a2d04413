"""What a person writes and sees: kinds of arguments, tables, complaints, and what to do next."""

import pathlib
import sys
from typing import Annotated, NoReturn

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from lexrl.order import Order
from lexrl.presets import Preset

console = Console(highlight=False)

Place = Annotated[pathlib.Path | None, tyro.conf.arg(metavar="PATH", help_behavior_hint="")]
"""A file or folder; the help says where it is by default."""
Whole = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")]
Number = Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")]
Words = Annotated[str, tyro.conf.arg(help_behavior_hint="")]


def wanted_order(written: str, preset: Preset | None = None) -> str | None:
    """The order that was written, else the preset's; None where there is neither."""
    return written or (None if preset is None else preset.order)


def complain(sentence: str, code: int) -> NoReturn:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"lexrl: {sentence}", markup=False)
    sys.exit(code)


def seeds_table(title: str, order: Order, values: np.ndarray, optimum: np.ndarray | None = None) -> Table:
    """One row for each objective: the seeds' values `[seeds, M]`, and the optimum if it is known."""
    table = Table(box=None, title_justify="left", title=f"\n{title}")
    table.add_column("")
    for column in ("mean of seeds", "worst seed", "best seed", *(("optimum",) if optimum is not None else ())):
        table.add_column(column, justify="right")
    for i, objective in enumerate(order.objectives):
        worst, best = sorted((values[:, i].min(), values[:, i].max()), key=lambda value: objective.sign * value)
        row = [f"{number:.4g}" for number in (values[:, i].mean(), worst, best)]
        table.add_row(objective.name, *row, *((f"{optimum[i]:.4g}",) if optimum is not None else ()))
    return table


def next_commands(*commands: tuple[str, str]) -> None:
    """What a person may want to do now: each command with what it does."""
    table = Table(box=None, show_header=False, padding=(0, 3, 0, 0), title="\nNext", title_justify="left")
    for command, what in commands:
        table.add_row(command, what)
    console.print(table)
