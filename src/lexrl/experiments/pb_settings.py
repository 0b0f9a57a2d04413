"""E4, settings of the policy-based learners on CartSafe: all objectives at once or in turn, first or second order."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from lexrl.algorithms import LA2C, LPPO, LA2CSecondOrder, LPPOSecondOrder
from lexrl.experiments import safety
from lexrl.experiments.schedule import Finished, Job, finals
from lexrl.experiments.sections import Section, claims, curves, final_table, ranks, seen, seen_in_resamples
from lexrl.report import stats

TITLE = "Settings of PB-LRL: simultaneous or sequential, first or second order"
QUESTION = "Do the variants of LA2C and LPPO differ in cost and reward, and how do they stand next to LDQN?"
VARIANTS = {
    "simultaneous": (False, False),
    "sequential": (True, False),
    "second-order": (False, True),
    "sequential-second-order": (True, True),
}
"""Sequential, and second order."""
SECOND_ORDER: dict[Any, Any] = {LA2C: LA2CSecondOrder, LPPO: LPPOSecondOrder}
SIZES: dict[str, dict[str, Any]] = {
    "smoke": {"preset": "paper", "seeds": 2, "steps": 2_000, "replayed": 2_000, "variants": ("sequential",)},
    "laptop": {"preset": "tuned", "seeds": 10, "steps": 1_000_000, "replayed": 120_000, "variants": tuple(VARIANTS)},
    "paper": {"preset": "tuned", "seeds": 10, "steps": 10_000_000, "replayed": 10_000_000, "variants": tuple(VARIANTS)},
}


def runs(size: str) -> list[Job]:
    """LA2C and LPPO in every variant, and LDQN."""
    chosen = SIZES[size]
    kind, seeds, most = chosen["preset"], chosen["seeds"], chosen["steps"]
    variants = [_job(name, variant, kind, seeds, most) for name in ("la2c", "lppo") for variant in chosen["variants"]]
    plain = safety.job("ldqn", "cart-safe", kind, seeds, chosen["replayed"])
    return [*variants, dataclasses.replace(plain, name=f"cart-safe/{kind}/ldqn-for-settings", tags={"variant": "ldqn"})]


def _job(name: str, variant: str, kind: str, seeds: int, most: int) -> Job:
    sequential, second = VARIANTS[variant]
    plain = safety.job(name, "cart-safe", kind, seeds, most)
    stages = dataclasses.replace(plain.algorithm.stages, sequential=sequential)
    algorithm = dataclasses.replace(plain.algorithm, stages=stages)
    if second:
        settings = {field.name: getattr(algorithm, field.name) for field in dataclasses.fields(algorithm)}
        algorithm = SECOND_ORDER[type(algorithm)](**settings)
    return dataclasses.replace(
        plain,
        name=f"cart-safe/{kind}/{name}-{variant}",
        label=f"{plain.label}, {variant.replace('-', ' ')}",
        algorithm=algorithm,
        tags={"variant": variant, "family": name},
    )


def summarise(done: Sequence[Finished]) -> list[Section]:
    """Curves, final values, the ranking, and the claims."""
    return [
        curves("settings", "Variants while learning", done),
        final_table("settings-final", "What was learned", done),
        ranks("settings-ranking", "Ranking", done, safety.WORLDS["cart-safe"].tolerance),
        claims("What the paper says", _claims(done)),
    ]


def _apart(costs: np.ndarray, tolerance: float) -> np.ndarray:
    """Which pairs of runs differ by more: `[resamples, runs]` to `[resamples, pairs]`."""
    first, second = np.triu_indices(costs.shape[1], 1)
    return np.abs(costs[:, first] - costs[:, second]) > tolerance


def _claims(done: Sequence[Finished]) -> list[tuple[str, Any, str]]:
    done = [one for one in done if "family" in one.job.tags]
    if len({one.job.tags["family"] for one in done}) < 2:
        return []
    cost = {one.job.label: stats.mean(finals(one)[:, 0]) for one in done}
    tolerance = safety.WORLDS["cart-safe"].tolerance[0]
    alike, often = seen_in_resamples(lambda means: _apart(means[:, :, 0], tolerance), done)
    pooled = {
        family: np.concatenate([finals(one)[:, 1] for one in done if one.job.tags["family"] == family])
        for family in ("la2c", "lppo")
    }
    gap = stats.difference(pooled["la2c"], pooled["lppo"])
    return [
        (
            f"The variants are alike in cost (here: their means are within {tolerance:g} of each other).",
            alike,
            f"cost: {'; '.join(f'{label} {value}' for label, value in cost.items())}; {often}",
        ),
        (
            "LA2C reaches a higher reward than LPPO.",
            seen(gap.low > 0, gap.high < 0),
            f"LA2C {stats.mean(pooled['la2c'])}, LPPO {stats.mean(pooled['lppo'])}, difference {gap}",
        ),
    ]
