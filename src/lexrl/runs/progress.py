"""The progress of training: one line for each objective, on a terminal, in a notebook, or as plain text in a file."""

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
from lexrl.runs.observers import Observer, Snapshot, Start
from lexrl.runs.run import Run, directions

WORDS = {1: "better", -1: "worse", 0: "steady", None: ""}
COLORS = {1: "green", -1: "red", 0: "dim", None: ""}


def observer(console: Console | None = None) -> Observer:
    """Show the progress of a run: lines that are updated in place, or a plain one for every tenth of the run."""

    @contextlib.contextmanager
    def observe(run: Run, start: Start) -> Iterator[Callable[[Snapshot], None]]:
        with progress(run, console or Console(highlight=False), start.step) as show:
            yield lambda snapshot: show(snapshot.result)

    return observe


@contextlib.contextmanager
def progress(run: Any, console: Console, step: int = 0) -> Iterator[Callable[[Any], None]]:
    """Print the title of a run that starts at a step, then show every result that it is given."""
    console.print(Text(run.title, style="bold"), soft_wrap=True)
    if step:
        console.print(f"Resuming at step {step:,} of {run.total_timesteps:,}.", soft_wrap=True)
    speed = Speed(run.total_timesteps)
    show = _in_notebook if console.is_jupyter else _on_terminal if console.is_terminal else _as_text
    with show(console, speed) as see:

        def update(result: Any) -> None:
            speed.update(result)
            see(result)

        yield update


@contextlib.contextmanager
def _as_text(console: Console, speed: "Speed") -> Iterator[Callable[[Any], None]]:
    shown, stopped = -1, set()

    def see(result: Any) -> None:
        nonlocal shown
        if speed.percent // 10 > shown:
            shown = speed.percent // 10
            console.print(plain(result, speed), soft_wrap=True, markup=False)
        for position in result.faults.keys() - stopped:
            stopped.add(position)
            console.print(result.faults[position], soft_wrap=True, markup=False)

    yield see


@contextlib.contextmanager
def _in_notebook(console: Console, speed: "Speed") -> Iterator[Callable[[Any], None]]:
    display = importlib.import_module("IPython.display")
    output = display.display(display.HTML("compiling ..."), display_id=True)
    yield lambda result: output.update(display.HTML(as_html(board(result, speed))))


@contextlib.contextmanager
def _on_terminal(console: Console, speed: "Speed") -> Iterator[Callable[[Any], None]]:
    with Live(Text("compiling ..."), console=console, refresh_per_second=4) as live:
        yield lambda result: live.update(board(result, speed))


def as_html(lines: Any) -> str:
    """The lines of a terminal as HTML."""
    console = Console(record=True, file=io.StringIO(), width=110, force_jupyter=False)
    console.print(lines)
    return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


