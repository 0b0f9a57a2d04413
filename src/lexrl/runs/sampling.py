"""Fresh episodes of policies and of their references, until every statement about them is decided.

All policies of a seed play the same episodes. After every batch each open statement is tested again (`lexrl.verify`);
playing stops when all are decided, or at a limit of episodes or of time. No more episodes begin than there is time for,
by how long those before have taken.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl import verify
from lexrl.loops import selection
from lexrl.runs import references, statements
from lexrl.runs.measuring import Measured, measure, tolerances
from lexrl.runs.references import Reference
from lexrl.runs.result import Result
from lexrl.runs.run import on_host
from lexrl.runs.scales import Episodes, Scale, make_scale, return_ranges
from lexrl.runs.statements import Known, Statement

FIRST = 2**29
"""The number of the first episode: neither those of an evaluation nor those that policies were chosen by."""
BATCH, BATCH_ON_HOST = 100, 10
"""Episodes between two looks; about as many where they are stepped from Python: some play side by side."""
FIRST_BATCHES = 3
"""Batches before the first look, where they are small: fewer than 30 episodes decide nothing."""
SHARE_OF_FIRST = 0.5
"""Of the time, at most, for these."""
PROBE = 10
"""Episodes that show how long one takes, where that is not known: their program may have to be compiled first."""
SHARE_OF_SAMPLE = 0.9
"""Of the time, at most, for all of them: what is said about them takes some, too."""
SHARE_OF_LEFT = 0.5
"""Of the time that is left, at most, for episodes that are going to take as long as those before."""
FEWEST = 2
"""Episodes that are played whatever they take."""
SHARE_OF_STEPS = 0.1
"""Of the steps of training, at most, for these: where time is limited, longer ones are cut off."""
EVENT_EPISODES = 300
"""Of each policy, where nothing is to be decided and only events are counted."""


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


class EpisodeTime(NamedTuple):
    """How long episodes take."""

    seconds: float | None
    """For one of every policy of every seed; None: not known."""
    side_by_side: int
    """Episodes that are best played together."""

    def portion(self, wanted: int, left: float) -> int:
        """How many of the episodes that are wanted should begin with so many seconds left; 0 if that makes no sense."""
        if self.seconds is None:
            return wanted if math.isinf(left) else min(wanted, self.side_by_side)
        affordable = SHARE_OF_LEFT * max(left, 0.0) / max(self.seconds, 1e-9)
        if affordable >= wanted:
            return wanted
        return int(affordable // self.side_by_side) * self.side_by_side

    def first_portion(self, wanted: int, left: float) -> int:
        """Likewise of the first ones: a few in any case."""
        few = int(SHARE_OF_LEFT * left / self.seconds) if self.seconds else 0
        return self.portion(wanted, left) or min(max(few, FEWEST), self.side_by_side, wanted)


class Sample(NamedTuple):
    """What was played, and what it says about each statement."""

    played: list[Episodes]
    """The policies that are judged, then the references."""
    untrained: Episodes
    """The first episodes of the policies that training began with."""
    scale: Scale
    statements: list[Statement]
    decisions: np.ndarray
    granted: list[Any]
    """The tolerance of each seed's algorithm."""
    episodes: int
    """That may be played."""
    longest: int | None = None
    """Steps after which episodes were cut off; None: they were not."""

    @property
    def cut_off(self) -> np.ndarray:
        """`[seeds]`: were episodes of the policies that are judged cut off?"""
        lengths = self.played[0].lengths
        return np.asarray((lengths >= (np.inf if self.longest is None else self.longest)).any(axis=1))

    @property
    def num_played(self) -> int:
        return self.played[0].returns.shape[1]

    @property
    def alpha(self) -> float:
        """The error of each statement: those that need no sample cannot be wrong."""
        return verify.share_alpha(sum(not one.same for one in self.statements))

    def measure(self, statement: Statement) -> Measured:
        return measure(statement, self.played, self.scale, self.granted[statement.seed])

    def with_more(self, new: Sequence[Episodes]) -> "Sample":
        """With more episodes of each policy, and what they decide."""
        played = [old.plus(more) for old, more in zip(self.played, new, strict=True)]
        return _decided(self._replace(played=played))

    def num_open(self) -> int:
        """Statements that are to be decided; whether the best possible is attained, where nothing else is known."""
        tested = {(one.seed, one.objective) for one in self.statements if one.best is None and not one.same}
        return sum(
            bool(decision == verify.UNDECIDED)
            and (one.best is None or (one.seed, one.objective) not in tested)
            and bool(np.isfinite(self.measure(one).differences).all())  # else more of them decide nothing
            for one, decision in zip(self.statements, self.decisions, strict=True)
        )

    def wants_more(self) -> bool:
        """Is something undecided, or has nothing been tested and would more episodes show how rare events are?"""
        is_tested = any(not one.same for one in self.statements)
        return self.num_open() > 0 or (not is_tested and self.num_played < EVENT_EPISODES)


