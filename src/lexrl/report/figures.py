"""Charts on a page: the drawing itself, complete without JavaScript, its legend, and what the pointer may ask."""

import html
from collections.abc import Sequence
from typing import Any, NamedTuple

from lexrl.report import palette
from lexrl.report.chart import CONFIG, INK, Chart, Spec, as_text
from lexrl.report.palette import Palette

ON_PAGE: Spec = CONFIG | {"legend": {"disable": True}}
"""The legend is part of the page, beside the charts."""
HIDDEN = "indexof(hidden, datum.label) < 0"


class DescribedChart(NamedTuple):
    """One chart of a figure."""

    spec: Spec
    description: str
    """What a screen reader says."""
    below: str = ""
    """HTML under the chart."""


def figure(name: str, panels: Sequence[DescribedChart], labels: Sequence[str], styles: Palette, caption: str) -> str:
    """Charts side by side under one legend."""
    keys = "".join(
        f"<li class=key data-l='{_safe(label)}'>{palette.swatch(label, styles)}{html.escape(label)}" for label in labels
    )
    return (
        f"<figure class='charts of{min(len(panels), 3)}' data-name='{_safe(name)}'>"
        f"<ul class=legend aria-label=Legend>{keys}</ul>"
        f"<div class=panels>{''.join(map(_panel, panels))}</div>{caption}</figure>"
    )


def _panel(panel: DescribedChart) -> str:
    drawn = Chart(panel.spec | {"config": ON_PAGE}).inline()
    data = as_text(compact(live(panel.spec))).replace("<", "\\u003c")
    return (
        f"<div class=panel><div class=plot role=img aria-label='{_safe(panel.description)}'>{drawn}</div>"
        f"<script type=application/json class=spec>{data}</script>{panel.below}</div>"
    )


def live(spec: Spec) -> Spec:
    """The same chart for the pointer: labels can be hidden, and the nearest row is found, and marked."""
    (x, y) = (spec["layer"][0]["encoding"][channel] for channel in "xy")
    places = {"x": x | {"field": "x"}, "y": y | {"field": "y"}}
    nearest = {"type": "point", "nearest": True, "on": "pointerover", "clear": "pointerout"}
    here = {"type": "point", "filled": False, "size": 150, "color": INK, "strokeWidth": 1.5, "clip": True}
    return spec | {
        "params": [{"name": "hidden", "value": []}, {"name": "at", "value": -1}],
        "transform": [{"filter": HIDDEN}],
        "layer": [
            *spec["layer"],
            {"transform": [{"filter": "datum.i === at"}], "mark": here, "encoding": places},
            {
                "params": [{"name": "near", "select": nearest}],
                "transform": [{"filter": "isNumber(datum.y)"}],
                "mark": {"type": "point", "opacity": 0, "size": 90, "tooltip": {"content": "data"}},
                "encoding": places,
            },
        ],
    }


def compact(spec: Spec) -> dict[str, Any]:
    """The specification, and its rows by columns: half of the text."""
    rows = spec["data"]["values"]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    return {"spec": {key: part for key, part in spec.items() if key != "data"}, "columns": columns}


def _safe(text: str) -> str:
    return html.escape(text, quote=True)
