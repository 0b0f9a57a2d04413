"""A chart as a value: one Vega-Lite specification, a plain dict, drawn by vl-convert as SVG, PNG or PDF.

Colors in a specification are names of CSS variables, so that a page shows the same drawing in light mode, in dark mode
and in print; files get the colors of light mode.
"""

import dataclasses
import functools
import hashlib
import json
import pathlib
import re
from typing import Any

from lexrl import store
from lexrl.errors import InputError, as_path
from lexrl.report import palette

VERSION = "6.1"
"""Of Vega-Lite."""
Spec = dict[str, Any]
INK, FAINT, LINE, PAPER = "var(--ink)", "var(--faint)", "var(--line)", "var(--paper)"
IN_FILES = {INK: "#1f2328", FAINT: "#5f646b", LINE: "#e1e2e0", PAPER: "#ffffff"} | {
    palette.variable(number): color for number, color in enumerate(palette.LIGHT)
}
"""The variables' colors outside a page."""
TICKS = "abs(datum.value) >= 1000 ? format(datum.value, '~s') : format(datum.value, '~g')"
"""Labels of axes: 250k, 1M, 0.05."""
CONFIG: Spec = {
    "aria": False,  # the page says what a chart shows; otherwise every mark says its numbers
    "font": "sans-serif",
    "background": None,
    "view": {"stroke": None},
    "axis": {
        "labelColor": FAINT, "titleColor": FAINT, "gridColor": LINE, "domainColor": FAINT, "tickColor": FAINT,
        "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelExpr": TICKS,
        "labelFlush": False, "labelOverlap": True, "tickCount": 5,
    },
    "axisX": {"grid": False, "titlePadding": 8}, "axisY": {"domain": False, "ticks": False, "labelPadding": 6},
    "title": {
        "anchor": "start", "frame": "bounds", "color": INK, "fontSize": 14, "fontWeight": 600, "offset": 10,
        "subtitleColor": FAINT, "subtitleFontSize": 12, "subtitlePadding": 6,
    },
    "legend": {
        "orient": "bottom", "title": None, "labelColor": INK, "labelFontSize": 12, "labelLimit": 400, "columns": 5,
        "symbolSize": 120, "symbolStrokeWidth": 2,
    },
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Chart:
    """A notebook shows it, `save` writes it."""

    spec: Spec
    """In Vega-Lite, without the style of this package, which is `CONFIG`."""

    def __repr__(self) -> str:
        title = self.spec.get("title", "")
        return f"Chart({title['text'] if isinstance(title, dict) else title})"

    @property
    def svg(self) -> bytes:
        return self._encode("svg").encode()

    @property
    def png(self) -> bytes:
        return self._encode("png")

    def save(self, path: str | pathlib.Path) -> None:
        """Save as PNG, SVG or PDF, depending on the file name's extension."""
        path = as_path(path)
        kind = path.suffix[1:].lower()
        if kind not in ("png", "svg", "pdf"):
            raise InputError(
                f"A picture cannot be saved as {path.name!r}; use a file name that ends in .png, .svg or .pdf."
            )
        store.write_bytes(path, self.svg if kind == "svg" else self._encode(kind))

    def _encode(self, kind: str) -> Any:
        return _draw(kind, in_files(self.spec), in_files(CONFIG) | {"background": "white"})

    def _repr_png_(self) -> bytes:
        return self.png

    def inline(self) -> str:
        """SVG for a page, in the page's colors; its ids are its own."""
        text = _draw("svg", self.spec, CONFIG)
        own = hashlib.sha256(text.encode()).hexdigest()[:8]
        return re.sub(r'(id="|url\(#)', rf"\1c{own}-", text)


def in_files(spec: Any) -> Any:
    """A specification, or a part of one, with the colors of light mode for the variables."""
    if isinstance(spec, dict):
        return {key: in_files(value) for key, value in spec.items()}
    if isinstance(spec, list):
        return [in_files(value) for value in spec]
    return IN_FILES.get(spec, spec) if isinstance(spec, str) else spec


def as_text(content: Any) -> str:
    """JSON in ASCII but for letters; half of a surrogate pair, which no file can hold, becomes a question mark."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode(errors="replace").decode()


@functools.cache
def runtime() -> str:
    """The JavaScript that makes charts of a page answer to the pointer: Vega and Vega-Lite, from vl-convert."""
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VERSION)


def _draw(kind: str, spec: Spec, config: Spec) -> Any:
    import vl_convert  # 84 MB: only where something is drawn

    text, given = as_text(spec), {"vl_version": VERSION, "config": config}
    if kind == "png":
        return vl_convert.vegalite_to_png(text, scale=2, **given)
    if kind == "pdf":
        return vl_convert.vegalite_to_pdf(text, **given)
    return _with_stable_ids(vl_convert.vegalite_to_svg(text, **given))


def _with_stable_ids(svg: str) -> str:
    """Ids counted from 0, so that the same chart has the same bytes: Vega counts on from one drawing to the next."""
    names = {name: f"clip-{i}" for i, name in enumerate(dict.fromkeys(re.findall(r'id="([^"]*)"', svg)))}
    return re.sub(r'(?<=id=")[^"]*(?=")|(?<=url\(#)[^)]*(?=\))', lambda found: names.get(found[0], found[0]), svg)
