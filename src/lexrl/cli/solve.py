"""`lexrl solve ENV`: the exact lexicographic optimum of a finite environment."""

import dataclasses
import pathlib
import shlex
import time
from collections.abc import Callable
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
import tyro
from rich.status import Status
from rich.table import Table

import lexrl
from lexrl import catalog, exact, locks, memory, store
from lexrl.cli import arguments
from lexrl.cli.arguments import Number, parse
from lexrl.cli.arguments import Order as OrderText
from lexrl.cli.console import console, error_console, print_json
from lexrl.envs.bridge import as_gym, model_of, momdp_of, no_model
from lexrl.envs.factory import resolve, settings_of
from lexrl.envs.grid_nav import GridNav
from lexrl.envs.gym import GymEnv
from lexrl.errors import InputError
from lexrl.exact import ProgramSolution, Progress, SlackPoint, Solution
from lexrl.exact.clock import Clock
from lexrl.momdp import MOMDP
from lexrl.order import Order, as_order
from lexrl.runs.optimum import draw_map
from lexrl.types import HasModel

EnvSettings = TypeVar("EnvSettings")


@dataclasses.dataclass(frozen=True)
class Solve(Generic[EnvSettings]):
    """Solve a finite environment exactly: the lexicographic optimum, its certificate, and what slack would buy."""

    env: EnvSettings
    order: OrderText = ""
    """Objectives by importance, as in "min cost > max reward", with tolerances as in "min cost ±0.1 > max reward" and
    limits as in "cost <= 10 > max reward"."""
    gamma: tuple[float, ...] | float = 0.99
    """Discount: one number, or one for each signal."""
    tolerance: Annotated[Literal["action", "policy"] | None, tyro.conf.arg(help_behavior_hint="")] = None
    """What the tolerances are about: single actions, in every state, or the return of the whole policy; by default
    actions, and the policy where the order has a limit as in "cost <= 10 > max reward"."""
    time_limit: Number = None
    """Seconds after which the policy found so far is shown, with what is open; by default none. To find out what the
    environment does may not take longer, either."""
    out: pathlib.Path = pathlib.Path("runs/solve")
    """Folder for figures and numbers; a number is added to a name in use."""
    force: bool = False
    """Solve although it does not seem to fit into memory."""
    json: bool = False
    """Print what solution.json has, and nothing else."""


class Finite(NamedTuple):
    """An environment with its model."""

    name: str
    env: Any
    process: MOMDP
    observations: tuple[Any, ...]
    """What is observed in each state; empty where that is the number of the state."""


class Solved(NamedTuple):
    """An environment with its optimum."""

    finite: Finite
    solution: Solution | ProgramSolution
    tolerance: Literal["action", "policy"]
    curve: tuple[SlackPoint, ...]


def main(argv: list[str]) -> None:
    """Solve, print, and write figures and numbers."""
    if arguments.wants_help(argv, 1):
        arguments.show_names("solve", "ENV", str(Solve.__doc__), algorithms=False)
        return
    name, rest = arguments.take_name("solve", argv, "the environment", "lexrl solve grid-nav")
    arguments.require_env(name)
    env_type, env_default = arguments.env_type(name, {})
    kind = tyro.conf.OmitArgPrefixes[Solve[env_type]]
    args: Any = parse(kind, rest, f"lexrl solve {name}", str(Solve.__doc__), Solve(env_default))
    with memory.unlimited(args.force):
        _solve(name, args, shlex.join(["lexrl", "solve", *argv]))


def _solve(name: str, args: Any, command: str) -> None:
    with error_console.status("Finding out what the environment does ...") as status:
        finite = find_model(name, settings_of(args.env), args.gamma, _counting(name, status, Clock(args.time_limit)))
    order = as_order(args.order or None, finite.process.signals)
    tolerance = args.tolerance or ("policy" if order.limited else "action")
    solver = exact.solve_slack if tolerance == "policy" else exact.solve
    start = time.monotonic()
    with error_console.status("Solving ...") as status:

        def show(done: Progress) -> None:
            status.update(str(done))

        solution = solver(finite.process, order, time_limit=args.time_limit, progress=show)
        left = None if args.time_limit is None else args.time_limit - (time.monotonic() - start)
        curve = () if left is not None and left <= 0 else _curve(finite.process, order, left, show)
    solved = Solved(finite, solution, tolerance, curve)
    folder = store.new_folder(args.out)
    with locks.hold(folder):
        _write(folder, solved, args.gamma, command)
    if args.json:
        print_json({"folder": str(folder)} | store.read_json(folder / "solution.json"))
        return
    console.print(f"[bold]{name}[/bold], {order}, gamma {args.gamma}, {finite.process.num_states:,} states")
    console.print(TOLERANCES[tolerance])
    _show(solved)
    console.print(f"Figures and numbers are in [bold]{folder}[/bold].")


def _counting(name: str, status: Status, clock: Clock) -> Callable[[int], None]:
    """Show how many states were found so far, and stop where that takes too long."""

    def count(states: int) -> None:
        status.update(f"Finding out what the environment does: {states:,} states so far, {clock.seconds:.0f} s")
        if clock.expired:
            raise InputError(
                f"{name} was not explored within {clock.seconds:.3g} s: nothing is known of the optimum without all "
                f"of its states, of which {states:,} were found so far. Give more time."
            )

    return count


