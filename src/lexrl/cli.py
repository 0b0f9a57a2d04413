"""The command line: `lexrl solve`, `lexrl train`, `lexrl list`.

Fields and arguments with their documentation become flags; what people write as text (schedules, tolerances, bandits)
is read by the same functions that read it in Python.
"""

import contextlib
import dataclasses
import pathlib
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NoReturn

import numpy as np
import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

import lexrl
from lexrl import exact, store
from lexrl.algos import Tabular, double_q, expected_sarsa, gabor, q_learning, sarsa
from lexrl.algos.tabular import Bandit, as_bandit
from lexrl.envs import FiniteWorld, GridNav, grid_nav, random_world
from lexrl.exact import SlackPoint, Solution
from lexrl.momdp import MOMDP
from lexrl.order import Order, as_order
from lexrl.run import Result, execute, plan
from lexrl.schedules import Schedule, as_schedule
from lexrl.tolerance import Tolerances, as_tolerance
from lexrl.train.compiled import Chunk
from lexrl.types import InputError

World = (
    Annotated[GridNav, tyro.conf.subcommand("grid-nav", constructor=grid_nav)]
    | Annotated[FiniteWorld, tyro.conf.subcommand("random-momdp", constructor=random_world)]
)
Learner = (
    Annotated[Tabular, tyro.conf.subcommand("q-learning", default=q_learning(), description=q_learning.__doc__)]
    | Annotated[Tabular, tyro.conf.subcommand("sarsa", default=sarsa(), description=sarsa.__doc__)]
    | Annotated[
        Tabular,
        tyro.conf.subcommand("expected-sarsa", default=expected_sarsa(), description=expected_sarsa.__doc__),
    ]
    | Annotated[Tabular, tyro.conf.subcommand("double-q", default=double_q(), description=double_q.__doc__)]
    | Annotated[Tabular, tyro.conf.subcommand("gabor", default=gabor(), description=gabor.__doc__)]
)

Steps = Annotated[
    float,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="STEPS",
        instance_from_str=lambda words: float(words[0]),
        is_instance=lambda value: isinstance(value, float),
        str_from_instance=lambda value: [f"{value:,.0f}"],
    ),
]

console = Console(highlight=False)


@dataclasses.dataclass(frozen=True)
class Solve:
    """Solve a finite world exactly: the lexicographic optimum, its certificate, and what slack would buy."""

    world: tyro.conf.OmitArgPrefixes[World]
    order: str = ""
    """Objectives by importance, as in "min cost > max reward", with tolerances as in "min cost ±0.1 > max reward"."""
    gamma: tuple[float, ...] | float = 0.99
    """Discount: one number, or one for each of the world's signals."""
    out: pathlib.Path = pathlib.Path("runs/solve")
    """Folder for pictures and numbers; a number is added to the name if it is in use."""


@dataclasses.dataclass(frozen=True)
class Train:
    """Train one learner for each seed, all of them at once."""

    algorithm: tyro.conf.OmitArgPrefixes[Learner]
    world: tyro.conf.OmitArgPrefixes[World]
    order: str = ""
    """Objectives by importance, as in "min cost > max reward", with tolerances as in "min cost ±0.1 > max reward"."""
    seeds: int = 10
    """How many learners: seeds 0, 1, 2, ..."""
    steps: Steps = 1e6
    """Environment steps of each seed."""
    episodes: int = 100
    """Fresh episodes to evaluate each greedy policy on, after training."""
    out: pathlib.Path = pathlib.Path("runs/train")
    """Folder for pictures and numbers; a number is added to the name if it is in use."""


@dataclasses.dataclass(frozen=True)
class List:
    """List the algorithms and the worlds, with the signals of each."""


