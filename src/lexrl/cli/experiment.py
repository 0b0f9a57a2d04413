"""`lexrl experiment NAME`: plan, run and summarize an experiment of the paper."""

import dataclasses
import pathlib
import shlex
import time
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from lexrl import catalog
from lexrl.cli import arguments
from lexrl.cli.arguments import Address, EngineKind, Place, Whole, parse
from lexrl.cli.console import complain, console, error_console, print_json
from lexrl.cli.execution import interruptible, next_commands, stopping
from lexrl.engine import Engine
from lexrl.errors import InputError, as_path
from lexrl.experiments import Size, perform, perform_on, plan, schedule, speeds, write
from lexrl.experiments.schedule import Job


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Reproduce an experiment of the paper; finished runs are not repeated, interrupted ones are resumed."""

    size: Size = "laptop"
    """For a first look, for minutes on two cores, or as in the paper."""
    only: tuple[str, ...] = ()
    """Run only those whose names match one of these patterns, as in '*/ldqn*'."""
    out: Place = None
    """Folder for runs and results, by default experiments/SIZE."""
    engine: EngineKind = "here"
    """Where runs are executed: in this process, by several worker processes, or on a Ray cluster."""
    workers: Whole = None
    """Number of runs at once; by default one per core."""
    address: Address = None
    """Address of a Ray cluster, as in auto or 10.0.0.1:6379; by default a local one is started."""
    dry_run: bool = False
    """Only show what would be run, and how long it would take."""
    json: bool = False
    """Print where the results are and what failed as JSON, and nothing else; progress goes to the standard error."""


def main(argv: list[str]) -> None:
    """Run what is not finished, then write the results."""
    if arguments.wants_help(argv, 1):
        argv = ["NAME", *argv]
    name, rest = arguments.take_name("experiment", argv, "a name", "lexrl experiment safety")
    about = f"{Experiment.__doc__} NAME is one of {', '.join(catalog.EXPERIMENTS)}, or all."
    command = parse(Experiment, rest, f"lexrl experiment {name}", about)
    if name != "all":
        catalog.find(catalog.EXPERIMENTS, name, "experiment")
    names = list(catalog.EXPERIMENTS) if name == "all" else [name]
    engine = Engine(command.engine, command.workers, command.address)
    root = as_path(command.out or pathlib.Path("experiments") / command.size)
    if root.exists() and not root.is_dir():
        raise InputError(f"{str(root)!r} is a file; give a folder for runs and results.")
    every = plan(names, command.size, command.only)
    todo = [job for job in every if not schedule.is_finished(root, job)]
    shown = error_console if command.json else console
    _show_plan(f"{', '.join(names)}: {len(every)} runs in {root}", every, todo, shown)
    about = {"folder": str(root), "runs": [job.name for job in every], "left": [job.name for job in todo]}
    if command.dry_run:
        if command.json:
            print_json(about)
        return
    why = _run_on(engine, todo, root, shown) if engine.kind != "here" else _run(todo, root, shown)
    asked = {job.name for job in every}
    written = {
        name: str(write(name, command.size, root, why))
        for name in names
        if not asked.isdisjoint(job.name for job in plan([name], command.size))  # else none of its runs were asked for
    }
    if command.json:
        print_json(about | {"left": list(why), "failed": why, "results": written})
        return
    for name, folder in written.items():
        console.print(f"{name}: written to [bold]{folder}[/bold].")
    next_commands((f"lexrl report {root}", "everything on one page"))


def _show_plan(title: str, every: Sequence[Job], todo: Sequence[Job], shown: Console) -> None:
    table = Table(box=None, title=title, title_justify="left")
    for column in ("run", "seeds", "steps", "about"):
        table.add_column(column, justify="left" if column == "run" else "right")
    waiting = {job.name for job in todo}
    for job in every:
        seconds = speeds.estimate(job)
        about = "finished" if job.name not in waiting else "unknown" if seconds is None else _time(seconds)
        table.add_row(job.name, str(job.seeds), f"{job.total_timesteps:,}", about)
    shown.print(table)
    seconds, unknown = speeds.total(todo)
    also = f", plus {unknown} runs that were never timed" if unknown else ""
    shown.print(f"About {_time(seconds)} for the {len(todo)} runs that are left{also}.")


def _run(todo: Sequence[Job], root: pathlib.Path, shown: Console) -> dict[str, str]:
    """Run what is left; returns what could not be run, and why."""
    why: dict[str, str] = {}
    number, begun = 1, time.monotonic()
    with stopping() as asked:
        for event in perform(todo, root):
            if event.over:
                seconds = time.monotonic() - begun
                said = f"{_time(seconds)}" if event.result is not None else event.why
                shown.print(f"{number}/{len(todo)} {event.job.name}: {said}", markup=False)
                number, begun = number + 1, time.monotonic()
            if event.result is None:
                why[event.job.name] = event.why
            if asked():
                break
        signal = asked()
    if signal:
        complain("stopped; the same command continues.", 128 + signal)
    return why


def _run_on(engine: Engine, todo: Sequence[Job], root: pathlib.Path, shown: Console) -> dict[str, str]:
    """The same on an engine."""
    with interruptible("the same command, or lexrl resume " + shlex.quote(str(root))):
        return perform_on(engine, todo, root, shown)


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
