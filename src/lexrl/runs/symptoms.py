"""What the training of a run shows by itself."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl.dual_ascent import DualAscent
from lexrl.multipliers import Multipliers
from lexrl.runs import trends
from lexrl.runs.references import OWN
from lexrl.runs.result import Result
from lexrl.runs.scales import Episodes, Scale
from lexrl.runs.statements import BEST, LIMIT
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
    result: Result, findings: Sequence[Finding], played: Sequence[Episodes], untrained: Episodes, scale: Scale
) -> Symptoms:
    """Everything that training shows; `played` are the policies and their references."""
    sentences, seeds = list(result.faults.values()), np.array(result.run.seeds)
    stopped = tuple(seeds[list(result.faults)].tolist())
    if _no_episode(result):
        sentence = "No episode ended in training, so there are no returns to go by."
        return Symptoms([*sentences, sentence], {"stopped": stopped}, no_episode=True)
    surpassed, unfinished = _surpassed(result, findings), trends.unfinished(result, scale)
    improving = trends.improving(result, scale) & ~_at_limit(result, findings)
    granted, unmoved = _granted(result, findings, scale), _unmoved(result, findings, [*played, untrained])
    forgotten = trends.forgotten(result, played[0], scale, granted)
    hidden = _hidden(result, findings, scale) | _hidden_before(result, played[0], untrained, scale, granted)
    not_better = _not_better(result, played[0], untrained, scale, granted) & ~unmoved & ~hidden
    shown = {
        "was still improving when its stage ended": unfinished,
        "was still improving when training ended": improving,
        "ended better than the policy it was compared with, which had not been learned to the end": surpassed,
        "was much better in the middle of training than now: it was learned, and given up or forgotten": forgotten,
        "is no better than before training: it was not learned, or nothing can be done about it": not_better,
        "is the same in every episode of every policy: nothing was learned about it, or nothing can be": unmoved,
        "is worse per episode than what it was compared with, which the discount of what was optimized hides": hidden,
    }
    alone = _handed_over(result, findings)
    sentences += [
        *_not_converged(result),
        *_multipliers(result),
        *_unattained(result, played, scale),
        *_unfinished_stages(result),
        *(sentence for what, where in shown.items() for sentence in _by_objective(result, where, what)),
        *alone,
        *_beyond_bounds(result, [*played, untrained], scale),
        *_by_objective(result, trends.disagreeing(result, played[0], scale, granted), DISAGREES),
    ]
    short = unfinished | improving | surpassed
    weak = (short & _go_back_to_own(result, findings))[:, :-1]
    where = {"unmoved": unmoved, "hidden": hidden, "forgotten": forgotten, "weak": weak}
    return Symptoms(
        sentences,
        {"stopped": stopped} | {name: tuple(seeds[one.any(axis=1)].tolist()) for name, one in where.items()},
        too_short=bool((short | forgotten).any()) or bool(alone),
        not_better=bool((not_better | unmoved).any()),
    )


DISAGREES = (
    "is much worse in fresh episodes than at the end of training: the policy that is handed over is not the one that "
    "explored"
)


def _no_episode(result: Result) -> bool:
    ended = result.metrics.get("num_episodes")
    return ended is not None and not np.nansum(ended) > 0


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


def _at_limit(result: Result, findings: Sequence[Finding]) -> np.ndarray:
    """`[seeds, M]`: objectives that have reached their limits: more is of no use."""
    kept = {(one.seed, one.objective) for one in findings if one.reference == LIMIT and one.status == "kept"}
    return np.array([[(seed, name) in kept for name in result.run.order.names] for seed in result.run.seeds])


def _go_back_to_own(result: Result, findings: Sequence[Finding]) -> np.ndarray:
    """`[seeds, M]`: objectives of which what is known goes back to the seed's own policies, and is not as good as
    possible."""

    def is_own(seed: int, objective: str) -> bool:
        known = [one.reference for one in findings if (one.seed, one.objective) == (seed, objective)]
        return BEST not in known and any(one.startswith(OWN) for one in known)

    return np.array([[is_own(seed, name) for name in result.run.order.names] for seed in result.run.seeds])


def _surpassed(result: Result, findings: Sequence[Finding]) -> np.ndarray:
    """References that the policies themselves surpass by more than the tolerance: to keep them shows little."""
    better = {
        (one.seed, one.objective) for one in findings if one.low > one.tolerance and one.reference.startswith(OWN)
    }
    return np.array([[(seed, name) in better for name in result.run.order.names] for seed in result.run.seeds])


def _granted(result: Result, findings: Sequence[Finding], scale: Scale) -> np.ndarray:
    """`[seeds, M]`: the slack of each objective in undiscounted returns, as the same share of the range."""
    names, found = result.run.order.names, np.zeros((len(result), len(result.run.order.names)))
    for one in findings:
        s, j = result.run.seeds.index(one.seed), names.index(one.objective)
        found[s, j] = max(found[s, j], one.slack * _undiscounted(scale, j))
    return found


def _undiscounted(scale: Scale, objective: int) -> float:
    """How much larger undiscounted returns are."""
    return float(scale.undiscounted[objective] / max(float(scale.discounted[objective]), 1e-30))


def _not_better(result: Result, played: Episodes, untrained: Episodes, scale: Scale, granted: np.ndarray) -> np.ndarray:
    """`[seeds, M]`: objectives but the last that are not notably better than what training began with, although
    single episodes are; a cost of 0 cannot be better, and slack may have been used."""
    gain = played.returns.mean(axis=1) - untrained.returns.mean(axis=1)
    perfect = (played.returns == 0).all(axis=1) & (np.asarray(result.run.order.signs) < 0)
    found = (gain + granted < NOTABLE * scale.undiscounted) & ~perfect & (scale.undiscounted > 0)
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


def _unmoved(result: Result, findings: Sequence[Finding], played: Sequence[Episodes]) -> np.ndarray:
    """`[seeds, M]`: objectives but the last with one return in all episodes of all policies, in training as well; but
    for those of which it is known that there is no better one."""
    names = result.run.order.names
    found = np.zeros((len(result), len(names)), bool)
    perfect = {(one.seed, one.objective) for one in findings if one.reference in (BEST, LIMIT) or one.test == "exact"}
    for j in range(len(names) - 1):
        curve = np.asarray(result.metrics["episode_return"])[..., j] * result.run.order.signs[j]
        seen = [curve.ravel(), *(one.returns[..., j].ravel() for one in played if one.returns.shape[-1] > j)]
        values = np.concatenate(seen)
        values = values[np.isfinite(values)]
        free = result.run.order.signs[j] < 0 and not values.any()  # nothing is better than a cost of 0
        if len(values) and not free and np.ptp(values) <= 1e-6 * np.abs(values).max():
            found[:, j] = [(seed, names[j]) not in perfect for seed in result.run.seeds]
    return found


def _hidden(result: Result, findings: Sequence[Finding], scale: Scale) -> np.ndarray:
    """`[seeds, M]`: objectives that keep their discounted return, but not what one counts."""
    order = result.run.order
    found = np.zeros((len(result), len(order.names)), bool)
    for one in findings:
        j = order.names.index(one.objective)
        loss, spread = order.signs[j] * (one.reference_value - one.value), one.value_error + one.reference_error
        # The tolerance is one of discounted returns; undiscounted, the same share of the range is granted.
        granted = one.tolerance * _undiscounted(scale, j)
        sampled = one.episodes > 0 and one.reference != LIMIT
        found[result.run.seeds.index(one.seed), j] |= bool(
            sampled and one.status == "kept" and loss > max(granted, spread)
        )
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
