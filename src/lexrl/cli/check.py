"""`lexrl check ALGORITHM ENV`: do the convergence theorems apply?"""

import dataclasses
from typing import Any, Generic, TypeVar

import tyro
from rich.table import Table
from rich.text import Text

from lexrl.cli import arguments
from lexrl.cli.arguments import Order, parse
from lexrl.cli.console import console, print_json
from lexrl.envs.factory import resolve, settings_of
from lexrl.order import as_order
from lexrl.runs.run import fit
from lexrl.theory import check
from lexrl.theory.conditions import Guarantee

AlgorithmSettings = TypeVar("AlgorithmSettings")
EnvSettings = TypeVar("EnvSettings")
COLORS = {"holds": "green", "fails": "red", "unknown": "yellow"}


@dataclasses.dataclass(frozen=True)
class Check(Generic[AlgorithmSettings, EnvSettings]):
    """Check the conditions of the theorems about an algorithm, with the evidence for each."""

    algorithm: AlgorithmSettings
    env: EnvSettings
    order: Order = ""
    """Objectives by importance, as in "min cost > max reward"."""
    json: bool = False
    """Print the conditions as JSON."""


def main(argv: list[str]) -> None:
    """Print every theorem with its conditions."""
    if arguments.wants_help(argv, 2):
        arguments.show_names("check", "ALGORITHM ENV", str(Check.__doc__), algorithms=True)
        return
    target, rest = arguments.take("check", argv)
    env_type, env_default = arguments.env_type(target.env_id, target.env_kwargs)
    start = Check(target.algorithm, env_default, target.order)
    kind = tyro.conf.OmitArgPrefixes[Check[type(target.algorithm), env_type]]
    args: Any = parse(kind, rest, f"lexrl check {target.name} {target.env_id}", str(Check.__doc__), start)
    env = resolve(target.env_id, settings_of(args.env)).env
    order = as_order(args.order or None, env.spec.signals)
    found = check(fit(args.algorithm, order, target.total_timesteps), env, order)
    if args.json:
        print_json({"guarantees": [_as_json(guarantee) for guarantee in found]})
        return
    console.print(f"[bold]{target.name}[/bold] on [bold]{target.env_id}[/bold], {order}")
    for guarantee in found:
        console.print(f"\n[bold]{guarantee.name}[/bold]: [{COLORS[guarantee.verdict]}]{guarantee.verdict}[/]")
        console.print(f"  It promises: {guarantee.promise}", markup=False)
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
        for condition in guarantee.conditions:
            verdict = Text(condition.verdict, style=COLORS[condition.verdict])
            table.add_row(verdict, condition.text, Text(condition.evidence, style="dim"))
        console.print(table)


def _as_json(guarantee: Guarantee) -> dict[str, Any]:
    conditions = [condition._asdict() for condition in guarantee.conditions]
    return {
        "name": guarantee.name, "verdict": guarantee.verdict, "promise": guarantee.promise, "conditions": conditions,
    }  # fmt: skip
