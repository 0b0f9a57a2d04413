"""E3, the study of LDQN's slack on CartSafe: what a tolerance costs and buys."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from lexrl.experiments import safety
from lexrl.experiments.schedule import Finished, Job, finals
from lexrl.experiments.summary import curves, decide_by_resampling, final_table
from lexrl.report.sections.claims import Claim, Claims
from lexrl.tolerance import Absolute

QUESTION = "How do reward and cost change with the tolerance on the values, from 0 to 1?"
TOLERANCES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
SIZES: dict[str, dict[str, Any]] = {
    "smoke": {"presets": ("paper",), "seeds": 2, "max_timesteps": 2_000, "tolerances": (0.0, 1.0)},
    "laptop": {"presets": ("paper", "tuned"), "seeds": 10, "max_timesteps": 120_000, "tolerances": TOLERANCES},
    "paper": {"presets": ("paper", "tuned"), "seeds": 10, "max_timesteps": 10_000_000, "tolerances": TOLERANCES},
}


def runs(size: str) -> list[Job]:
    """LDQN with every tolerance; only numbers differ, so it is compiled once."""
    chosen = SIZES[size]
    return [
        _job(tolerance, preset, chosen["seeds"], chosen["max_timesteps"])
        for preset in chosen["presets"]
        for tolerance in chosen["tolerances"]
    ]


def _job(tolerance: float, preset: str, seeds: int, max_timesteps: int) -> Job:
    plain = safety.job("ldqn", "cart-safe", preset, seeds, max_timesteps)
    return dataclasses.replace(
        plain,
        name=f"cart-safe/{preset}/ldqn-slack-{tolerance:g}",
        label=f"tolerance {tolerance:g}",
        algorithm=dataclasses.replace(plain.algorithm, tolerance=(Absolute(tolerance), Absolute(tolerance))),
        tags={"preset": preset, "tolerance": tolerance},
    )


def summarize(results: Sequence[Finished]) -> list[Any]:
    """Curves and final values by tolerance, and the claim."""
    sections, rows = [], []
    for preset in dict.fromkeys(one.job.tags["preset"] for one in results):
        here = [one for one in results if one.job.tags["preset"] == preset]
        sections += [
            curves(f"slack-{preset}", f"LDQN by its tolerance, {preset} settings", here),
            final_table(f"slack-{preset}-final", f"What was learned, {preset} settings", here),
        ]
        rows += _claims(preset, here)
    return [*sections, Claims("What the paper says", tuple(rows))]


def _claims(preset: str, here: Sequence[Finished]) -> list[Claim]:
    """Gradual: no step from one tolerance to the next is more than half of the whole range."""

    def abrupt(means: np.ndarray) -> np.ndarray:
        steps, spans = np.abs(np.diff(means, axis=1)), np.ptp(means, axis=1, keepdims=True)
        return (steps > 0.5 * spans).reshape(len(means), -1)

    if len(here) < 3:
        return []
    answer, often = decide_by_resampling(abrupt, here)
    means = np.array([finals(one).mean(axis=0) for one in here])
    spans = np.ptp(means, axis=0)
    steps = np.abs(np.diff(means, axis=0)).max(axis=0)
    parts = [
        f"{name}: {', '.join(f'{value:.3g}' for value in means[:, i])} (largest step {steps[i]:.3g} of {spans[i]:.3g})"
        for i, name in enumerate(("cost", "reward"))
    ]
    claim = f"The effect of the slack is gradual ({preset} settings; no step is more than half of the range)."
    return [Claim(claim, answer, f"{'; '.join(parts)}; {often}")]
