"""A page about everything in a folder: experiments, runs, comparisons of runs, and exact solutions."""

import contextlib
import pathlib
from collections.abc import Callable, Sequence
from typing import TypeVar

from lexrl import store
from lexrl.errors import InputError
from lexrl.report import experiment, export, markup, run_folder, run_page, verdict_grid
from lexrl.report.page import document

Read = TypeVar("Read")


def write(folder: pathlib.Path, path: pathlib.Path) -> None:
    """Write the page about a folder to a path, and the figures and data of its experiments beside them."""
    store.write_bytes(path, page(folder).encode())
    for place in experiment.below(folder):
        with contextlib.suppress(InputError):  # the page says what is wrong with it
            export.write_figures(place)
            export.write_data(place)


def page(folder: pathlib.Path) -> str:
    """The page about a folder."""
    if not folder.is_dir():
        raise InputError(f"There is no folder {str(folder)!r}; give one with runs in it.")
    failed: list[str] = []
    experiments = experiment.below(folder)
    shown = {path for each in experiments for path in experiment.run_folders(each)}
    places = [path for path in run_folder.below(folder) if path.resolve() not in shown]
    runs = _readable(places, run_page.run, failed)
    solved = _readable(sorted(path.parent for path in folder.rglob("solution.json")), run_page.solution, failed)
    if experiments and not runs and not solved and not failed:
        return document("Lexicographic reinforcement learning: the paper's experiments", experiments)
    if not runs and not solved and not experiments:
        why = f" ({failed[0]})" if failed else ""
        raise InputError(f"There is no run to report in the folder {str(folder)!r}{why}.")
    parts = [
        f"<p class=lead>{len(runs)} runs of lexrl: objectives in order of importance.</p>",
        *(f"<p><b>Left out:</b> {markup.safe(sentence)}</p>" for sentence in failed),
        *verdict_grid.block([each.found for each in runs]),
        *run_page.comparisons([each.found for each in runs if each.found.summary is not None]),
        *(each.html for each in runs),
        *solved,
    ]
    title, style = folder.resolve().name, markup.asset("runs.css")
    if experiments:
        return document(title, experiments, "".join(parts), style)
    return markup.document(title, style, f"<h1>{markup.safe(title)}</h1>{''.join(parts)}")


def _readable(folders: Sequence[pathlib.Path], read: Callable[[pathlib.Path], Read], failed: list[str]) -> list[Read]:
    """Whatever can be read; for the other folders an error is added to `failed`."""
    found = []
    for folder in folders:
        try:
            found.append(read(folder))
        except InputError as error:
            failed.append(str(error))
    return found