class Speed:
    """Steps per second, measured from the first result on: before it, programs are compiled."""

    def __init__(self, total: int):
        self.total, self.begun, self.first = total, time.monotonic(), None
        self.done, self.per_second, self.rough = 0, 0.0, True

    def update(self, result: Any) -> None:
        now, self.done = time.monotonic(), int(result.steps[-1])
        self.rough = self.first is None
        if self.first is None:
            self.first = (now, self.done)
            # A resumed run had taken all steps but those of the last chunk before.
            before = int(result.steps[-2]) if len(result.steps) > 1 else 0
            self.per_second = (self.done - before) / max(now - self.begun, 1e-9)
        elif now > self.first[0]:
            self.per_second = (self.done - self.first[1]) / (now - self.first[0])

    @property
    def percent(self) -> int:
        """How much is done; whole rollouts may exceed the steps that were asked for."""
        return min(100 * self.done // self.total, 100)

    @property
    def left(self) -> str:
        """Remaining time, as in 1:05."""
        seconds = round(max(self.total - self.done, 0) / max(self.per_second, 1e-9))
        hours, rest = divmod(seconds, 3600)
        return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"

    def describe(self, seeds: int) -> list[str]:
        """Steps per second of all seeds and the remaining time; neither while the only time includes compiling."""
        if self.rough and self.first is not None and self.done < self.total:
            return [f"compiled and started in {self.first[0] - self.begun:.0f} s"]
        return [f"{self.per_second * seeds:,.0f} steps/s", f"{self.left} left"]


def board(result: Any, speed: Speed) -> Group:
    """The lines of a terminal: return, interval over seeds, trend, threshold and multiplier of each objective; stage
    and the progress."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for i, objective in enumerate(directions(result.run.order)):
        way = trend(result.metrics["episode_return"][..., i], objective.sign)
        table.add_row(
            Text(f"{i + 1}. {objective}"),
            Text(mean_return(result, i), justify="right"),
            Text(f"{arrow(way, objective.sign)} {WORDS[way]}", style=COLORS[way]),
            ", ".join(details(result, i)),
        )
    bar = Table.grid(padding=(0, 2, 0, 0))
    bar.add_row(
        ProgressBar(total=speed.total, completed=speed.done, width=28),
        f"{speed.percent:>3d} %",
        f"{speed.done:,} of {speed.total:,} steps of each seed",
        *speed.describe(len(result.run.seeds)),
    )
    stopped = [Text(sentence, style="red") for sentence in result.faults.values()]
    return Group(table, *[Text(line) for line in stage(result)], bar, *stopped)


def plain(result: Any, speed: Speed) -> str:
    """The same in one line of text."""
    parts = [f"{speed.done:>12,} steps", *stage(result)]
    for i, objective in enumerate(result.run.order.objectives):
        way = trend(result.metrics["episode_return"][..., i], objective.sign)
        shown = f"{objective.name} {mean_return(result, i)} {WORDS[way]}".rstrip()
        parts.append(", ".join([shown, *details(result, i)]))
    return "  ".join([*parts, *speed.describe(len(result.run.seeds))])


def mean_return(result: Any, i: int) -> str:
    """An objective's mean return in the last chunk, with the interval over seeds."""
    interval = stats.mean(result.metrics["episode_return"][-1, :, i])
    return "no episode yet" if not np.isfinite(interval.middle) else str(interval)


def trend(values: np.ndarray, sign: int) -> int | None:
    """1: better than before, -1: worse, 0: the seeds do not agree; the last quarter of `[points, seeds]` against the
    quarter before. None where fewer than two seeds finished episodes in both: one alone shows no significance."""
    # A shorter window is mostly noise, and would be called steady while the return rises.
    width = max(1, len(values) // 4)
    if len(values) < 2 * width:
        return None
    interval = stats.mean(sign * (_mean(values[-width:]) - _mean(values[-2 * width : -width])))
    if not np.isfinite(interval.low):
        return None
    return 1 if interval.low > 0 else -1 if interval.high < 0 else 0


def arrow(way: int | None, sign: int) -> str:
    """The direction of the number itself."""
    return "" if way is None else {1: "↑", -1: "↓", 0: "→"}[way * sign]


def stage(result: Any) -> list[str]:
    """Which objective is optimized, as in `stage 2/3: reward`; nothing if the algorithm has no stages."""
    if (now := _stages(result)) is None or not np.isfinite(now).any():
        return []
    names, first, latest = result.run.order.names, int(np.nanmin(now)), int(np.nanmax(now))
    if first == latest:
        return [f"stage {first}/{len(names)}: {names[first - 1]}"]
    return [f"stages {first} to {latest} of {len(names)}: {', '.join(names[first - 1 : latest])}"]


def details(result: Any, i: int) -> list[str]:
    """What an objective must keep, with its discounted return, and its multiplier. An objective that has stages has
    neither until its own is over, in at least one seed; then seeds where it is not are left out."""
    now = _stages(result)
    done = None if now is None else now > i + 1
    multiplier = last(result, "multiplier", i, done)
    shown = [] if multiplier is None else [f"multiplier {multiplier:.3g}"]
    if done is None or not done.any():
        return shown if done is None else []
    estimate, threshold = (last(result, name, i, done) for name in ("return_estimate", "threshold"))
    if estimate is None or threshold is None:
        return shown
    tiny = 1e-4 * np.nanmax(np.abs(result.metrics["return_estimate"][..., i]))  # rounding errors of a return of 0
    threshold = 0.0 if abs(threshold) < tiny else threshold
    return [f"discounted {estimate:.3g}, threshold {threshold:.3g}", *shown]


def _stages(result: Any) -> np.ndarray | None:
    """The stage of each seed at the end of the last chunk."""
    values = result.metrics.get("stage")
    # A chunk's mean: of a stage that began within it, a part of the way.
    return None if values is None else np.ceil(values[-1] - 1e-6)


def last(result: Any, name: str, i: int, seeds: np.ndarray | None = None) -> float | None:
    """A metric's mean over (some) seeds in the last chunk; None if the algorithm has no such metric, and for a last
    objective that is always 0."""
    values = result.metrics.get(name)
    if values is None or values.ndim < 3:
        return None
    if i == values.shape[-1] - 1 and not np.nan_to_num(values[..., i]).any():
        return None
    here = values[-1, :, i] if seeds is None else values[-1, seeds, i]
    return float(np.nanmean(here)) if np.isfinite(here).any() else None


def _mean(part: np.ndarray) -> np.ndarray:
    known = np.isfinite(part)
    return np.where(known.any(axis=0), np.where(known, part, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1), np.nan)
