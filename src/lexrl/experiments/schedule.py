"""The jobs of an experiment: planned, executed (here one after the other, each on all cores), and read back.

A job is a run with a name, which is also its folder. A finished job is not run again, and a stopped one continues where
it stopped. The jobs of all experiments of a size are in one folder, so that experiments share them.
"""

import dataclasses
import json
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl import store
from lexrl.envs.factory import changed, resolve
from lexrl.errors import InputError
from lexrl.order import parse
from lexrl.report import run_folder as reports
from lexrl.report.run_folder import RunFolder
from lexrl.runs import Result, Run, codec, execute, plan
from lexrl.runs.run import fit

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
    measure: str = ""
    """What adds more numbers to its summary, by its name in `catalog.MEASURES`."""
    eval_episodes: int = 100
    """Fresh episodes that each policy is evaluated on."""
    verify_episodes: int = 0
    """At most so many decide whether the priority was kept; 0: that is not asked."""

    def run(self) -> Run:
        """The run itself; the environment is built here."""
        return plan(
            self.algorithm, self.env_id, self.order, self.seeds, self.total_timesteps, self.num_log_points,
            env_kwargs=self.env_kwargs, label=self.label, eval_episodes=self.eval_episodes,
            verify_episodes=self.verify_episodes, measure=self.measure,
        )  # fmt: skip

    def build(self) -> Any:
        """The environment."""
        return resolve(self.env_id, self.env_kwargs).env

    @property
    def env_id(self) -> str:
        return "random-momdp" if self.env == "random-momdps" else self.env

    @property
    def env_kwargs(self) -> Any:
        """Settings of the environment; a random one for each seed has a seed of its own."""
        if self.env == "random-momdps":
            return [{"momdp_seed": seed, **self.env_settings} for seed in range(self.seeds)]
        return dict(self.env_settings)

    def describe(self) -> dict[str, Any]:
        """What decides its numbers, as `run.json` has it; nothing is built for it."""
        order = parse(self.order)
        return {
            "algorithm": codec.encode(fit(self.algorithm, order, self.total_timesteps)),
            "env": {"name": self.env_id, "kwargs": changed(self.env_id, self.env_kwargs)},
            "order": str(order),
            "seeds": list(range(self.seeds)),
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
    kept, wanted = store.read_run(folder), job.describe()
    if any(json.dumps(kept[key], sort_keys=True) != json.dumps(wanted[key], sort_keys=True) for key in wanted):
        raise InputError(
            f"The run in {str(folder)!r} has other settings than {job.label} has now; move it away, or give another "
            "folder with --out."
        )
    return store.is_finished(folder)


def perform(root: pathlib.Path, job: Job) -> Iterator[Result]:
    """Run a job, or continue it; a result after each chunk."""
    return execute(job.run(), place(root, job))


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
