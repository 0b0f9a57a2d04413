"""`lexrl train ALGORITHM ENV`: one agent for each seed, all of them at once."""

import dataclasses
import pathlib
import shlex
from typing import Any, Generic, Literal, TypeVar

import tyro

from lexrl import store
from lexrl.cli import targets
from lexrl.cli.console import console
from lexrl.cli.execution import follow
from lexrl.cli.parsing import Order, Place, Steps, parse
from lexrl.cli.targets import Target
from lexrl.runs import logs
from lexrl.runs.run import NUM_SEEDS, TOTAL_TIMESTEPS, Run, Settings, make_run
from lexrl.runs.targets import settings_of
from lexrl.types import Describable

AlgorithmSettings = TypeVar("AlgorithmSettings")
EnvSettings = TypeVar("EnvSettings")


@dataclasses.dataclass(frozen=True)
class Train(Generic[AlgorithmSettings, EnvSettings]):
    """Train one agent for each seed, all of them at once."""

    algorithm: AlgorithmSettings
    env: EnvSettings
    order: Order = ""
    """Objectives by importance, as in "min cost > max reward", with tolerances as in "min cost ±0.1 > max reward"."""
    preset: Settings = "tuned"
    """The settings to start from: ours, where there are some; the paper's; or the algorithm's defaults."""
    seeds: int = NUM_SEEDS
    """How many agents: seeds 0, 1, 2, ..."""
    total_timesteps: Steps = TOTAL_TIMESTEPS
    """Environment steps of each seed."""
    num_log_points: int = 50
    """Points on the learning curve."""
    eval_episodes: int = 100
    """Fresh episodes to evaluate each policy on after training."""
    log: tuple[Literal["tensorboard", "wandb"], ...] = ()
    """Also write logs for these programs into the folder."""
    out: Place = None
    """Folder for curves, policies and checkpoints, by default runs/ALGORITHM-ENV; a number is added to a name in
    use."""


def main(argv: list[str]) -> None:
    """Parse, plan, execute."""
    if targets.wants_help(argv, 2):
        targets.show_names("train", "ALGORITHM ENV", str(Train.__doc__), algorithms=True)
        return
    target, rest = targets.take("train", argv)
    args = _parse(target, rest)
    run = plan(target, args, shlex.join(["lexrl", "train", *argv]))
    logs.require(run.log)
    if isinstance(run.env, Describable):
        console.print(f"{run.env_title}: {run.env.description}", markup=False)
    follow(run, store.new_folder(args.out or default_folder(run)))


def plan(target: Target, args: Any, command: str) -> Run:
    """The run that the arguments describe."""
    return make_run(
        args.algorithm, target.env_id, args.order or None, args.seeds, args.total_timesteps, args.num_log_points,
        env_kwargs=settings_of(args.env), name=target.name, preset=target.preset,
        eval_episodes=args.eval_episodes, log=args.log, command=command,
    )  # fmt: skip


def default_folder(run: Run) -> pathlib.Path:
    """Where a run goes unless the user says otherwise."""
    return pathlib.Path("runs") / f"{run.name}-{run.env_id.replace('/', '-').replace(':', '-')}"


def _parse(target: Target, argv: list[str]) -> Any:
    env, env_default = targets.env_type(target.env_id, target.env_kwargs)
    preset = "none" if target.preset == "default" else target.preset
    start = Train(target.algorithm, env_default, target.order, preset, total_timesteps=target.total_timesteps)  # pyright: ignore[reportArgumentType]
    kind = tyro.conf.OmitArgPrefixes[Train[type(target.algorithm), env]]
    return parse(kind, argv, f"lexrl train {target.name} {target.env_id}", str(Train.__doc__), start)
