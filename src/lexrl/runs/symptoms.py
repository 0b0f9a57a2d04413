"""What the training of a run shows by itself."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl.dual_ascent import DualAscent
from lexrl.multipliers import Multipliers
from lexrl.runs import findings, trends
from lexrl.runs.result import Result
from lexrl.runs.scales import Episodes, Scale
from lexrl.runs.trends import NOTABLE
from lexrl.types import HasMultipliers
from lexrl.verdict import Finding


class Symptoms(NamedTuple):
    """What training shows, in words and for advice."""

    sentences: list[str]
    reservations: dict[str, tuple[int, ...]]
    """As in a verdict: seeds in which *kept* is worth less, by the name of the reason."""
    too_short: bool = False
    """Was anything not learned to the end?"""
    not_better: bool = False
    """Is an objective no better than before training?"""
    no_episode: bool = False
    """Did no episode end in training? Then nothing else is known."""


def find(
    result: Result, judged: Sequence[Finding], played: Sequence[Episodes], untrained: Episodes, scale: Scale
) -> Symptoms:
    """Everything that training shows; `played` are the policies and their references."""
    sentences, seeds = list(result.faults.values()), np.array(result.run.seeds)
    stopped, best_known = tuple(seeds[list(result.faults)].tolist()), findings.best_known(result, judged)
    if _no_episode(result):
        sentence = "No episode ended in training, so there are no returns to go by."
        endless = tuple(seeds[~best_known.all(axis=1)].tolist())
        return Symptoms([*sentences, sentence], {"stopped": stopped, "endless": endless}, no_episode=True)
    granted = findings.granted(result, judged, scale)
    where = _where(result, judged, played, untrained, scale, granted)
    few, alone = trends.too_few_points(result), _handed_over(result, judged)
    sentences += [
        *_not_converged(result),
        *_too_few_points(result, few),
        *_multipliers(result),
        *_unattained(result, played, scale),
        *_unfinished_stages(result),
        *(sentence for name, words in WORDS.items() for sentence in _by_objective(result, where[name], words)),
        *alone,
        *_beyond_bounds(result, [*played, untrained], scale),
        *_by_objective(result, trends.disagreeing(result, played[0], scale, granted), DISAGREES),
    ]
    short = where["unfinished"] | where["improving"] | where["surpassed"]
    brief = few[:, None] & ~best_known & (result.run.num_log_points >= trends.FEWEST_POINTS)
    reserved = {name: where[name] for name in ("unmoved", "hidden", "forgotten", "uncompared")} | {
        "weak": (short & findings.go_back_to_own(result, judged))[:, :-1],
        "unlearned": where["not_better"] & ~best_known,
        "brief": brief,
    }
    return Symptoms(
        sentences,
        {"stopped": stopped} | {name: tuple(seeds[one.any(axis=1)].tolist()) for name, one in reserved.items()},
        too_short=bool((short | where["forgotten"] | brief).any()) or bool(alone),
        not_better=bool((where["not_better"] | where["unmoved"]).any()),
    )


WORDS = {
    "unfinished": "was still improving when its stage ended",
    "improving": "was still improving when training ended",
    "surpassed": "ended better than the policy it was compared with, which had not been learned to the end",
    "forgotten": "was much better in the middle of training than now: it was learned, and given up or forgotten",
    "not_better": "is no better than before training: it was not learned, or nothing can be done about it",
    "unmoved": "is the same in every episode of every policy: nothing was learned about it, or nothing can be",
    "hidden": "is worse per episode than what it was compared with, which the discount of what was optimized hides",
    "uncompared": "was compared with nothing: what there was is worse in something more important",
    "no_numbers": "is not a finite number in fresh episodes: nothing can be decided about it",
}
"""What may be said of an objective, in this order."""
DISAGREES = (
    "is much worse in fresh episodes than at the end of training: the policy that is handed over is not the one that "
    "explored"
)


def _where(
    result: Result,
    judged: Sequence[Finding],
    played: Sequence[Episodes],
    untrained: Episodes,
    scale: Scale,
    granted: np.ndarray,
) -> dict[str, np.ndarray]:
    """`[seeds, M]` for each of `WORDS`: of which objectives that is true."""
    hidden = findings.hidden(result, judged, scale) | _hidden_before(result, played[0], untrained, scale, granted)
    unmoved = _unmoved(result, [*played, untrained]) & ~findings.best_known(result, judged)
    return {
        "unfinished": trends.unfinished(result, scale),
        "improving": trends.improving(result, scale) & ~findings.at_limit(result, judged),
        "surpassed": findings.surpassed(result, judged),
        "forgotten": trends.forgotten(result, played[0], scale, granted),
        "not_better": _not_better(result, played[0], untrained, scale, granted) & ~unmoved & ~hidden,
        "unmoved": unmoved,
        "hidden": hidden,
        "uncompared": findings.uncompared(result, judged),
        "no_numbers": np.asarray(~np.isfinite(played[0].returns).all(axis=1)),
    }


def _no_episode(result: Result) -> bool:
    ended = result.metrics.get("num_episodes")
    return ended is not None and not np.nansum(ended) > 0


def _too_few_points(result: Result, few: np.ndarray) -> list[str]:
    if not few.any():
        return []
    where = _seeds(result, np.array(result.run.seeds)[few].tolist())
    return [f"The learning curves are too short to show whether anything was still improving ({where})."]


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


def _not_better(result: Result, played: Episodes, untrained: Episodes, scale: Scale, granted: np.ndarray) -> np.ndarray:
    """`[seeds, M]`: objectives but the last that are not notably better than what training began with, although
    single episodes are; a cost of 0 cannot be better, half of a cost is, and slack may have been used."""
    mine, before = played.returns.mean(axis=1), untrained.returns.mean(axis=1)
    gain = mine - before
    perfect = (played.returns == 0).all(axis=1) & (np.asarray(result.run.order.signs) < 0)
    halved = (played.returns <= 0).all(axis=1) & (mine > before / 2)
    found = (gain + granted < NOTABLE * scale.undiscounted) & ~perfect & ~halved & (scale.undiscounted > 0)
    found[:, -1] = False
    return found & np.isfinite(gain) & ~np.isfinite(result.run.order.limits())


def _hidden_before(
    result: Result, played: Episodes, untrained: Episodes, scale: Scale, granted: np.ndarray
) -> np.ndarray:
    """`[seeds, M]`: objectives but the last that are worse per episode than before training, and not if discounted."""
    n = untrained.returns.shape[1]
    mine, loss = played.returns[:, :n], untrained.returns.mean(axis=1) - played.returns.mean(axis=1)
    spread = 2.0 * (mine.std(axis=1) + untrained.returns.std(axis=1)) / np.sqrt(n)
    discounted = untrained.discounted.mean(axis=1) - played.discounted.mean(axis=1)
    found = (loss > np.maximum(NOTABLE * scale.undiscounted + granted, spread)) & (discounted <= 0)
    found[:, -1] = False
    return found & ~np.isfinite(result.run.order.limits())


def _unmoved(result: Result, played: Sequence[Episodes]) -> np.ndarray:
    """`[seeds, M]`: objectives but the last with one return in all episodes of all policies, in training as well."""
    found = np.zeros((len(result), len(result.run.order.names)), bool)
    for j in range(found.shape[1] - 1):
        curve = np.asarray(result.metrics["episode_return"])[..., j] * result.run.order.signs[j]
        seen = [curve.ravel(), *(one.returns[..., j].ravel() for one in played if one.returns.shape[-1] > j)]
        values = np.concatenate(seen)
        values = values[np.isfinite(values)]
        free = result.run.order.signs[j] < 0 and not values.any()  # nothing is better than a cost of 0
        found[:, j] = len(values) and not free and np.ptp(values) <= 1e-6 * np.abs(values).max()
    return found


def _handed_over(result: Result, findings: Sequence[Finding]) -> list[str]:
    """Seeds whose policy is that of an earlier stage."""
    seeds = list(dict.fromkeys(one.seed for one in findings if one.test == "same policy"))
    if not seeds:
        return []
    return [
        f"The policy that is handed over is one for the first objectives alone ({_seeds(result, seeds)}): none that "
        "served all of them kept what comes first."
    ]


def _beyond_bounds(result: Result, played: Sequence[Episodes], scale: Scale) -> list[str]:
    """Returns that the environment says are impossible."""
    sentences = []
    for j, (name, known) in enumerate(zip(result.run.order.names, scale.known, strict=False)):
        seen = [each.returns[..., j] for each in played if each.returns.shape[-1] > j]
        if known is not None and scale.known_of(j, seen) is None:
            sentences.append(f"Returns of {name!r} are beyond the `return_bounds` of the environment.")
    return sentences


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