Command = (
    Annotated[Solve, tyro.conf.subcommand("solve")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[List, tyro.conf.subcommand("list")]
)


def main(arguments: list[str] | None = None) -> None:
    """Entry point: bad input ends in one sentence and exit code 2."""
    try:
        with _registry():
            command = tyro.cli(
                Command,  # pyright: ignore[reportArgumentType]
                args=arguments,
                prog="lexrl",
                description="Lexicographic multi-objective reinforcement learning.",
                config=(tyro.conf.CascadeSubcommandArgs, tyro.conf.OmitSubcommandPrefixes),
            )
        {Solve: solve, Train: train, List: show_list}[type(command)](command)
    except InputError as error:
        _complain(str(error), 2)
    except KeyboardInterrupt:
        _complain("stopped by hand.", 130)
    except OSError as error:
        _complain(f"{error.filename or 'a file'} could not be written or read: {error.strerror}.", 1)


def _complain(sentence: str, code: int) -> NoReturn:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"lexrl: {sentence}", markup=False)
    sys.exit(code)


def solve(command: Solve) -> None:
    """`lexrl solve WORLD`"""
    world, name = command.world, _world_name(command.world)
    process = world.momdp(command.gamma)
    order = as_order(command.order or None, process.objectives)
    solution = exact.solve(process, order)
    console.print(f"[bold]{name}[/bold], {order}, gamma {command.gamma}")
    console.print(_returns_table(solution))
    for sentence in solution.certificate.sentences():
        console.print(f"  {sentence}", markup=False)
    if isinstance(world, GridNav):
        console.print(f"\n{world.picture(solution.policy)}\n")
    curve = _curve(process, order)
    if curve:
        console.print(_curve_table(curve, order))
    folder = _write_solution(command, name, process, solution, curve)
    console.print(f"Pictures and numbers are in [bold]{folder}[/bold].")


def train(command: Train) -> None:
    """`lexrl train ALGORITHM WORLD`"""
    name, rule = _world_name(command.world), command.algorithm.rule
    run = plan(command.algorithm, command.world, command.order or None, command.seeds, command.steps)
    folder = store.new_folder(command.out)
    title = f"{rule} on {name}: {run.order}"
    with _progress(title, run.steps, run.order) as watch:
        result = execute(run, watch)
    played = result.evaluate(command.episodes).returns.mean(axis=1)
    console.print(_seeds_table(f"Greedy policies, {command.episodes} fresh episodes each", run.order, played))
    process = command.world.momdp(_signal_gammas(command.algorithm.gamma, command.world, run.order))
    learned = np.stack([exact.evaluate(process, policy, run.order).returns for policy in result.policies()])
    optimum = run.order.unsigned(exact.solve(process, run.order).returns)
    worth = run.order.unsigned(learned)
    console.print(_seeds_table("The same policies exactly: discounted, without end", run.order, worth, optimum))
    for sentence in result.faults.values():
        console.print(sentence, markup=False)
    console.print(f"{run.steps * len(run.seeds) / result.seconds:,.0f} steps/s, {result.seconds:.1f} s in all.")
    _write_training(folder, title, result, played, worth)
    if isinstance(command.world, GridNav):
        first = _map(
            command.world, process, result.policies()[0], f"Learned by {rule}, seed {run.seeds[0]}: {run.order}"
        )
        store.write_bytes(folder / "map.png", first)
    console.print(f"Pictures and numbers are in [bold]{folder}[/bold].")


def show_list(_: List) -> None:
    """`lexrl list`"""
    algorithms = Table("algorithm", "what it is", box=None, title="Algorithms", title_justify="left")
    for name, make in zip(
        ("q-learning", "sarsa", "expected-sarsa", "double-q", "gabor"),
        (q_learning, sarsa, expected_sarsa, double_q, gabor),
        strict=True,
    ):
        algorithms.add_row(name, make.__doc__)
    worlds = Table("world", "signals", "what it is", box=None, title="Worlds", title_justify="left")
    for name, make in (("grid-nav", grid_nav), ("random-momdp", random_world)):
        summary = (make.__doc__ or "").strip().splitlines()[0]
        worlds.add_row(name, ", ".join(make().spec.objectives), summary)
    console.print(algorithms)
    console.print(worlds)


