"""What a sweep leaves beside its runs: a table as CSV and a page, figures, and the best settings as a command."""

import pathlib
import re
import shlex
from collections.abc import Sequence
from typing import Any

import lexrl
from lexrl import store
from lexrl.engine import slack_curve, sweep_figures
from lexrl.engine.outcomes import FAILURE
from lexrl.engine.slack_curve import Point
from lexrl.engine.swept import FILE, ROUNDS, TABLE, Row, Sweep
from lexrl.report import page, stats
from lexrl.report.experiment import FILE as CHAPTER
from lexrl.report.experiment import FORMAT
from lexrl.report.run_folder import Direction, below
from lexrl.report.sections.images import Image, Images
from lexrl.report.sections.table import Cell, Table, number
from lexrl.report.sections.text import Text

CURVE = "learned-slack.csv"
ELSEWHERE = (
    "over",
    "seeds",
    "confirm",
    "search",
    "trials",
    "rounds",
    "engine",
    "workers",
    "address",
    "out",
    "json",
    "force",
)
"""Flags of `lexrl sweep` that `lexrl train` does not take, or means otherwise."""


def write(found: Sweep) -> None:
    """Write the files of a finished sweep."""
    content = store.read_json(found.folder / FILE) | outcome(found)
    curve = slack_curve.points(found)
    store.write_csv(found.folder / TABLE, [flat(row, found.confirmation.objectives) for row in found.rows])
    if curve:
        content["learned_slack"] = slack_curve.table(curve, found.base.order.names)
        store.write_csv(found.folder / CURVE, content["learned_slack"])
    store.write_json(found.folder / CHAPTER, _chapter(found, content, curve))
    store.write_json(found.folder / FILE, store.finite(content))


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
        | {"steps": row.steps, "probability_best": row.best, "why": row.why}
    )


def _parts(each: stats.Interval) -> list[tuple[str, float]]:
    return list(zip(("", "_low", "_high"), each, strict=True))


def train_command(found: Sweep) -> str:
    """The command that trains with the best settings: that of the sweep with the best ones in place of what it varied.

    A sweep that was started from Python has no command; settings that were given there are not in this one.
    """
    about, best = found.confirmation.about, found.rows[found.winner].settings
    flags = [word for name, value in best.items() for word in (f"--{name.replace('_', '-')}", *_words(value))]
    if found.base.command:
        words = shlex.split(found.base.command)[2:]  # after `lexrl sweep`
        return shlex.join(["lexrl", "train", *without(words, (*ELSEWHERE, *best)), *flags])
    env = about["env"].get("name", "ENV")
    plain = ["lexrl", "train", about["name"], env, "--order", about["order"], *flags]
    return shlex.join([*plain, "--total-timesteps", str(about["total_timesteps"])])


def without(words: Sequence[str], names: Sequence[str]) -> list[str]:
    """The words of a command line without some flags and what follows them."""
    flags, kept, skipping = {f"--{name.replace('_', '-')}" for name in names}, [], False
    for word in words:
        if word.startswith("--"):
            skipping = word.partition("=")[0].replace("_", "-") in flags
        if not skipping:
            kept.append(word)
    return kept


def _words(value: Any) -> list[str]:
    if isinstance(value, tuple | list):
        return [str(each) for each in value]
    return value.split("x") if re.fullmatch(r"\d+(x\d+)+", value := str(value)) else [value]  # layers, as in 32x32


def _chapter(found: Sweep, content: dict[str, Any], curve: list[Point]) -> dict[str, Any]:
    """The sweep as a chapter of `lexrl report`."""
    objectives, best = found.confirmation.objectives, found.rows[found.winner]
    confirmed = ", ".join(
        f"{one} {stats.mean(found.confirmation.final[:, i])}" for i, one in enumerate(objectives)
    )  # fmt: skip
    chosen = ", ".join(f"{name} {value}" for name, value in best.settings.items())
    words = (
        f"Best: {chosen}, with probability {best.best:.0%}. Fresh seeds: {confirmed}.",
        f"Train with these settings: `{content['train_again']}`",
    )
    sections = [Text("The best settings", words), _figures(found, curve), _table(found)]
    return {
        "format": FORMAT, "experiment": "sweep", "title": f"Sweep: {content['title']}", "runs": _runs(found.folder),
        "question": "Which settings are best, in the order of the objectives?", "command": content["command"],
        "versions": {"lexrl": lexrl.__version__}, "sections": [page.write(one, found.folder) for one in sections],
    }  # fmt: skip


def _runs(folder: pathlib.Path) -> list[dict[str, Any]]:
    """The runs of the search. The page shows them as rows of this chapter, not one by one: each has many settings."""
    rows = []
    for place in below(folder / ROUNDS):
        about, failure = store.read_run(place), place / FAILURE
        finished = store.is_finished(place)
        why = "" if finished or not failure.is_file() else str(store.read_json(failure).get("why", ""))
        rows.append({
            "folder": place.relative_to(folder).as_posix(), "label": about["label"], "seeds": len(about["seeds"]),
            "total_timesteps": about["total_timesteps"], "state": "finished" if finished else "failed", "why": why,
            **({"seconds": store.read_json(place / store.SUMMARY).get("seconds")} if finished else {}),
        })  # fmt: skip
    return rows


def _table(found: Sweep) -> Table:
    objectives = found.confirmation.objectives
    heads = (*found.rows[0].settings, *map(str, objectives), "steps", "probability of being best", "remarks")
    rows = tuple(
        (
            *(Cell(str(value)) for value in row.settings.values()),
            *(_interval(row, i) for i in range(len(objectives))),
            number(row.steps),
            number(row.best),
            Cell(row.why),
        )
        for row in sorted(found.rows, key=lambda row: -row.best)
    )
    caption = "Mean of the seeds [95 % interval], the most probably best first."
    return Table("combinations", "All combinations", caption, heads, rows)


def _figures(found: Sweep, curve: list[Point]) -> Images:
    """Small multiples of every setting and objective; and the slack curve."""
    names = found.base.order.names
    shown = [
        Image(pathlib.Path("settings.png"), "Returns by setting.", "Returns by setting; the best combination is red.",
              sweep_figures.small_multiples(found).png)
    ]  # fmt: skip
    if curve:
        label = f"What {names[0]} gives up and {names[1]} gains by the tolerance."
        drawn = slack_curve.draw(curve, names, "The learned slack curve")
        shown.append(Image(pathlib.Path("learned-slack.png"), label, label, drawn.png))
    return Images("What the settings do", "Means of the seeds with 95 % intervals.", tuple(shown), wide=True)


def _interval(row: Row, i: int) -> Cell:
    each = stats.mean(row.returns[:, i])
    return Cell(str(each), float(each[0]))
