"""Sweeps: an algorithm with many settings, each with seeds of its own; the best is confirmed by fresh seeds.

    out/sweep.json          what is varied, and what was found
    out/sweep.csv           a row for each combination of values
    out/rounds/0-0/0, ...   runs by batch, round and group: what differs in floats only is trained together
    out/confirmation        the best settings, with seeds that the search has not seen
    out/optuna.db           optuna's storage, if it proposes the values
    out/experiment.json     the page of `lexrl report out`

The best combination is chosen lexicographically, by the probability of being best when seeds are resampled.
"""

import dataclasses
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from lexrl import locks, store
from lexrl.engine import halving, sweep_files, values
from lexrl.engine import search as searches
from lexrl.engine.engines import Engine
from lexrl.engine.swept import CONFIRMATION, FILE, ROUNDS, Row, Sweep
from lexrl.engine.values import Over
from lexrl.errors import InputError, as_path, require_whole
from lexrl.order import Order
from lexrl.report import ranking
from lexrl.report.run_folder import read as read_folder
from lexrl.runs import footprint
from lexrl.runs.run import Run, fit, plan, require_algorithm

RESAMPLES = 4_000


def sweep(
    algorithm: Any,
    env: Any,
    order: Any = None,
    *,
    over: Over,
    out: str | pathlib.Path,
    search: str = "grid",
    trials: int = 32,
    rounds: int = 1,
    seeds: int = 5,
    confirm: int = 10,
    total_timesteps: float | int | None = None,
    engine: Engine | None = None,
    console: Console | None = None,
    **settings: Any,
) -> Sweep:
    """Train an algorithm with many combinations of values, choose the best, and confirm it with fresh seeds.

    A sweep that was stopped continues when it is called again with the same folder, which has the table of all
    combinations, the best settings as a command, and the page in the end.

    Args:
        algorithm, env, order, total_timesteps: as `lexrl.train` takes them; `settings` are further ones of its.
        over: what is varied: the values of each setting, as in `{"learning_rate": [1e-4, 1e-3]}`, or a range of them,
            `lexrl.engine.values.Range(1e-4, 1e-2, log=True)`, for a search that draws its values.
        out: the folder of the sweep.
        search: `"grid"` tries every combination, `"random"` draws `trials` of them, `"optuna"` proposes as many.
        trials: how many combinations a search draws.
        rounds: with more than one, all begin with short runs, and only those that are not decidedly worse are trained
            again, twice as long, until the last round has all steps.
        seeds: how many for each combination.
        confirm: how many fresh seeds for the best one.
        engine: where the runs are executed; by default here.
        console: shows a table of the runs while they are executed.
    """
    require_whole(2, values.MAX_VALUES, seeds=seeds, confirm=confirm)
    folder = as_path(out)
    base = plan(algorithm, env, order, 1, total_timesteps, **settings)
    steps = halving.lengths(base.total_timesteps, rounds)
    about = {"over": _as_text(base, over), "title": base.title, "search": search, "trials": trials, "rounds": rounds}
    about |= {"seeds": seeds, "confirm": confirm}
    proposals = _make_search(search, over, trials, folder, base)
    _require_place(folder)
    with locks.hold(folder):
        _begin(folder, about, base.command)
        looking = _Looking(base, folder, seeds, engine or Engine(), console, steps)
        found = _confirmed(looking.all_rows(proposals), looking, confirm)
        sweep_files.write(found)
        return found


def _as_text(base: Run, over: Over) -> dict[str, Any]:
    """What is varied, for `sweep.json`; an error for what cannot be."""
    values.require(over)
    if isinstance(base.algorithm, Sequence):
        raise InputError("A sweep varies the settings of one algorithm for all seeds; give one instead of a list.")
    for name in over:
        values.find(base.algorithm, values.plain(name))
    return {
        name: str(given) if isinstance(given, values.Range) else list(map(str, given)) for name, given in over.items()
    }


