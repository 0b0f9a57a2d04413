"""Runs and exact solutions on a page: what they reached, how they compare, and how to repeat them."""

import json
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

from lexrl import store
from lexrl.report import learning_curves, markup, run_folder, stats, verdict_grid
from lexrl.report.markup import safe
from lexrl.report.run_folder import RunFolder, rank_runs


class Shown(NamedTuple):
    """A run and its part of the page."""

    found: RunFolder
    html: str


def comparisons(finished: Sequence[RunFolder]) -> list[str]:
    """A table for each order that several runs have."""
    tables = []
    for order in dict.fromkeys(one.objectives for one in finished):
        same = rank_runs([one for one in finished if one.objectives == order])
        if len(same) < 2:
            continue
        rows = [
            [
                str(row.rank),
                row.run.title,
                *(str(stats.mean(row.run.final[:, i])) for i in range(len(order))),
                row.verdict,
            ]
            for row in same
        ]
        heads = ["class", "", *(f"{i + 1}. {objective}" for i, objective in enumerate(order)), "against the one above"]
        tables += [
            f"<h2>{safe(' > '.join(map(str, order)))}</h2>",
            "<p>Greedy policies on fresh episodes: mean of the seeds, with its 95 % interval.</p>",
            _table(heads, rows),
        ]
    return tables


def run(folder: pathlib.Path) -> Shown:
    """A run: what it reached, its learning curves, an episode if there is a video, and how to repeat it."""
    one = run_folder.read(folder)
    parts = [f"<h2 id='{safe(one.path.name)}'>{safe(one.title)}</h2>"]
    if one.summary is None:
        parts.append("<p><b>This run is not finished.</b></p>")
    else:
        parts += [_returns(one), verdict_grid.details(one)]
        parts += [f"<p><b>{safe(sentence)}</b></p>" for sentence in one.summary["stopped"].values()]
    if (one.path / store.METRICS).is_file():
        parts.append(_curves(one))
    for name, caption in (("episode.gif", "An episode."), ("map.png", "What was learned.")):
        parts.append(_image(one.path / name, caption))
    shown = {key: one.about.get(key) for key in ("command", "begun", "versions", "commit", "machine")}
    settings = {"algorithm": one.about.get("algorithm"), "env": one.env}
    seconds = "" if one.summary is None else f", {one.summary['seconds']:g} s"
    parts.append(
        f"<details><summary>How to repeat it: {len(one.about['seeds'])} seeds x {one.total_timesteps:,} steps{seconds}"
        f"</summary><pre>{safe(json.dumps(shown | settings, indent=1))}</pre></details>"
    )
    return Shown(one, "".join(parts))


def _curves(one: RunFolder) -> str:
    steps, values = one.curves()
    drawn = learning_curves.draw(steps, values, [str(objective) for objective in one.objectives], "").svg.decode()
    drawn = drawn[drawn.index("<svg") :].replace("<svg", f"<svg role=img aria-label='Curves of {safe(one.title)}'", 1)
    caption = "Per episode while learning: every seed thin, their median thick, their middle half shaded."
    return f"<figure>{drawn}<figcaption>{caption}</figcaption></figure>"


def _returns(one: RunFolder) -> str:
    rows = []
    for i, objective in enumerate(one.objectives):
        values = one.final[:, i]
        worst, best = sorted((values.min(), values.max()), key=lambda value: objective.sign * value)
        rows.append([f"{i + 1}. {objective}", str(stats.mean(values)), f"{worst:.4g}", f"{best:.4g}"])
    return _table(["", "mean of seeds [95 % interval]", "worst seed", "best seed"], rows)


def solution(place: pathlib.Path) -> str:
    """An exact solution: its returns and its pictures."""
    path = place / "solution.json"
    found = store.read_json(path)
    store.require(path, found, {"env": str, "order": str, "gamma": object, "returns": dict, "command": str})
    store.require(path, found["returns"], dict.fromkeys(found["returns"], (int, float)))
    rows = [[name, f"{value:.6g}"] for name, value in found["returns"].items()]
    parts = [
        f"<h2>{safe(found['env'])}, solved exactly: {safe(found['order'])}</h2>",
        _table(["", f"J, gamma {found['gamma']}"], rows),
        _image(place / "critical-slack.png", "What a slack on the first objective buys of the second, exactly."),
        _image(place / "map.png", "The optimum."),
        f"<details><summary>How to repeat it</summary><pre>{safe(found['command'])}</pre></details>",
    ]
    return "".join(parts)


def _image(path: pathlib.Path, caption: str) -> str:
    if not path.is_file():
        return ""
    address = markup.image(path.suffix.removeprefix("."), path.read_bytes())
    return f"<figure><img alt='{safe(caption)}' src='{address}'><figcaption>{safe(caption)}</figcaption></figure>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{safe(each)}</th>" for each in heads)
    body = "".join("<tr>" + "".join(f"<td class=number>{safe(each)}</td>" for each in row) + "</tr>" for row in rows)
    return f"<div class=wide><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
