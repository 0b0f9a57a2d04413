"""How training goes: one line for each objective, on a terminal, in a notebook, or as plain text in a file."""

import contextlib
import importlib
import io
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lexrl.report import stats
from lexrl.report.run_folder import objectives

WORDS = {1: "better", -1: "worse", 0: "steady", None: ""}
COLOURS = {1: "green", -1: "red", 0: "dim", None: ""}


@contextlib.contextmanager
def progress(title: str, run: Any, console: Console) -> Iterator[Callable[[Any], None]]:
    """Show each result of a run that it is told: lines that are renewed, or a plain one for every tenth."""
    console.print(Text(title, style="bold"), soft_wrap=True)
    pace = Pace(run.total_timesteps)
    if not (console.is_terminal or console.is_jupyter):
        told, stopped = -1, set()

        def line(result: Any) -> None:
            nonlocal told
            pace.see(result)
            tenth = pace.percent // 10
            if tenth > told:
                told = tenth
                console.print(plain(result, pace), soft_wrap=True, markup=False)
            for place in result.faults.keys() - stopped:
                stopped.add(place)
                console.print(result.faults[place], soft_wrap=True, markup=False)

        yield line
        return
    if console.is_jupyter:
        shown = importlib.import_module("IPython.display")
        place = shown.display(shown.HTML("compiling ..."), display_id=True)

        def replace(result: Any) -> None:
            pace.see(result)
            place.update(shown.HTML(as_html(board(result, pace))))

        yield replace
        return
    with Live(Text("compiling ..."), console=console, refresh_per_second=4) as live:

        def renew(result: Any) -> None:
            pace.see(result)
            live.update(board(result, pace))

        yield renew


def as_html(lines: Any) -> str:
    """What a terminal would show, for a notebook."""
    console = Console(record=True, file=io.StringIO(), width=110, force_jupyter=False)
    console.print(lines)
    return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


class Pace:
    """How fast it goes, from the first result on: before it, programs are compiled."""

    def __init__(self, total: int):
        self.total, self.begun, self.first = total, time.monotonic(), None
        self.done, self.speed, self.rough = 0, 0.0, True

    def see(self, result: Any) -> None:
        now, self.done = time.monotonic(), int(result.steps[-1])
        self.rough = self.first is None
        if self.first is None:
            self.first = (now, self.done)
            # A run that goes on had done all but the last part before.
            before = int(result.steps[-2]) if len(result.steps) > 1 else 0
            self.speed = (self.done - before) / max(now - self.begun, 1e-9)
        elif now > self.first[0]:
            self.speed = (self.done - self.first[1]) / (now - self.first[0])

    @property
    def percent(self) -> int:
        """How much is done; whole rollouts may be a little more than was asked for."""
        return min(100 * self.done // self.total, 100)

    @property
    def left(self) -> str:
        """Time left, as in 1:05."""
        seconds = round(max(self.total - self.done, 0) / max(self.speed, 1e-9))
        hours, rest = divmod(seconds, 3600)
        return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"

    def told(self, seeds: int) -> list[str]:
        """Steps a second of so many seeds and the time left; not while the only time known has the compiling in it."""
        if self.rough and self.first is not None and self.done < self.total:
            return [f"compiled and begun in {self.first[0] - self.begun:.0f} s"]
        return [f"{self.speed * seeds:,.0f} steps/s", f"{self.left} left"]


def board(result: Any, pace: Pace) -> Group:
    """The lines of a terminal: level, interval over seeds, trend and price of each objective; then how far it is."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for i, objective in enumerate(objectives(result.run.order)):
        way = trend(result.metrics["episode_return"][..., i], objective.sign)
        price = last(result, "multiplier", i)
        table.add_row(
            Text(f"{i + 1}. {objective}"),
            Text(level(result, i), justify="right"),
            Text(f"{arrow(way, objective.sign)} {WORDS[way]}", style=COLOURS[way]),
            "" if price is None else f"price {price:.3g}",
        )
    bar = Table.grid(padding=(0, 2, 0, 0))
    bar.add_row(
        ProgressBar(total=pace.total, completed=pace.done, width=28),
        f"{pace.percent:>3d} %",
        f"{pace.done:,} of {pace.total:,} steps of each seed",
        *pace.told(len(result.run.seeds)),
    )
    stopped = [Text(sentence, style="red") for sentence in result.faults.values()]
    return Group(table, bar, *stopped)


def plain(result: Any, pace: Pace) -> str:
    """The same in one line of text."""
    parts = [f"{pace.done:>12,} steps"]
    for i, objective in enumerate(result.run.order.objectives):
        way = trend(result.metrics["episode_return"][..., i], objective.sign)
        price = last(result, "multiplier", i)
        priced = "" if price is None else f", price {price:.3g}"
        parts.append(f"{objective.name} {level(result, i)} {WORDS[way]}".rstrip() + priced)
    return "  ".join([*parts, *pace.told(len(result.run.seeds))])


def level(result: Any, i: int) -> str:
    """An objective's mean return of the last part, with the interval over seeds."""
    interval = stats.mean(result.metrics["episode_return"][-1, :, i])
    return "no episode yet" if not np.isfinite(interval.middle) else str(interval)


def trend(values: np.ndarray, sign: int) -> int | None:
    """1: better than before, -1: worse, 0: the seeds do not agree; the last quarter of `[points, seeds]` against the
    quarter before. None where fewer than two seeds had episodes in both: one alone cannot be told from chance."""
    # Less than a quarter is mostly noise, and would be called steady while it rises.
    width = max(1, len(values) // 4)
    if len(values) < 2 * width:
        return None
    interval = stats.mean(sign * (_mean(values[-width:]) - _mean(values[-2 * width : -width])))
    if not np.isfinite(interval.low):
        return None
    return 1 if interval.low > 0 else -1 if interval.high < 0 else 0


def arrow(way: int | None, sign: int) -> str:
    """Where the number itself goes."""
    return "" if way is None else {1: "↑", -1: "↓", 0: "→"}[way * sign]


def last(result: Any, name: str, i: int) -> float | None:
    """A metric's mean over seeds in the last part; nothing for a learner that has none, and for a last objective that
    never has one."""
    values = result.metrics.get(name)
    if values is None or values.ndim < 3 or not np.isfinite(values[-1, :, i]).any():
        return None
    if i == values.shape[-1] - 1 and not np.nan_to_num(values[..., i]).any():
        return None
    return float(np.nanmean(values[-1, :, i]))


def _mean(part: np.ndarray) -> np.ndarray:
    known = np.isfinite(part)
    return np.where(known.any(axis=0), np.where(known, part, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1), np.nan)
