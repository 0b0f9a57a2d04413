"""What a user sees on the terminal: tables, complaints, and what to do next."""

import sys
from typing import NoReturn

import numpy as np
from rich.console import Console
from rich.table import Table

from lexrl.order import Order

console = Console(highlight=False)


def complain(sentence: str, code: int) -> NoReturn:
    """Print a sentence to the standard error and exit."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"lexrl: {sentence}", markup=False)
    sys.exit(code)


def seeds_table(title: str, order: Order, values: np.ndarray, optimum: np.ndarray | None = None) -> Table:
    """One row for each objective: the values of the seeds `[seeds, M]`, and the optimum if it is known."""
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
    """Commands that a user may want to run next, each with its purpose."""
    table = Table(box=None, show_header=False, padding=(0, 3, 0, 0), title="\nNext", title_justify="left")
    for command, purpose in commands:
        table.add_row(command, purpose)
    console.print(table)
