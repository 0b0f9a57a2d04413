"""`lexrl check ALGORITHM WORLD`: do the theorems cover this?"""

import dataclasses
from typing import Any, Generic, TypeVar

from rich.table import Table
from rich.text import Text

from lexrl.cli.show import Words, console, wanted_order
from lexrl.envs import env_name
from lexrl.order import as_order
from lexrl.presets import Preset
from lexrl.runs.plan import with_order
from lexrl.theory import check as guarantees

Agent = TypeVar("Agent")
World = TypeVar("World")
COLOURS = {"holds": "green", "fails": "red", "unknown": "yellow"}


@dataclasses.dataclass(frozen=True)
class Check(Generic[Agent, World]):
    """Check the conditions of the theorems that speak of an algorithm, with the evidence for each."""

    algorithm: Agent
    world: World
    order: Words = ""
    """Objectives by importance, as in "min cost > max reward"; by default the preset's."""


def check(command: Check[Any, Any], algorithm: str, preset: Preset | None) -> None:
    """`lexrl check ALGORITHM WORLD`"""
    order = as_order(wanted_order(command.order, preset), command.world.spec.signals)
    console.print(f"[bold]{algorithm}[/bold] on [bold]{env_name(command.world)}[/bold], {order}")
    for guarantee in guarantees(with_order(command.algorithm, order), command.world, order):
        console.print(f"\n[bold]{guarantee.name}[/bold]: [{COLOURS[guarantee.verdict]}]{guarantee.verdict}[/]")
        console.print(f"  It promises: {guarantee.promise}", markup=False)
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
        for condition in guarantee.conditions:
            verdict = Text(condition.verdict, style=COLOURS[condition.verdict])
            table.add_row(verdict, condition.text, Text(condition.evidence, style="dim"))
        console.print(table)
