"""`lexrl list`: everything that goes by a name."""

import dataclasses
import json

from rich.table import Table
from rich.text import Text

from lexrl import catalog
from lexrl.cli.arguments import parse
from lexrl.cli.console import console
from lexrl.envs.factory import resolve
from lexrl.errors import InputError


@dataclasses.dataclass(frozen=True)
class List:
    """List the algorithms, the environments with their signals, and the experiments."""

    json: bool = False
    """Print JSON, for other programs."""


def main(argv: list[str]) -> None:
    """Print the catalog."""
    if parse(List, argv, "lexrl list").json:
        print(json.dumps(content(), indent=2))
        return
    for kind, rows in content().items():
        columns = list(rows[0])
        table = Table(*columns, box=None, title=f"\n{kind.capitalize()}", title_justify="left")
        for row in rows:
            # As text, because markup would take the brackets of `pip install 'lexrl[intersection]'` for a style.
            table.add_row(*(Text(", ".join(value) if isinstance(value, list) else value) for value in row.values()))
        console.print(table)
    console.print(
        "\nEnvironments of Gymnasium and highway-env are given by their id, as in gym:CartPole-v1 and "
        "highway:intersection-v0.",
        markup=False,
    )


def content() -> dict[str, list[dict[str, str | list[str]]]]:
    """Every line of the catalog."""
    return {
        "algorithms": [{"name": one.name, "summary": one.summary()} for one in catalog.ALGORITHMS.values()],
        "environments": [
            {"name": one.name, "signals": _signals(one.name), "summary": one.summary()} for one in catalog.ENVS.values()
        ],
        "experiments": [{"name": one.name, "summary": one.title} for one in catalog.EXPERIMENTS.values()],
    }


def _signals(env: str) -> list[str]:
    """The signals of an environment, or why it cannot be made."""
    try:
        return list(resolve(env).env.spec.signals)
    except InputError as error:
        return [str(error)]
