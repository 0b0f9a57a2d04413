"""`lexrl sweep ALGORITHM ENV --over NAME=VALUES ...`: many settings, the best of them confirmed by fresh seeds."""

import dataclasses
import pathlib
import shlex
from typing import Any, Generic, TypeVar

import tyro
from rich.table import Table

from lexrl import memory, store
from lexrl.cli import arguments
from lexrl.cli.arguments import Address, EngineKind, Order, Place, Steps, Whole, parse
from lexrl.cli.console import console, error_console, print_json
from lexrl.cli.execution import interruptible, next_commands
from lexrl.engine import Engine, values
from lexrl.engine.search import Kind
from lexrl.engine.sweeps import sweep
from lexrl.engine.swept import FILE
from lexrl.engine.swept import Sweep as Found
from lexrl.envs.factory import settings_of
from lexrl.errors import InputError
from lexrl.report import stats
from lexrl.runs.run import TOTAL_TIMESTEPS, Settings

AlgorithmSettings = TypeVar("AlgorithmSettings")
EnvSettings = TypeVar("EnvSettings")


@dataclasses.dataclass(frozen=True)
class Sweep(Generic[AlgorithmSettings, EnvSettings]):
    """Train with every combination of some values, choose the best in the order of the objectives, and confirm it."""

    algorithm: AlgorithmSettings
    env: EnvSettings
    over: tuple[str, ...] = ()
    """What is varied: learning_rate=1e-4..1e-2:log:8, ent_coef=0,0.01; without the 8, values are drawn in the range."""
    order: Order = ""
    """Objectives by importance, as in "min cost > max reward"."""
    preset: Settings = "tuned"
    """The settings to start from: ours, if there are any for this pair; the paper's; or the algorithm's defaults."""
    search: Kind = "grid"
    """Every combination; some of them, at random; or those that optuna proposes."""
    trials: int = 32
    """How many combinations are drawn or proposed."""
    rounds: int = 1
    """Rounds of successive halving: each trains twice as long, without what is decidedly worse."""
    seeds: int = 5
    """How many agents with each combination of values."""
    confirm: int = 10
    """How many agents with fresh seeds confirm the best one."""
    total_timesteps: Steps = TOTAL_TIMESTEPS
    """Number of environment steps per seed."""
    num_log_points: int = 50
    """Number of points on the learning curves."""
    eval_episodes: int = 100
    """Number of episodes on which each policy is evaluated after training."""
    engine: EngineKind = "here"
    """Where runs are executed: in this process, by several worker processes, or on a Ray cluster."""
    workers: Whole = None
    """Number of runs at once; by default one per core."""
    address: Address = None
    """Address of a Ray cluster, as in auto or 10.0.0.1:6379; by default a local one is started."""
    out: Place = None
    """Folder of the sweep, by default runs/sweep-ALGORITHM-ENV; the same command continues a sweep that was stopped."""
    force: bool = False
    """Train although it does not seem to fit into memory."""
    json: bool = False
    """Print the outcome as JSON, and nothing else."""


def main(argv: list[str]) -> None:
    """Parse, sweep, show."""
    if arguments.wants_help(argv, 2):
        arguments.show_names("sweep", "ALGORITHM ENV", str(Sweep.__doc__), algorithms=True)
        return
    target, rest = arguments.take("sweep", argv)
    env, env_default = arguments.env_type(target.env_id, target.env_kwargs)
    preset: Any = "none" if target.preset == "default" else target.preset
    start = Sweep(
        target.algorithm, env_default, order=target.order, preset=preset, total_timesteps=target.total_timesteps
    )
    kind = tyro.conf.OmitArgPrefixes[Sweep[type(target.algorithm), env]]
    args: Any = parse(kind, rest, f"lexrl sweep {target.name} {target.env_id}", str(Sweep.__doc__), start)
    name = f"sweep-{target.name}-{target.env_id.replace('/', '-').replace(':', '-')}"
    over, seeds = _over(args.over, args.seeds)
    folder = args.out or pathlib.Path("runs") / name
    with memory.unlimited(args.force), interruptible(f"lexrl resume {shlex.quote(str(folder))}"):
        found = sweep(
            args.algorithm, target.env_id, args.order or None, over=over, out=folder,
            search=args.search, trials=args.trials, rounds=args.rounds, seeds=seeds, confirm=args.confirm,
            total_timesteps=args.total_timesteps, engine=Engine(args.engine, args.workers, args.address),
            env_kwargs=settings_of(args.env), num_log_points=args.num_log_points, eval_episodes=args.eval_episodes,
            name=target.name, command=shlex.join(["lexrl", "sweep", *argv]),
            console=error_console if args.json else console,
        )  # fmt: skip
    content = store.read_json(found.folder / FILE)
    if args.json:
        print_json({"folder": str(found.folder)} | content)
    else:
        _show(found, content)


def _over(texts: tuple[str, ...], seeds: int) -> tuple[dict[str, Any], int]:
    """What is varied, from text; and the number of seeds, which may be written there, too: `seeds=10`."""
    pairs = [values.parse(text) for text in texts]
    values.require_once([values.plain(name) for name, _ in pairs])
    found: dict[str, Any] = dict(pairs)
    given = found.pop("seeds", [str(seeds)])
    if isinstance(given, values.Range) or len(given) > 1 or not given[0].isdecimal():
        raise InputError("seeds is how many agents each combination has, as in seeds=10, and is not varied.")
    return found, int(given[0])


def _show(found: Found, content: dict[str, Any]) -> None:
    objectives = found.confirmation.objectives
    table = Table(title="Mean of seeds [95 % interval], the most probably best first", title_justify="left", box=None)
    for column in (*found.rows[0].settings, *map(str, objectives), "best with probability", ""):
        table.add_column(column)
    for row in sorted(found.rows, key=lambda row: -row.best):
        means = [str(stats.mean(row.returns[:, i])) for i in range(len(objectives))]
        table.add_row(*map(str, row.settings.values()), *means, f"{row.best:.0%}", row.why)
    console.print(table)
    for i, objective in enumerate(objectives):
        mean = stats.mean(found.confirmation.final[:, i])
        console.print(f"Confirmed by fresh seeds: {objective} {mean}", markup=False)
    next_commands((content["train_again"], "train with the best settings"), (f"lexrl report {found.folder}", "a page"))
