"""`lexrl report FOLDER`: one page about all runs in a folder."""

import dataclasses
import pathlib

import tyro

from lexrl.cli.arguments import Place, parse
from lexrl.cli.console import console, print_json


@dataclasses.dataclass(frozen=True)
class Report:
    """Write one HTML page about all runs in a folder."""

    folder: tyro.conf.Positional[pathlib.Path]
    """A folder with runs in it, or that of one run."""
    out: Place = None
    """The file; by default report.html in the folder."""
    json: bool = False
    """Print the file and what was left out as JSON, and nothing else."""


def main(argv: list[str]) -> None:
    """Write the page, and the figures and data of experiments."""
    from lexrl.report import folder  # matplotlib takes its time to import

    args = parse(Report, argv, "lexrl report")
    path = args.out or args.folder / "report.html"
    left_out = folder.write(args.folder, path)
    if args.json:
        print_json({"file": str(path), "left_out": left_out})
        return
    console.print(f"The page is [bold]{path}[/bold]: open it in a browser.")