def _make_search(kind: str, over: Over, trials: int, folder: pathlib.Path, base: Run) -> searches.Search:
    return searches.make(kind, over, trials, folder, [objective.sign for objective in base.order.objectives])


def _confirmed(rows: tuple[Row, ...], looking: "_Looking", confirm: int) -> Sweep:
    """The sweep with its winner, trained with seeds that no round had."""
    base, folder = looking.base, looking.folder
    winner = int(np.argmax([row.best for row in rows]))
    if rows[winner].best == 0:
        raise InputError(f"No combination of values finished. {rows[winner].why}")
    first = len(looking.steps) * values.MAX_VALUES * looking.seeds
    best = dataclasses.replace(
        base,
        algorithm=looking.fitted(rows[winner].settings, base.total_timesteps),
        seeds=tuple(range(first, first + confirm)),
        label=f"{base.title}: best of the sweep",
    )
    (outcome,) = looking.engine.execute({folder / CONFIRMATION: best}, console=looking.console)
    if outcome.why:
        raise InputError(f"The best settings could not be confirmed. {outcome.why}")
    return Sweep(rows, winner, read_folder(folder / CONFIRMATION), folder, base)


def _require_place(folder: pathlib.Path) -> None:
    """Raise an error for a folder of something else, or one with links that lead out of it."""
    if folder.is_dir():
        store.require_plain(folder)
    if (folder / FILE).is_file() or not os.path.lexists(folder):
        return
    # A sweep that was killed before it wrote what it varies left its lock, or a file that is not complete.
    begun = (locks.FILE, f".{locks.FILE}.", f".{FILE}.")
    if not folder.is_dir() or any(not path.name.startswith(begun) for path in folder.iterdir()):
        raise InputError(f"The folder {str(folder)!r} is in use; give another one.")


def _begin(folder: pathlib.Path, about: dict[str, Any], command: str) -> None:
    """Write what is varied; an error if the folder has another sweep."""
    if (folder / FILE).is_file():
        found = store.read_json(folder / FILE)
        if {key: found.get(key) for key in about} == about:
            return
        if (folder / ROUNDS).exists():  # else nothing was trained: its values were refused
            raise InputError(f"The folder {str(folder)!r} holds another sweep; give another folder.")
    store.write_json(folder / FILE, about | {"command": command})


class _Found(NamedTuple):
    """What one combination reached in one round."""

    returns: np.ndarray
    exact: np.ndarray | None
    why: str


