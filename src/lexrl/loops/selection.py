"""The policy that is handed over when training is over: fresh episodes decide among those an algorithm kept.

Every candidate plays the same episodes, so that differences are not noise of the environment. They are compared
lexicographically and with confidence (`lex.choose`). Differences below one percent of what training has changed do
not count, and candidates between which the first episodes do not clearly decide play more of them, since among many
comparisons one errs easily. Training is not disturbed, and its steps are not counted. Where an objective has slack, the
best mixture is found (`lexrl.loops.mixtures`): once from the episodes of all candidates, and once more from new
episodes of those it needs, since the best of many looks better than it is.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from lexrl import lex
from lexrl.loops.evaluation import Evaluation
from lexrl.loops.mixtures import best_mixtures
from lexrl.loops.population import Population
from lexrl.tolerance import of_returns
from lexrl.types import HasCandidates, HasColumns, HasLimits, State

EPISODES = 100
"""That each candidate plays."""
MIN_EPISODES = 10
"""That each plays at least, where episodes are expensive."""
LONG = 1000
"""Steps of an episode that are always affordable."""
FIRST = 2**30
"""The number of the first one. Evaluations begin at 0: episodes that a policy was chosen by would flatter it."""
MARGIN = 0.01
"""Of the distance from the first episodes of training to the best: smaller differences do not count."""
LIKELY, CONFIDENCE, CLEAR = 1.0, 3.0, 4.0
"""Standard errors that raise a question, that decide it once there are more episodes, and that leave none."""
MAX_ROUNDS = 40
"""How many times as many episodes are played again, at most, where the first ones do not decide clearly."""
SHARE = 0.2
"""Of the steps of training: what they may take; but once they are always played."""
PRECISION = 0.03
"""Candidates of a mixture stop earlier if the standard errors of their losses are below this fraction of the slack."""
AROUND = (0.7, 1.0, 1.4)
"""Times the slack: the candidates of the best mixtures for these play again, as the first look may err."""

Play = Callable[[State, int], Evaluation]
"""Play at most `EPISODES` episodes, from this number on, with a state of each member."""


class Selection(NamedTuple):
    """What was chosen for each member."""

    agents: State
    """`[members, ...]`: the states that play what was chosen."""
    chosen: np.ndarray
    """`[members]`: which candidate; of a mixture the most likely one."""
    weights: np.ndarray
    """`[members, candidates]`: the probability of each candidate; 1 for the only one, unless it is a mixture."""
    about: tuple[dict[str, Any], ...]
    """What the algorithm says about it; about a mixture, what it says about each part, with its probability."""
    returns: np.ndarray
    """`[members, M]`: its mean undiscounted returns, in the user's signs."""
    references: np.ndarray
    """`[members, M - 1]`: for the first i objectives alone, the best candidate of the stages until then;
    -1: there is none."""


def select(
    population: Population, agents: State, play: Play, num_objectives: int, total_timesteps: float | int = np.inf
) -> Selection | None:
    """Choose for every member, after so many steps of training; None: the algorithm has nothing to choose from."""
    algorithms = population.algorithms
    if not isinstance(algorithms, HasCandidates) or (number := algorithms.num_candidates(num_objectives)) == 0:
        return None
    players = Players(population, agents, play)
    returns, steps = players.play_all(range(number))
    again = SHARE * total_timesteps / steps
    origins = np.asarray(_first_returns(algorithms, agents))
    judged = [_judged(algorithms, i, member, origins[i]) for i, member in enumerate(returns)]
    slack, limits = (np.stack(part) for part in ([each.slack for each in judged], [each.limits for each in judged]))
    granted = np.any(slack[:, :-1] > 0, axis=1) & ~np.isfinite(limits).any(axis=1)  # mixtures know no limits
    chosen = _decide(players, judged, granted & isinstance(algorithms, HasColumns), again)
    references = _references(algorithms, judged)
    if not isinstance(algorithms, HasColumns) or not granted.any():
        return players.selection(players.states(chosen), np.eye(number)[chosen], returns, references)
    columns = range(number, number + algorithms.num_columns(num_objectives))
    returns = np.concatenate([returns, players.play_all(columns)[0]], axis=1)
    mixed = _mix(players, returns, slack, again, single=not algorithms.mixture)
    weights = np.where(granted[:, None], mixed, np.eye(returns.shape[1])[chosen])
    return players.selection(players.mixtures(weights), weights, returns, references)


