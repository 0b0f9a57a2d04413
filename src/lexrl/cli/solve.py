"""`lexrl solve WORLD`: the exact lexicographic optimum of a finite world."""

import dataclasses
import pathlib
import shlex
import sys
from typing import Any, Generic, TypeVar

import numpy as np
from rich.table import Table

import lexrl
from lexrl import exact, store
from lexrl.cli.show import Words, console, wanted_order
from lexrl.envs import GridNav, env_name
from lexrl.errors import InputError
from lexrl.exact import SlackPoint, Solution
from lexrl.momdp import MOMDP
from lexrl.order import Order, as_order

World = TypeVar("World")


@dataclasses.dataclass(frozen=True)
class Solve(Generic[World]):
    """Solve a finite world exactly: the lexicographic optimum, its certificate, and what slack would buy."""

    world: World
    order: Words = ""
    """Objectives by importance, as in "min cost > max reward", with tolerances as in "min cost ±0.1 > max reward"."""
    gamma: tuple[float, ...] | float = 0.99
    """Discount: one number, or one for each of the world's signals."""
    out: pathlib.Path = pathlib.Path("runs/solve")
    """Folder for pictures and numbers; a number is added to the name if it is in use."""


def solve(command: Solve[Any]) -> None:
    """`lexrl solve WORLD`"""
    world, name = command.world, env_name(command.world)
    if not hasattr(world, "momdp"):
        raise InputError(f"{name} has no finite model that could be solved; grid-nav and random-momdp have one.")
    process = world.momdp(command.gamma)
    order = as_order(wanted_order(command.order), process.signals)
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


def _write_solution(command: Solve[Any], name: str, process: MOMDP, solution: Solution, curve: Any) -> pathlib.Path:
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
        picture = world_map(command.world, process, solution.policy, f"Exact optimum: {order}")
        store.write_bytes(folder / "map.png", picture)
    if curve:
        slack = np.array([point.slack for point in curve])
        returns = np.stack([point.returns for point in curve]) * order.signs[:2]
        names = (order.names[0], order.names[1])
        from lexrl.report import tradeoffs  # matplotlib takes its time to import

        picture = tradeoffs.slack_curve(slack, returns[:, 0], returns[:, 1], names, f"{name}: {order}")
        store.write_bytes(folder / "critical-slack.png", picture.png)
        header = ("slack", *names, "price")
        numbers = zip(slack, *returns.T, [point.price for point in curve], strict=True)
        store.write_csv(
            folder / "critical-slack.csv", [dict(zip(header, map(float, row), strict=True)) for row in numbers]
        )
    return folder


def world_map(world: GridNav, process: MOMDP, policy: np.ndarray, title: str) -> bytes:
    visits = exact.occupancy(process, policy).sum(axis=1)
    from lexrl.report import maps  # matplotlib takes its time to import

    return maps.grid_policy(world.size, np.asarray(world.obstacles), int(world.goal), policy, visits, title).png
