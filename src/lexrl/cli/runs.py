"""`lexrl evaluate`, `compare`, `watch`, `report`: what finished runs can be asked."""

import dataclasses
import pathlib

import numpy as np
import tyro
from rich.table import Table

from lexrl import store, video
from lexrl.cli.show import Number, Place, Whole, console, seeds_table
from lexrl.errors import InputError
from lexrl.report import run_folder as reports
from lexrl.report import stats
from lexrl.report.run_folder import RunFolder, rank_runs
from lexrl.runs import episodes, load


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Play fresh episodes with the policies of a finished run."""

    run: tyro.conf.Positional[pathlib.Path]
    """The run's folder."""
    episodes: int = 100
    """Episodes with each seed's policy."""
    stochastic: bool = False
    """Draw actions as while learning, instead of the greedy ones."""


@dataclasses.dataclass(frozen=True)
class Compare:
    """Put finished runs of the same order side by side, the best first."""

    runs: tyro.conf.Positional[tuple[pathlib.Path, ...]]
    """The runs' folders."""


@dataclasses.dataclass(frozen=True)
class Watch:
    """Make a film (GIF or MP4) or a strip of pictures (PNG) of an episode."""

    run: tyro.conf.Positional[pathlib.Path]
    """The run's folder."""
    seed: Whole = None
    """Whose policy; by default the first seed's."""
    episode: int = 0
    """Which of the episodes of `lexrl evaluate`, from 0 on."""
    out: Place = None
    """The file; by default episode.gif in the run's folder."""
    fps: Number = None
    """Pictures a second; by default the world's own."""


@dataclasses.dataclass(frozen=True)
class Report:
    """Write one page (HTML) about all runs in a folder."""

    folder: tyro.conf.Positional[pathlib.Path]
    """A folder with runs in it, or a run's own."""
    out: Place = None
    """The file; by default report.html in the folder."""


def evaluate(command: Evaluate) -> None:
    """`lexrl evaluate RUN`"""
    result = load(command.run)
    order = result.run.order
    played = result.evaluate(command.episodes, greedy=not command.stochastic)
    kind = "Policies with their randomness" if command.stochastic else "Greedy policies"
    console.print(seeds_table(f"{kind}, {command.episodes} fresh episodes each", order, played.returns.mean(axis=1)))
    path = command.run / ("evaluation-stochastic.json" if command.stochastic else "evaluation.json")
    per_seed = {
        str(seed): {name: played.returns[i, :, j].tolist() for j, name in enumerate(order.names)}
        for i, seed in enumerate(result.run.seeds)
    }
    store.write_json(path, {"episodes": command.episodes, "returns": per_seed, "lengths": played.lengths.tolist()})
    console.print(f"Every episode is in [bold]{path}[/bold].")


def compare(command: Compare) -> None:
    """`lexrl compare RUN RUN ...`"""
    if len(command.runs) < 2:
        raise InputError(f"{len(command.runs)} run cannot be compared; give two or more folders.")
    found = [reports.read(folder) for folder in command.runs]
    for one in found:
        store.require_finished(one.path)
    if len({one.objectives for one in found}) > 1:
        told = "; ".join(f"{one.path} has '{one.about['order']}'" for one in found)
        raise InputError(f"The runs have different orders, so that none is better: {told}.")
    console.print(_side_by_side(found))


def _side_by_side(found: list[RunFolder]) -> Table:
    """The best first, in classes that the seeds tell apart; and what tells each run from the one above it."""
    objectives = found[0].objectives
    table = Table(title="Greedy policies per episode: mean of seeds [95 % interval]", title_justify="left", box=None)
    for column in ("class", "", *(str(objective) for objective in objectives), "against the one above"):
        table.add_column(column)
    for row in rank_runs(found):
        shown = [str(stats.mean(row.run.final[:, i])) for i in range(len(objectives))]
        table.add_row(str(row.rank), str(row.run.path), *shown, row.verdict)
    return table


def report(command: Report) -> None:
    """`lexrl report FOLDER`"""
    from lexrl.report import folder  # matplotlib takes its time to import

    path = command.out or command.folder / "report.html"
    folder.write(command.folder, path)
    console.print(f"The page is [bold]{path}[/bold]: open it in a browser.")


def watch(command: Watch) -> None:
    """`lexrl watch RUN`"""
    result = load(command.run)
    seeds = result.run.seeds
    seed = seeds[0] if command.seed is None else command.seed
    if seed not in seeds:
        raise InputError(f"The run has no seed {seed}; it has {', '.join(map(str, seeds))}.")
    path = command.out or command.run / "episode.gif"
    if path.suffix not in (".gif", ".mp4", ".png"):
        raise InputError(f"A film cannot be written as {path.name!r}; give a name that ends in .gif, .mp4 or .png.")
    seen = episodes.episode(result.policies[seeds.index(seed)], result.run.env, command.episode)
    fps = command.fps or episodes.pace(result.run.env)
    store.write_bytes(path, _pictured(path.suffix, seen.frames, fps))
    earned = ", ".join(f"{name} {value:.4g}" for name, value in zip(result.run.order.names, seen.returns, strict=True))
    console.print(f"Seed {seed}, episode {command.episode}: {len(seen.frames) - 1} steps, {earned}.")
    console.print(f"It is in [bold]{path}[/bold].")


def _pictured(kind: str, frames: list[np.ndarray], fps: float) -> bytes:
    if kind == ".png":
        some = np.unique(np.linspace(0, len(frames) - 1, 6).round().astype(int))
        return video.png(np.concatenate([frames[i] for i in some], axis=1))
    if kind == ".mp4":
        return video.mp4(frames, fps)
    kept = 1 if fps <= 25 else 2  # half of the pictures of a fast world: a GIF of them all would be large
    return video.gif(frames[::kept], fps / kept)
