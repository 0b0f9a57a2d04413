"""The verdict on a result: fresh episodes of its policies and of their references, until everything is decided.

All policies of a seed play the same episodes. After every batch each open statement is tested again (`lexrl.verify`);
playing stops when all are decided, or at a limit of episodes or of time. On finite environments nothing is sampled:
policies and optimum are computed exactly, and episodes only show how rare events are.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl import verify
from lexrl.envs.per_seed import PerSeed
from lexrl.runs import references, statements, symptoms
from lexrl.runs.references import Reference
from lexrl.runs.result import Result
from lexrl.runs.run import on_host
from lexrl.runs.statements import Episodes, Measured, Scale, Statement
from lexrl.verdict import NAMES, Finding, RareEvents, Verdict

FIRST = 2**29
"""The number of the first episode: neither those of an evaluation nor those that policies were chosen by."""
BATCH, BATCH_ON_HOST = 100, 10
"""Episodes between two looks."""
EVENT_EPISODES = 300
"""Of each policy, where returns are known exactly and only events are counted."""
SECONDS, SHARE = 10.0, 0.1
"""The verdict at the end of training takes at most ten seconds or a tenth of the training time, whichever is more."""
SHARE_OF_EXACT = 0.5
"""Of that time, for the exact optimum of a finite environment; if it takes longer, the rest is for episodes."""


class Limits(NamedTuple):
    """When to stop although something is undecided."""

    episodes: int
    """Of each policy."""
    seconds: float = float("inf")


class Look(NamedTuple):
    """How far a verification is."""

    episodes: int
    seconds: float
    limits: Limits
    undecided: int


class Sample(NamedTuple):
    """What was played, and what it says about each statement."""

    played: list[Episodes]
    """The policies that are judged, then the references."""
    scale: Scale
    statements: list[Statement]
    measured: list[Measured]
    decisions: np.ndarray


def after_training(result: Result, watch: Callable[[Look], None] | None = None) -> Verdict | None:
    """The verdict that a run ends with; None if the run does not ask for one."""
    if result.run.verify_episodes == 0:
        return None
    limits = Limits(result.run.verify_episodes, max(SECONDS, SHARE * result.seconds))
    return verify_result(result, limits, watch=watch)


def verify_result(
    result: Result,
    limits: Limits,
    trained: Sequence[Reference] = (),
    watch: Callable[[Look], None] | None = None,
) -> Verdict | None:
    """Was the priority kept? None for one objective without a limit, where there is no priority.

    `trained` are further references (`references.retrained_references`).
    """
    order = result.run.order
    if len(order.objectives) == 1 and not order.limited:
        return None
    started = time.monotonic()
    for_exact = limits.seconds * SHARE_OF_EXACT
    exact = None if trained or order.limited else references.exact_returns(result, for_exact)
    spent = time.monotonic() - started
    limits = limits._replace(seconds=max(limits.seconds - spent, 0.0))
    if exact is not None:
        sample = play(result, [], limits._replace(episodes=min(limits.episodes, EVENT_EPISODES)), watch, across=False)
        findings = _exact_findings(result, exact, sample.scale)
        about, needed = ("Reference: the exact optimum.", "Computed, not sampled (discounted, infinite horizon)."), None
    else:
        known = [*references.own_references(result), *trained]
        sample = play(result, known, limits, watch, across=not isinstance(result.run.env, PerSeed))
        findings, needed = _sampled_findings(result, sample), _needed(sample)
        about = _about(sample, known)
        if spent >= for_exact > 0:
            about = (f"{about[0]} The exact optimum was not found within {for_exact:.3g} s.", about[1])
    judged = sample.played[0]
    shown = symptoms.find(result, findings, sample.played, sample.scale)
    return Verdict(
        seeds=result.run.seeds,
        objectives=order.names,
        findings=tuple(findings),
        references=about[0],
        method=about[1],
        episodes=judged.returns.shape[1],
        seconds=time.monotonic() - started,
        rare_events=tuple(_rare_events(result, judged)),
        symptoms=tuple(shown),
        advice=tuple(symptoms.advise(result, findings, shown, _has_own(findings), needed)),
    )


def play(
    result: Result,
    known: Sequence[Reference],
    limits: Limits,
    watch: Callable[[Look], None] | None,
    *,
    across: bool,
) -> Sample:
    """Play batches until every statement is decided or a limit is reached."""
    order, algorithms = result.run.order, [policy.algorithm for policy in result.policies]
    players = [references.player(result), *(one.play for one in known)]
    batch = min(BATCH_ON_HOST if on_host(result.run.env) else BATCH, limits.episodes)
    started, played, sample = time.monotonic(), [], None
    granted = statements.tolerances(algorithms)
    while True:
        n, begun = (played[0].returns.shape[1] if played else 0), time.monotonic()
        new = [Episodes.of(one(FIRST + n, batch), order) for one in players]
        played = [old.plus(more) for old, more in zip(played, new, strict=True)] if played else new
        if sample is None:
            sample = _begin(result, known, played, across)
        sample = _look(sample._replace(played=played), granted)
        n, now = n + batch, time.monotonic()
        # How long a batch takes is known from the second one on: the first may have compiled.
        seconds, following = now - started, 0.0 if n == batch else now - begun
        undecided = int((sample.decisions == verify.UNDECIDED).sum())
        if watch is not None:
            watch(Look(n, seconds, limits, undecided))
        open_ = undecided > 0 or (not sample.statements and n < EVENT_EPISODES)
        if not open_ or n + batch > limits.episodes or seconds + following >= limits.seconds:
            return sample


def _begin(result: Result, known: Sequence[Reference], played: list[Episodes], across: bool) -> Sample:
    """The statements, and the units of the objectives, from the first batch."""
    order = result.run.order
    names, serves = [one.name for one in known], [one.num_objectives for one in known]
    listed = statements.make_statements(played, serves, names, order, across)
    untrained = Episodes.of(references.untrained(result)(FIRST, played[0].returns.shape[1]), order)
    gamma = references.gamma_of(result.policies[0].algorithm)
    scale = statements.make_scale(result.metrics["episode_return"], played, untrained, gamma)
    return Sample(played, scale, listed, [], np.zeros(len(listed), int))


def _look(sample: Sample, granted: Sequence[Any]) -> Sample:
    """Test every statement that is open."""
    alpha = verify.share_alpha(len(sample.statements))
    measured = [
        statements.measure(one, sample.played, sample.scale, granted[one.seed], alpha) for one in sample.statements
    ]
    now = np.array([one.decision for one in measured], int)
    return sample._replace(measured=measured, decisions=verify.first_decision(sample.decisions, now))


def _sampled_findings(result: Result, sample: Sample) -> list[Finding]:
    order, found = result.run.order, []
    for statement, measured, decision in zip(sample.statements, sample.measured, sample.decisions, strict=True):
        if len(measured.value) == 0:  # there was no time for a second batch
            continue
        sign = float(order.signs[statement.objective])
        (value, value_error), (reference, error) = (_mean(sign * x) for x in (measured.value, measured.reference))
        bounds = [float(part) for part in measured.bounds]
        name = statement.name
        if statement.other != statement.seed and statement.limit is None:
            name = f"{name} (seed {result.run.seeds[statement.other]})"
        found.append(
            Finding(
                seed=result.run.seeds[statement.seed],
                objective=order.names[statement.objective],
                status=NAMES[int(decision)],
                reference=name,
                value=value,
                value_error=value_error,
                reference_value=reference,
                reference_error=error,
                difference=bounds[0],
                low=bounds[1],
                high=bounds[2],
                tolerance=measured.tolerance,
                slack=measured.slack,
                slack_used=max(0.0, -bounds[0]),
                episodes=len(measured.value),
            )
        )
    return found


def _exact_findings(result: Result, exact: references.Exact, scale: Scale) -> list[Finding]:
    order, found = result.run.order, []
    granted = statements.tolerances([policy.algorithm for policy in result.policies])
    for s, seed in enumerate(result.run.seeds):
        for j, name in enumerate(order.names[:-1]):
            gap, sign = float(exact.returns[s, j] - exact.best[j]), float(order.signs[j])
            # Tolerances at each state may add up: what the optimum of the order itself gives away is granted, too.
            slack = max(
                statements.slack_of(granted[s], exact.returns[s], j, exact.best[j]),
                float(exact.best[j] - exact.optimum[j]),
            )
            tolerance = slack + statements.MARGIN * float(scale.discounted[j]) + 1e-6 * abs(float(exact.best[j]))
            decision = verify.KEPT if gap >= -tolerance else verify.VIOLATED
            found.append(
                Finding(
                    seed,
                    name,
                    NAMES[decision],
                    "the exact optimum",
                    sign * float(exact.returns[s, j]) + 0.0,
                    0.0,
                    sign * float(exact.best[j]) + 0.0,
                    0.0,
                    gap,
                    gap,
                    gap,
                    tolerance,
                    slack,
                    max(0.0, -gap),
                    0,
                )
            )
    return found


def _rare_events(result: Result, played: Episodes) -> list[RareEvents]:
    """For each cost that is never negative and 0 in some episodes."""
    found = []
    for j, objective in enumerate(result.run.order.objectives):
        costs = -played.returns[..., j]
        if objective.sign > 0 or not (costs >= 0).all() or not (costs == 0).any():
            continue
        counts = (costs > 0).sum(axis=1)
        n = costs.shape[1]
        found += [
            RareEvents(seed, objective.name, int(count), n, verify.event_bound(int(count), n))
            for seed, count in zip(result.run.seeds, counts, strict=True)
        ]
    return found


def _needed(sample: Sample) -> int | None:
    """Episodes that would decide the statement that needs most; None if that cannot be said."""
    open_ = [m for m, d in zip(sample.measured, sample.decisions, strict=True) if d == verify.UNDECIDED]
    each = [verify.episodes_needed(one.bounds, one.tolerance, len(one.value)) for one in open_]
    return None if not each or None in each else max(one for one in each if one is not None)


def _about(sample: Sample, known: Sequence[Reference]) -> tuple[str, str]:
    """What policies were compared with, and how it was decided."""
    names = list(dict.fromkeys([one.name for one in known] + [one.name for one in sample.statements]))
    listed = f"Compared with: {'; '.join(names)}." if names else "There is nothing to compare with."
    if not known:
        listed += " This algorithm keeps no policies for the first objectives alone."
    how = (
        f"{sample.played[0].returns.shape[1]:,} fresh episodes, the same for all policies of a seed; differences of "
        "discounted returns, asymptotic confidence sequence, 95 % for all statements together "
        f"({len(sample.statements)})."
    )
    return listed, how


def _has_own(findings: Sequence[Finding]) -> bool:
    """Is there a reference besides other seeds?"""
    return any(not one.reference.startswith("the best of the other seeds") for one in findings)


def _mean(values: np.ndarray) -> tuple[float, float]:
    """The mean and half of its 95 % interval."""
    n = len(values)
    if n < 2:
        return (float(values.mean()) if n else float("nan")), float("nan")
    return float(values.mean()) + 0.0, float(1.96 * values.std(ddof=1) / np.sqrt(n))
