"""Small pieces of HTML, and values as text."""

import base64
import csv
import datetime
import hashlib
import html
import importlib.resources
import io
import json
import math
import re
import string
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from lexrl.report import chart, figures, palette

MAX_EMBEDDED_CSV = 400_000
"""Characters of CSV that a page holds for one section; longer data is only in the folder `data`."""


def asset(name: str) -> str:
    """The text of a file in `assets`."""
    return importlib.resources.files("lexrl.report").joinpath("assets", name).read_text(encoding="utf-8")


def document(title: str, body: str) -> str:
    """A complete HTML file; one with charts holds what makes them answer to the pointer."""
    scripts = f"<script>{asset('script.js')}</script>"
    if "<figure class='charts" in body:
        config = f"<script type=application/json id=chart-config>{chart.as_text(figures.ON_PAGE)}</script>"
        scripts = f"{config}<script>{chart.runtime()}</script>{scripts}"
    return string.Template(asset("page.html")).substitute(
        title=safe(title), policy=policy(scripts), style=style(), body=body + scripts
    )


def policy(scripts: str) -> str:
    """The content-security policy of a page: it loads nothing, and runs these scripts of ours and no other.

    Should text from a file ever become markup, it still cannot run, send or fetch anything.
    """
    ours = re.findall(r"<script>(.*?)</script>", scripts, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in ours]
    hashes = [f"'sha256-{each}'" for each in digests]
    return (
        f"default-src 'none'; script-src {' '.join(hashes)}; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def style() -> str:
    """The style sheet of a page, with the palette's colors."""
    sheet = asset("style.css").replace("/* LIGHT */", _colors(palette.LIGHT))
    sheet = sheet.replace("/* DARK */", _colors(palette.DARK))
    return sheet + "\n".join(f".k{i} {{ --k: var(--k{i}); }}" for i in range(len(palette.LIGHT)))


def _colors(colors: Sequence[str]) -> str:
    return " ".join(f"--k{i}:{color};" for i, color in enumerate(colors))


def safe(text: object) -> str:
    return html.escape(str(text), quote=True)


def rich(text: object) -> str:
    """Text with `code` in it."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", safe(text))


def scrollable(label: str) -> str:
    """The opening tag of a region that scrolls sideways on a narrow screen, also by keyboard."""
    return f"<div class=wide tabindex=0 role=region aria-label='{safe(label)}'>"


def answer(word: str) -> str:
    """An answer or a state in its color, with a sign in front."""
    return f"<span class='answer {safe(word.split()[0])}'>{safe(word)}</span>"


def cell(text: str, value: float | None = None, numeric: bool = False) -> str:
    """A table cell; an interval after a number is set small."""
    found = re.fullmatch(r"(\S+) (\[.*\])", text)
    shown = f"{safe(found[1])} <small>{safe(found[2])}</small>" if found else rich(text)
    return f"<td{' class=number' if numeric else ''}{sort_value(value)}>{shown}</td>"


def sort_value(value: float | None) -> str:
    """The attribute with the number that a cell is sorted by."""
    return "" if value is None or not math.isfinite(value) else f" data-v='{value:.10g}'"


def caption(name: str, title: str, text: str, rows: Sequence[Sequence[Any]]) -> str:
    """The caption of a figure, with its data for download."""
    words = f"<span>{rich(text)}</span>" if text else ""
    return f"<figcaption>{words}{_download(name, title, csv_text(rows))}</figcaption>"


def _download(name: str, title: str, content: str) -> str:
    if len(content) > MAX_EMBEDDED_CSV:
        return f"<span class=csv>data: <code>data/{name}.csv</code></span>"
    address = "data:text/csv;charset=utf-8," + urllib.parse.quote(content, safe=",;:/?@$!*()-_.~+=[]|")
    return (
        f"<a class=csv download='{name}.csv' href='{address}' aria-label='Data of {safe(title or name)} as CSV'>"
        "data (CSV)</a>"
    )


def csv_text(rows: Sequence[Sequence[Any]]) -> str:
    """Rows as CSV, numbers to ten digits, and nothing where a number is not finite."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_written(each) for each in row] for row in rows)
    return text.getvalue().encode(errors="replace").decode()


def _written(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return f"{value:.10g}" if math.isfinite(value) else ""


def facts(title: str, found: Mapping[str, Any]) -> str:
    """Names and values in two columns; nothing if none is known."""
    rows = "".join(
        f"<dt>{safe(key)}</dt><dd>{safe(value if isinstance(value, str) else json.dumps(value))}</dd>"
        for key, value in found.items()
        if value not in ("", None)
    )
    return f"<div><h4>{title}</h4><dl>{rows}</dl></div>" if rows else ""


def image(kind: str, content: bytes) -> str:
    """The content of an image file as an address."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def file_name(text: str) -> str:
    """A name that is safe as a file's and as an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-")


def count(number: int, what: str) -> str:
    """A number of things, as in "1 run" or "2 runs"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def day(begun: str) -> str:
    """The date of an ISO time, as in 16 November 2026; any other text as it is."""
    try:
        moment = datetime.datetime.fromisoformat(begun)
    except ValueError:
        return begun
    return f"{moment.day} {moment:%B %Y}"
