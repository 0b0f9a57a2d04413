"""What the training of a run shows by itself, and what to try."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lexrl.dual_ascent import DualAscent
from lexrl.multipliers import Multipliers
from lexrl.runs.references import OWN
from lexrl.runs.result import Result
from lexrl.runs.statements import Episodes, Scale
from lexrl.types import HasMultipliers, HasPrefixes, HasTolerance
from lexrl.verdict import Finding

NOTABLE = 0.05
"""Share of an objective's range: smaller differences in training are not mentioned."""
STILL_IMPROVING = "was still improving when training ended"
SURPASSED = "ended better than the policy it was compared with, which had not been learned to the end"
APART = 0.25
"""Share of the range by which training and evaluation differ enough to be said."""


def find(result: Result, findings: Sequence[Finding], played: Sequence[Episodes], scale: Scale) -> list[str]:
    """Everything that training shows, in sentences; `played` are the policies and their references."""
    sentences = list(result.faults.values())
    if no_episode := _no_episode(result):
        return [*sentences, no_episode]
    return [
        *sentences,
        *_not_converged(result),
        *_multipliers(result),
        *_unattained(result, played, scale),
        *_unfinished_stages(result),
        *_improving(result, scale),
        *_surpassed(result, findings),
        *_disagreement(result, played[0], scale),
    ]


def advise(
    result: Result, findings: Sequence[Finding], found: Sequence[str], has_references: bool, needed: int | None
) -> list[str]:
    """What to try where something is violated, open or symptomatic (`found`), the most promising first."""
    violated = [one for one in findings if one.status == "violated"]
    tries: list[str] = []
    first = min(violated, key=lambda one: result.run.order.names.index(one.objective), default=None)
    more = 3 * result.run.total_timesteps
    if first is None and any(STILL_IMPROVING in sentence or SURPASSED in sentence for sentence in found):
        tries.append(f"more steps, as in `--total-timesteps {more:g}`.")
    if first is not None:
        tries.append(
            f"more steps, as in `--total-timesteps {more:g}`: {first.objective!r} was not learned well enough."
        )
        if first.reference.startswith("the best of the other seeds"):
            tries.append("the policies of the better seeds: this is luck of the seed, not of the order.")
        if isinstance(result.policies[0].algorithm, HasTolerance):
            loss = max(one.slack_used for one in violated if one.objective == first.objective)
            tries.append(f"a tolerance, if {loss:.2g} is little to you: '{first.objective} ±{1.2 * loss:.2g}'.")
        tries.append(_another(result))
    if _no_episode(result):
        tries.insert(0, "a shorter `max_episode_steps`, or more steps: no episode ended in training.")
    if any(one.status == "undecided" for one in findings):
        amount = f" {needed}" if needed else " 10000"
        tries.append(f"more episodes: `lexrl verify RUN --episodes{amount}`.")
    if not has_references:
        tries.append("`lexrl verify RUN --retrain`: it trains references, for this algorithm keeps none.")
    return tries


def _another(result: Result) -> str:
    other = "lppo" if isinstance(result.policies[0].algorithm, HasPrefixes) else "ldqn"
    return f"another algorithm, such as {other}."


def _no_episode(result: Result) -> str:
    ended = result.metrics.get("num_episodes")
    if ended is None or np.nansum(ended) > 0:
        return ""
    return "No episode ended in training, so there are no returns to go by."


def _not_converged(result: Result) -> list[str]:
    if "converged" not in result.metrics:
        return []
    last = result.metrics["converged"][-1]
    return _by_objective(result, last[:, :-1] == 0, "never converged, so that nothing was kept for it")


