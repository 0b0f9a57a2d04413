"""E4, settings of the paper's LA2C and LPPO on CartSafe: all objectives at once or in turn, first or second order."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from lexrl.algorithms.paper_la2c import PaperLA2C
from lexrl.algorithms.paper_lppo import PaperLPPO
from lexrl.algorithms.second_order import LA2CSecondOrder, LPPOSecondOrder
from lexrl.experiments import safety
from lexrl.experiments.schedule import Finished, Job, finals
from lexrl.experiments.summary import curves, decide, decide_by_resampling, final_table, rank
from lexrl.report import stats
from lexrl.report.sections.claims import Claim, Claims

QUESTION = "Do the variants of LA2C and LPPO differ in cost and reward, and how do they compare with LDQN?"
VARIANTS = {
    "simultaneous": (False, False),
    "sequential": (True, False),
    "second-order": (False, True),
    "sequential-second-order": (True, True),
}
"""Sequential, and second order."""
FAMILIES = ("paper-la2c", "paper-lppo")
SECOND_ORDER: dict[Any, Any] = {PaperLA2C: LA2CSecondOrder, PaperLPPO: LPPOSecondOrder}
SIZES: dict[str, dict[str, Any]] = {
    "smoke": {
        "preset": "paper", "seeds": 2, "max_timesteps": 2_000, "max_replayed": 2_000, "variants": ("sequential",)
    },
    "laptop": {
        "preset": "tuned", "seeds": 10, "max_timesteps": 1_000_000, "max_replayed": 120_000, "variants": VARIANTS
    },
    "paper": {
        "preset": "tuned", "seeds": 10, "max_timesteps": 10_000_000, "max_replayed": 10_000_000, "variants": VARIANTS
    },
}  # fmt: skip
"""As in `safety.SIZES`."""


def runs(size: str) -> list[Job]:
    """The paper's LA2C and LPPO in every variant, and LDQN."""
    chosen = SIZES[size]
    preset, seeds, most = chosen["preset"], chosen["seeds"], chosen["max_timesteps"]
    variants = [_job(name, variant, preset, seeds, most) for name in FAMILIES for variant in chosen["variants"]]
    plain = safety.job("ldqn", "cart-safe", preset, seeds, chosen["max_replayed"])
    name = f"cart-safe/{preset}/ldqn-for-settings"
    return [*variants, dataclasses.replace(plain, name=name, tags={"variant": "ldqn"})]


def _job(name: str, variant: str, preset: str, seeds: int, max_timesteps: int) -> Job:
    sequential, second = VARIANTS[variant]
    plain = safety.job(name, "cart-safe", preset, seeds, max_timesteps)
    convergence = dataclasses.replace(plain.algorithm.convergence, sequential=sequential)
    algorithm = dataclasses.replace(plain.algorithm, convergence=convergence)
    if second:
        settings = {field.name: getattr(algorithm, field.name) for field in dataclasses.fields(algorithm)}
        algorithm = SECOND_ORDER[type(algorithm)](**settings)
    return dataclasses.replace(
        plain,
        name=f"cart-safe/{preset}/{name}-{variant}",
        label=f"{plain.label}, {variant.replace('-', ' ')}",
        algorithm=algorithm,
        tags={"variant": variant, "family": name},
    )


def summarize(results: Sequence[Finished]) -> list[Any]:
    """Curves, final values, the ranking, and the claims."""
    return [
        curves("settings", "Variants while learning", results),
        final_table("settings-final", "What was learned", results),
        rank("settings-ranking", "Ranking", results, safety.ENVS["cart-safe"].tolerance),
        Claims("What the paper says", tuple(_claims(results))),
    ]


def _differ(costs: np.ndarray, tolerance: float) -> np.ndarray:
    """Which pairs of runs differ by more than a tolerance: `[resamples, runs]` to `[resamples, pairs]`."""
    first, second = np.triu_indices(costs.shape[1], 1)
    return np.abs(costs[:, first] - costs[:, second]) > tolerance


def _claims(results: Sequence[Finished]) -> list[Claim]:
    results = [one for one in results if "family" in one.job.tags]
    if len({one.job.tags["family"] for one in results}) < 2:
        return []
    cost = {one.job.label: stats.mean(finals(one)[:, 0]) for one in results}
    tolerance = safety.ENVS["cart-safe"].tolerance[0]
    alike, often = decide_by_resampling(lambda means: _differ(means[:, :, 0], tolerance), results)
    pooled = {
        family: np.concatenate([finals(one)[:, 1] for one in results if one.job.tags["family"] == family])
        for family in FAMILIES
    }
    la2c, lppo = (pooled[family] for family in FAMILIES)
    gap = stats.difference(la2c, lppo)
    return [
        Claim(
            f"The variants are alike in cost (here: their means are within {tolerance:g} of each other).",
            alike,
            f"cost: {'; '.join(f'{label} {value}' for label, value in cost.items())}; {often}",
        ),
        Claim(
            "LA2C reaches a higher reward than LPPO.",
            decide(gap.low > 0, gap.high < 0),
            f"LA2C {stats.mean(la2c)}, LPPO {stats.mean(lppo)}, difference {gap}",
        ),
    ]
