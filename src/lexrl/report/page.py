"""One page about runs: a single HTML file that needs nothing else, by day and by night, on a desk and on a phone."""

import base64
import html
import json
import pathlib
from collections.abc import Callable, Sequence
from typing import TypeVar

from lexrl import store
from lexrl.errors import InputError
from lexrl.report import plots, run_folder, sections, stats
from lexrl.report.run_folder import Found, ranked

Read = TypeVar("Read")
STYLE = """
:root { color-scheme: light dark; --ink: #222; --faint: #777; --paper: #fff; --line: #ddd; --card: #f7f7f5; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e6; --faint: #a0a0a0; --paper: #17181a; --line: #3a3b3d; --card: #212225; }
  figure img, figure svg { background: #fff; border-radius: 6px; }
}
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 62rem; padding: 1rem 1.2rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { margin-top: 2.6rem; font-size: 1.25rem; }
.lead, figcaption, small { color: var(--faint); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .6rem 0; } th, td { padding: .3rem .9rem .3rem 0; text-align: left; }
thead th { border-bottom: 1px solid var(--line); font-weight: 600; } td.number { font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; } figure img, figure svg { max-width: 100%; height: auto; }
details { background: var(--card); border-radius: 6px; padding: .6rem .9rem; margin: .8rem 0; }
pre { overflow-x: auto; font-size: .85rem; margin: .4rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
"""


def page(folder: pathlib.Path) -> str:
    """Everything in a folder: its experiments, its runs, compared where their orders allow it, and what was solved."""
    if not folder.is_dir():
        raise InputError(f"There is no folder {str(folder)!r}; give one with runs in it.")
    failed: list[str] = []
    experiments = sections.below(folder)
    shown = {path for each in experiments for path in sections.runs_of(each)}
    found = _readable([path for path in run_folder.below(folder) if path.resolve() not in shown], _run, failed)
    solved = _readable(sorted(path.parent for path in folder.rglob("solution.json")), _solution, failed)
    if experiments and not found and not solved and not failed:
        return sections.document("Lexicographic reinforcement learning: the paper's experiments", experiments)
    if not found and not solved and not experiments:
        why = f" ({failed[0]})" if failed else ""
        raise InputError(f"In the folder {str(folder)!r} is no run that could be reported{why}.")
    title = _text(folder.resolve().name)
    parts = [
        f"<p class=lead>{len(found)} runs of lexrl: objectives in order of importance.</p>",
        *(f"<p><b>Left out:</b> {_text(sentence)}</p>" for sentence in failed),
        *_comparisons([one for one, _ in found if one.summary is not None]),
        *(section for _, section in found),
        *solved,
    ]
    if experiments:
        return sections.document(folder.resolve().name, experiments, "".join(parts), STYLE)
    return (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title>"
        f"<meta name=viewport content='width=device-width, initial-scale=1'><style>{STYLE}</style></head>"
        f"<body><h1>{title}</h1>{''.join(parts)}</body></html>"
    )


def _readable(folders: Sequence[pathlib.Path], read: Callable[[pathlib.Path], Read], failed: list[str]) -> list[Read]:
    """What can be read of some folders; why others cannot is added to `failed`."""
    found = []
    for folder in folders:
        try:
            found.append(read(folder))
        except InputError as error:
            failed.append(str(error))
    return found


def _comparisons(finished: Sequence[Found]) -> list[str]:
    """A table for each order that several runs have."""
    tables = []
    for order in dict.fromkeys(one.objectives for one in finished):
        same = ranked([one for one in finished if one.objectives == order])
        if len(same) < 2:
            continue
        rows = [
            [
                str(row.place),
                _text(row.run.title),
                *(str(stats.mean(row.run.final[:, i])) for i in range(len(order))),
                _text(row.verdict),
            ]
            for row in same
        ]
        heads = ["class", "", *(f"{i + 1}. {objective}" for i, objective in enumerate(order)), "against the one above"]
        tables += [
            f"<h2>{_text(' > '.join(map(str, order)))}</h2>",
            "<p>Greedy policies on fresh episodes: mean of the seeds, with its 95 % interval.</p>",
            _table(heads, rows),
        ]
    return tables