@dataclasses.dataclass(frozen=True)
class _Looking:
    """Trains combinations, round by round."""

    base: Run
    folder: pathlib.Path
    seeds: int
    engine: Engine
    console: Console | None
    steps: Sequence[int]
    """Of each round."""

    def fitted(self, settings: Mapping[str, Any], steps: int) -> Any:
        one = values.changed(self.base.algorithm, settings)
        require_algorithm(one)
        return fit(one, self.base.order, steps)

    def all_rows(self, proposals: searches.Search) -> tuple[Row, ...]:
        """Every combination that is tried, with its probability of being the best."""
        rows: list[Row] = []
        for number, batch in enumerate(proposals.batches()):
            rows += self._rounds(number, len(rows), batch)
            each = np.stack([row.returns for row in rows])
            proposals.tell(self._order(rows, each), each.mean(axis=1))
        whole = np.stack(
            [
                row.returns if row.steps == self.steps[-1] and not row.why else np.full_like(row.returns, np.nan)
                for row in rows
            ]
        )
        best = best_probabilities(whole, self.base.order)
        return tuple(row._replace(best=float(each)) for row, each in zip(rows, best, strict=True))

    def _order(self, rows: Sequence[Row], returns: np.ndarray) -> list[int]:
        """Positions, the best first: whoever came further is better than who was dropped before."""
        found = []
        for steps in reversed(self.steps):
            here = [i for i, row in enumerate(rows) if row.steps == steps]
            found += [here[i] for i in halving.ranked(returns[here], self.base.order)] if here else []
        return found

    def _rounds(self, number: int, first: int, batch: Sequence[Mapping[str, Any]]) -> list[Row]:
        """A batch whose first combination has this position in the sweep."""
        missing = np.full((self.seeds, len(self.base.order.objectives)), np.nan)
        rows = [Row(settings, missing, 0.0, "") for settings in batch]
        left = list(range(len(batch)))
        for turn, steps in enumerate(self.steps):
            found = self._train(f"{number}-{turn}", turn, first, batch, left, steps)
            for i, each in found.items():
                rows[i] = Row(batch[i], each.returns, 0.0, each.why, steps, each.exact)
            left = [i for i in left if not rows[i].why]
            if turn < len(self.steps) - 1:
                dropped = halving.drop(np.stack([rows[i].returns for i in left]), self.base.order) if left else {}
                for position, by in dropped.items():
                    rows[left[position]] = rows[left[position]]._replace(
                        why=f"Dropped after {steps:,} steps: combination {first + left[by.by] + 1} is better in "
                        f"{self.base.order.names[by.objective]}, {by.probability:.0%} sure."
                    )
                left = [i for i in left if not rows[i].why]
        return rows

    def _train(
        self, name: str, turn: int, first: int, batch: Sequence[Mapping[str, Any]], left: Sequence[int], steps: int
    ) -> dict[int, _Found]:
        """Train some combinations of a batch: a run for each group. Each has seeds of its own, so that they are
        independent."""
        each = [self.fitted(batch[i], steps) for i in left]
        runs, members = {}, {}
        for number, group in enumerate(values.groups(each)):
            place = self.folder / ROUNDS / name / str(number)
            members[place] = [left[k] for k in group]
            starts = [(turn * values.MAX_VALUES + first + i) * self.seeds for i in members[place]]
            runs[place] = dataclasses.replace(
                self.base,
                algorithm=[each[k] for k in group for _ in range(self.seeds)],
                seeds=tuple(start + k for start in starts for k in range(self.seeds)),
                total_timesteps=steps,
                label=f"{self.base.title}: {len(group)} of {len(each)} combinations",
            )
        if self.engine.kind != "ray":  # other machines may have more memory
            for run in runs.values():
                footprint.require(run)
        found = {}
        for outcome in self.engine.execute(runs, console=self.console):
            parts = self._read(outcome.folder, outcome.why, members[outcome.folder])
            found |= dict(zip(members[outcome.folder], parts, strict=True))
        return found

    def _read(self, place: pathlib.Path, why: str, members: Sequence[int]) -> list[_Found]:
        """What the combinations of a group reached."""
        missing = np.full((self.seeds, len(self.base.order.objectives)), np.nan)
        run = None if why else read_folder(place)
        if run is None or run.summary is None:
            return [_Found(missing, None, why) for _ in members]
        stopped, exact = run.summary["stopped"], run.summary.get("exact_discounted")
        names, found = self.base.order.names, []
        for position in range(len(members)):
            own = slice(position * self.seeds, (position + 1) * self.seeds)
            fault = " ".join(stopped[str(seed)] for seed in run.about["seeds"][own] if str(seed) in stopped)
            known = None if exact is None else np.array([exact[name][own] for name in names]).T
            found.append(_Found(missing if fault else run.final[own], known, fault))
        return found


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
            ranking.bootstrap_means(each, RESAMPLES, np.random.default_rng([0, i]))
            if known[i] else np.zeros((RESAMPLES, returns.shape[2]))
            for i, each in enumerate(returns)
        ],
        axis=1,
    )  # fmt: skip
    for i, (objective, slack) in enumerate(zip(order.objectives, halving.tolerances(order), strict=True)):
        value = objective.sign * means[..., i]
        if objective.limit is not None:
            value = np.minimum(value, objective.sign * objective.limit)
        top = np.where(left, value, -np.inf).max(axis=1, keepdims=True)
        rounding = 1e-12 * np.abs(returns[known][..., i]).max()  # sums of the same numbers in another order
        left &= value >= top - slack - rounding
    wins: np.ndarray = left / left.sum(axis=1, keepdims=True)
    return wins.mean(axis=0)
