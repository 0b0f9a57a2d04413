"""Executing a run from the command line: with progress, until it finishes or is stopped; then its outcome."""

import contextlib
import os
import pathlib
import shlex
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from lexrl import store
from lexrl.cli.console import (
    complain,
    console,
    error_console,
    plain_warnings,
    print_json,
    show_verdict,
)
from lexrl.engine import Engine
from lexrl.errors import InputError
from lexrl.order import Order
from lexrl.runs import Result, Run, execute, progress, record
from lexrl.runs.sampling import Look
from lexrl.runs.watching import watching_verification


@contextlib.contextmanager
def interruptible(command: str) -> Iterator[None]:
    """Ctrl-C and SIGTERM stop what is executed, and say by which command it continues."""

    def stop(number: int, _: Any) -> None:
        raise KeyboardInterrupt(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt as error:
        number = error.args[0] if error.args else signal.SIGINT
        complain(f"stopped; continue with: {command}", 128 + number)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def follow_on(engine: Engine | None, run: Run, folder: pathlib.Path, as_json: bool = False) -> None:
    """`follow` on an engine."""
    if engine is None or engine.kind == "here":
        follow(run, folder, as_json)
        return
    with interruptible(f"lexrl resume {shlex.quote(str(folder))}"):
        (outcome,) = engine.execute({folder: run}, console=error_console if as_json else console)
    if outcome.why:
        raise InputError(f"The run in {str(folder)!r} failed. {outcome.why}")
    result = record.load(folder)
    if as_json:
        print_json({"folder": str(folder)} | dict(result.summary))
    else:
        show(result, folder)


def follow(run: Run, folder: pathlib.Path, as_json: bool = False) -> None:
    """Execute a run, or continue the one in the folder, and show its outcome; as JSON: its `summary.json`."""
    try:
        result, number = _until_stopped(run, folder, as_json)
    except OSError as error:
        if not store.is_full(error):
            raise
        complain(
            f"The disk is full: {error.filename} could not be written. What was written before is intact; free some "
            f"space and continue with: lexrl resume {folder}",
            1,
        )
    if not result.summary:
        complain(f"stopped at step {result.steps[-1]:,}; continue with: lexrl resume {folder}", 128 + number)
    if as_json:
        print_json({"folder": str(folder)} | dict(result.summary))
    else:
        show(result, folder)


def _kinds(result: Result) -> str:
    """What is evaluated: greedy policies, except for those that must be stochastic."""
    sampled = sum(policy.is_sampled for policy in result.policies)
    if sampled in (0, len(result)):
        return "Stochastic policies" if sampled else "Greedy policies"
    return f"Policies ({sampled} of {len(result)} stochastic, the others greedy)"


def show(result: Result, folder: pathlib.Path) -> None:
    """The evaluation of a finished run, and what can be done with it."""
    run, summary = result.run, result.summary
    title = f"{_kinds(result)}, {run.eval_episodes} fresh episodes each"
    console.print(seeds_table(title, run.order, _values(summary["per_episode"])))
    if "exact_discounted" in summary:
        kind = "stochastic policies" if summary["exact_policies"] == "stochastic" else "greedy policies"
        optimum = np.array(list(summary["exact_optimum"].values()))
        title = f"The {kind}, exactly: discounted, infinite horizon"
        console.print(seeds_table(title, run.order, _values(summary["exact_discounted"]), optimum))
    if result.verdict is not None:
        show_verdict(result.verdict)
    else:
        for sentence in result.faults.values():
            console.print(sentence, markup=False)
    speed = run.total_timesteps * len(run.seeds) / result.seconds
    console.print(f"{speed:,.0f} steps/s, {result.seconds:.1f} s in total. Everything is in [bold]{folder}[/bold].")
    next_commands(
        (f"lexrl video {folder}", "record an episode"),
        (f"lexrl evaluate {folder} --episodes 1000", "play more episodes"),
        *(() if result.verdict is None else ((f"lexrl verify {folder} --retrain", "verify against new references"),)),
        (f"lexrl compare {folder} OTHER", "compare with another run"),
    )


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


@contextlib.contextmanager
def stopping() -> Iterator[Callable[[], int]]:
    """Note Ctrl-C and SIGTERM instead of stopping at once: a run stops after the current chunk, with a checkpoint.

    The function gives the number of the signal that arrived, or 0. A second signal stops at once.
    """
    arrived = 0

    def note(number: int, _: Any) -> None:
        nonlocal arrived
        if arrived:
            raise KeyboardInterrupt
        arrived = number
        # Not through the console or a buffer: the signal may have arrived while a line is printed.
        os.write(2, b"\nStopping after this chunk, with a checkpoint (once more: at once).\n")

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, note) for number in numbers]
    try:
        yield lambda: arrived
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _until_stopped(run: Run, folder: pathlib.Path, quiet: bool) -> tuple[Result, int]:
    """The last result, and the number of the signal that stopped the run; 0: none did."""
    result, number = None, 0
    shown = error_console if quiet else console
    with (
        stopping() as asked,
        plain_warnings(shown),
        watching_verification(shown) as watch,
        contextlib.closing(_results(run, folder, shown, watch)) as results,
    ):
        for result in results:
            number = asked()
            if number and not result.summary:
                break
    assert result is not None
    return result, number


def _results(run: Run, folder: pathlib.Path, shown: Console, watch: Callable[[Look], None]) -> Any:
    return execute(run, folder, [progress.observer(shown)], watch=watch)


def _values(by_objective: dict[str, list[float]]) -> np.ndarray:
    return np.array(list(by_objective.values())).T