@contextlib.contextmanager
def _progress(title: str, total: int, order: Order) -> Iterator[Callable[[Chunk], None]]:
    """A bar on a terminal, ten plain lines elsewhere."""
    console.print(f"[bold]{title}[/bold]")
    if not console.is_terminal:
        begun, told = time.monotonic(), [0]

        def line(chunk: Chunk) -> None:
            if chunk.steps * 10 // total > told[0]:
                told[0] = chunk.steps * 10 // total
                speed = chunk.steps * len(chunk.metrics["length"]) / (time.monotonic() - begun)
                console.print(f"{chunk.steps:>12,} steps  {_levels(chunk, order)}  {speed:,.0f} steps/s")

        yield line
        return
    columns = (BarColumn(None), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[levels]}"))
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("", total=total, levels="compiling")
        yield lambda chunk: bar.update(task, completed=chunk.steps, levels=_levels(chunk, order))


def _seeds_table(title: str, order: Order, values: np.ndarray, optimum: np.ndarray | None = None) -> Table:
    """One row for each objective: the seeds' values `[seeds, M]`, and the optimum if it is known."""
    table = Table(box=None, title_justify="left", title=f"\n{title}")
    table.add_column("")
    for column in ("mean of seeds", "worst seed", "best seed", *(("optimum",) if optimum is not None else ())):
        table.add_column(column, justify="right")
    for i, objective in enumerate(order.objectives):
        worst, best = sorted((values[:, i].min(), values[:, i].max()), key=lambda value: objective.sign * value)
        row = [f"{number:.4g}" for number in (values[:, i].mean(), worst, best)]
        table.add_row(objective.name, *row, *((f"{optimum[i]:.4g}",) if optimum is not None else ()))
    return table


def _signal_gammas(gamma: Any, world: Any, order: Order) -> Any:
    """The learner's discounts, one for each objective, as the world's, one for each signal."""
    if not isinstance(gamma, tuple):
        return gamma
    each = [0.0] * len(world.spec.objectives)  # a signal outside the order is not looked at
    for column, one in zip(order.columns(world.spec.objectives), gamma, strict=True):
        each[column] = one
    return tuple(each)


def _levels(chunk: Chunk, order: Order) -> str:
    """Each objective's mean return of the last chunk, over the seeds that finished an episode."""
    returns = chunk.metrics["return"]
    known = returns[np.isfinite(returns).all(axis=1)]
    if not len(known):
        return "no episode has ended yet"
    return "  ".join(f"{name} {value:.4g}" for name, value in zip(order.names, known.mean(axis=0), strict=True))


