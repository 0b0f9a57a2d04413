"""What the training of a run shows by itself, and what to try."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl.dual_ascent import DualAscent
from lexrl.multipliers import Multipliers
from lexrl.runs.references import OWN
from lexrl.runs.result import Result
from lexrl.runs.statements import BEST, LIMIT, MARGIN, MARGIN_OF_SEEDS, OTHERS, Episodes, Scale
from lexrl.types import HasMultipliers, HasPrefixes, HasTolerance
from lexrl.verdict import Finding

NOTABLE = 0.05
"""Share of an objective's range: smaller differences in training are not mentioned."""
STILL_IMPROVING = "was still improving when training ended"
UNFINISHED = "was still improving when its stage ended"
SURPASSED = "ended better than the policy it was compared with, which had not been learned to the end"
FORGOTTEN = "was much better in the middle of training than it is now: it was learned, and given up or forgotten"
NOT_BETTER = "is no better than before training: it was not learned, or nothing can be done about it"
HIDDEN = "is worse per episode than its reference, which the discounted return that was optimized hides"
APART = 0.25
"""Share of the range by which training and evaluation differ enough to be said."""
LITTLE = 0.25
"""Share of the range that somebody may be ready to lose."""
FEWEST_POINTS = 6
"""Of a curve that may show a trend."""


class Symptoms(NamedTuple):
    """What training shows."""

    sentences: list[str]
    weak: tuple[int, ...]
    """Seeds that were compared with a policy that had not been learned to the end: to keep it shows little."""
    forgotten: tuple[int, ...]
    """Seeds that had much more of an objective in the middle of training."""


def find(
    result: Result, findings: Sequence[Finding], played: Sequence[Episodes], untrained: Episodes, scale: Scale
) -> Symptoms:
    """Everything that training shows; `played` are the policies and their references."""
    sentences = list(result.faults.values())
    if no_episode := _no_episode(result):
        return Symptoms([*sentences, no_episode], (), ())
    surpassed, unfinished = _surpassed(result, findings), _unfinished(result, scale)
    improving = _improving(result, scale) & ~_at_limit(result, findings)
    forgotten = _forgotten(result, played[0], scale)
    sentences += [
        *_not_converged(result),
        *_multipliers(result),
        *_unattained(result, played, scale),
        *_unfinished_stages(result),
        *_by_objective(result, unfinished, UNFINISHED),
        *_by_objective(result, improving, STILL_IMPROVING),
        *_by_objective(result, surpassed, SURPASSED),
        *_by_objective(result, forgotten, FORGOTTEN),
        *_by_objective(result, _not_better(result, played[0], untrained, scale), NOT_BETTER),
        *_by_objective(result, _hidden(result, findings, scale), HIDDEN),
        *_handed_over(result, findings),
        *_beyond_bounds(result, [*played, untrained], scale),
        *_disagreement(result, played[0], scale),
    ]
    by_own = [[_is_own(findings, seed, name) for name in result.run.order.names] for seed in result.run.seeds]
    poor = ((unfinished | improving | surpassed) & np.array(by_own))[:, :-1].any(axis=1)
    seeds = np.array(result.run.seeds)
    return Symptoms(sentences, tuple(seeds[poor].tolist()), tuple(seeds[forgotten.any(axis=1)].tolist()))


def advise(
    result: Result, findings: Sequence[Finding], found: Symptoms, has_references: bool, needed: int | None
) -> list[str]:
    """What to try where something is violated, open or symptomatic, the most promising first."""
    violated = [one for one in findings if one.status == "violated"]
    tries = _where_violated(result, violated, findings) if violated else []
    said = [sentence for sentence in found.sentences if not sentence.startswith(tuple(result.faults.values()))]
    more = f"more steps, as in `--total-timesteps {3 * result.run.total_timesteps:g}`."
    if not violated and any(
        word in one for one in said for word in (STILL_IMPROVING, UNFINISHED, SURPASSED, FORGOTTEN, ALONE)
    ):
        tries.append(more)
    if any(HIDDEN in one for one in said):
        tries.append("a discount nearer to 1, as in `--gamma 0.999`: what comes late in an episode hardly counted.")
    if _no_episode(result):
        tries.insert(0, "a shorter `max_episode_steps`, or more steps: no episode ended in training.")
    if any(one.status == "undecided" for one in findings):
        amount = f" {needed}" if needed else " 10000"
        tries.append(f"more episodes: `lexrl verify RUN --episodes{amount}`.")
    if not has_references:
        tries.append("`lexrl verify RUN --retrain`: it trains references, for this algorithm keeps none.")
    elif found.weak or found.forgotten or any(NOT_BETTER in one for one in said):
        tries.append("`lexrl verify RUN --retrain`: it trains references for as long as the whole run.")
    return tries