def _multipliers(result: Result) -> list[str]:
    algorithm = result.policies[0].algorithm
    if "multiplier" not in result.metrics or not isinstance(algorithm, HasMultipliers):
        return []
    settings: Any = algorithm.multipliers
    if not isinstance(settings, Multipliers | DualAscent):
        return []
    values = result.metrics["multiplier"]
    m = values.shape[-1]
    powers = np.maximum(m - 1 - np.arange(m), 1) if isinstance(settings, DualAscent) else np.ones(m)
    bound = float(settings.max_multiplier) ** powers
    return _by_objective(result, values[-1] >= 0.99 * bound, "has its multiplier at the bound: it cannot be kept so")


def _unattained(result: Result, played: Sequence[Episodes], scale: Scale) -> list[str]:
    """Thresholds above everything that was measured, in training and in fresh episodes."""
    if not {"threshold", "return_estimate"} <= result.metrics.keys():
        return []
    signs = np.asarray(result.run.order.signs)
    threshold = result.metrics["threshold"][-1] * signs
    best = np.nanmax(result.metrics["return_estimate"] * signs, axis=0, initial=-np.inf)
    for one in played:
        means = one.discounted.mean(axis=1)
        best[:, : means.shape[1]] = np.fmax(best[:, : means.shape[1]], means)
    above = (threshold > best + NOTABLE * scale.discounted)[:, :-1]
    return _by_objective(result, above, "has a threshold that no policy of this run attained")


def _unfinished_stages(result: Result) -> list[str]:
    if "stage" not in result.metrics:
        return []
    last, m = result.metrics["stage"][-1], len(result.run.order.objectives)
    behind = [seed for seed, stage in zip(result.run.seeds, last, strict=True) if np.max(stage) < m]
    if not behind:
        return []
    return [f"Training ended before the last stage in {_seeds(result, behind)}: later objectives had no turn."]


def _improving(result: Result, scale: Scale) -> list[str]:
    """Objectives that still rose in the last fifth of the curve."""
    curve = result.metrics["episode_return"] * np.asarray(result.run.order.signs)
    points = len(curve)
    if points < 10:
        return []
    late, before = curve[-points // 10 :], curve[-3 * points // 10 : -2 * points // 10]
    with np.errstate(invalid="ignore"):
        rise = late.mean(axis=0) - before.mean(axis=0)
        rising = rise > NOTABLE * scale.undiscounted
    return _by_objective(result, rising & (scale.undiscounted > 0), STILL_IMPROVING)


def _surpassed(result: Result, findings: Sequence[Finding]) -> list[str]:
    """References that the policies themselves surpass by more than the tolerance: to keep them shows little."""
    better = {
        (one.seed, one.objective) for one in findings if one.low > one.tolerance and one.reference.startswith(OWN)
    }
    where = [[(seed, name) in better for name in result.run.order.names] for seed in result.run.seeds]
    return _by_objective(result, np.array(where), SURPASSED)


def _disagreement(result: Result, played: Episodes, scale: Scale) -> list[str]:
    """Training explores or samples, evaluation may be greedy: they may be different policies.

    Only the first objective is compared: exploring may well be better in the others, at its expense.
    """
    curve = result.metrics["episode_return"] * np.asarray(result.run.order.signs)
    with np.errstate(invalid="ignore"):
        worse = curve[-1] - played.returns.mean(axis=1) > APART * scale.undiscounted
    return _by_objective(
        result,
        (worse & (scale.undiscounted > 0))[:, :1],
        "is much worse in fresh episodes than at the end of training: the policy that is handed over is not the one "
        "that explored",
    )


def _by_objective(result: Result, where: np.ndarray, what: str) -> list[str]:
    """A sentence for each objective of which something holds `[seeds, objectives]`."""
    return [
        f"{result.run.order.names[j]!r} {what} ({_seeds(result, np.array(result.run.seeds)[column].tolist())})."
        for j, column in enumerate(where.T)
        if column.any()
    ]


def _seeds(result: Result, seeds: list[int]) -> str:
    if len(seeds) == len(result.run.seeds):
        return "all seeds" if len(seeds) > 1 else "its seed"
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
