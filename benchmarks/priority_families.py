"""Families of finite MOMDPs whose lexicographic optimum is known exactly, for `benchmarks/priority.py`.

Every problem has 64 states (the unused ones end the task), 4 actions, episodes of at most 100 steps and signals `o1 ..
oM`, all maximized: so problems of one `M` differ in arrays only, and `lexrl.per_seed` trains a whole set of families
with one compiled program.

    problems(m, "development")      families and seeds to develop on: look as often as you like
    problems(m, "held-out")         other families, and other seeds of all of them: look once
    deep(m, split), noise_first(m, split), inserted(split, ...), slacks(split)        the other questions

A policy is *optimal* if no objective is short of the lexicographic optimum by more than 2 % of its span,
`span_i = max_pi J_i(pi) - min_pi J_i(pi)` over all policies; it *keeps the first* if objective 1 is not.
"""

import zlib
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import numpy as np

from lexrl import exact
from lexrl.envs.finite import FiniteEnv
from lexrl.momdp import MOMDP

NUM_STATES, NUM_ACTIONS, MAX_EPISODE_STEPS, GAMMA = 64, 4, 100, 0.99
WITHIN = 0.02
"""Of the span."""

Split = Literal["development", "held-out"]


class Model(NamedTuple):
    """What a family draws: arrays over the states it uses; rewards of the same successor are averaged."""

    successors: np.ndarray
    """`[S, A, K]`: states, -1 for the end of the task."""
    probabilities: np.ndarray
    """`[S, A, K]`"""
    rewards: np.ndarray
    """`[M, S, A, K]`"""
    start: tuple[int, ...] = (0,)
    noise: float = 0.0
    """Standard deviation of the noise on every reward."""


class Problem(NamedTuple):
    """One MOMDP as an environment, with the truth about it. All objectives are maximized."""

    name: str
    """Of its family."""
    env: FiniteEnv
    momdp: MOMDP
    order: str
    optimum: np.ndarray
    """`[M]`: discounted returns of the lexicographic optimum."""
    spans: np.ndarray
    """`[M]`: the largest minus the smallest return of any policy."""

    def shortfalls(self, policy: np.ndarray) -> np.ndarray:
        """`[M]`: what a policy `[S, A]` lacks of the optimum, in units of the span (0 where nothing can be lost)."""
        lost = self.optimum - exact.evaluate(self.momdp, policy).returns
        return lost / np.where(self.spans > 0, self.spans, np.inf)

    def is_optimal(self, policy: np.ndarray) -> bool:
        return bool((self.shortfalls(policy) <= WITHIN).all())

    def keeps_first(self, policy: np.ndarray) -> bool:
        return bool(self.shortfalls(policy)[0] <= WITHIN)


def layered(rng: np.random.Generator, m: int, *, layers: int = 6, width: int = 5, stochastic: bool = True) -> Model:
    """Layers of states in which every objective is indifferent between the actions the next one may choose from.

    Built from the end: at each state nested sets `D_1 .. D_M` are drawn, and rewards such that exactly these are
    optimal; actions that a more important objective forbids tempt the others.
    """
    n = layers * width
    successors, probabilities = np.full((n, NUM_ACTIONS, 2), -1), np.full((n, NUM_ACTIONS, 2), 0.5)
    rewards, values = np.zeros((m, n, NUM_ACTIONS, 2)), np.zeros((m, n + 1))
    for s in reversed(range(n)):
        layer = s // width
        if layer < layers - 1:
            successors[s] = (layer + 1) * width + rng.integers(width, size=(NUM_ACTIONS, 2))
        probabilities[s, :, 0] = rng.uniform(0.5, 0.9, NUM_ACTIONS) if stochastic else 1.0
        probabilities[s, :, 1] = 1 - probabilities[s, :, 0]
        allowed = np.arange(NUM_ACTIONS)
        for i in range(m):
            best = rng.uniform(-1, 1)
            q = best + rng.uniform(-1, 2, NUM_ACTIONS)
            q[allowed] = best - rng.uniform(0.15, 1, len(allowed))
            allowed = rng.permutation(allowed)[: max(1, len(allowed) - rng.integers(0, 2 if m > 2 else 3))]
            q[allowed] = best
            ahead = (probabilities[s] * values[i, successors[s]]).sum(axis=-1)
            rewards[i, s] = (q - GAMMA * ahead)[:, None]
            values[i, s] = best
    return Model(successors, probabilities, rewards, tuple(range(width)))


