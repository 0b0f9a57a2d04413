"""`lexrl solve ENV`: the exact lexicographic optimum of a finite environment."""

import dataclasses
import pathlib
import shlex
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import tyro
from rich.table import Table

import lexrl
from lexrl import exact, store
from lexrl.cli import targets
from lexrl.cli.console import console
from lexrl.cli.parsing import Order as OrderText
from lexrl.cli.parsing import parse
from lexrl.envs import GridNav
from lexrl.errors import InputError
from lexrl.exact import SlackPoint, Solution
from lexrl.momdp import MOMDP
from lexrl.order import Order, as_order
from lexrl.runs.optimum import draw_map
from lexrl.runs.targets import resolve, settings_of
from lexrl.types import HasModel

EnvSettings = TypeVar("EnvSettings")


@dataclasses.dataclass(frozen=True)
class Solve(Generic[EnvSettings]):
    """Solve a finite environment exactly: the lexicographic optimum, its certificate, and what slack would buy."""

    env: EnvSettings
    order: OrderText = ""
    """Objectives by importance, as in "min cost > max reward", with tolerances as in "min cost ±0.1 > max reward"."""
    gamma: tuple[float, ...] | float = 0.99
    """Discount: one number, or one for each signal."""
    out: pathlib.Path = pathlib.Path("runs/solve")
    """Folder for figures and numbers; a number is added to a name in use."""


class Solved(NamedTuple):
    """An environment with its model and its optimum."""

    name: str
    env: Any
    process: MOMDP
    solution: Solution
    curve: tuple[SlackPoint, ...]


def main(argv: list[str]) -> None:
    """Solve, print, and write figures and numbers."""
    if targets.wants_help(argv, 1):
        targets.show_names("solve", "ENV", str(Solve.__doc__), algorithms=False)
        return
    name, rest = targets.take_name("solve", argv, "the environment", "lexrl solve grid-nav")
    targets.require_env(name)
    env_type, env_default = targets.env_type(name, {})
    kind = tyro.conf.OmitArgPrefixes[Solve[env_type]]
    args: Any = parse(kind, rest, f"lexrl solve {name}", str(Solve.__doc__), Solve(env_default))
    env = resolve(name, settings_of(args.env)).env
    if not isinstance(env, HasModel):
        raise InputError(f"{name} has no finite model that could be solved; grid-nav and random-momdp have one.")
    process = env.momdp(args.gamma)
    order = as_order(args.order or None, process.signals)
    solved = Solved(name, env, process, exact.solve(process, order), _curve(process, order))
    console.print(f"[bold]{name}[/bold], {order}, gamma {args.gamma}")
    _show(solved)
    folder = store.new_folder(args.out)
    _write(folder, solved, args.gamma, shlex.join(["lexrl", "solve", *argv]))
    console.print(f"Figures and numbers are in [bold]{folder}[/bold].")


def _show(solved: Solved) -> None:
    solution = solved.solution
    console.print(_returns_table(solution))
    for sentence in solution.certificate.sentences():
        console.print(f"  {sentence}", markup=False)
    if isinstance(solved.env, GridNav):
        console.print(f"\n{solved.env.picture(solution.policy)}\n")
    if solved.curve:
        console.print(_curve_table(solved.curve, solution.order))


def _returns_table(solution: Solution) -> Table:
    table = Table("", "J", box=None)
    shown = solution.order.unsigned(solution.returns)
    for i, objective in enumerate(solution.order.objectives):
        table.add_row(f"{i + 1}. {objective}", f"{shown[i]:.6g}")
    return table


def _curve(process: MOMDP, order: Order) -> tuple[SlackPoint, ...]:
    """The critical-slack curve of the first two objectives; empty where there is only one, or discounts differ."""
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
        returns = point.returns * order.signs[:2]
        table.add_row(f"{point.slack:.5g}", f"{returns[0]:.5g}", f"{returns[1]:.5g}", f"{point.shadow_price:.4g}")
    return table


def _write(folder: pathlib.Path, solved: Solved, gamma: Any, command: str) -> None:
    solution, order = solved.solution, solved.solution.order
    returns = order.unsigned(solution.returns)
    certificate = solution.certificate
    summary = {
        "command": command,
        "version": lexrl.__version__,
        "env": solved.name,
        "order": str(order),
        "gamma": gamma,
        "returns": {one: float(value) for one, value in zip(order.names, returns, strict=True)},
        "certificate": {"errors": certificate.errors.tolist(), "sentences": certificate.sentences()},
    }
    store.write_json(folder / "solution.json", summary)
    rows = [{"state": s} | {f"p_{a}": float(p) for a, p in enumerate(row)} for s, row in enumerate(solution.policy)]
    store.write_csv(folder / "policy.csv", rows)
    if isinstance(solved.env, GridNav):
        picture = draw_map(solved.env, solved.process, solution.policy, f"Exact optimum: {order}")
        store.write_bytes(folder / store.MAP, picture)
    if solved.curve:
        _write_curve(folder, solved)


def _write_curve(folder: pathlib.Path, solved: Solved) -> None:
    """What slack on the first objective buys, as a figure and as numbers."""
    from lexrl.report import tradeoffs  # matplotlib takes its time to import

    order = solved.solution.order
    slack = np.array([point.slack for point in solved.curve])
    returns = np.stack([point.returns for point in solved.curve]) * order.signs[:2]
    names = (order.names[0], order.names[1])
    picture = tradeoffs.slack_curve(slack, returns[:, 0], returns[:, 1], names, f"{solved.name}: {order}")
    store.write_bytes(folder / "critical-slack.png", picture.png)
    header = ("slack", *names, "shadow_price")
    numbers = zip(slack, *returns.T, [point.shadow_price for point in solved.curve], strict=True)
    rows = [dict(zip(header, map(float, row), strict=True)) for row in numbers]
    store.write_csv(folder / "critical-slack.csv", rows)