def affordable(population: Population, total_timesteps: int) -> int:
    """How many episodes each candidate plays where the environment is stepped from Python: as many as take a fifth of
    the steps of training, but no fewer than ten."""
    steps = _num_candidates(population) * population.spec.max_episode_steps
    return min(max(total_timesteps // (5 * steps), MIN_EPISODES), EPISODES)


def longest(population: Population, total_timesteps: int) -> int:
    """Where candidates' episodes are cut off: ten of each must not take more steps than training. Else the choice would
    take for ever where episodes do not end."""
    return max(total_timesteps // (MIN_EPISODES * _num_candidates(population)), LONG)


def _num_candidates(population: Population) -> int:
    algorithms: Any = population.algorithms
    return max(algorithms.num_candidates(len(population.order.objectives)), 1)


class Players(NamedTuple):
    """The members and how their candidates play."""

    population: Population
    agents: State
    play: Play

    def play_all(self, candidates: range) -> tuple[np.ndarray, np.ndarray]:
        """Returns `[members, candidates, episodes, 2, M]`, discounted and undiscounted, all maximized; and the most
        steps `[members]` that the episodes of a candidate took."""
        everybody = np.ones(self.population.size, np.int32)
        played = [self.play(self.states(everybody * i), FIRST) for i in candidates]
        steps = np.max([each.lengths.sum(axis=1) for each in played], axis=0)
        return np.stack([self._signed(each) for each in played], axis=1), steps

    def play_again(self, index: np.ndarray, number: int) -> np.ndarray:
        """Returns `[contenders, members, episodes, 2, M]` in the n-th round of new episodes, n from 1 on."""
        first = FIRST + EPISODES * number
        return np.stack([self._signed(self.play(self.states(each), first)) for each in index])

    def _signed(self, played: Evaluation) -> np.ndarray:
        signs = np.asarray(self.population.order.signs)
        return np.stack([played.discounted * signs, played.returns * signs], axis=-2)

    def states(self, index: np.ndarray) -> State:
        return each_candidate(self.population.algorithms, self.agents, self._padded(index))

    def mixtures(self, weights: np.ndarray) -> State:
        return _mixtures(self.population.algorithms, self.agents, self._padded(weights.astype(np.float32)))

    def selection(self, agents: State, weights: np.ndarray, returns: np.ndarray, references: np.ndarray) -> Selection:
        """What was chosen, from the probability of each candidate."""
        undiscounted = returns[:, :, :, 1].mean(axis=2) * np.asarray(self.population.order.signs)
        # The return of a candidate that is not played may be no number.
        means = (weights[..., None] * np.where(weights[..., None] > 0, undiscounted, 0.0)).sum(axis=1)
        about = tuple(self._describe(each, returns.shape[-1]) for each in weights)
        return Selection(agents, weights.argmax(axis=1), weights, about, means, references)

    def _describe(self, weights: np.ndarray, num_objectives: int) -> dict[str, Any]:
        describe: Any = self.population.algorithms
        parts = [
            describe.describe_candidate(num_objectives, int(index)) | {"probability": float(weights[index])}
            for index in np.flatnonzero(weights)
        ]
        if len(parts) > 1:
            return {"mixture": parts}
        return describe.describe_candidate(num_objectives, int(weights.argmax()))

    def _padded(self, each: np.ndarray) -> np.ndarray:
        return each[np.minimum(np.arange(self.population.seeds.shape[0]), len(each) - 1)]


def _decide(players: Players, judged: Sequence["Judged"], mixed: np.ndarray, again: np.ndarray) -> np.ndarray:
    """`[members]`: which candidate each member hands over, after more episodes where it is not clear; nothing is played
    for those that get a mixture. How many a member plays does not depend on the others: so many times those of a
    candidate."""
    fields = [Field.of(each, 1 if mixes else len(each.returns)) for each, mixes in zip(judged, mixed, strict=True)]
    plays, spent = np.ones(len(fields), bool), np.zeros(len(fields))
    for k in range(1, MAX_ROUNDS + 1):
        fields = [each.narrowed() if on else each for each, on in zip(fields, plays, strict=True)]
        sizes = np.array([len(each.candidates) for each in fields])
        spent += sizes
        plays &= (sizes > 1) & ((spent <= again) | (k == 1))
        if not plays.any():
            break
        played = players.play_again(_side_by_side([each.candidates for each in fields]), k)
        fields = [each.with_more(played[:, i]) if plays[i] else each for i, each in enumerate(fields)]
    return np.array([each.candidates[each.judged.choose()] for each in fields], np.int32)


def _side_by_side(candidates: Sequence[Sequence[int]]) -> np.ndarray:
    """`[most, members]`: the candidates of each member, the shorter lists repeated."""
    return np.stack([np.resize(each, max(map(len, candidates))) for each in candidates], axis=1).astype(np.int32)


def _mix(players: Players, returns: np.ndarray, slack: np.ndarray, again: np.ndarray, *, single: bool) -> np.ndarray:
    """`[members, candidates]`: the best mixtures within the slack, from new episodes of the candidates they need."""
    needed = [_needed(*each, single) for each in zip(returns, slack, strict=True)]
    rounds = np.clip(again / [len(support) for support in needed], 1, MAX_ROUNDS).astype(int)
    index = _side_by_side(needed)
    played = [np.zeros((len(support), 0, *returns.shape[3:])) for support in needed]
    plays = np.ones(len(needed), bool)
    for k in range(1, rounds.max() + 1):
        new = players.play_again(index, k)
        for i in np.flatnonzero(plays):
            played[i] = np.concatenate([played[i], new[: len(needed[i]), i]], axis=1)
            plays[i] = k < rounds[i] and not _precise(played[i], slack[i])
        if not plays.any():
            break
    weights = np.zeros(returns.shape[:2])
    for i, support in enumerate(needed):
        weights[i, support] = best_mixtures(played[i], slack[i], single=single).weights[-1]
    return weights


def _needed(returns: np.ndarray, slack: np.ndarray, single: bool) -> list[int]:
    """The candidates of one member that are worth a second look."""
    walks = [best_mixtures(returns, factor * slack, single=single, confidence=0.0) for factor in AROUND]
    return np.unique(np.concatenate([walk.support for walk in walks])).tolist()


def _precise(played: np.ndarray, slack: np.ndarray) -> bool:
    """Is the difference `[candidates, episodes, 2, M]` between candidates known well, next to the slack?"""
    discounted, useful = played[:, :, 0, :-1], slack[:-1]  # the last objective has none to lose to
    apart = discounted - discounted[:1]
    error = apart.std(axis=1) / np.sqrt(apart.shape[1])
    return bool(np.all((error <= PRECISION * useful)[:, useful > 0]))


class Judged(NamedTuple):
    """What decides between the candidates of one member."""

    returns: np.ndarray
    """`[candidates, episodes, 2, M]`; objectives with a limit are judged undiscounted in both rows."""
    slack: np.ndarray
    limits: np.ndarray
    margin: np.ndarray
    """`[2, M]`: differences that do not count."""

    def choose(self, standard_errors: float = CONFIDENCE) -> int:
        return lex.choose(self.returns, standard_errors=standard_errors, **self._rules())

    def _rules(self) -> dict[str, Any]:
        return {"slack": self.slack, "limits": self.limits, "margin": self.margin}

    def of_prefix(self, candidates: np.ndarray, num_objectives: int) -> "Judged":
        """Some of the candidates, by the first objectives alone."""
        i = num_objectives
        return Judged(self.returns[candidates, ..., :i], self.slack[:i], self.limits[:i], self.margin[:, :i])

    def contenders(self) -> list[int]:
        """What is chosen if one wants to be more, or less, sure; and the candidates that beat one of these then. Of
        several that play alike the first stands for all."""
        sure = (LIKELY, CONFIDENCE, CLEAR)
        chosen = {self.choose(each) for each in sure}
        different = np.unique(self.returns.reshape(len(self.returns), -1), axis=0, return_index=True)[1]
        return [one for one in sorted(different.tolist()) if one in chosen or self._beats_any(one, chosen, sure)]

    def _beats_any(self, challenger: int, chosen: set[int], sure: Sequence[float]) -> bool:
        returns, rules = self.returns, self._rules()
        pairs = itertools.product(sorted(chosen), sure)
        return any(lex.outplays(returns[challenger], returns[one], standard_errors=z, **rules) for one, z in pairs)

    def with_more(self, returns: np.ndarray) -> "Judged":
        """With more episodes of each candidate."""
        more = np.where(np.isfinite(self.limits), returns[:, :, 1:], returns)
        return self._replace(returns=np.concatenate([self.returns, more], axis=1))


class Field(NamedTuple):
    """The candidates of one member that are still in question, and what decides between them."""

    candidates: Sequence[int]
    judged: Judged

    @classmethod
    def of(cls, judged: Judged, number: int) -> "Field":
        """The first ones."""
        return cls(range(number), judged._replace(returns=judged.returns[:number]))

    def narrowed(self) -> "Field":
        """Without those that are out of the question."""
        left = self.judged.contenders() if len(self.candidates) > 1 else [0]
        returns = self.judged.returns[left]
        return Field([self.candidates[one] for one in left], self.judged._replace(returns=returns))

    def with_more(self, returns: np.ndarray) -> "Field":
        """With more episodes `[most, episodes, 2, M]` of each."""
        return self._replace(judged=self.judged.with_more(returns[: len(self.candidates)]))


def _judged(algorithms: Any, member: int, returns: np.ndarray, origin: np.ndarray) -> Judged:
    """The slack is of the best mean return of any candidate, or of the limit; limits are on undiscounted returns."""
    tolerance = jax.tree.map(lambda leaf: np.asarray(leaf)[member], algorithms.tolerance)
    given = np.inf
    if isinstance(algorithms, HasLimits):
        given = jax.tree.map(lambda leaf: np.asarray(leaf)[member], algorithms.limits)
    limits = np.broadcast_to(np.asarray(given, float), returns.shape[-1:])
    returns = np.where(np.isfinite(limits), returns[:, :, 1:], returns)
    means = returns.mean(axis=1)
    best = lex.enough(means[:, 0].max(axis=0), limits)
    changed = np.abs(np.where(np.isfinite(means), means, origin) - origin).max(axis=0)
    return Judged(returns, np.asarray(of_returns(tolerance, best, 1), float), limits, MARGIN * changed)


def _references(algorithms: Any, judged: Sequence[Judged]) -> np.ndarray:
    """For each member and each prefix of the order, which candidate serves it best. A candidate that does not say its
    stage is of the last one, which is no reference."""
    candidates, *_, m = judged[0].returns.shape
    stages = [algorithms.describe_candidate(m, one).get("stage", m) for one in range(candidates)]
    until = [np.flatnonzero(np.array(stages) <= i) for i in range(1, m)]
    found = [
        [own[each.of_prefix(own, i).choose()] if len(own) else -1 for i, own in enumerate(until, 1)] for each in judged
    ]
    return np.array(found, np.int32).reshape(len(judged), m - 1)


@jax.jit
def each_candidate(algorithms: Any, agents: State, index: Any) -> State:
    """The agent states that play one candidate of each member."""
    return jax.vmap(lambda algorithm, agent, one: algorithm.candidate(agent, one))(algorithms, agents, index)


@jax.jit
def _first_returns(algorithms: Any, agents: State) -> Any:
    """`[members, 2, M]`"""
    return jax.vmap(lambda algorithm, agent: algorithm.first_returns(agent))(algorithms, agents)


@jax.jit
def _mixtures(algorithms: Any, agents: State, weights: Any) -> State:
    return jax.vmap(lambda algorithm, agent, each: algorithm.mix(agent, each))(algorithms, agents, weights)
