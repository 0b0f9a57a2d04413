"""Trade-offs between objectives: what a slack or a tolerance costs and buys, drawn from plain arrays."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl.report import marks, palette
from lexrl.report.chart import Chart, Spec
from lexrl.report.marks import Axis, Frame

EXACT, BOUND, LEARNED = "exact", "bound", "learned: the mean, and each seed"
STYLES = {EXACT: 0, BOUND: 4, LEARNED: 1}
BLUE, RED = palette.variable(0), palette.variable(4)


def slack_curve(slack: np.ndarray, first: np.ndarray, second: np.ndarray, names: tuple[str, str], title: str) -> Chart:
    """What a slack on the first objective buys of the second, from the lexicographic optimum to the other extreme.

    Args:
        slack: on objective 1, at each corner of the curve.
        first, second: the returns of the two objectives there, in the user's signs.
        names: of the two objectives.
        title: above the axes.
    """
    reach = _x_limit(slack, second)
    end = max(float(slack[-1]), reach) * 1.05 + 1e-12
    x = Axis(f"slack on {names[0]}: how much worse than its best it may be", (-0.02 * reach, reach))
    y = Axis(f"best {names[1]} within that slack", marks.fit([second], False))
    frame = Frame(x, y, (), {})
    corners = list(zip(slack, second, strict=True))
    rows = [_row("corner", *each) for each in corners] + [_row("line", *each) for each in [*corners, (end, second[-1])]]
    best = f"best {names[1]} with no regard to {names[0]}: {second[-1]:.3g}"
    optimum = ["lexicographic optimum", f"{names[0]} {first[0]:.3g}, {names[1]} {_nearly(second[0], second[-1])}"]
    start = {"x": x.across(), "y": y.upright()}
    only = {"transform": [{"filter": "datum.i === 0"}], "encoding": start}
    words = {"type": "text", "text": optimum, "align": "left", "baseline": "bottom", "dx": 12, "dy": -22, "color": RED}
    layers = [
        *marks.rules(frame, [(float(second[-1]), best)]),
        marks.plain_line(frame, "line", BLUE, 2.2),
        {"transform": [{"filter": "datum.kind === 'corner' && datum.i > 0"}],
         "mark": {"type": "point", "filled": True, "size": 20, "color": BLUE, "clip": True}, "encoding": start},
        only | {"mark": {"type": "point", "filled": True, "shape": "diamond", "size": 140, "color": RED}},
        only | {"mark": words},
    ]  # fmt: skip
    return Chart(marks.panel(title, frame, rows, layers) | {"width": 560, "height": 280})


class ToleranceCurve(NamedTuple):
    """One objective in `tolerance_curves`."""

    label: str
    """Of the vertical axis."""
    exact: np.ndarray
    """`[tolerances]`"""
    bound: np.ndarray | None = None
    """`[tolerances]`: an upper bound on the exact values; with it the axis is logarithmic."""
    learned: tuple[np.ndarray, np.ndarray] | None = None
    """Some tolerances, and what each seed reached there: `[some]`, `[some, seeds]`."""


def tolerance_curves(tolerances: np.ndarray, curves: Sequence[ToleranceCurve], gap: float, title: str) -> Chart:
    """What a tolerance on actions does to each objective, the most important one on top.

    Args:
        tolerances: all above 0; the axis is logarithmic.
        curves: one for each objective.
        gap: the smallest action gap of objective 1: below it a tolerance does not change the actions it selects.
        title: above the panels.
    """
    name = "tolerance: what an action's value may fall short by, at every state"
    x = Axis(name, (float(tolerances[0]), float(tolerances[-1])), True)
    panels = [_tolerance_panel(x, tolerances, curve, gap, i == 0) for i, curve in enumerate(curves)]
    return Chart({"title": {"text": title, "fontSize": 16, "offset": 14}, "vconcat": panels, "spacing": 24})


def _tolerance_panel(x: Axis, tolerances: np.ndarray, curve: ToleranceCurve, gap: float, explained: bool) -> Spec:
    log = curve.bound is not None
    exactly = np.where(curve.exact > 1e-12, curve.exact, np.nan) if log else curve.exact  # a log axis has no 0
    bound = np.zeros(0) if curve.bound is None else curve.bound
    some, values = curve.learned or (np.zeros(0), np.zeros((0, 1)))
    y = Axis(curve.label, marks.fit([exactly, bound, values], log), log)
    frame = Frame(x, y, tuple(STYLES), STYLES)
    lines = {EXACT: (tolerances, exactly), BOUND: (tolerances, bound), LEARNED: (some, values.mean(axis=1))}
    rows = [_row("line", a, b, label) for label, pair in lines.items() for a, b in zip(*pair, strict=False)]
    rows += [_row("seed", a, b, LEARNED) for a, row in zip(some, values, strict=True) for b in row]
    rows = [row for row in rows if row["y"] is not None]
    stepped: dict[str, Any] = marks.line(frame, "line")
    stepped |= {
        "transform": [{"filter": f"datum.label === '{EXACT}'"}],
        "mark": stepped["mark"] | {"interpolate": "step-after"},
    }
    smooth = marks.line(frame, "line")
    smooth["transform"] = [{"filter": f"datum.kind === 'line' && datum.label !== '{EXACT}'"}]
    words = f"below the gap of {gap:.2g} objective 1 chooses as without tolerance" if explained else ""
    layers = [
        *marks.events(frame, [(gap, words)]), stepped, smooth, marks.points(frame, "datum.kind === 'seed'", 30, 0.35),
        marks.points(frame, f"datum.kind === 'line' && datum.label === '{LEARNED}'", 50),
    ]  # fmt: skip
    if gap**2 > tolerances[0] * tolerances[-1]:  # where there is room for words
        layers[1]["mark"] |= {"align": "right", "dx": -4}
    return marks.panel("", frame, rows, layers) | {"width": 560, "height": 150}


def _row(kind: str, x: float, y: float, label: str = "") -> marks.Row:
    return {"label": label, "kind": kind, "x": marks.number(x), "y": marks.number(y)}


def _x_limit(slack: np.ndarray, second: np.ndarray) -> float:
    """1.5 times the slack at which the curve has reached 99.9 % of its rise."""
    rise = second[-1] - second[0]
    nearly = slack[np.argmax(second >= second[-1] - 1e-3 * rise)] if rise > 0 else slack[-1]
    return float(nearly) * 1.5 or 1.0


def _nearly(value: float, largest: float) -> str:
    return "≈ 0" if abs(value) < 1e-9 * abs(largest) else f"{value:.3g}"
