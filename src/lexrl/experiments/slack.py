"""E3, the study of LDQN's slack on CartSafe: what a tolerance costs and buys."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from lexrl.experiments import safety
from lexrl.experiments.schedule import Finished, Job, finals
from lexrl.experiments.sections import Section, claims, curves, final_table, seen_in_resamples
from lexrl.tolerance import Absolute

TITLE = "Slack: LDQN's tolerance on CartSafe"
QUESTION = "How do reward and cost change with the tolerance on the values, from 0 to 1?"
TOLERANCES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
SIZES: dict[str, dict[str, Any]] = {
    "smoke": {"presets": ("paper",), "seeds": 2, "steps": 2_000, "tolerances": (0.0, 1.0)},
    "laptop": {"presets": ("paper", "tuned"), "seeds": 10, "steps": 120_000, "tolerances": TOLERANCES},
    "paper": {"presets": ("paper", "tuned"), "seeds": 10, "steps": 10_000_000, "tolerances": TOLERANCES},
}


def runs(size: str) -> list[Job]:
    """LDQN with every tolerance: only numbers differ, so one program does them all."""
    chosen = SIZES[size]
    return [
        _job(tolerance, kind, chosen["seeds"], chosen["steps"])
        for kind in chosen["presets"]
        for tolerance in chosen["tolerances"]
    ]


def _job(tolerance: float, kind: str, seeds: int, most: int) -> Job:
    plain = safety.job("ldqn", "cart-safe", kind, seeds, most)
    return dataclasses.replace(
        plain,
        name=f"cart-safe/{kind}/ldqn-slack-{tolerance:g}",
        label=f"tolerance {tolerance:g}",
        algorithm=dataclasses.replace(plain.algorithm, tolerance=(Absolute(tolerance), Absolute(tolerance))),
        tags={"preset": kind, "tolerance": tolerance},
    )


def summarise(done: Sequence[Finished]) -> list[Section]:
    """Curves and final values by tolerance, and the claim."""
    sections, rows = [], []
    for kind in dict.fromkeys(one.job.tags["preset"] for one in done):
        here = [one for one in done if one.job.tags["preset"] == kind]
        sections += [
            curves(f"slack-{kind}", f"LDQN by its tolerance, {kind} settings", here),
            final_table(f"slack-{kind}-final", f"What was learned, {kind} settings", here),
        ]
        rows += _claim(kind, here)
    return [*sections, claims("What the paper says", rows)]


def _claim(kind: str, here: Sequence[Finished]) -> list[tuple[str, Any, str]]:
    """Gradual: no step from one tolerance to the next is more than half of the whole range."""

    def abrupt(means: np.ndarray) -> np.ndarray:
        steps, spans = np.abs(np.diff(means, axis=1)), np.ptp(means, axis=1, keepdims=True)
        return (steps > 0.5 * spans).reshape(len(means), -1)

    if len(here) < 3:
        return []
    answer, often = seen_in_resamples(abrupt, here)
    means = np.array([finals(one).mean(axis=0) for one in here])
    spans = np.ptp(means, axis=0)
    steps = np.abs(np.diff(means, axis=0)).max(axis=0)
    parts = [
        f"{name}: {', '.join(f'{value:.3g}' for value in means[:, i])} (largest step {steps[i]:.3g} of {spans[i]:.3g})"
        for i, name in enumerate(("cost", "reward"))
    ]
    return [
        (
            f"The effect of the slack is gradual ({kind} settings; no step is more than half of the range).",
            answer,
            f"{'; '.join(parts)}; {often}",
        )
    ]