def _where_violated(result: Result, violated: Sequence[Finding], findings: Sequence[Finding]) -> list[str]:
    """What to try for the most important objective that is violated."""
    names = result.run.order.names
    first = min(violated, key=lambda one: names.index(one.objective))
    own = [one for one in violated if one.objective == first.objective]
    given_up = any(one.reference.startswith(OWN) for one in own)
    why = "was given up for what is less important" if given_up else "was not learned well enough"
    more = f"{3 * result.run.total_timesteps:g}"
    tries = [f"more steps, as in `--total-timesteps {more}`: {first.objective!r} {why}."]
    others = [one for one in own if one.reference.startswith(OTHERS)]
    broken = {one.seed for one in violated}
    if others and (better := [seed for seed in result.run.seeds if seed not in broken]):
        listed = ", ".join(map(str, better[:5]))
        tries.append(f"the policies of the better seeds ({listed}): this is luck of the seed, not of the order.")
    if isinstance(result.policies[0].algorithm, HasTolerance):
        loss = max(one.slack_used for one in own)
        if loss <= LITTLE * max(map(_range, own)):
            wider = f"'{_with_tolerance(result, first.objective, 1.2 * loss)}'"
            tries.append(f"a tolerance, if a loss of {loss:.2g} (discounted) is little to you: {wider}.")
    return [*tries, _another(result)]


def _range(one: Finding) -> float:
    """The range of the objective of a finding, of which the margin is a share; 0 for a limit, which has none."""
    return (one.tolerance - one.slack) / (MARGIN_OF_SEEDS if one.reference.startswith(OTHERS) else MARGIN)


def _with_tolerance(result: Result, name: str, tolerance: float) -> str:
    """The order with a tolerance for one objective."""
    changed = [
        one._replace(tolerance=f"{tolerance:.2g}") if one.name == name else one for one in result.run.order.objectives
    ]
    return " > ".join(map(str, changed))


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


def _improving(result: Result, scale: Scale) -> np.ndarray:
    """`[seeds, M]`: objectives that still rose when training ended."""
    curve = result.metrics["episode_return"] * np.asarray(result.run.order.signs)
    return np.array(
        [[_rises(curve[:, s, j], size) for j, size in enumerate(scale.undiscounted)] for s in _each(result)]
    )


def _unfinished(result: Result, scale: Scale) -> np.ndarray:
    """`[seeds, M]`: objectives that still rose when their own stage ended, but for the last one."""
    curve, stage = result.metrics["episode_return"] * np.asarray(result.run.order.signs), result.metrics.get("stage")
    found = np.zeros(curve.shape[1:], bool)
    if stage is None:
        return found
    stage = stage.reshape(*curve.shape[:2], -1).max(axis=-1)
    for s in _each(result):
        for j, size in enumerate(scale.undiscounted[:-1].tolist()):
            found[s, j] = _rises(curve[stage[:, s] == j + 1, s, j], size)
    return found


