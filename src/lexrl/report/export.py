"""An experiment's figures and numbers as files."""

import pathlib
import re

from lexrl import store
from lexrl.report import markup, page, palette
from lexrl.report.page import KINDS


def write_figures(folder: pathlib.Path) -> list[pathlib.Path]:
    """Write every chart of an experiment as `figures/NAME.png` and `figures/NAME.svg`."""
    chapter = page.read(folder)
    styles = palette.assign([chapter.labels()])
    written = []
    for section in chapter.sections:
        picture = KINDS[section.kind].figure(section, styles)
        if picture is None:
            continue
        for suffix, content in (("png", picture.png), ("svg", picture.svg)):
            written.append(store.inside(folder, "figures", f"{file_name(section.name)}.{suffix}"))
            store.write_bytes(written[-1], content)
    return written


def write_data(folder: pathlib.Path) -> list[pathlib.Path]:
    """Write the numbers of every section of an experiment as `data/NAME.csv`."""
    written = []
    for section in page.read(folder).sections:
        rows = KINDS[section.kind].rows(section)
        if rows:
            written.append(store.inside(folder, "data", f"{file_name(section.name)}.csv"))
            store.write_bytes(written[-1], markup.csv_text(rows).encode())
    return written


def file_name(name: str) -> str:
    """A name from a file as the name of one: letters, digits, dashes and dots, so that it leads nowhere else."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")[:100] or "section"
