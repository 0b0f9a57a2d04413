"""`lexrl resume FOLDER`: continue a run that was stopped, or all runs in a folder."""

import dataclasses
import pathlib
import shlex

import tyro

from lexrl import memory, store
from lexrl.cli import sweep
from lexrl.cli.arguments import Address, EngineKind, Whole, parse
from lexrl.cli.console import console, error_console, print_json
from lexrl.cli.execution import follow_on, interruptible
from lexrl.engine import Engine, sweep_files, swept
from lexrl.errors import InputError
from lexrl.optimizers import without_code
from lexrl.report.run_folder import below
from lexrl.runs import record


@dataclasses.dataclass(frozen=True)
class Resume:
    """Continue an interrupted run, a sweep or all runs in a folder; results are the same as without an interruption."""

    run: tyro.conf.Positional[pathlib.Path]
    """The folder of a run, of a sweep, or of several runs."""
    engine: EngineKind = "here"
    """Where it is executed: in this process, by worker processes, or on a Ray cluster."""
    workers: Whole = None
    """Number of runs at once; by default one per core."""
    address: Address = None
    """Address of a Ray cluster, as in auto or 10.0.0.1:6379; by default a local one is started."""
    force: bool = False
    """Continue although it does not seem to fit into memory."""
    json: bool = False
    """Print the outcome as JSON, and nothing else; progress goes to the standard error."""


def main(argv: list[str]) -> None:
    """Continue what a folder has, to its end."""
    args = parse(Resume, argv, "lexrl resume")
    with memory.unlimited(args.force):
        _resume(args)


def _resume(args: Resume) -> None:
    folder, engine = args.run, Engine(args.engine, args.workers, args.address)
    if (folder / swept.FILE).is_file():
        with without_code():
            sweep.main([*_sweep_words(folder), *_engine_words(args), "--out", str(folder)])
        return
    if folder.is_dir() and not store.is_run(folder) and (inside := below(folder)):
        _resume_all(folder, inside, engine, args.json)
        return
    run = record.read(folder)
    if store.is_finished(folder):
        raise InputError(
            f"The run in {str(folder)!r} is finished; `lexrl evaluate {folder}` evaluates it again, and `lexrl "
            f"continue {folder} --steps N` trains it further."
        )
    follow_on(engine, run, folder, args.json)


def _sweep_words(folder: pathlib.Path) -> list[str]:
    """The command of a sweep, without where it was executed."""
    command = store.read_json(folder / swept.FILE).get("command")
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        words = []
    if words[:2] != ["lexrl", "sweep"]:
        raise InputError(
            f"The sweep in {str(folder)!r} was started from Python; call lexrl.sweep again with the same folder."
        )
    return sweep_files.without(words[2:], ("out", "engine", "workers", "address", "json", "force"))


def _engine_words(args: Resume) -> list[str]:
    given = {"engine": args.engine, "workers": args.workers, "address": args.address}
    flags = [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]
    return flags + (["--json"] if args.json else []) + (["--force"] if args.force else [])


def _resume_all(folder: pathlib.Path, inside: list[pathlib.Path], engine: Engine, as_json: bool) -> None:
    """Finish all runs below a folder; one that cannot be read does not keep the others from it."""
    runs, failed = {}, {}
    for place in inside:
        try:
            runs |= {} if store.is_finished(place) else {place: record.read(place)}
        except InputError as error:
            failed[str(place)] = str(error)
    with interruptible(f"lexrl resume {shlex.quote(str(folder))}"):
        outcomes = engine.execute(runs, console=error_console if as_json else console)
    failed |= {str(one.folder): one.why for one in outcomes if one.state == "failed"}
    if as_json:
        print_json({"folder": str(folder), "finished": len(inside) - len(failed), "failed": failed})
    else:
        console.print(f"{len(inside) - len(failed)} of {len(inside)} runs in {folder} are finished.", markup=False)
    if failed:
        raise InputError(f"{len(failed)} runs failed. {next(iter(failed))}: {next(iter(failed.values()))}")