def trap(rng: np.random.Generator, m: int) -> Model:
    """A corridor with a small payment at every door and a large one at its end; three ways to walk on that only less
    important objectives distinguish."""
    n = int(rng.integers(5, 9))
    successors, rewards = np.full((n, NUM_ACTIONS, 1), -1), np.zeros((m, n, NUM_ACTIONS, 1))
    for s in range(n):
        door, *ways = rng.permutation(NUM_ACTIONS)
        successors[s, ways] = s + 1 if s < n - 1 else -1
        rewards[0, s, ways] = float(s == n - 1)
        rewards[0, s, door] = rng.uniform(0.1, 0.4)
        for i in range(1, m):
            rewards[i, s, :, 0] = rng.uniform(0, n, NUM_ACTIONS)
            best = rng.uniform(0, 1)
            rewards[i, s, ways[i - 1 :], 0] = best - rng.uniform(0.2, 1)
            rewards[i, s, ways[min(i, 2) :], 0] = best
    return Model(successors, np.ones(successors.shape), rewards)


def temptation(rng: np.random.Generator, m: int) -> Model:
    """At every state an action that pays much of a less important objective and costs a little of a more important
    one, in units from a tenth to a thousand."""
    n = 8
    successors, rewards = np.full((n, NUM_ACTIONS, 1), -1), np.zeros((m, n, NUM_ACTIONS, 1))
    units = 10.0 ** rng.uniform(-1, 3, m)
    for s in range(n):
        successors[s, :, 0] = np.where(s < n - 1, min(s + 1, n - 1), -1)
        tempting = rng.permutation(NUM_ACTIONS)
        for i in range(m):
            cost = np.zeros(NUM_ACTIONS)
            cost[tempting[i]] = -rng.uniform(0.2, 0.6)
            cost[tempting[:i]] = rng.uniform(2, 5, i)
            rewards[i, s, :, 0] = units[i] * cost
    return Model(successors, np.ones(successors.shape), rewards)


def hazards(rng: np.random.Generator, m: int, *, size: int = 6, slip: float = 0.0) -> Model:
    """A grid with hazards that end the task (1), a goal to reach (2), rough cells to avoid (3) and coins to pass (4).
    Every step ends the task with probability 0.05, so that no wandering outweighs what is at stake."""
    hazard, rough, coin = (rng.random((size, size)) < share for share in (0.25, 0.3, 0.3))
    start, goal = (size - 1, int(rng.integers(size))), (0, int(rng.integers(size)))
    for grid in (hazard, rough, coin):
        grid[start] = grid[goal] = False
    hazard[1:-1, rng.integers(size)] = False  # one column is free, so that the goal can be reached
    hazard[[0, -1]] = False
    cell = np.arange(size * size)
    row, column = cell // size, cell % size
    landing = [
        np.where(row > 0, cell - size, cell),
        np.where(row < size - 1, cell + size, cell),
        np.where(column > 0, cell - 1, cell),
        np.where(column < size - 1, cell + 1, cell),
    ]
    at_goal = cell == goal[0] * size + goal[1]
    paid = np.stack([-1.0 * hazard.ravel(), 1.0 * at_goal, -1.0 * rough.ravel(), 1.0 * coin.ravel()])[:m]
    ending = hazard.ravel() | at_goal
    reached = np.repeat(np.stack(landing, axis=1)[:, None], NUM_ACTIONS, axis=1)  # [S, A, the move made]
    moved = reached != cell[:, None, None]
    successors = np.concatenate([np.where(ending[reached], -1, reached), np.full((size**2, NUM_ACTIONS, 1), -1)], -1)
    probabilities = np.concatenate(
        [np.full((4, 4), 0.95 * slip / 4) + 0.95 * (1 - slip) * np.eye(4), np.full((4, 1), 0.05)], axis=-1
    )
    rewards = np.concatenate([paid[:, reached] * moved, np.zeros((m, size**2, NUM_ACTIONS, 1))], axis=-1)
    start_cell = start[0] * size + start[1]
    return Model(successors, np.broadcast_to(probabilities, successors.shape), rewards, (start_cell,))


