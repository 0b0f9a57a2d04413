"""Executing a run from the command line: with progress, until it ends or is stopped; then what it came to."""

import contextlib
import pathlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from lexrl import store
from lexrl.cli.console import complain, console, next_commands, seeds_table
from lexrl.cli.signals import stopping
from lexrl.runs import Result, Run, execute, progress


def follow(run: Run, folder: pathlib.Path) -> None:
    """Execute a run, or continue the one in the folder, and show what it came to."""
    try:
        result, number = _until_stopped(run, folder)
    except OSError as error:
        if not store.is_full(error):
            raise
        complain(
            f"The disk is full: {error.filename} could not be written. The last checkpoint is intact; free some space "
            f"and continue with: lexrl resume {folder}",
            1,
        )
    if not result.summary:
        complain(f"stopped at step {result.steps[-1]:,}; continue with: lexrl resume {folder}", 128 + number)
    show(result, folder)


def show(result: Result, folder: pathlib.Path) -> None:
    """The evaluation of a finished run, and what can be done with it."""
    run, summary = result.run, result.summary
    title = f"Greedy policies, {run.eval_episodes} fresh episodes each"
    console.print(seeds_table(title, run.order, _values(summary["per_episode"])))
    if "exact_discounted" in summary:
        kind = "stochastic policies" if summary["exact_policies"] == "stochastic" else "greedy policies"
        optimum = np.array(list(summary["exact_optimum"].values()))
        title = f"The {kind}, exactly: discounted, infinite horizon"
        console.print(seeds_table(title, run.order, _values(summary["exact_discounted"]), optimum))
    for sentence in result.faults.values():
        console.print(sentence, markup=False)
    speed = run.total_timesteps * len(run.seeds) / result.seconds
    console.print(f"{speed:,.0f} steps/s, {result.seconds:.1f} s in total. Everything is in [bold]{folder}[/bold].")
    next_commands(
        (f"lexrl video {folder}", "record an episode"),
        (f"lexrl evaluate {folder} --episodes 1000", "play more episodes"),
        (f"lexrl compare {folder} OTHER", "compare with another run"),
    )


def _until_stopped(run: Run, folder: pathlib.Path) -> tuple[Result, int]:
    """The last result, and the number of the signal that stopped the run; 0: none did."""
    result, number = None, 0
    with stopping() as asked, _shown_warnings(), contextlib.closing(_results(run, folder)) as results:
        for result in results:
            number = asked()
            if number and not result.summary:
                break
    assert result is not None
    return result, number


def _results(run: Run, folder: pathlib.Path) -> Any:
    return execute(run, folder, [progress.observer(console)])


def _values(by_objective: dict[str, list[float]]) -> np.ndarray:
    return np.array(list(by_objective.values())).T


@contextlib.contextmanager
def _shown_warnings() -> Iterator[None]:
    """Warnings as plain sentences."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: console.print(str(message), markup=False)
        yield
