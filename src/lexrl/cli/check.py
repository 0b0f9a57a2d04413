"""`lexrl check ALGORITHM ENV`: do the convergence theorems apply?"""

import dataclasses
from typing import Any, Generic, TypeVar

import tyro
from rich.table import Table
from rich.text import Text

from lexrl.cli import targets
from lexrl.cli.console import console
from lexrl.cli.parsing import Order, parse
from lexrl.order import as_order
from lexrl.runs.run import with_tolerances
from lexrl.runs.targets import resolve, settings_of
from lexrl.theory import check

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


def main(argv: list[str]) -> None:
    """Print every theorem with its conditions."""
    if targets.wants_help(argv, 2):
        targets.show_names("check", "ALGORITHM ENV", str(Check.__doc__), algorithms=True)
        return
    target, rest = targets.take("check", argv)
    env_type, env_default = targets.env_type(target.env_id, target.env_kwargs)
    start = Check(target.algorithm, env_default, target.order)
    kind = tyro.conf.OmitArgPrefixes[Check[type(target.algorithm), env_type]]
    args: Any = parse(kind, rest, f"lexrl check {target.name} {target.env_id}", str(Check.__doc__), start)
    env = resolve(target.env_id, settings_of(args.env)).env
    order = as_order(args.order or None, env.spec.signals)
    console.print(f"[bold]{target.name}[/bold] on [bold]{target.env_id}[/bold], {order}")
    for guarantee in check(with_tolerances(args.algorithm, order), env, order):
        console.print(f"\n[bold]{guarantee.name}[/bold]: [{COLORS[guarantee.verdict]}]{guarantee.verdict}[/]")
        console.print(f"  It promises: {guarantee.promise}", markup=False)
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
        for condition in guarantee.conditions:
            verdict = Text(condition.verdict, style=COLORS[condition.verdict])
            table.add_row(verdict, condition.text, Text(condition.evidence, style="dim"))
        console.print(table)