def noisy(rng: np.random.Generator, m: int) -> Model:
    """Layered, with noise on every reward twice as large as a typical gap."""
    return layered(rng, m, layers=4, width=4)._replace(noise=1.0)


def one_step(rng: np.random.Generator, m: int) -> Model:
    """Episodes of one step from eight states, with noise."""
    return layered(rng, m, layers=1, width=8)._replace(noise=0.5)


def never_ending(rng: np.random.Generator, m: int) -> Model:
    """No end: only truncation. The successors of a state do not depend on the action in half of the states."""
    n = 12
    successors = rng.integers(n, size=(n, NUM_ACTIONS, 3))
    probabilities = rng.dirichlet(np.ones(3), size=(n, NUM_ACTIONS))
    rewards = np.repeat(rng.uniform(-1, 1, (m, n, NUM_ACTIONS, 1)), 3, axis=-1)
    for s in range(n):
        if rng.random() < 0.6:
            successors[s], probabilities[s] = successors[s, 0], probabilities[s, 0]
            tied = int(rng.integers(1, m)) if m > 1 else 0
            rewards[:tied, s] = rewards[:tied, s, :1]
    return Model(successors, probabilities, rewards, tuple(range(n)), noise=0.2)


def shortest_paths(rng: np.random.Generator, m: int) -> Model:
    """A grid to cross in the shortest time (1): up or right, each fast or slow; many paths are equally short, and cells
    differ in the rest, which slow moves pay twice."""
    size = 6
    cell = np.arange(size * size)
    row, column = cell // size, cell % size
    up, right = np.where(row > 0, cell - size, cell + 1), np.where(column < size - 1, cell + 1, cell - size)
    successors = np.stack([up, up, right, right], axis=1)
    successors[size - 1] = -1  # the goal, top right; its moves end the task
    cells = rng.integers(0, 3, (m, size * size)) / 2
    rewards = cells[:, np.maximum(successors, 0)] * np.array([1, 2, 1, 2])
    rewards[0] = -np.array([1, 1.5, 1, 1.5])
    return Model(successors[..., None], np.ones((size**2, NUM_ACTIONS, 1)), rewards[..., None], (size * (size - 1),))


def branching(rng: np.random.Generator, m: int) -> Model:
    """A tree of depth 3: what was chosen first is paid for at the end, in small whole numbers, so that many leaves
    tie."""
    inner = 1 + 4 + 16
    successors = np.full((inner, NUM_ACTIONS, 1), -1)
    for s in range(1 + 4):
        successors[s, :, 0] = 4 * s + 1 + np.arange(NUM_ACTIONS)
    rewards = np.zeros((m, inner, NUM_ACTIONS, 1))
    rewards[:, 5:, :, 0] = rng.integers(0, 3, (m, 16, NUM_ACTIONS))
    rewards[1:, 0, :, 0] = rng.uniform(0, 1, (m - 1, NUM_ACTIONS))
    return Model(successors, np.ones(successors.shape), rewards)


def mixed_scales(rng: np.random.Generator, m: int) -> Model:
    """Layered, each objective in another unit, from a millionth to a million."""
    model = layered(rng, m, layers=5, width=4)
    return model._replace(rewards=model.rewards * 10.0 ** rng.uniform(-6, 6, (m, 1, 1, 1)))


def slippery(rng: np.random.Generator, m: int) -> Model:
    """The grid with hazards; one move in five slips."""
    return hazards(rng, m, size=5, slip=0.2)


def loops(rng: np.random.Generator, m: int) -> Model:
    """A ring of ten states to be walked round for ever (1 pays once a round), with inner cycles that pay the rest."""
    n = 10
    successors, rewards = np.zeros((n, NUM_ACTIONS, 1), int), np.zeros((m, n, NUM_ACTIONS, 1))
    for s in range(n):
        onward = rng.permutation(NUM_ACTIONS)
        successors[s, :, 0] = (s + 1) % n
        successors[s, onward[3], 0] = s if rng.random() < 0.5 else int(rng.integers(n))
        rewards[1:, s, :, 0] = rng.integers(0, 3, (m - 1, NUM_ACTIONS)) / 2
        rewards[1:, s, onward[3], 0] = 2.0
    rewards[0, n - 1, successors[n - 1, :, 0] == 0] = 1.0
    return Model(successors, np.ones(successors.shape), rewards, tuple(range(n)))