def play(
    result: Result,
    known: Sequence[Reference],
    limits: Limits,
    watch: Callable[[Look], None] | None,
    *,
    across: bool,
) -> Sample:
    """Play batches until every statement is decided or a limit is reached.

    Args:
        result: of the run that is judged.
        known: what its policies are compared with.
        limits: of episodes and of time.
        watch: called with how far it is, before the first episode and after each batch.
        across: compare seeds with each other, too.
    """
    order, started = result.run.order, time.monotonic()
    each = [references.player(result), *(one.play for one in known), references.untrained(result)]
    longest = _longest(result, limits, len(each))
    players: list[_Player] = [
        lambda first, count, one=one: Episodes.of(one(first, count, longest), order) for one in each
    ]
    pace = _expected_pace(result, len(players))
    first, batch = _batches(result, limits.episodes)

    def see(n: int, undecided: int, expected: float | None) -> None:
        if watch is not None:
            watch(Look(n, time.monotonic() - started, limits, undecided, expected))

    see(0, 0, None if pace.seconds is None else pace.seconds * limits.episodes)
    played, pace = _play(players, 0, first, pace, started + SHARE_OF_FIRST * limits.seconds)
    sample = _begin(result, known, played, across, limits.episodes)._replace(longest=longest)
    players = players[: len(sample.played)]
    while True:
        see(sample.num_played, sample.num_open(), (pace.seconds or 0.0) * limits.episodes)
        wanted = min(batch, limits.episodes - sample.num_played)
        if not sample.wants_more() or wanted <= 0:
            return sample
        new, pace = _play(players, sample.num_played, wanted, pace, started + SHARE_OF_SAMPLE * limits.seconds)
        if not new:
            return sample
        sample = sample.with_more(new)


_Player = Callable[[int, int], Episodes]


def _play(
    players: Sequence[_Player], begun: int, wanted: int, pace: EpisodeTime, deadline: float
) -> tuple[list[Episodes], EpisodeTime]:
    """So many more episodes of each policy, or as many as there is time for; and how long they took."""
    played, done = [], 0
    while done < wanted:
        now = time.monotonic()
        choose = pace.portion if begun + done else pace.first_portion
        count = choose(wanted - done, deadline - now)
        if count == 0:
            break
        new, seconds = _timed(players, FIRST + begun + done, count)
        pace = pace._replace(seconds=_by_speed(new, seconds) if begun + done == 0 else sum(seconds) / count)
        played = [old.plus(more) for old, more in zip(played, new, strict=True)] if played else new
        done += count
    return played, pace


def _timed(players: Sequence[_Player], first: int, count: int) -> tuple[list[Episodes], list[float]]:
    """Episodes of each policy, and how long they took."""
    played, seconds = [], []
    for one in players:
        begun = time.monotonic()
        played.append(one(first, count))
        seconds.append(time.monotonic() - begun)
    return played, seconds


def _by_speed(played: Sequence[Episodes], seconds: Sequence[float]) -> float:
    """How long an episode of every policy takes, by the steps per second of all but the first one, with which their
    program was compiled if it had to be."""
    steps = [int(each.lengths.sum()) for each in played]
    of_others = sum(seconds[1:]) / max(sum(steps[1:]), 1) * sum(steps)
    return min(of_others, sum(seconds)) / played[0].lengths.shape[1]


def _expected_pace(result: Result, num_policies: int) -> EpisodeTime:
    """By the speed of training where the environment is stepped from Python; else it is not known: how long the first
    episodes take depends on what was compiled before. There are fewer of them where they are long."""
    lengths = result.metrics.get("episode_length", np.array(np.nan))
    known = lengths[np.isfinite(lengths)]
    length = float(known[-len(result) :].mean()) if len(known) else float(result.run.env.spec.max_episode_steps)
    share = num_policies * length / result.run.total_timesteps
    if not on_host(result.run.env):
        return EpisodeTime(None, PROBE if PROBE * share <= SHARE_OF_STEPS else FEWEST)
    return EpisodeTime(share * result.seconds, result.policies[0].algorithm.num_envs)


def _longest(result: Result, limits: Limits, num_policies: int) -> int | None:
    """Steps after which episodes are cut off; None where time is not limited, or episodes are never so long."""
    if math.isinf(limits.seconds):
        return None
    least = selection.LONG // 10 if on_host(result.run.env) else selection.LONG
    longest = max(int(SHARE_OF_STEPS * result.run.total_timesteps / (FEWEST * num_policies)), least)
    return longest if longest < result.run.env.spec.max_episode_steps else None


def _batches(result: Result, episodes: int) -> tuple[int, int]:
    """Episodes before the first look, and between two others."""
    if not on_host(result.run.env):
        return min(BATCH, episodes), BATCH
    side_by_side = result.policies[0].algorithm.num_envs
    first, batch = (-(-n // side_by_side) * side_by_side for n in (FIRST_BATCHES * BATCH_ON_HOST, BATCH_ON_HOST))
    return min(first, episodes), batch


def _begin(result: Result, known: Sequence[Reference], played: list[Episodes], across: bool, episodes: int) -> Sample:
    """The statements, and the units of the objectives, from the first episodes; those of untrained policies, which are
    the last, are not continued unless they are a reference."""
    order = result.run.order
    *played, untrained = played
    gamma = references.gamma_of(result.policies[0].algorithm)
    ranges = return_ranges(result.run.env, order)
    curves = result.metrics["episode_return"] * np.asarray(order.signs)
    scale = make_scale(curves, played, untrained, gamma, ranges)
    own = [Known(*one[:2], one.same) for one in known]
    listed = statements.make_statements(played, own, order, across)
    listed += statements.against_later(played, own, order, scale)
    if across or known:  # where returns are not computed
        worse = statements.against_untrained(played, untrained, order, scale, len(played))
        listed = [*listed, *worse, *statements.against_best(played, order, scale)]
        played = [*played, *([untrained] if worse else [])]
    granted = tolerances([policy.algorithm for policy in result.policies])
    return _decided(Sample(played, untrained, scale, listed, np.zeros(len(listed), int), granted, episodes))


def _decided(sample: Sample) -> Sample:
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
