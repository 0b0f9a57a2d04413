"""A finite MOMDP by exploring an environment completely, breadth first, from every state with every action.

A state is an observation. Whether that is enough is checked: in every state each action is tried once more, from where
the state was reached another way if it was, and must lead to the same outcomes with the same signals; and whatever
happens in ordinary episodes with random actions must be among these outcomes.
"""

import copy
import functools
import itertools
import math
import pickle
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import scipy.sparse as sp
from gymnasium.wrappers import TimeLimit

from lexrl.envs.gym import GymEnv, five_tuple
from lexrl.envs.randomness import Outcome, Scripted, outcomes, total
from lexrl.envs.signals import Event
from lexrl.envs.spaces import parts
from lexrl.errors import InputError
from lexrl.types import Discrete

Observed = tuple[int, ...]
"""An observation as integers."""


class Model(NamedTuple):
    """A finite environment: its transitions as a CSR matrix `[S * A, S]`, the signals of each stored entry, and what
    is observed in each state; the last state is where episodes end, and has no observation."""

    transitions: Any
    signals: np.ndarray
    initial: np.ndarray
    num_actions: int
    observations: tuple[Observed, ...]


class _Result(NamedTuple):
    """A step: None where the episode ended."""

    state: Observed | None
    signals: tuple[float, ...]


_WALKED = 20_000
"""Steps of ordinary episodes that are compared with what was found."""
_EPISODE = 1_000
"""Steps after which such an episode is given up."""
_MOST_RUNS = 200_000
"""Runs of one step, each with other answers to its draws."""
Snapshot = tuple[dict[str, Any], ...]
"""The attributes of an environment and of each of its wrappers."""


class _Snapshots:
    """Takes an environment and its wrappers back to where they were: attributes that cannot be changed in place as they
    are, and copies of those that turned out to be."""

    def __init__(self, env: Any):
        self._layers = list(_layers(env))
        self._copied: list[set[str]] = [set() for _ in self._layers]
        self._fresh = [_contents(layer) for layer in self._layers]

    def take(self) -> Snapshot:
        return self._copy(tuple(vars(layer) for layer in self._layers))

    def restore(self, taken: Snapshot) -> None:
        for layer, now in zip(self._layers, self._copy(taken), strict=True):
            vars(layer).clear()
            vars(layer).update(now)

    def learn(self) -> bool:
        """Were attributes changed in place, of which no copies were taken? Next time they will be."""
        learned = False
        for layer, copied, fresh in zip(self._layers, self._copied, self._fresh, strict=True):
            now = _contents(layer)
            changed = {name for name in now if now[name] != fresh.get(name)} - copied
            copied |= changed
            learned |= bool(changed)
        return learned

    def _copy(self, taken: Snapshot) -> Snapshot:
        return tuple(
            dict(named) | {name: copy.deepcopy(named[name]) for name in copied & named.keys()}
            for named, copied in zip(taken, self._copied, strict=True)
        )


def explore(env: GymEnv, max_states: int, progress: Callable[[int], None]) -> Model:
    """The model of an environment that is small enough to be explored; `progress` hears how many states were found,
    again and again."""
    if not isinstance(env.spec.action_space, Discrete):
        raise InputError(f"{env.name} has continuous actions; a finite MOMDP needs discrete ones.")
    made = _unlimited(env.make())
    first, _ = made.reset(seed=0)
    keeper = _Snapshots(made)
    try:
        _Explorer(env, made, max_states, keeper, progress).observed(first)
        while True:
            try:
                model, fault = _Explorer(env, made, max_states, keeper, progress).run(), None
            except InputError as error:
                model, fault = None, error
            if keeper.learn():  # what was found with snapshots that were changed afterwards does not count
                made.reset(seed=0)
            elif model is not None:
                return model
            elif fault is not None:
                raise fault
    finally:
        made.close()


def untold(states: int) -> None:
    """Progress that nothing is done with."""


def _unlimited(env: Any) -> Any:
    """The same environment without time limits, wherever they are among its wrappers."""
    while isinstance(env, TimeLimit):
        env = env.env
    for layer in _layers(env):
        while layer is not env.unwrapped and isinstance(layer.env, TimeLimit):
            layer.env = layer.env.env
    return env


def tabulated(env: GymEnv, inner: Any, table: Any, initial: Any) -> Model | None:
    """The model that a transition table of Gymnasium's form tells; None where it has another form, or where ordinary
    episodes show something else, as after a subclass has changed what a step does."""
    try:
        explorer = _Explorer(env, inner, len(table), _Snapshots(inner), untold)
        explorer.place = {(state,): state for state in range(len(table))}
        explorer.found = [
            [_listed(env, action, table[state][action]) for action in explorer.actions] for state in range(len(table))
        ]
        explorer.walk([_Result((state,), ()) for state in np.flatnonzero(initial).tolist()])
        return explorer.model(dict(enumerate(np.asarray(initial, float).tolist())))
    except (InputError, KeyError, IndexError, TypeError, ValueError):
        return None