def chain_walk(rng: np.random.Generator, m: int) -> Model:
    """A sparse chain of 12 to 30 states: two ways forward, one that stays, one back; paid at the end only. The less
    important objectives distinguish the ways forward, and pay a little for standing still."""
    n = int(rng.integers(12, 31))
    successors, rewards = np.zeros((n, NUM_ACTIONS, 1), int), np.zeros((m, n, NUM_ACTIONS, 1))
    for s in range(n):
        first, second, stay, back = rng.permutation(NUM_ACTIONS)
        successors[s, [first, second]] = s + 1 if s < n - 1 else -1
        successors[s, stay], successors[s, back] = s, max(0, s - 1)
        rewards[m - 1, s, [first, second], 0] = rng.permutation([0.0, -0.2])
        rewards[1:, s, stay] = 0.05
    rewards[0, n - 1, successors[n - 1, :, 0] == -1] = 1.0
    return Model(successors, np.ones(successors.shape), rewards)


def chain_lock(rng: np.random.Generator, m: int) -> Model:
    """As `chain_walk`, but every wrong move leads back to the first state: the goal is found by exploring only."""
    model = chain_walk(rng, m)
    n = len(model.successors)
    forward = (model.successors == np.arange(1, n + 1)[:, None, None]) | (model.successors == -1)
    return model._replace(successors=np.where(forward, model.successors, 0))


def deep_sea(rng: np.random.Generator, m: int) -> Model:
    """A triangle of depth 10: one sequence of moves reaches the treasure, every step of it costs objective 2 a little;
    actions come in pairs that only the last objective distinguishes."""
    depth = 10
    index = {(row, column): k for k, (row, column) in enumerate((r, c) for r in range(depth) for c in range(r + 1))}
    n = len(index)
    successors, rewards = np.full((n, NUM_ACTIONS, 1), -1), np.zeros((m, n, NUM_ACTIONS, 1))
    for (row, column), s in index.items():
        actions = rng.permutation(NUM_ACTIONS)
        right, left = actions[:2], actions[2:]
        if row < depth - 1:
            successors[s, right, 0] = index[row + 1, column + 1]
            successors[s, left, 0] = index[row + 1, max(0, column - 1)]
        elif column == depth - 1:
            rewards[0, s, right] = 1.0
        rewards[m - 1, s, [right[0], left[0]]] = 0.1
        rewards[1, s, right] -= 0.01
    return Model(successors, np.ones(successors.shape), rewards)


Family = Callable[[np.random.Generator, int], Model]

DEVELOPMENT: tuple[Family, ...] = (layered, trap, temptation, hazards, noisy, one_step, never_ending)
HELD_OUT: tuple[Family, ...] = (shortest_paths, branching, mixed_scales, slippery, loops)
UP_TO_FOUR: tuple[Family, ...] = (temptation, hazards, slippery)
"""They have no more signals, or actions, than four objectives need."""
DEEP: tuple[Family, ...] = (chain_walk, chain_lock)
DEEP_HELD_OUT: tuple[Family, ...] = (deep_sea,)


def problems(m: int, split: Split, numbers: range) -> list[Problem]:
    """The problems with these numbers of each family: of all families on held-out seeds, or those for development."""
    chosen = DEVELOPMENT if split == "development" else DEVELOPMENT + HELD_OUT
    return _drawn(tuple(one for one in chosen if m <= 4 or one not in UP_TO_FOUR), m, split, numbers)


def deep(m: int, split: Split, numbers: range) -> list[Problem]:
    """Long chains with sparse rewards."""
    return _drawn(DEEP if split == "development" else DEEP + DEEP_HELD_OUT, m, split, numbers)


def noise_first(m: int, split: Split, numbers: range) -> list[Problem]:
    """Pure noise as a new first objective before those of a development family."""

    def silenced(model: Model) -> Model:
        return model._replace(rewards=np.concatenate([np.zeros_like(model.rewards[:1]), model.rewards[1:]]))

    each = [
        (family.__name__, silenced(family(_generator(family.__name__, split, k), m)))
        for family in (layered, trap, temptation, one_step)
        for k in numbers
    ]
    return [problem(f"noise before {name}", model, np.eye(m)[0]) for name, model in each]


