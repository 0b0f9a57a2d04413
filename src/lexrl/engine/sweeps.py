"""Sweeps: an algorithm with many settings, each with seeds of its own; the best is confirmed by fresh seeds.

    out/sweep.json          what is varied, and what was found
    out/sweep.csv           a row for each combination of values
    out/groups/0, ...       runs: what differs in floats only is trained together, by one compiled program
    out/confirmation        the best settings, with seeds that the search has not seen
    out/experiment.json     the table of `lexrl report out`

The best combination is chosen lexicographically, by the probability of being best when seeds are resampled.
"""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl import store
from lexrl.engine import values
from lexrl.engine.engines import Engine
from lexrl.errors import InputError, as_path, require_whole
from lexrl.order import Order
from lexrl.report import ranking
from lexrl.report.run_folder import RunFolder
from lexrl.report.run_folder import read as read_folder
from lexrl.runs.run import Run, fit, plan
from lexrl.tolerance import Absolute

FILE, TABLE, GROUPS, CONFIRMATION = "sweep.json", "sweep.csv", "groups", "confirmation"
RESAMPLES = 4_000


class Row(NamedTuple):
    """One combination of values."""

    settings: Mapping[str, Any]
    returns: np.ndarray
    """`[seeds, M]`: what each seed's policy reached per episode; NaN for a seed that stopped."""
    best: float
    """The probability that it is the best of the sweep."""
    why: str
    """What went wrong, if something did."""


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A finished sweep."""

    rows: tuple[Row, ...]
    winner: int
    """The position of the best row."""
    confirmation: RunFolder
    """The best settings, trained with fresh seeds: the result to report."""
    folder: pathlib.Path


def sweep(
    algorithm: Any,
    env: Any,
    order: Any = None,
    *,
    over: Mapping[str, Sequence[Any]],
    out: str | pathlib.Path,
    seeds: int = 5,
    confirm: int = 10,
    total_timesteps: float | int | None = None,
    engine: Engine | None = None,
    **settings: Any,
) -> Sweep:
    """Train an algorithm with every combination of values, choose the best, and confirm it with fresh seeds.

    A sweep that was stopped continues when it is called again with the same folder.

    Args:
        algorithm, env, order, total_timesteps: as `lexrl.train` takes them; `settings` are further ones of its.
        over: the values of each setting that is varied, as in `{"learning_rate": [1e-4, 1e-3]}`.
        out: the folder of the sweep.
        seeds: how many for each combination.
        confirm: how many fresh seeds for the best one.
        engine: where the runs are executed; by default here.
    """
    require_whole(2, seeds=seeds, confirm=confirm)
    folder, engine = as_path(out), engine or Engine()
    base = plan(algorithm, env, order, 1, total_timesteps, **settings)
    one: Any = base.algorithm
    chosen = values.grid(over)
    each = [fit(values.changed(one, value), base.order, base.total_timesteps) for value in chosen]
    runs = _runs(base, each, seeds, folder)
    _begin(folder, {"over": {name: list(map(str, given)) for name, given in over.items()}, "title": base.title})
    outcomes = engine.execute({place: run for place, (run, _) in runs.items()})
    rows = _rows(base, chosen, seeds, runs, {outcome.folder: outcome.why for outcome in outcomes})
    winner = int(np.argmax([row.best for row in rows]))
    if rows[winner].best == 0:
        raise InputError(f"No combination of values finished. {rows[winner].why}")
    fresh = tuple(range(len(chosen) * seeds, len(chosen) * seeds + confirm))
    last = dataclasses.replace(base, algorithm=each[winner], seeds=fresh, label=f"{base.title}: best of the sweep")
    (outcome,) = engine.execute({folder / CONFIRMATION: last})
    if outcome.why:
        raise InputError(f"The best settings could not be confirmed. {outcome.why}")
    return Sweep(rows, winner, read_folder(folder / CONFIRMATION), folder)


def _begin(folder: pathlib.Path, about: dict[str, Any]) -> None:
    """Write what is varied; an error if the folder has another sweep."""
    if (folder / FILE).is_file():
        found = store.read_json(folder / FILE)
        if {key: found.get(key) for key in about} != about:
            raise InputError(f"The folder {str(folder)!r} holds another sweep; give another folder.")
    elif folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"The folder {str(folder)!r} is in use; give another one.")
    else:
        store.write_json(folder / FILE, about)


def _runs(
    base: Run, each: Sequence[Any], seeds: int, folder: pathlib.Path
) -> dict[pathlib.Path, tuple[Run, list[int]]]:
    """A run for each group, and the combinations in it. Each has seeds of its own, so that they are independent."""
    found = {}
    for number, members in enumerate(values.groups(each)):
        run = dataclasses.replace(
            base,
            algorithm=[each[i] for i in members for _ in range(seeds)],
            seeds=tuple(i * seeds + k for i in members for k in range(seeds)),
            label=f"{base.title}: {len(members)} of {len(each)} combinations",
        )
        found[folder / GROUPS / str(number)] = run, members
    return found


def _rows(
    base: Run, chosen: Sequence[Any], seeds: int, runs: Mapping[pathlib.Path, Any], why: Mapping[pathlib.Path, str]
) -> tuple[Row, ...]:
    """What each combination reached, and how probably it is the best."""
    returns = np.full((len(chosen), seeds, len(base.order.objectives)), np.nan)
    faults = [""] * len(chosen)
    for place, (run, members) in runs.items():
        found = None if why[place] else read_folder(place)
        stopped = {} if found is None or found.summary is None else found.summary["stopped"]
        for position, i in enumerate(members):
            own = run.seeds[position * seeds : (position + 1) * seeds]
            faults[i] = why[place] or " ".join(stopped[str(seed)] for seed in own if str(seed) in stopped)
            if found is not None and not faults[i]:
                returns[i] = found.final[position * seeds : (position + 1) * seeds]
    best = best_probabilities(returns, base.order)
    return tuple(Row(chosen[i], returns[i], float(best[i]), faults[i]) for i in range(len(chosen)))


def best_probabilities(returns: np.ndarray, order: Order) -> np.ndarray:
    """For each of several settings `[settings, seeds, M]`, the probability that it is lexicographically the best.

    Means of resampled seeds are compared: at each objective in turn, those within its tolerance of the best stay (an
    objective with a limit counts up to it). Settings that are equal in the end share the resample.
    """
    known = np.asarray(np.isfinite(returns).all(axis=(1, 2)))
    left = np.broadcast_to(known, (RESAMPLES, len(returns))).copy()
    if not known.any():
        return np.zeros(len(returns))
    means = np.stack(
        [
            ranking.resampled_means(each, RESAMPLES, np.random.default_rng([0, i]))
            if known[i] else np.zeros((RESAMPLES, returns.shape[2]))
            for i, each in enumerate(returns)
        ],
        axis=1,
    )  # fmt: skip
    for i, objective in enumerate(order.objectives):
        value = objective.sign * means[..., i]
        if objective.limit is not None:
            value = np.minimum(value, objective.sign * objective.limit)
        top = np.where(left, value, -np.inf).max(axis=1, keepdims=True)
        slack = float(objective.tolerance.amount) if isinstance(objective.tolerance, Absolute) else 0.0
        left &= value >= top - slack - 1e-12 * np.abs(top)
    wins: np.ndarray = left / left.sum(axis=1, keepdims=True)
    return wins.mean(axis=0)
