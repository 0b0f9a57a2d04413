"""A page about everything in a folder: experiments, runs, comparisons of runs, and exact solutions."""

import contextlib
import pathlib
from collections.abc import Callable, Sequence
from typing import TypeVar

from lexrl import store
from lexrl.errors import InputError
from lexrl.report import experiment, export, run_folder, run_page, verdict_grid
from lexrl.report.page import Part, document

Read = TypeVar("Read")


def write(folder: pathlib.Path, path: pathlib.Path) -> list[str]:
    """Write the page about a folder to a path, and the figures and data of its experiments beside them; returns what
    could not be read and was left out."""
    failed: list[str] = []
    store.write_bytes(path, page(folder, failed).encode())
    for place in experiment.below(folder):
        store.require_plain(place)
        with contextlib.suppress(InputError):  # the page says what is wrong with it
            export.write_figures(place)
            export.write_data(place)
    return failed


def page(folder: pathlib.Path, failed: list[str] | None = None) -> str:
    """The page about a folder: verdicts first, then what runs reached, then every experiment, run and solution.

    What cannot be read is named on the page, and added to `failed`.
    """
    if not folder.is_dir():
        raise InputError(f"There is no folder {str(folder)!r}; give one with runs in it.")
    failed = [] if failed is None else failed
    experiments = experiment.below(folder)
    shown = {path for each in experiments for path in experiment.run_folders(each)}
    places = [path for path in run_folder.below(folder) if path.resolve() not in shown]
    runs = _readable(places, run_page.read, failed)
    solved = _readable(sorted(path.parent for path in folder.rglob("solution.json")), run_page.solution, failed)
    if not runs and not solved and not experiments:
        why = f" ({failed[0]})" if failed else ""
        raise InputError(f"There is no run to report in the folder {str(folder)!r}{why}.")
    title = folder.resolve().name if runs or solved else "Lexicographic reinforcement learning: the paper's experiments"
    titles = run_folder.titles([one.found for one in runs])
    named = [(title, f"run-{i}", one) for i, (title, one) in enumerate(zip(titles, runs, strict=True), 1)]
    first = [
        verdict_grid.block(verdict_grid.judged([(title, anchor, one.found) for title, anchor, one in named])),
        *run_page.comparisons([one.found for one in runs if one.found.summary is not None]),
    ]
    parts = [Part(anchor, title, run_page.html(one, title)) for title, anchor, one in named]
    parts += [Part(f"solution-{i}", *found) for i, found in enumerate(solved, 1)]
    return document(title, experiments, parts, "".join(first), failed)


def _readable(folders: Sequence[pathlib.Path], read: Callable[[pathlib.Path], Read], failed: list[str]) -> list[Read]:
    """Whatever can be read; for the other folders an error is added to `failed`."""
    found = []
    for folder in folders:
        try:
            found.append(read(folder))
        except InputError as error:
            failed.append(str(error))
    return found
