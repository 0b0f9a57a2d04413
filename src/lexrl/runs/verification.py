"""The verdict on a result: what its policies are compared with, and what fresh episodes say about that.

On finite environments nothing is sampled: policies and optimum are computed exactly, and episodes only show how rare
events are.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np

from lexrl.envs.per_seed import PerSeed
from lexrl.runs import advice, findings, references, symptoms
from lexrl.runs.references import Reference
from lexrl.runs.result import Result
from lexrl.runs.sampling import EVENT_EPISODES, Limits, Look, play
from lexrl.runs.statements import OTHERS, UNTRAINED
from lexrl.verdict import Finding, Verdict

SECONDS, SHARE = 10.0, 0.1
"""The verdict at the end of training takes at most ten seconds or a tenth of the training time, whichever is more."""
SHARE_OF_EXACT = 0.5
"""Of that time, for the exact optimum of a finite environment; if it takes longer, the rest is for episodes."""


def after_training(result: Result, watch: Callable[[Look], None] | None = None) -> Verdict | None:
    """The verdict that a run ends with; None if the run does not ask for one."""
    if result.run.verify_episodes == 0:
        return None
    limits = Limits(result.run.verify_episodes, max(SECONDS, SHARE * result.seconds))
    return verify_result(result, limits, watch=watch)


def verify_result(
    result: Result,
    limits: Limits,
    retrain: Callable[[], Sequence[Reference]] | None = None,
    watch: Callable[[Look], None] | None = None,
) -> Verdict | None:
    """Was the priority kept? None for one objective without a limit, where there is no priority.

    `retrain` makes further references (`references.retrained_references`), where the exact optimum is not known.
    """
    order = result.run.order
    if len(order.objectives) == 1 and not order.limited:
        return None
    started, cut_off = time.monotonic(), {}
    for_exact = limits.seconds * SHARE_OF_EXACT
    exact = None if order.limited else references.exact_returns(result, for_exact)
    spent = time.monotonic() - started

    def left() -> Limits:
        return limits._replace(seconds=max(limits.seconds - (time.monotonic() - started), 0.0))

    if exact is not None:
        few = left()._replace(episodes=min(limits.episodes, EVENT_EPISODES))
        sample = play(result, [], few, watch, across=False)
        found = findings.exact_findings(result, exact, sample.scale)
        about, needed = ("Reference: the exact optimum.", "Computed, not sampled (discounted, infinite horizon)."), None
    else:
        known, for_episodes = _needed_references(result), left()
        known += retrain() if retrain else []
        sample = play(result, known, for_episodes, watch, across=not isinstance(result.run.env, PerSeed))
        found = findings.sampled_findings(result, sample)
        cut_off = {"cut": tuple(np.array(result.run.seeds)[sample.cut_off].tolist())}
        about, needed = findings.about(sample, known, found, order.limits()), findings.needed(found)
        if spent >= for_exact > 0:
            about = (f"{about[0]} The exact optimum was not found within {for_exact:.3g} s.", about[1])
    shown = symptoms.find(result, found, sample.played, sample.untrained, sample.scale)
    return Verdict(
        seeds=result.run.seeds,
        objectives=order.names,
        findings=tuple(found),
        references=about[0],
        method=about[1],
        episodes=sample.num_played,
        seconds=time.monotonic() - started,
        rare_events=tuple(findings.rare_events(result, sample)),
        symptoms=tuple(shown.sentences),
        reservations=shown.reservations | cut_off,
        advice=tuple(advice.advise(result, found, shown, _has_own(found), needed)),
    )


def _needed_references(result: Result) -> list[Reference]:
    """The algorithm's own, but for objectives whose limits say what is enough."""
    limits = result.run.order.limits()
    if np.isfinite(limits[:-1]).all():
        return []
    return [one for one in references.own_references(result) if not np.isfinite(limits[one.num_objectives - 1])]


def _has_own(found: Sequence[Finding]) -> bool:
    """Is there a reference besides other seeds?"""
    return any(not one.reference.startswith((OTHERS, UNTRAINED)) for one in found)