def _registry() -> ConstructorRegistry:
    """Text that `lexrl` reads by itself, told to the parser of the command line."""
    registry = ConstructorRegistry()
    readers: dict[Any, tuple[Callable[[str], Any], str]] = {
        Schedule: (as_schedule, "RATE"),
        Bandit: (as_bandit, "BANDIT"),
        Tolerances: (as_tolerance, "TOLERANCE [..]"),
        Tolerances | None: (as_tolerance, "TOLERANCE [..]"),
        tuple[float, ...] | float: (float, "NUMBER [..]"),
    }

    @registry.primitive_rule
    def read(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
        if info.type not in readers:
            return None
        reader, metavar = readers[info.type]
        return PrimitiveConstructorSpec(
            nargs="*" if "[..]" in metavar else 1,
            metavar=metavar,
            instance_from_str=lambda words: _one_or_each(tuple(reader(word) for word in words)),
            is_instance=lambda value: True,
            str_from_instance=lambda value: ["the same"] if value is None else [str(value)],
        )

    return registry


def _returns_table(solution: Solution) -> Table:
    table = Table("", "J", box=None)
    shown = solution.order.unsigned(solution.returns)
    for i, objective in enumerate(solution.order.objectives):
        table.add_row(f"{i + 1}. {objective}", f"{shown[i]:.6g}")
    return table


def _curve(process: MOMDP, order: Order) -> tuple[SlackPoint, ...]:
    """The critical-slack curve of the first two objectives; nothing where there is only one, or discounts differ."""
    if len(order.objectives) < 2 or len(set(process.ordered(order).gamma)) > 1:
        return ()
    return exact.critical_slack(process, order)


def _curve_table(curve: tuple[SlackPoint, ...], order: Order) -> Table:
    first, second = order.names[:2]
    table = Table(
        f"slack on {first}", first, second, f"{second} per {first}", box=None,
        title=f"What slack on {first} buys: {len(curve)} corners", title_justify="left",
    )  # fmt: skip
    shown = np.unique(np.linspace(0, len(curve) - 1, 12).round().astype(int))
    for point in (curve[i] for i in shown):
        levels = point.returns * order.signs[:2]
        table.add_row(f"{point.slack:.5g}", f"{levels[0]:.5g}", f"{levels[1]:.5g}", f"{point.price:.4g}")
    return table


def _write_solution(command: Solve, name: str, process: MOMDP, solution: Solution, curve: Any) -> pathlib.Path:
    folder, order = store.new_folder(command.out), solution.order
    levels = order.unsigned(solution.returns)
    certificate = solution.certificate
    summary = {
        "command": shlex.join(["lexrl", *sys.argv[1:]]),
        "version": lexrl.__version__,
        "world": name,
        "order": str(order),
        "gamma": command.gamma,
        "returns": {one: float(value) for one, value in zip(order.names, levels, strict=True)},
        "certificate": {"errors": certificate.errors.tolist(), "sentences": certificate.sentences()},
    }
    store.write_json(folder / "solution.json", summary)
    rows = [{"state": s} | {f"p_{a}": float(p) for a, p in enumerate(row)} for s, row in enumerate(solution.policy)]
    store.write_csv(folder / "policy.csv", rows)
    if isinstance(command.world, GridNav):
        picture = _map(command.world, process, solution.policy, f"Exact optimum: {order}")
        store.write_bytes(folder / "map.png", picture)
    if curve:
        slack = np.array([point.slack for point in curve])
        returns = np.stack([point.returns for point in curve]) * order.signs[:2]
        names = (order.names[0], order.names[1])
        picture = _plots().slack_curve(slack, returns[:, 0], returns[:, 1], names, f"{name}: {order}")
        store.write_bytes(folder / "critical-slack.png", picture)
        header = ("slack", *names, "price")
        numbers = zip(slack, *returns.T, [point.price for point in curve], strict=True)
        store.write_csv(
            folder / "critical-slack.csv", [dict(zip(header, map(float, row), strict=True)) for row in numbers]
        )
    return folder


def _plots() -> Any:
    """Matplotlib takes its time to import: only commands that draw wait for it."""
    from lexrl.report import plots

    return plots


def _map(world: GridNav, process: MOMDP, policy: np.ndarray, title: str) -> bytes:
    visits = exact.occupancy(process, policy).sum(axis=1)
    return _plots().grid_map(world.size, np.asarray(world.obstacles), int(world.goal), policy, visits, title)


def _write_training(folder: pathlib.Path, title: str, result: Result, played: np.ndarray, worth: np.ndarray) -> None:
    names = [f"{'max' if objective.sign > 0 else 'min'} {objective.name}" for objective in result.run.order.objectives]
    store.write_csv(folder / "metrics.csv", result.table())
    store.write_bytes(
        folder / "curves.png", _plots().learning_curves(result.steps, result.metrics["return"], names, title)
    )
    summary = {
        "command": shlex.join(["lexrl", *sys.argv[1:]]),
        "version": lexrl.__version__,
        "order": str(result.run.order),
        "seeds": list(result.run.seeds),
        "steps": result.run.steps,
        "seconds": round(result.seconds, 2),
        "per_episode": {name: played[:, i].tolist() for i, name in enumerate(result.run.order.names)},
        "exact_discounted": {name: worth[:, i].tolist() for i, name in enumerate(result.run.order.names)},
        "stopped": list(result.faults.values()),
    }
    store.write_json(folder / "summary.json", summary)


def _world_name(world: Any) -> str:
    return "grid-nav" if isinstance(world, GridNav) else "random-momdp"


def _one_or_each(given: tuple[Any, ...]) -> Any:
    return given[0] if len(given) == 1 else given
