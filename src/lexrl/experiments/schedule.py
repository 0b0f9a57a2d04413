"""The jobs of an experiment: planned, executed one after the other (each on all cores), and read back.

A job is a run with a name, which is also its folder. A finished job is not run again, and a stopped one continues where
it stopped. The jobs of all experiments of a size are in one folder, so that experiments share them.
"""

import dataclasses
import json
import pathlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl import store
from lexrl.envs import make_env, random_envs
from lexrl.errors import InputError
from lexrl.report import run_folder as reports
from lexrl.report.run_folder import RunFolder
from lexrl.runs import Result, Run, codec, plan, record

RUNS = "runs"
"""The folder of the runs, beside the folders of the experiments."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A run of an experiment, before its environment is built."""

    name: str
    """Its folder, as in `"cart-safe/tuned/lppo"`."""
    label: str
    """In tables and figures."""
    algorithm: Any
    env: str
    """An environment's name; `"random-momdps"` is a different random one for each seed."""
    order: str
    seeds: int
    total_timesteps: int
    env_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Settings of the environment."""
    num_log_points: int = 50
    tags: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """How it differs from the others: `{"preset": "tuned"}`."""
    measure: Callable[[Result], dict[str, Any]] | None = None
    """More numbers for its summary."""

    def run(self) -> Run:
        """The run itself; the environment is built here."""
        return plan(self.algorithm, self.build(), self.order, self.seeds, self.total_timesteps, self.num_log_points)

    def build(self) -> Any:
        """The environment."""
        if self.env == "random-momdps":
            return random_envs(self.seeds, **self.env_settings)
        return make_env(self.env, **self.env_settings)

    def describe(self) -> dict[str, Any]:
        """Everything that determines its numbers, as JSON."""
        return {
            "algorithm": codec.encode(self.algorithm),
            "env": self.env,
            "env_settings": dict(self.env_settings),
            "order": self.order,
            "seeds": self.seeds,
            "total_timesteps": self.total_timesteps,
            "num_log_points": self.num_log_points,
        }


class Finished(NamedTuple):
    """A finished job, with what its folder holds."""

    job: Job
    found: RunFolder
    summary: dict[str, Any]


def place(root: pathlib.Path, job: Job) -> pathlib.Path:
    """The folder of a job."""
    return root / RUNS / job.name


def is_finished(root: pathlib.Path, job: Job) -> bool:
    """Whether the job is finished; an error if its folder holds a run with other settings."""
    folder = place(root, job)
    if not (folder / store.RUN).exists():
        return False
    kept = store.read_run(folder).get("job")
    if json.dumps(kept, sort_keys=True) != json.dumps(job.describe(), sort_keys=True):
        raise InputError(
            f"The run in {str(folder)!r} has other settings than {job.label} has now; move it away, or give another "
            "folder with --out."
        )
    return store.is_finished(folder)


def execute(root: pathlib.Path, job: Job) -> Iterator[Result]:
    """Run a job, or continue it; a result after each chunk."""
    folder = place(root, job)
    resumed = (folder / store.RUN).exists()
    run = job.run()
    standing, said = record.standing(folder, run) if resumed else (None, [])
    for sentence in said:
        warnings.warn(sentence, stacklevel=2)
    if not resumed:
        record.begin(folder, run, title=job.label, job=job.describe())
    result = None
    for result in record.record(folder, run, standing):
        yield result
    assert result is not None
    more = {} if job.measure is None else job.measure(result)
    record.finish(folder, result, **more)


def collect(root: pathlib.Path, jobs: Sequence[Job]) -> tuple[list[Finished], dict[str, str]]:
    """The finished jobs, and by name why the others are not finished."""
    done, why = [], {}
    for job in jobs:
        try:
            found = reports.read(place(root, job)) if is_finished(root, job) else None
        except InputError as error:
            why[job.name] = str(error)
            continue
        if found is None or found.summary is None:
            why[job.name] = "It has not finished."
        elif len(found.summary["stopped"]) == len(found.about["seeds"]):
            why[job.name] = f"No seed finished. {next(iter(found.summary['stopped'].values()))}"
        else:
            done.append(Finished(job, found, found.summary))
    return done, why


def finals(one: Finished) -> np.ndarray:
    """`[seeds, M]`: what each seed's greedy policy reached per episode, without the seeds that stopped early."""
    stopped = {int(seed) for seed in one.summary["stopped"]}
    going = [seed not in stopped for seed in one.found.about["seeds"]]
    return one.found.final[np.array(going)]
