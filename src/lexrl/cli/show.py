"""What a person sees: progress and tables."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from lexrl.order import Order
from lexrl.train.compiled import Chunk

console = Console(highlight=False)


def complain(sentence: str, code: int) -> NoReturn:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"lexrl: {sentence}", markup=False)
    sys.exit(code)


@contextlib.contextmanager
def progress(title: str, total: int, order: Order) -> Iterator[Callable[[Chunk], None]]:
    """A bar on a terminal; elsewhere a plain line as soon as there is something to say, and one for every tenth."""
    console.print(f"[bold]{title}[/bold]")
    if not console.is_terminal:
        begun, told = time.monotonic(), [-1]

        def line(chunk: Chunk) -> None:
            if chunk.steps * 10 // total > told[0]:
                told[0] = chunk.steps * 10 // total
                speed = chunk.steps * len(chunk.metrics["length"]) / (time.monotonic() - begun)
                console.print(f"{chunk.steps:>12,} steps  {_levels(chunk, order)}  {speed:,.0f} steps/s")

        yield line
        return
    columns = (BarColumn(None), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[levels]}"))
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("", total=total, levels="compiling")
        yield lambda chunk: bar.update(task, completed=chunk.steps, levels=_levels(chunk, order))


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


def _levels(chunk: Chunk, order: Order) -> str:
    """Each objective's mean return of the last chunk, over the seeds that finished an episode."""
    returns = chunk.metrics["return"]
    known = returns[np.isfinite(returns).all(axis=1)]
    if not len(known):
        return "no episode has ended yet"
    return "  ".join(f"{name} {value:.4g}" for name, value in zip(order.names, known.mean(axis=0), strict=True))


def plots() -> Any:
    """Matplotlib takes its time to import: only commands that draw wait for it."""
    from lexrl.report import plots

    return plots
