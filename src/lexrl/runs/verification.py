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
from lexrl.runs.statements import OTHERS, UNTRAINED, Episodes, Known, Measured, Scale, Statement
from lexrl.verdict import NAMES, Finding, RareEvents, Test, Verdict

FIRST = 2**29
"""The number of the first episode: neither those of an evaluation nor those that policies were chosen by."""
BATCH, BATCH_ON_HOST = 100, 10
"""Episodes between two looks; fewer where they are stepped from Python and would take too long."""
FIRST_BATCHES = 3
"""Batches before the first look, where they are small: fewer than 30 episodes decide nothing."""
SHARE_OF_FIRST = 0.5
"""Of the time, for these."""
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
    """0: it begins."""
    seconds: float
    limits: Limits
    undecided: int
    expected: float | None
    """Seconds that all episodes would take, by the speed of training; None where most of the time is compiling."""


class Sample(NamedTuple):
    """What was played, and what it says about each statement."""

    played: list[Episodes]
    """The policies that are judged, then the references."""
    untrained: Episodes
    """A batch of the policies that training began with."""
    scale: Scale
    statements: list[Statement]
    decisions: np.ndarray
    granted: list[Any]
    """The tolerance of each seed's algorithm."""
    episodes: int
    """That may be played."""

    @property
    def alpha(self) -> float:
        """The error of each statement: those that need no sample cannot be wrong."""
        return verify.share_alpha(sum(not one.same for one in self.statements))

    def measure(self, statement: Statement) -> Measured:
        return statements.measure(statement, self.played, self.scale, self.granted[statement.seed])

    def num_open(self) -> int:
        """Statements that are to be decided; whether the best possible is attained, where nothing else is known."""
        tested = {(one.seed, one.objective) for one in self.statements if one.best is None and not one.same}
        return sum(
            bool(decision == verify.UNDECIDED) and (one.best is None or (one.seed, one.objective) not in tested)
            for one, decision in zip(self.statements, self.decisions, strict=True)
        )

    def is_tested(self) -> bool:
        return any(not one.same for one in self.statements)


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
    started = time.monotonic()
    for_exact = limits.seconds * SHARE_OF_EXACT
    exact = None if order.limited else references.exact_returns(result, for_exact)
    spent = time.monotonic() - started

    def left() -> Limits:
        return limits._replace(seconds=max(limits.seconds - (time.monotonic() - started), 0.0))

    if exact is not None:
        few = left()._replace(episodes=min(limits.episodes, EVENT_EPISODES))
        sample = play(result, [], few, watch, across=False)
        findings = _exact_findings(result, exact, sample.scale)
        about, needed = ("Reference: the exact optimum.", "Computed, not sampled (discounted, infinite horizon)."), None
    else:
        known, for_episodes = _needed_references(result), left()
        known += retrain() if retrain else []
        sample = play(result, known, for_episodes, watch, across=not isinstance(result.run.env, PerSeed))
        findings = _sampled_findings(result, sample)
        about, needed = _about(sample, known, findings, order.limits()), _needed(findings)
        if spent >= for_exact > 0:
            about = (f"{about[0]} The exact optimum was not found within {for_exact:.3g} s.", about[1])
    judged = sample.played[0]
    shown = symptoms.find(result, findings, sample.played, sample.untrained, sample.scale)
    return Verdict(
        seeds=result.run.seeds,
        objectives=order.names,
        findings=tuple(findings),
        references=about[0],
        method=about[1],
        episodes=judged.returns.shape[1],
        seconds=time.monotonic() - started,
        rare_events=tuple(_rare_events(result, judged)),
        symptoms=tuple(shown.sentences),
        weak=shown.weak,
        forgotten=shown.forgotten,
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
    order = result.run.order
    players = [references.player(result), *(one.play for one in known)]
    pace = _seconds_per_episode(result, len(players) + 1)
    first, batch = _batches(pace, limits)
    started, played, sample = time.monotonic(), [], None
    see = (lambda _: None) if watch is None else watch
    see(Look(0, 0.0, limits, 0, None if pace is None else pace * limits.episodes))
    while True:
        n, begun = (played[0].returns.shape[1] if played else 0), time.monotonic()
        count = batch if played else first
        new = [Episodes.of(one(FIRST + n, count), order) for one in players]
        played = [old.plus(more) for old, more in zip(played, new, strict=True)] if played else new
        if sample is None:
            beginning = references.untrained(result)
            sample = _begin(result, known, played, Episodes.of(beginning(FIRST, first), order), across, limits.episodes)
            played = sample.played
            players += [beginning] * (len(played) - len(players))
        sample = _look(sample._replace(played=played))
        n, now = n + count, time.monotonic()
        # How long a batch takes is known from the second one on: the first may have compiled.
        seconds, following = now - started, 0.0 if n == first else now - begun
        undecided = sample.num_open()
        see(Look(n, seconds, limits, undecided, seconds / n * limits.episodes))
        open_ = undecided > 0 or (not sample.is_tested() and n < EVENT_EPISODES)
        if not open_ or n + batch > limits.episodes or seconds + following >= limits.seconds:
            return sample


def _seconds_per_episode(result: Result, num_policies: int) -> float | None:
    """What an episode of all policies of all seeds takes where the environment is stepped from Python, by the speed of
    training; None where it is compiled."""
    if not on_host(result.run.env):
        return None
    lengths = result.metrics.get("episode_length", np.array(np.nan))
    known = lengths[np.isfinite(lengths)]
    length = float(known[-len(result) :].mean()) if len(known) else float(result.run.env.spec.max_episode_steps)
    return num_policies * length * result.seconds / result.run.total_timesteps


def _batches(pace: float | None, limits: Limits) -> tuple[int, int]:
    """Episodes before the first look, and between two others."""
    if pace is None:
        return min(BATCH, limits.episodes), min(BATCH, limits.episodes)
    affordable = SHARE_OF_FIRST * limits.seconds / max(pace, 1e-9)
    first = min(max(int(min(FIRST_BATCHES * BATCH_ON_HOST, affordable)), 2), limits.episodes)
    return first, max(first // FIRST_BATCHES, 1)


def _begin(
    result: Result,
    known: Sequence[Reference],
    played: list[Episodes],
    untrained: Episodes,
    across: bool,
    episodes: int,
) -> Sample:
    """The statements, and the units of the objectives, from the first batch."""
    order = result.run.order
    gamma = references.gamma_of(result.policies[0].algorithm)
    ranges = statements.return_ranges(result.run.env, order)
    scale = statements.make_scale(result.metrics["episode_return"], played, untrained, gamma, ranges)
    listed = statements.make_statements(played, [Known(*one[:2], one.same) for one in known], order, across)
    if across or known:  # where returns are not computed
        worse = statements.against_untrained(played, untrained, order, scale, len(played))
        listed = [*listed, *worse, *statements.against_best(played, order, scale)]
        played = [*played, *([untrained] if worse else [])]
    granted = statements.tolerances([policy.algorithm for policy in result.policies])
    return Sample(played, untrained, scale, listed, np.zeros(len(listed), int), granted, episodes)


def _look(sample: Sample) -> Sample:
    """Test every statement that is open."""
    decisions = sample.decisions.copy()
    for i in np.flatnonzero(decisions == verify.UNDECIDED):
        statement = sample.statements[i]
        if statement.same:
            decisions[i] = verify.KEPT
        else:
            decisions[i] = sample.measure(statement).decide(sample.alpha, sample.episodes)
    # Who attains what is possible is at most the tolerance behind every reference.
    best = {
        (one.seed, one.objective)
        for one, decision in zip(sample.statements, decisions, strict=True)
        if one.best is not None and decision == verify.KEPT
    }
    implied = np.array([(one.seed, one.objective) in best for one in sample.statements], bool)
    return sample._replace(decisions=np.where(implied & (decisions == verify.UNDECIDED), verify.KEPT, decisions))


def _sampled_findings(result: Result, sample: Sample) -> list[Finding]:
    order, found = result.run.order, []
    for statement, decision in zip(sample.statements, sample.decisions, strict=True):
        measured = sample.measure(statement)
        if len(measured.value) == 0:  # there was no time for a second batch
            continue
        if statement.best is not None and decision != verify.KEPT:  # which need not be possible with this environment
            continue
        sign = float(order.signs[statement.objective])
        (value, value_error), (reference, error) = (_mean(sign * x) for x in (measured.value, measured.reference))
        bounds = [0.0] * 3 if statement.same else [float(x) for x in measured.bounds(sample.alpha, sample.episodes)]
        name = statement.name
        if statement.other != statement.seed and statement.limit is None and statement.best is None:
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
                test=_test(sample, statement, measured),
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
                    "exact",
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


def _needed_references(result: Result) -> list[Reference]:
    """The algorithm's own, but for objectives whose limits say what is enough."""
    limits = result.run.order.limits()
    if np.isfinite(limits[:-1]).all():
        return []
    return [one for one in references.own_references(result) if not np.isfinite(limits[one.num_objectives - 1])]


def _test(sample: Sample, statement: Statement, measured: Measured) -> Test:
    """How a statement was decided."""
    if statement.same:
        return "same policy"
    return "betting" if measured.by_betting(sample.alpha, sample.episodes) else "asymptotic"


def _needed(findings: Sequence[Finding]) -> int | None:
    """Episodes that would decide the statement that needs most; None if that cannot be said."""
    each = [
        verify.episodes_needed(verify.Bounds(*map(np.array, one[8:11])), one.tolerance, one.episodes)
        for one in findings
        if one.status == "undecided"
    ]
    return None if not each or None in each else max(one for one in each if one is not None)


def _about(
    sample: Sample, known: Sequence[Reference], findings: Sequence[Finding], limits: np.ndarray
) -> tuple[str, str]:
    """What policies were compared with, and how it was decided."""
    names = list(dict.fromkeys(one.name for one in sample.statements))
    listed = f"Compared with: {'; '.join(names)}." if names else "There is nothing to compare with."
    if any(one.limit is None and one.best is None for one in sample.statements):
        listed += " These are the best that are known, not the best there may be."
    if not known and np.isinf(limits[:-1]).any():
        listed += " This algorithm keeps no policies for the first objectives alone."
    count = sum(not one.same for one in sample.statements)
    played = f"{sample.played[0].returns.shape[1]:,} fresh episodes"
    if count == 0:
        return listed, f"{played} were played."
    used = [test for test in ("betting", "asymptotic") if any(one.test == test for one in findings)]
    what = "differences of discounted returns" if any(one.limit is None for one in sample.statements) else "returns"
    how = (
        f"{played}, the same for all policies of a seed; {what}, {' and '.join(used) or 'asymptotic'} confidence "
        f"sequence{'s' if len(used) > 1 else ''}, 95 % for all statements together ({count})."
    )
    return listed, how


def _has_own(findings: Sequence[Finding]) -> bool:
    """Is there a reference besides other seeds?"""
    return any(not one.reference.startswith((OTHERS, UNTRAINED)) for one in findings)


def _mean(values: np.ndarray) -> tuple[float, float]:
    """The mean and half of its 95 % interval."""
    n = len(values)
    if n < 2:
        return (float(values.mean()) if n else float("nan")), float("nan")
    return float(values.mean()) + 0.0, float(1.96 * values.std(ddof=1) / np.sqrt(n))