def _run(folder: pathlib.Path) -> tuple[Found, str]:
    """A run: what it reached, its curves, an episode if there is a film, and how to repeat it."""
    one = run_folder.read(folder)
    parts = [f"<h2 id='{_text(one.path.name)}'>{_text(one.title)}</h2>"]
    if one.summary is None:
        parts.append("<p><b>This run is not finished.</b></p>")
    else:
        parts.append(_levels(one))
        parts += [f"<p><b>{_text(sentence)}</b></p>" for sentence in one.summary["stopped"].values()]
    if (one.path / store.METRICS).is_file():
        parts.append(_curves(one))
    for name, caption in (("episode.gif", "An episode."), ("map.png", "What was learned.")):
        parts.append(_picture(one.path / name, caption))
    told = {key: one.about.get(key) for key in ("command", "begun", "versions", "commit", "machine")}
    settings = {key: one.about.get(key) for key in ("algorithm", "env")}
    seconds = "" if one.summary is None else f", {one.summary['seconds']:g} s"
    parts.append(
        f"<details><summary>How to repeat it: {len(one.about['seeds'])} seeds x {one.about['total_timesteps']:,} steps{seconds}"
        f"</summary><pre>{_text(json.dumps(told | settings, indent=1))}</pre></details>"
    )
    return one, "".join(parts)


def _curves(one: Found) -> str:
    steps, values = one.curves()
    drawn = plots.learning_curves(steps, values, [str(objective) for objective in one.objectives], "").svg.decode()
    drawn = drawn[drawn.index("<svg") :].replace("<svg", f"<svg role=img aria-label='Curves of {_text(one.title)}'", 1)
    caption = "Per episode while learning: every seed thin, their median thick, their middle half shaded."
    return f"<figure>{drawn}<figcaption>{caption}</figcaption></figure>"


def _levels(one: Found) -> str:
    rows = []
    for i, objective in enumerate(one.objectives):
        values = one.final[:, i]
        worst, best = sorted((values.min(), values.max()), key=lambda value: objective.sign * value)
        rows.append([f"{i + 1}. {objective}", str(stats.mean(values)), f"{worst:.4g}", f"{best:.4g}"])
    return _table(["", "mean of seeds [95 % interval]", "worst seed", "best seed"], rows)


def _solution(place: pathlib.Path) -> str:
    """An exact solution: its returns and its pictures."""
    path = place / "solution.json"
    solution = store.read_json(path)
    store.require(path, solution, {"world": str, "order": str, "gamma": object, "returns": dict, "command": str})
    store.require(path, solution["returns"], dict.fromkeys(solution["returns"], (int, float)))
    rows = [[_text(name), f"{value:.6g}"] for name, value in solution["returns"].items()]
    parts = [
        f"<h2>{_text(solution['world'])}, solved exactly: {_text(solution['order'])}</h2>",
        _table(["", f"J, gamma {solution['gamma']}"], rows),
        _picture(place / "critical-slack.png", "What a slack on the first objective buys of the second, exactly."),
        _picture(place / "map.png", "The optimum."),
        f"<details><summary>How to repeat it</summary><pre>{_text(solution['command'])}</pre></details>",
    ]
    return "".join(parts)


def _picture(path: pathlib.Path, caption: str) -> str:
    if not path.is_file():
        return ""
    kind = path.suffix.removeprefix(".")
    data = base64.b64encode(path.read_bytes()).decode()
    return (
        f"<figure><img alt='{_text(caption)}' src='data:image/{kind};base64,{data}'>"
        f"<figcaption>{_text(caption)}</figcaption></figure>"
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{_text(each)}</th>" for each in heads)
    body = "".join("<tr>" + "".join(f"<td class=number>{each}</td>" for each in row) + "</tr>" for row in rows)
    return f"<div class=wide><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _text(given: object) -> str:
    return html.escape(str(given), quote=True)