def _listed(env: GymEnv, action: int, entries: Any) -> list[Outcome]:
    """The outcomes of one action in one state of a table."""
    found = []
    for probability, successor, reward, terminated in entries:
        read = env.interface.signals.read(Event(successor, action, reward, {}))
        result = _Result(None if terminated else (int(successor),), tuple(map(_decimal, read)))
        found += [Outcome(float(probability), result)] if probability > 0 else []
    return found


class _Explorer:
    """The states found so far, and what is left to look at."""

    def __init__(self, env: GymEnv, made: Any, max_states: int, keeper: _Snapshots, progress: Callable[[int], None]):
        self.env, self.made, self.max_states, self.keeper, self.progress = env, made, max_states, keeper, progress
        space: Any = env.spec.action_space
        self.actions = [int(a) for a in env.interface.actions.convert(np.arange(space.n))]
        self.place: dict[Observed, int] = {}
        self.snapshots: list[Snapshot] = []
        self.again: dict[int, Snapshot] = {}
        """States to look at once more, from where they were reached another time."""
        self.checked: set[int] = set()
        self.found: list[list[list[Outcome]]] = []

    def run(self) -> Model:
        first = self._follow(self.keeper.take(), self._begin)
        queue = deque(self._add(one.result.state, taken) for one, taken in first)
        initial = {self.place[one.result.state]: one.probability for one, _ in first}
        while queue:
            state = queue.popleft()
            if state < len(self.found):
                continue
            self.found.append([])
            self.progress(len(self.place))
            for action in self.actions:
                each = self._follow(self.snapshots[state], lambda action=action: self._step(action))
                self.found[state].append([one for one, _ in each])
                queue.extend(self._arrive(each))
            self._check_known()
        for state in set(range(len(self.found))) - self.checked:
            self._check(state, self.snapshots[state])
        self.walk([one.result for one, _ in first])
        return self.model(initial)

    def _arrive(self, each: list[tuple[Outcome, Snapshot]]) -> list[int]:
        """New states; known ones are to be looked at once more, from where they were reached now."""
        new = []
        for one, taken in each:
            if one.result.state is None:
                continue
            if one.result.state not in self.place:
                new.append(self._add(one.result.state, taken))
            elif (state := self.place[one.result.state]) not in self.checked:
                self.again.setdefault(state, taken)
        return new

    def _add(self, state: Observed, taken: Snapshot) -> int:
        if state not in self.place:
            if len(self.place) >= self.max_states:
                raise InputError(
                    f"{self.env.name} has more than {self.max_states:,} states; a larger `max_states` takes time and "
                    "memory accordingly."
                )
            self.place[state] = len(self.place)
            self.snapshots.append(taken)
        return self.place[state]

    def _check_known(self) -> None:
        """Look at states once more that were reached twice and are explored by now."""
        for state in [state for state in self.again if state < len(self.found)]:
            self._check(state, self.again.pop(state))

    def _check(self, state: int, taken: Snapshot) -> None:
        """Is what follows a function of the observation, and the same when it is tried again?"""
        self.checked.add(state)
        for k, action in enumerate(self.actions):
            again = [one for one, _ in self._follow(taken, lambda action=action: self._step(action))]
            first = self.found[state][k]
            if again != first and sorted(again, key=repr) != sorted(first, key=repr):
                raise self._not_markov(state, k)

    def _not_markov(self, state: int, k: int) -> InputError:
        seen = next(seen for seen, place in self.place.items() if place == state)
        return InputError(
            f"{self.env.name} is not Markov in what it shows, or not random by its own np_random: in the observation "
            f"{seen}, action {k} leads to different outcomes at different times."
        )

    def walk(self, first: list[_Result]) -> None:
        """Ordinary episodes, some of which repeat actions for long: nothing may happen that was not found."""
        known = [[{one.result for one in each} for each in actions] for actions in self.found]
        rng, steps = np.random.default_rng(0), 0
        while steps < _WALKED:
            self.made.unwrapped.np_random = np.random.default_rng(rng.integers(2**32))
            last, k, repeats = self._begin(), 0, rng.choice([0.0, 0.9])
            if last not in first:
                raise InputError(f"{self.env.name} begins in {last.state}, which it did not when it was explored.")
            for _ in range(_EPISODE):
                k = k if rng.random() < repeats else int(rng.integers(len(self.actions)))
                state, last = self.place[last.state or ()], self._step(self.actions[k])
                steps += 1
                if last not in known[state][k]:
                    raise self._not_markov(state, k)
                if last.state is None:
                    break

    def _follow(self, taken: Snapshot, act: Callable[[], _Result]) -> list[tuple[Outcome, Snapshot]]:
        """Every outcome of an act from a snapshot, and a snapshot of each."""
        after: dict[_Result, Snapshot] = {}
        runs = itertools.count(1)

        def run(generator: Scripted) -> _Result:
            if next(runs) > _MOST_RUNS:
                raise InputError(
                    f"{self.env.name} draws so many random numbers in one step or reset that they can be answered in "
                    f"more than {_MOST_RUNS:,} ways, too many to follow."
                )
            self.keeper.restore(taken)
            self.made.unwrapped.np_random = generator
            result = act()
            if result not in after:
                after[result] = self.keeper.take()
            return result

        found = outcomes(run)
        whole = total(found)
        return [(one._replace(probability=one.probability / whole), after[one.result]) for one in found]

    def _begin(self) -> _Result:
        return _Result(self.observed(self.made.reset()[0]), ())

    def _step(self, action: int) -> _Result:
        obs, reward, terminated, truncated, info = five_tuple(self.made.step(action))
        if truncated:
            raise InputError(
                f"{self.env.name} truncates episodes itself, by a time that it does not show; leave that to "
                "gymnasium.wrappers.TimeLimit, or show the time in the observation."
            )
        read = self.env.interface.signals.read(Event(obs, action, reward, info))
        try:
            signals = tuple(map(_decimal, read))
        except (TypeError, ValueError):
            raise InputError(f"{self.env.name} pays {list(read)} in a step, which are not numbers.") from None
        if not all(map(math.isfinite, signals)):
            paid = ", ".join(f"{value:g}" for value in signals)
            raise InputError(f"{self.env.name} pays {paid} in a step; a finite MOMDP needs finite rewards.")
        return _Result(None if terminated else self.observed(obs), signals)

    def observed(self, obs: Any) -> Observed:
        """An observation as integers; an error where it has others."""
        if isinstance(obs, int | np.integer):
            return (int(obs),)
        leaves = [np.asarray(leaf) for leaf in parts(self.made.observation_space, obs)]
        if not all(_whole(leaf) for leaf in leaves):
            shown = ", ".join(np.array2string(leaf.ravel(), threshold=6) for leaf in leaves)
            raise InputError(
                f"{self.env.name} shows {shown}, which are not integers; a finite MOMDP needs discrete observations."
            )
        return tuple(value for leaf in leaves for value in leaf.astype(np.int64).ravel().tolist())

    def model(self, initial: dict[int, float]) -> Model:
        end, num_actions = len(self.place), len(self.actions)
        rows, columns, probabilities, signals = [], [], [], []
        for state, each in enumerate(self.found):
            for action, found in enumerate(each):
                for successor, probability, paid in _entries(found, self.place, end):
                    rows.append(state * num_actions + action)
                    columns.append(successor)
                    probabilities.append(probability)
                    signals.append(paid)
        shape = ((end + 1) * num_actions, end + 1)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
        first = np.zeros(end + 1)
        first[list(initial)] = list(initial.values())
        matrix = sp.csr_array((np.array(probabilities), np.array(columns), indptr), shape=shape)
        return Model(matrix, np.array(signals), first, num_actions, tuple(self.place))


