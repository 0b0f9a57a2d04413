"""A table of all runs of a plan while they are executed: how far each is, and how much is left.

Steps are read from the checkpoints in the folders, so that a run on any machine can be followed.
"""

import contextlib
import os
import pathlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lexrl.engine.outcomes import Outcome, latest_step
from lexrl.runs.run import Run

MAX_ROWS = 30
ORDER = ("failed", "started", "waiting", "finished")
SHOWN = {"started": "running"}


class Board:
    """What is known about the runs of a plan."""

    def __init__(self, runs: Mapping[pathlib.Path, Run], waiting: Sequence[pathlib.Path]):
        self.runs = dict(runs)
        self.states = {folder: "waiting" if folder in set(waiting) else "finished" for folder in runs}
        self.why: dict[pathlib.Path, str] = {}
        self.lost = Counter[pathlib.Path]()
        self.root = pathlib.Path(os.path.commonpath([folder.parent for folder in runs])) if runs else pathlib.Path()
        self.begun, self.first = time.monotonic(), self._work()

    def note(self, outcome: Outcome) -> None:
        """Something happened to a run."""
        folder = outcome.folder
        if outcome.state == "lost":
            self.lost[folder] += 1
            self.states[folder] = "waiting"
        else:
            self.states[folder] = outcome.state
        self.why[folder] = outcome.why

    def name(self, folder: pathlib.Path) -> str:
        return str(folder.relative_to(self.root))

    def steps(self, folder: pathlib.Path) -> int:
        """Environment steps of each seed so far."""
        if self.states[folder] == "finished":
            return self.runs[folder].total_timesteps
        return latest_step(folder)

    def _work(self) -> int:
        """Steps of all seeds of all runs so far."""
        return sum(self.steps(folder) * len(run.seeds) for folder, run in self.runs.items())

    def summary(self) -> str:
        """How many runs are in which state, and how much time is left."""
        count = Counter(self.states.values())
        states = ", ".join(f"{count[state]} {SHOWN.get(state, state)}" for state in ORDER if count[state])
        done, now = self._work(), time.monotonic()
        speed = (done - self.first) / max(now - self.begun, 1e-9)
        open_ones = [folder for folder in self.runs if self.states[folder] in ("started", "waiting")]
        left = sum(
            (self.runs[folder].total_timesteps - self.steps(folder)) * len(self.runs[folder].seeds)
            for folder in open_ones
        )
        if not left or speed <= 0:
            return states
        return f"{states}; {done:,} steps of all seeds, about {_time(left / speed)} left"

    def table(self) -> Table:
        """The runs, those that need attention first."""
        table = Table(box=None, title_justify="left", title=self.summary())
        for column in ("run", "state", "steps of each seed", ""):
            table.add_column(column, justify="right" if column.startswith("steps") else "left")
        every = sorted(self.runs, key=lambda folder: ORDER.index(self.states[folder]))
        for folder in every[:MAX_ROWS]:
            state, times = self.states[folder], self.lost[folder]
            steps = f"{self.steps(folder):,} of {self.runs[folder].total_timesteps:,}"
            more = [f"resumed {times} x"] if times else []
            more += [self.why[folder]] if self.why.get(folder) else []
            table.add_row(Text(self.name(folder)), SHOWN.get(state, state), steps, Text("; ".join(more)))
        if len(every) > MAX_ROWS:
            table.add_row(f"and {len(every) - MAX_ROWS} more")
        return table


@contextlib.contextmanager
def shown(
    runs: Mapping[pathlib.Path, Run], waiting: Sequence[pathlib.Path], console: Console
) -> Iterator[Callable[[Outcome], None]]:
    """A table that is updated in place on a terminal; elsewhere a line for everything that happens."""
    board = Board(runs, waiting)
    if console.is_terminal:
        with Live(get_renderable=board.table, console=console, refresh_per_second=1):
            yield board.note
        return

    def see(outcome: Outcome) -> None:
        board.note(outcome)
        if outcome.state != "started":
            why = f" ({outcome.why})" if outcome.why else ""
            line = f"{board.name(outcome.folder)}: {outcome.state}{why}; {board.summary()}"
            console.print(line, markup=False, soft_wrap=True)

    yield see


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