def _rises(curve: np.ndarray, size: float) -> bool:
    """Is the last fifth of a curve better than what was before it, notably and beyond its noise?"""
    curve = curve[np.isfinite(curve)]
    n = len(curve)
    if n < FEWEST_POINTS or not size > 0:
        return False
    late, before = curve[-max(n // 5, 2) :], curve[n // 2 : max(n // 2 + 2, round(0.7 * n))]
    noise = np.diff(curve).std() / np.sqrt(2)  # differences of neighbors show no trend
    error = noise * np.sqrt(1 / len(late) + 1 / len(before))
    return bool(late.mean() - before.mean() > max(NOTABLE * size, 2.0 * error))


def _forgotten(result: Result, played: Episodes, scale: Scale) -> np.ndarray:
    """`[seeds, M]`: objectives but the last, and those with a limit, that were much better for a tenth of training."""
    curve = result.metrics["episode_return"] * np.asarray(result.run.order.signs)
    width = max(len(curve) // 10, 3)
    if len(curve) < width:
        return np.zeros(curve.shape[1:], bool)
    with np.errstate(invalid="ignore"):
        best = np.lib.stride_tricks.sliding_window_view(curve, width, axis=0).mean(axis=-1)
        best = np.where(np.isfinite(best), best, -np.inf).max(axis=0)
        found = best - played.returns.mean(axis=1) > APART * scale.undiscounted
    found[:, -1] = False
    return found & (scale.undiscounted > 0) & ~np.isfinite(result.run.order.limits())


def _at_limit(result: Result, findings: Sequence[Finding]) -> np.ndarray:
    """`[seeds, M]`: objectives that have reached their limits: more is of no use."""
    kept = {(one.seed, one.objective) for one in findings if one.reference == LIMIT and one.status == "kept"}
    return np.array([[(seed, name) in kept for name in result.run.order.names] for seed in result.run.seeds])


def _is_own(findings: Sequence[Finding], seed: int, objective: str) -> bool:
    """Does what is known about an objective of a seed go back to its own policies? Not if it is as good as possible."""
    known = [one.reference for one in findings if (one.seed, one.objective) == (seed, objective)]
    return BEST not in known and any(one.startswith(OWN) for one in known)


def _surpassed(result: Result, findings: Sequence[Finding]) -> np.ndarray:
    """References that the policies themselves surpass by more than the tolerance: to keep them shows little."""
    better = {
        (one.seed, one.objective) for one in findings if one.low > one.tolerance and one.reference.startswith(OWN)
    }
    return np.array([[(seed, name) in better for name in result.run.order.names] for seed in result.run.seeds])


def _not_better(result: Result, played: Episodes, untrained: Episodes, scale: Scale) -> np.ndarray:
    """`[seeds, M]`: objectives but the last that are not notably better than what training began with, although
    single episodes are; a cost of 0 cannot be better."""
    gain = played.returns.mean(axis=1) - untrained.returns.mean(axis=1)
    perfect = (played.returns == 0).all(axis=1) & (np.asarray(result.run.order.signs) < 0)
    found = (gain < NOTABLE * scale.undiscounted) & ~perfect & (scale.undiscounted > 0)
    found[:, -1] = False
    return found & np.isfinite(gain) & ~np.isfinite(result.run.order.limits())


def _hidden(result: Result, findings: Sequence[Finding], scale: Scale) -> np.ndarray:
    """`[seeds, M]`: objectives that keep their discounted return, but not what one counts."""
    order = result.run.order
    found = np.zeros((len(result), len(order.names)), bool)
    for one in findings:
        j = order.names.index(one.objective)
        loss = order.signs[j] * (one.reference_value - one.value)
        notable = loss > max(NOTABLE * scale.undiscounted[j] + one.slack, one.value_error + one.reference_error)
        sampled = one.episodes > 0 and one.reference != LIMIT
        found[result.run.seeds.index(one.seed), j] |= bool(sampled and one.status == "kept" and notable)
    return found


def _handed_over(result: Result, findings: Sequence[Finding]) -> list[str]:
    """Seeds whose policy is that of an earlier stage."""
    seeds = list(dict.fromkeys(one.seed for one in findings if one.test == "same policy"))
    return [f"{ALONE} ({_seeds(result, seeds)}): none that served all of them kept what comes first."] if seeds else []


ALONE = "The policy that is handed over is one for the first objectives alone"


def _beyond_bounds(result: Result, played: Sequence[Episodes], scale: Scale) -> list[str]:
    """Returns that the environment says are impossible."""
    sentences = []
    for j, (name, known) in enumerate(zip(result.run.order.names, scale.known, strict=False)):
        seen = [each.returns[..., j] for each in played if each.returns.shape[-1] > j]
        if known is not None and scale.known_of(j, seen) is None:
            sentences.append(f"Returns of {name!r} are beyond the `return_bounds` of the environment.")
    return sentences


def _each(result: Result) -> range:
    """The positions of the seeds."""
    return range(len(result))


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
