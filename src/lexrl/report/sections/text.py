"""Paragraphs."""

import pathlib
import re
from typing import Any, NamedTuple

from lexrl.report.checked import Checked
from lexrl.report.markup import rich
from lexrl.report.palette import Palette


class Text(NamedTuple):
    kind = "text"
    title: str
    paragraphs: tuple[str, ...]
    name: str = ""


def read(part: Checked) -> Text:
    paragraphs = re.split(r"\n\s*\n", part.text("text"))
    return Text(part.text("title", ""), tuple(each.strip() for each in paragraphs if each.strip()))


def write(section: Text, folder: pathlib.Path) -> dict[str, Any]:
    return {"title": section.title, "text": "\n\n".join(section.paragraphs)}


def labels(section: Text) -> list[str]:
    return []


def html(section: Text, styles: Palette) -> str:
    return "".join(f"<p>{rich(each)}</p>" for each in section.paragraphs)


def figure(section: Text, styles: Palette) -> None:
    return None


def rows(section: Text) -> list[list[Any]]:
    return []