def _entries(found: list[Outcome], place: dict[Observed, int], end: int) -> list[tuple[int, float, np.ndarray]]:
    """One entry for each successor, with the mean of what it pays."""
    whole: dict[int, float] = {}
    paid: dict[int, Any] = {}
    for one in found:
        successor = end if one.result.state is None else place[one.result.state]
        whole[successor] = whole.get(successor, 0.0) + one.probability
        paid[successor] = paid.get(successor, 0.0) + one.probability * np.array(one.result.signals)
    return [(successor, weight, paid[successor] / weight) for successor, weight in sorted(whole.items())]


def _whole(leaf: np.ndarray) -> bool:
    """Are these integers, of whatever type?"""
    if leaf.dtype.kind == "f":
        return bool((np.abs(leaf) < 2.0**63).all() and (leaf == np.rint(leaf)).all())
    return leaf.dtype.kind in "iub"


def _decimal(value: Any) -> float:
    """A number as it was written: a reward of 0.7 that went through single precision is 0.7 again."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype == np.float32:
        return _written(float(value))
    return float(value)


@functools.lru_cache(maxsize=2**16)
def _written(value: float) -> float:
    return float(str(np.float32(value)))


def _layers(env: Any) -> Iterator[Any]:
    """An environment's wrappers, and the environment itself."""
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env
    yield env


def _contents(layer: Any) -> dict[str, bytes]:
    """What the attributes of an environment or of a wrapper hold."""
    return {name: _bytes(value) for name, value in vars(layer).items() if not isinstance(value, gymnasium.Env)}


def _bytes(value: Any) -> bytes:
    """What an attribute holds; nothing where that cannot be said, as of windows and functions."""
    if _fixed(value):
        return b""
    try:
        return pickle.dumps(value)
    except Exception:  # whatever an environment holds may refuse
        return b""


def _fixed(value: Any) -> bool:
    """Is this something that cannot be changed in place, or is replaced at every step?"""
    if isinstance(value, tuple):
        return all(map(_fixed, value))
    return isinstance(value, bool | int | float | str | bytes | np.generic | Scripted | np.random.Generator | None)
