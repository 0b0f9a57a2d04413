"""What a sweep leaves beside its runs: a table as CSV and one on a page, and the best settings as a command."""

import shlex
from typing import Any

import lexrl
from lexrl import store
from lexrl.engine.sweeps import FILE, TABLE, Row, Sweep
from lexrl.report import page, stats
from lexrl.report.experiment import FILE as CHAPTER
from lexrl.report.experiment import FORMAT
from lexrl.report.run_folder import Direction
from lexrl.report.sections.table import Cell, Table, number
from lexrl.report.sections.text import Text


def write(found: Sweep, command: str = "") -> dict[str, Any]:
    """Write the files of a finished sweep; returns what `sweep.json` has."""
    content = store.read_json(found.folder / FILE) | outcome(found) | {"command": command}
    store.write_csv(found.folder / TABLE, [flat(row, found.confirmation.objectives) for row in found.rows])
    store.write_json(found.folder / FILE, content)
    store.write_json(found.folder / CHAPTER, _chapter(found, content))
    return content


def outcome(found: Sweep) -> dict[str, Any]:
    """The best settings, their probability, and what fresh seeds say about them."""
    best, names = found.rows[found.winner], [one.name for one in found.confirmation.objectives]
    return {
        "best": {name: str(value) for name, value in best.settings.items()},
        "probability_best": best.best,
        "confirmed": {name: found.confirmation.final[:, i].tolist() for i, name in enumerate(names)},
        "confirmed_seeds": found.confirmation.about["seeds"],
        "train_again": train_command(found),
        "rows": [flat(row, found.confirmation.objectives) for row in found.rows],
    }


def flat(row: Row, objectives: tuple[Direction, ...]) -> dict[str, Any]:
    """A row of `sweep.csv`."""
    means = {one.name: stats.mean(row.returns[:, i]) for i, one in enumerate(objectives)}
    return (
        {name: str(value) for name, value in row.settings.items()}
        | {f"{name}{part}": float(value) for name, each in means.items() for part, value in _parts(each)}
        | {"probability_best": row.best, "why": row.why}
    )


def _parts(each: stats.Interval) -> list[tuple[str, float]]:
    return list(zip(("", "_low", "_high"), each, strict=True))


def train_command(found: Sweep) -> str:
    """The command that trains with the best settings."""
    about, best = found.confirmation.about, found.rows[found.winner].settings
    flags = [word for name, value in best.items() for word in (f"--{name.replace('_', '-')}", *_words(value))]
    env = about["env"].get("name", "ENV")
    words = ["lexrl", "train", about["name"], env, "--order", about["order"], *flags]
    return shlex.join([*words, "--total-timesteps", str(about["total_timesteps"])])


def _words(value: Any) -> list[str]:
    return [str(each) for each in value] if isinstance(value, tuple | list) else str(value).split("x")


def _chapter(found: Sweep, content: dict[str, Any]) -> dict[str, Any]:
    """The sweep as a chapter of `lexrl report`."""
    objectives, best = found.confirmation.objectives, found.rows[found.winner]
    heads = (*best.settings, *map(str, objectives), "probability of being best", "what went wrong")
    rows = tuple(
        (
            *(Cell(str(value)) for value in row.settings.values()),
            *(_interval(row, i) for i in range(len(objectives))),
            number(row.best),
            Cell(row.why),
        )
        for row in sorted(found.rows, key=lambda row: -row.best)
    )
    confirmed = ", ".join(
        f"{one} {stats.mean(found.confirmation.final[:, i])}" for i, one in enumerate(objectives)
    )  # fmt: skip
    chosen = ", ".join(f"{name} {value}" for name, value in best.settings.items())
    words = (
        f"Best: {chosen}, with probability {best.best:.0%}. Fresh seeds: {confirmed}.",
        f"Train with these settings: `{content['train_again']}`",
    )
    sections = [
        Text("The best settings", words),
        Table("combinations", "All combinations", "Mean of the seeds [95 % interval], the most probably best first.",
              heads, rows),
    ]  # fmt: skip
    return {
        "format": FORMAT, "experiment": "sweep", "title": f"Sweep: {content['title']}", "runs": [],
        "question": "Which settings are best, in the order of the objectives?", "command": content["command"],
        "versions": {"lexrl": lexrl.__version__}, "sections": [page.write(one, found.folder) for one in sections],
    }  # fmt: skip


def _interval(row: Row, i: int) -> Cell:
    each = stats.mean(row.returns[:, i])
    return Cell(str(each), float(each[0]))