def inserted(split: Split, place: int, noise: float, numbers: range) -> list[Problem]:
    """The problems with M = 2 and a further objective at a place in the order (0: first) that is always 0, but for its
    noise."""

    def widened(model: Model) -> tuple[Model, np.ndarray]:
        rewards = np.insert(model.rewards, place, 0.0, axis=0)
        return model._replace(rewards=rewards), np.insert(np.full(2, model.noise), place, noise)

    chosen = DEVELOPMENT if split == "development" else DEVELOPMENT + HELD_OUT
    return [
        problem(family.__name__, *widened(family(_generator(family.__name__, split, k), 2)))
        for family in chosen
        for k in numbers
    ]


class Slack(NamedTuple):
    """A problem with a slack on the return of every objective but the last."""

    problem: Problem
    slack: tuple[float, ...]
    """Shares of what separates the optimum from that of the reversed order; 0 for the last."""
    most: float
    """What the last objective has at best while the others lose no more than their slack."""


SHARES = (0.05, 0.2, 0.6)
"""Small, middling and large, in turns."""


def slacks(m: int, split: Split, numbers: range) -> list[Slack]:
    """Problems in which objectives can be traded for less important ones."""
    found = []
    for k, each in enumerate(_drawn((layered, temptation, trap), m, split, numbers)):
        reversed_order = " > ".join(f"max {signal}" for signal in reversed(each.momdp.signals))
        room = np.maximum(each.optimum - exact.solve(each.momdp, reversed_order).returns[::-1], 0.0)
        slack = SHARES[k % len(SHARES)] * room * (np.arange(m) < m - 1)
        most = exact.solve_slack(each.momdp, each.order, slack=slack).returns[-1]
        found.append(Slack(each, tuple(slack.tolist()), float(most)))
    return found


def problem(name: str, model: Model, noise: np.ndarray | float | None = None) -> Problem:
    """A model with everything that is known about it; `noise` per objective instead of the model's own."""
    momdp = _momdp(model)
    m = momdp.num_objectives
    env = FiniteEnv(momdp, max_episode_steps=MAX_EPISODE_STEPS)
    each = np.broadcast_to(np.asarray(model.noise if noise is None else noise, float), (m,)).copy()
    env = eqx.tree_at(lambda env: env.reward_noise, env, each)
    order = " > ".join(f"max {signal}" for signal in momdp.signals)
    ends = [
        [sign * exact.solve(momdp, f"{word} {signal}").returns[0] for word, sign in (("max", 1), ("min", -1))]
        for signal in momdp.signals
    ]
    spans = np.array([high - low for high, low in ends])
    spans = np.where(spans > 1e-9 * np.abs(ends).max(axis=1), spans, 0.0)
    return Problem(name, env, momdp, order, exact.solve(momdp, order).returns, spans)


def _drawn(families: tuple[Family, ...], m: int, split: Split, numbers: range) -> list[Problem]:
    return [
        problem(family.__name__, family(_generator(family.__name__, split, k), m))
        for family in families
        for k in numbers
    ]


def _generator(name: str, split: Split, k: int) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(name.encode()), 0 if split == "development" else 1, k])


def _momdp(model: Model) -> MOMDP:
    m, n = model.rewards.shape[:2]
    transitions = np.zeros((NUM_STATES, NUM_ACTIONS, NUM_STATES))
    paid = np.zeros((m, NUM_STATES, NUM_ACTIONS, NUM_STATES))
    end = NUM_STATES - 1
    successors = np.where(model.successors < 0, end, model.successors)
    s, a, _ = np.indices(successors.shape)
    np.add.at(transitions, (s, a, successors), model.probabilities)
    for i in range(m):
        np.add.at(paid[i], (s, a, successors), model.probabilities * model.rewards[i])
    rewards: Any = np.divide(paid, transitions, out=np.zeros_like(paid), where=transitions > 0)
    transitions[n:, :, end] = 1.0
    initial = np.zeros(NUM_STATES)
    initial[list(model.start)] = 1 / len(model.start)
    signals = tuple(f"o{i + 1}" for i in range(m))
    return MOMDP.from_arrays(
        transitions, rewards, GAMMA, initial=initial, terminal=np.arange(n, NUM_STATES), signals=signals
    )
