"""`lexrl experiment NAME`: the paper's experiments, planned, run and written down."""

import dataclasses
import pathlib
import time
from collections.abc import Sequence

import tyro
from rich.table import Table

from lexrl.cli.show import Place, complain, console, next_commands
from lexrl.cli.train import stopping
from lexrl.experiments import Size, perform, plan, schedule, speeds, write
from lexrl.experiments import names as all_names
from lexrl.experiments.schedule import Job


@dataclasses.dataclass(frozen=True)
class ExperimentCommand:
    """Repeat an experiment of the paper; what is finished is not run again, what was stopped goes on."""

    name: tyro.conf.Positional[str]
    """Which one: how learning time scales, safety, LDQN's slack, settings of PB-LRL, pictures of policies; or all."""
    size: Size = "laptop"
    """For a first look, for minutes on two cores, or as in the paper."""
    only: tuple[str, ...] = ()
    """Run only those whose names match one of these patterns, as in '*/ldqn*'."""
    out: Place = None
    """Folder for runs and results, by default experiments/SIZE."""
    dry_run: bool = False
    """Only say what would be run, and how long it would take."""


def experiment(command: ExperimentCommand) -> None:
    """`lexrl experiment NAME`"""
    names = all_names() if command.name == "all" else [command.name]
    root = command.out or pathlib.Path("experiments") / command.size
    every = plan(names, command.size, command.only)
    todo = [job for job in every if not schedule.is_finished(root, job)]
    _show_plan(f"{', '.join(names)}: {len(every)} runs in {root}", every, todo)
    if command.dry_run:
        return
    why = _run(todo, root)
    asked = {job.name for job in every}
    for name in names:
        if asked.isdisjoint(job.name for job in plan([name], command.size)):
            continue  # nothing of it was to be run
        folder = write(name, command.size, root, why)
        console.print(f"{name}: written to [bold]{folder}[/bold].")
    next_commands((f"lexrl report {root}", "all of it on one page"))


def _show_plan(title: str, every: Sequence[Job], todo: Sequence[Job]) -> None:
    table = Table(box=None, title=title, title_justify="left")
    for column in ("run", "seeds", "steps", "about"):
        table.add_column(column, justify="left" if column == "run" else "right")
    waiting = {job.name for job in todo}
    for job in every:
        seconds = speeds.estimate(job)
        about = "finished" if job.name not in waiting else "not known" if seconds is None else _time(seconds)
        table.add_row(job.name, str(job.seeds), f"{job.total_timesteps:,}", about)
    console.print(table)
    seconds, unknown = speeds.total(todo)
    also = f", and {unknown} runs that were never measured" if unknown else ""
    console.print(f"About {_time(seconds)} for the {len(todo)} runs that are left{also}.")


def _run(todo: Sequence[Job], root: pathlib.Path) -> dict[str, str]:
    """Run what is left; gives what could not be run, and why."""
    why: dict[str, str] = {}
    number, begun = 1, time.monotonic()
    with stopping() as asked:
        for event in perform(todo, root):
            if event.over:
                seconds = time.monotonic() - begun
                said = f"{_time(seconds)}" if event.result is not None else event.why
                console.print(f"{number}/{len(todo)} {event.job.name}: {said}", markup=False)
                number, begun = number + 1, time.monotonic()
            if event.result is None:
                why[event.job.name] = event.why
            if asked():
                break
        signal = asked()
    if signal:
        complain("stopped; the same command goes on where it was.", 128 + signal)
    return why


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