TOLERANCES = {
    "action": "Tolerances are about actions: in every state, those within the tolerance of the best stay admissible.",
    "policy": "Tolerances are about the policy: its return may be worse by that much, and it may be stochastic.",
}
MOST_STATES = 5_000
"""The critical-slack curve of larger environments would have too many corners."""


def find_model(name: str, settings: dict[str, Any], gamma: Any, progress: Callable[[int], None]) -> Finite:
    """The finite model of an environment: its own, or one made from its transitions."""
    env = resolve(name, settings).env if name in catalog.ENVS else as_gym(name, None, settings)
    if isinstance(env, HasModel):
        return Finite(name, env, env.momdp(gamma), ())
    if isinstance(env, GymEnv):
        model = model_of(env, progress=progress)
        return Finite(name, env, momdp_of(env, model, gamma), model.observations)
    raise no_model(name)


def _show(solved: Solved) -> None:
    solution = solved.solution
    console.print(_returns_table(solution))
    for sentence in solution.sentences():
        console.print(f"  {sentence}", markup=False)
    if isinstance(solved.finite.env, GridNav):
        console.print(f"\n{solved.finite.env.picture(solution.policy)}\n")
    if solved.curve:
        console.print(_curve_table(solved.curve, solution.order))


def _returns_table(solution: Solution | ProgramSolution) -> Table:
    table = Table("", "J", box=None)
    shown = solution.order.unsigned(solution.returns)
    for i, objective in enumerate(solution.order.objectives):
        table.add_row(f"{i + 1}. {objective}", f"{shown[i]:.6g}")
    return table


def _curve(
    process: MOMDP, order: Order, time_limit: float | None, show: Callable[[Progress], None]
) -> tuple[SlackPoint, ...]:
    """The critical-slack curve of the first two objectives; empty where there is only one, or discounts differ, or
    there are many states, or time runs out, or slack would buy more without end."""
    discounts = set(process.ordered(order).gamma)
    if len(order.objectives) < 2 or len(discounts) > 1 or process.num_states > MOST_STATES:
        return ()
    try:
        return exact.critical_slack(process, order, time_limit=time_limit, progress=show)
    except InputError as error:
        error_console.print(f"There is no critical-slack curve. {error}", markup=False, soft_wrap=True)
        return ()


def _curve_table(curve: tuple[SlackPoint, ...], order: Order) -> Table:
    first, second = order.names[:2]
    table = Table(
        f"slack on {first}", first, second, f"{second} per {first}", box=None,
        title=f"What slack on {first} buys: {len(curve)} corners", title_justify="left",
    )  # fmt: skip
    shown = np.unique(np.linspace(0, len(curve) - 1, 12).round().astype(int))
    for point in (curve[i] for i in shown):
        returns = point.returns * order.signs[:2]
        table.add_row(f"{point.slack:.5g}", f"{returns[0]:.5g}", f"{returns[1]:.5g}", f"{point.shadow_price:.4g}")
    return table


def _write(folder: pathlib.Path, solved: Solved, gamma: Any, command: str) -> None:
    solution, order, finite = solved.solution, solved.solution.order, solved.finite
    returns = order.unsigned(solution.returns)
    summary = {
        "command": command,
        "version": lexrl.__version__,
        "env": finite.name,
        "order": str(order),
        "gamma": gamma,
        "tolerance": solved.tolerance,
        "returns": {one: float(value) for one, value in zip(order.names, returns, strict=True)},
        "certificate": solution.summary(),
    }
    store.write_json(folder / "solution.json", summary)
    observed = [{"observation": " ".join(map(str, one))} for one in finite.observations]
    observed += [{"observation": ""}] * (len(solution.policy) - len(observed)) if observed else []
    rows = [{"state": s} | {f"p_{a}": float(p) for a, p in enumerate(row)} for s, row in enumerate(solution.policy)]
    store.write_csv(
        folder / "policy.csv", [row | more for row, more in zip(rows, observed or [{}] * len(rows), strict=True)]
    )
    if isinstance(finite.env, GridNav):
        picture = draw_map(finite.env, finite.process, solution.policy, f"Exact optimum: {order}")
        store.write_bytes(folder / store.MAP, picture)
    if solved.curve:
        _write_curve(folder, solved)


def _write_curve(folder: pathlib.Path, solved: Solved) -> None:
    """What slack on the first objective buys, as a figure and as numbers."""
    from lexrl.report import tradeoffs

    order = solved.solution.order
    slack = np.array([point.slack for point in solved.curve])
    returns = np.stack([point.returns for point in solved.curve]) * order.signs[:2]
    names = (order.names[0], order.names[1])
    picture = tradeoffs.slack_curve(slack, returns[:, 0], returns[:, 1], names, f"{solved.finite.name}: {order}")
    store.write_bytes(folder / "critical-slack.png", picture.png)
    header = ("slack", *names, "shadow_price")
    numbers = zip(slack, *returns.T, [point.shadow_price for point in solved.curve], strict=True)
    rows = [dict(zip(header, map(float, row), strict=True)) for row in numbers]
    store.write_csv(folder / "critical-slack.csv", rows)
