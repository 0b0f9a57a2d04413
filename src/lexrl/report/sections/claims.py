"""What the paper says, and whether it is seen here."""

import pathlib
from typing import Any, Literal, NamedTuple

from lexrl.report import markup
from lexrl.report.checked import Checked, brief
from lexrl.report.palette import Palette

Answer = Literal["yes", "no", "not decidable"]
ANSWERS: tuple[Answer, ...] = ("yes", "no", "not decidable")


class Claim(NamedTuple):
    claim: str
    seen: Answer
    numbers: str


class Claims(NamedTuple):
    kind = "claims"
    title: str
    rows: tuple[Claim, ...]
    name: str = ""


def read(part: Checked) -> Claims:
    return Claims(part.text("title", ""), tuple(map(_read_claim, part.parts("rows", "row"))), part.text("name", ""))


def _read_claim(part: Checked) -> Claim:
    given = part.text("seen")
    for answer in ANSWERS:
        if given == answer:
            return Claim(part.text("claim"), answer, part.text("numbers", ""))
    raise part.error(f"has the unknown answer {brief(given)}; known are {', '.join(ANSWERS)}")


def write(section: Claims, folder: pathlib.Path) -> dict[str, Any]:
    return section._asdict() | {"rows": [row._asdict() for row in section.rows]}


def labels(section: Claims) -> list[str]:
    return []


def html(section: Claims, styles: Palette) -> str:
    body = "".join(
        f"<tr><th scope=row>{markup.rich(row.claim)}</th><td>{markup.answer(row.seen)}</td>"
        f"<td>{markup.rich(row.numbers)}</td></tr>"
        for row in section.rows
    )
    heads = "".join(f"<th scope=col>{head}</th>" for head in ("What the paper says", "Seen here", "Numbers"))
    return (
        f"<figure class='tabular claims'><table class=sortable><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table>{markup.caption(section.name, section.title, '', rows(section))}</figure>"
    )


def figure(section: Claims, styles: Palette) -> None:
    return None


def rows(section: Claims) -> list[list[Any]]:
    return [["claim", "seen", "numbers"], *map(list, section.rows)]
