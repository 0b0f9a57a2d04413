"""An experiment's runs: planned, executed one after the other (each of them on all cores), and read again.

A job is a run with a name of its own, which is also its place on disk. What is finished there is not run again; what
was stopped goes on where it stood. The runs of all experiments of a size lie in one folder, so that they share them.
"""

import dataclasses
import json
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl import store
from lexrl.errors import InputError
from lexrl.order import parse
from lexrl.report import run_folder as reports
from lexrl.report.run_folder import Found
from lexrl.runs import Result, Run, codec, execute, plan, targets
from lexrl.runs.run import fit

RUNS = "runs"
"""The folder of the runs, beside those of the experiments."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A run of an experiment, before anything is built."""

    name: str
    """Its folder, as in `"cart-safe/tuned/lppo"`."""
    label: str
    """What it is called in tables and pictures."""
    algorithm: Any
    world: str
    """A world's name; `"random-momdps"` is a random one for each seed."""
    order: str
    seeds: int
    steps: int
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The world's settings."""
    num_log_points: int = 50
    tags: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """What tells it from others: `{"preset": "tuned"}`."""
    measure: Callable[[Result], dict[str, Any]] | None = None
    """More numbers to be kept in its summary."""

    def run(self) -> Run:
        """The run itself; the environment is built here."""
        return plan(
            self.algorithm, self.env_id, self.order, self.seeds, self.steps, self.num_log_points,
            env_kwargs=self.env_kwargs, label=self.label,
        )  # fmt: skip

    def build(self) -> Any:
        """The environment."""
        return targets.resolve(self.env_id, self.env_kwargs).env

    @property
    def env_id(self) -> str:
        return "random-momdp" if self.world == "random-momdps" else self.world

    @property
    def env_kwargs(self) -> Any:
        """Settings of the environment; a random one for each seed has a seed of its own."""
        if self.world == "random-momdps":
            return [{"momdp_seed": seed, **self.settings} for seed in range(self.seeds)]
        return dict(self.settings)

    def describe(self) -> dict[str, Any]:
        """What decides its numbers, as `run.json` has it; nothing is built for it."""
        order = parse(self.order)
        return {
            "algorithm": codec.encode(fit(self.algorithm, order, self.steps)),
            "env": {"name": self.env_id, "kwargs": targets.changed(self.env_id, self.env_kwargs)},
            "order": str(order),
            "seeds": list(range(self.seeds)),
            "total_timesteps": self.steps,
            "num_log_points": self.num_log_points,
        }


class Finished(NamedTuple):
    """A job that came to its end."""

    job: Job
    found: Found
    summary: dict[str, Any]


def place(root: pathlib.Path, job: Job) -> pathlib.Path:
    """Where a job's run lies."""
    return root / RUNS / job.name


def is_finished(root: pathlib.Path, job: Job) -> bool:
    """Whether the run is there, made with the same settings."""
    folder = place(root, job)
    if not (folder / store.RUN).exists():
        return False
    kept, wanted = store.read_run(folder), job.describe()
    if any(json.dumps(kept[key], sort_keys=True) != json.dumps(wanted[key], sort_keys=True) for key in wanted):
        raise InputError(
            f"The run in {str(folder)!r} was made with other settings than {job.label} has now; move it away, or give "
            "another folder with --out."
        )
    return store.is_finished(folder)


def perform(root: pathlib.Path, job: Job) -> Iterator[Result]:
    """Run a job, or continue it; a result after each chunk."""
    return execute(job.run(), place(root, job), measure=job.measure)


def collect(root: pathlib.Path, jobs: Sequence[Job]) -> tuple[list[Finished], dict[str, str]]:
    """The jobs that are finished, and why others (by their names) are not."""
    done, why = [], {}
    for job in jobs:
        try:
            found = reports.read(place(root, job)) if is_finished(root, job) else None
        except InputError as error:
            why[job.name] = str(error)
            continue
        if found is None or found.summary is None:
            why[job.name] = "It was not run to its end."
        elif len(found.summary["stopped"]) == len(found.about["seeds"]):
            why[job.name] = f"No seed came to its end. {next(iter(found.summary['stopped'].values()))}"
        else:
            done.append(Finished(job, found, found.summary))
    return done, why


def finals(one: Finished) -> np.ndarray:
    """`[seeds, M]`: what each seed's greedy policy reached per episode; seeds that had to stop are left out."""
    stopped = {int(seed) for seed in one.summary["stopped"]}
    going = [seed not in stopped for seed in one.found.about["seeds"]]
    return one.found.final[np.array(going)]
