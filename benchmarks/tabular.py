"""How fast tabular learning is, as ratios within one run.

    make bench        or        python benchmarks/tabular.py [--repeats 5] [--total-timesteps 100000]

30 random MOMDPs side by side (S = 256, A = 4, Gaussian reward noise), lexicographic Q-learning with constant rates, on
one core. The twins do the same work: the numba loop one MOMDP after the other, the plain-Python one with dictionaries.
Times are process times, so that a busy machine disturbs them less; each ratio is a median over repeats.
"""

import argparse
import os
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

if hasattr(os, "sched_setaffinity"):  # one core: process time is then the time of that core
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import jax
import numba
import numpy as np
from rich.console import Console
from rich.table import Table

import lexrl
from lexrl.envs.finite import FiniteEnv
from lexrl.envs.per_seed import per_seed
from lexrl.loops import compiled
from lexrl.loops.population import make_population
from lexrl.order import parse

ALPHA, EPSILON, TAU, GAMMA = 0.01, 0.05, 0.01, 0.9
MEMBERS = 30


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of tabular learning, as ratios within one run.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--total-timesteps", type=int, default=100_000, help="steps of each of the 30 seeds and repeat")
    settings = parser.parse_args()
    envs = {
        "M=4, S=256": [lexrl.random_env(momdp_seed=i, num_signals=4) for i in range(MEMBERS)],
        "M=2, S=256": [lexrl.random_env(momdp_seed=i, num_signals=2) for i in range(MEMBERS)],
        "M=16, S=256": [lexrl.random_env(momdp_seed=i, num_signals=16) for i in range(MEMBERS)],
        "M=4, S=256, 16 successors": [
            lexrl.random_env(momdp_seed=i, num_signals=4, num_successors=16) for i in range(MEMBERS)
        ],
        "M=4, S=4096, 16 successors": [
            lexrl.random_env(momdp_seed=i, num_states=4096, num_signals=4, num_successors=16) for i in range(MEMBERS)
        ],
    }
    contestants: dict[str, Callable[[], float]] = {
        f"lexrl {name}": lexrl_run(each, settings.total_timesteps) for name, each in envs.items()
    }
    contestants["numba M=4, S=256"] = numba_run(envs["M=4, S=256"], settings.total_timesteps)
    contestants["dictionaries M=4, S=256"] = python_run(envs["M=4, S=256"][0], settings.total_timesteps // 20)
    speeds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(settings.repeats):  # in turns, so that a slow moment hits all of them
        for name, contestant in contestants.items():
            speeds[name].append(contestant())
    report(speeds)


def report(speeds: dict[str, list[float]]) -> None:
    console = Console()
    table = Table("what", "transitions/s on one core, median", "range", box=None)
    for name, each in speeds.items():
        table.add_row(name, f"{statistics.median(each):,.0f}", f"{min(each):,.0f} to {max(each):,.0f}")
    console.print(table)
    ours = "lexrl M=4, S=256"
    goals = Table("ratio", "median", "goal", box=None)

    def ratio(text: str, first: str, second: str, goal: str) -> None:
        middle = statistics.median(a / b for a, b in zip(speeds[first], speeds[second], strict=True))
        goals.add_row(text, f"{middle:.3g}", goal)

    ratio("speed against numba", ours, "numba M=4, S=256", "at least 0.6")
    ratio("speed against dictionaries", ours, "dictionaries M=4, S=256", "at least 200")
    ratio("cost of M = 16 against M = 2", "lexrl M=2, S=256", "lexrl M=16, S=256", "less than 4")
    sparse = ("lexrl M=4, S=256, 16 successors", "lexrl M=4, S=4096, 16 successors")
    ratio("cost of S = 4096 against S = 256, sparse", *sparse, "less than 1.5")
    console.print(goals)


def lexrl_run(envs: list[FiniteEnv], steps: int) -> Callable[[], float]:
    """The library's own loop, for all environments at once; compiled before it is timed."""
    m = len(envs[0].spec.signals)
    order = parse(" > ".join(f"max signal_{i + 1}" for i in range(m)))
    constants = {"alpha": ALPHA, "exploration": f"epsilon {EPSILON}", "tolerance": TAU, "gamma": GAMMA}
    algorithm = lexrl.QLearning(**{**lexrl.catalog.TEXTBOOK, **constants})
    population = make_population(algorithm, per_seed(envs), order, range(len(envs)), jax.devices()[:1])
    train_states = compiled.start(population)
    list(compiled.advance(population, train_states, 1, num_log_points=1))

    def timed() -> float:
        begun = time.process_time()
        list(compiled.advance(population, train_states, steps, num_log_points=1))
        return steps * len(envs) / (time.process_time() - begun)

    return timed


def numba_run(envs: list[FiniteEnv], steps: int) -> Callable[[], float]:
    """The twin: one compiled loop for each environment, one after the other."""
    tables = [np.asarray(env.slots, np.float32) for env in envs]

    def run(n: int) -> None:
        for seed, slots in enumerate(tables):
            num_states, num_actions, _, width = slots.shape
            q = np.zeros((num_states, width - 3, num_actions), np.float32)
            numba_loop(slots, q, n, seed)

    run(1)

    def timed() -> float:
        begun = time.process_time()
        run(steps)
        return steps * len(envs) / (time.process_time() - begun)

    return timed


@numba.njit
def numba_loop(slots: Any, q: Any, steps: int, seed: int) -> None:
    np.random.seed(seed)  # noqa: NPY002
    num_actions, num_objectives = q.shape[2], q.shape[1]
    allowed = np.ones(num_actions, np.bool_)
    s = 0
    for t in range(steps):
        if t % 100 == 0:  # episodes of a hundred steps, as in the environment
            s = np.random.randint(q.shape[0])  # noqa: NPY002
        if np.random.random() < EPSILON:  # noqa: NPY002
            a = np.random.randint(num_actions)  # noqa: NPY002
        else:
            allowed[:] = True
            for i in range(num_objectives):
                best = -np.inf
                for b in range(num_actions):
                    if allowed[b] and q[s, i, b] > best:
                        best = q[s, i, b]
                for b in range(num_actions):
                    if q[s, i, b] < best - TAU:
                        allowed[b] = False
            left = 0
            for b in range(num_actions):
                left += allowed[b]
            skip = np.random.randint(left)  # noqa: NPY002
            a = 0
            for b in range(num_actions):
                if allowed[b]:
                    if skip == 0:
                        a = b
                        break
                    skip -= 1
        slot = int(np.random.random() * slots.shape[2])  # noqa: NPY002
        if np.random.random() >= slots[s, a, slot, 0]:  # noqa: NPY002
            slot = int(slots[s, a, slot, 1])
        following = int(slots[s, a, slot, 2])
        allowed[:] = True
        for i in range(num_objectives):
            best = -np.inf
            for b in range(num_actions):
                if allowed[b] and q[following, i, b] > best:
                    best = q[following, i, b]
            for b in range(num_actions):
                if q[following, i, b] < best - TAU:
                    allowed[b] = False
            reward = slots[s, a, slot, 3 + i] + 0.2 * np.random.normal()  # noqa: NPY002
            q[s, i, a] += ALPHA * (reward + GAMMA * best - q[s, i, a])
        s = following


def python_run(env: FiniteEnv, steps: int) -> Callable[[], float]:
    """The twin in plain Python: a dictionary for each objective, lists for the admissible actions."""
    slots: list[list[list[list[float]]]] = np.asarray(env.slots).tolist()
    num_states, num_actions, n_slots, m = len(slots), len(slots[0]), len(slots[0][0]), len(env.spec.signals)

    def best_actions(q: list[dict[tuple[int, int], float]], s: int) -> tuple[list[int], list[float]]:
        allowed, bests = list(range(num_actions)), []
        for values in q:
            best = max(values[s, b] for b in allowed)
            bests.append(best)
            allowed = [b for b in allowed if values[s, b] >= best - TAU]
        return allowed, bests

    def timed() -> float:
        q = [{(s, a): 0.0 for s in range(num_states) for a in range(num_actions)} for _ in range(m)]
        rng, s = random.Random(0), 0
        begun = time.process_time()
        for _ in range(steps):
            a = rng.randrange(num_actions) if rng.random() < EPSILON else rng.choice(best_actions(q, s)[0])
            slot = rng.randrange(n_slots)
            keep, refers, *_ = slots[s][a][slot]
            outcome = slots[s][a][slot if rng.random() < keep else int(refers)]
            following = int(outcome[2])
            bests = best_actions(q, following)[1]
            for i in range(m):
                reward = outcome[3 + i] + rng.gauss(0.0, 0.2)
                q[i][s, a] += ALPHA * (reward + GAMMA * bests[i] - q[i][s, a])
            s = following
        return steps / (time.process_time() - begun)

    return timed


if __name__ == "__main__":
    main()
