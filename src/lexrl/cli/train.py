"""`lexrl train ALGORITHM ENV`: one agent for each seed, all of them at once."""

import dataclasses
import pathlib
import shlex
from typing import Any, Generic, Literal, TypeVar

import tyro

from lexrl import memory
from lexrl.cli import arguments
from lexrl.cli.arguments import Address, EngineKind, Order, Place, Seeds, Steps, Target, parse
from lexrl.cli.console import console
from lexrl.cli.execution import follow_on
from lexrl.engine import Engine
from lexrl.envs.factory import settings_of
from lexrl.runs import footprint, logs, record
from lexrl.runs.run import NUM_SEEDS, TOTAL_TIMESTEPS, VERIFY_EPISODES, Run, Settings, make_run
from lexrl.types import Describable

AlgorithmSettings = TypeVar("AlgorithmSettings")
EnvSettings = TypeVar("EnvSettings")


@dataclasses.dataclass(frozen=True)
class Train(Generic[AlgorithmSettings, EnvSettings]):
    """Train one agent per seed, all of them at once."""

    algorithm: AlgorithmSettings
    env: EnvSettings
    order: Order = ""
    """Objectives by importance, as in "min cost > max reward", with tolerances as in "min cost ±0.1 > max reward"."""
    preset: Settings = "tuned"
    """The settings to start from: ours, if there are any for this pair; the paper's; or the algorithm's defaults."""
    seeds: Seeds = NUM_SEEDS
    """Number of seeds, which are then 0, 1, 2, ...; or the seeds themselves, if several are given, as in 3 7 11."""
    total_timesteps: Steps = TOTAL_TIMESTEPS
    """Number of environment steps per seed."""
    num_log_points: int = 50
    """Number of points on the learning curves."""
    eval_episodes: int = 100
    """Number of episodes on which each policy is evaluated after training."""
    verify: bool = True
    """Decide after training whether the priority was kept."""
    verify_episodes: int = VERIFY_EPISODES
    """At most so many episodes of each policy decide it, in at most ten seconds or a tenth of the training time."""
    log: tuple[Literal["tensorboard", "wandb"], ...] = ()
    """Also write logs for these tools to the folder."""
    force: bool = False
    """Train even if the run does not seem to fit into memory."""
    json: bool = False
    """Print the outcome as JSON, and nothing else; progress goes to the standard error."""
    engine: EngineKind = "here"
    """Where it is executed: in this process, by a worker process, or on a Ray cluster."""
    address: Address = None
    """Address of a Ray cluster, as in auto or 10.0.0.1:6379; by default a local one is started."""
    out: Place = None
    """Folder for curves, policies and checkpoints, by default runs/ALGORITHM-ENV; a number is added to a name in
    use."""


def main(argv: list[str]) -> None:
    """Parse, plan, execute."""
    if arguments.wants_help(argv, 2):
        arguments.show_names("train", "ALGORITHM ENV", str(Train.__doc__), algorithms=True)
        return
    target, rest = arguments.take("train", argv)
    args = _parse(target, rest)
    engine = None if (args.engine, args.address) == ("here", None) else Engine(args.engine, None, args.address)
    with memory.unlimited(args.force):
        run = plan(target, args, shlex.join(["lexrl", "train", *argv]))
        if args.engine != "ray":  # other machines may have more memory; workers estimate again
            footprint.require(run)
        if run.log:
            logs.require(run.log)
        if isinstance(run.env, Describable) and not args.json:
            console.print(f"{run.env_title}: {run.env.description}", markup=False)
        follow_on(engine, run, record.new_folder(run, args.out or default_folder(run)), args.json)


def plan(target: Target, args: Any, command: str) -> Run:
    """The run that the arguments describe."""
    return make_run(
        args.algorithm, target.env_id, args.order or None, args.seeds, args.total_timesteps, args.num_log_points,
        env_kwargs=settings_of(args.env), name=target.name, preset=target.preset,
        eval_episodes=args.eval_episodes,
        verify_episodes=args.verify_episodes if args.verify else 0, log=args.log, command=command,
    )  # fmt: skip


def default_folder(run: Run) -> pathlib.Path:
    """The folder of a run, by default."""
    return pathlib.Path("runs") / f"{run.name}-{run.env_id.replace('/', '-').replace(':', '-')}"


def _parse(target: Target, argv: list[str]) -> Any:
    env, env_default = arguments.env_type(target.env_id, target.env_kwargs)
    preset = "none" if target.preset == "default" else target.preset
    start = Train(target.algorithm, env_default, target.order, preset, total_timesteps=target.total_timesteps)  # pyright: ignore[reportArgumentType]
    kind = tyro.conf.OmitArgPrefixes[Train[type(target.algorithm), env]]
    return parse(kind, argv, f"lexrl train {target.name} {target.env_id}", str(Train.__doc__), start)
