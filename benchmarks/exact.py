"""How fast the exact solvers are, side by side in one run, and whether they agree.

python benchmarks/exact.py [--states 512] [--objectives 10] [--side 100] [--repeats 3]
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import quantecon
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table

from lexrl.exact import solve, solve_slack
from lexrl.momdp import MOMDP, from_outcomes, random_momdp


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the exact solvers.")
    parser.add_argument("--states", type=int, default=512, help="states of the random MOMDP")
    parser.add_argument("--objectives", type=int, default=10, help="objectives of the random MOMDP")
    parser.add_argument("--side", type=int, default=100, help="side of the grid")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each; the median counts")
    arguments = parser.parse_args()
    table = Table("world", "solver", "median s", "against policy iteration", "largest difference")
    random_rows(table, arguments.states, arguments.objectives, arguments.repeats)
    quantecon_rows(table, arguments.states, arguments.repeats)
    grid_rows(table, arguments.side, arguments.repeats)
    Console(width=120).print(table)


def random_rows(table: Table, states: int, objectives: int, repeats: int) -> None:
    """Policy iteration, value iteration and linear programs on one random MOMDP with planted ties."""
    world = random_momdp(0, states, 4, objectives, gamma=0.9, ties=0.5)
    order = " > ".join(f"max {name}" for name in world.objectives)
    name = f"random, S={states} A=4 M={objectives}"
    first, reference = timed(lambda: solve(world, order), repeats)
    table.add_row(name, "policy iteration", f"{first:.3f}", "1.0", "")
    seconds, values = timed(lambda: solve(world, order, method="value"), repeats)
    difference = np.max(np.abs(values.values - reference.values))
    table.add_row(name, "value iteration", f"{seconds:.3f}", f"{seconds / first:.1f}", f"{difference:.1e} (values)")
    seconds, programs = timed(lambda: solve_slack(world, order), repeats)
    difference = np.max(np.abs(programs.returns - reference.returns))
    table.add_row(name, "linear programs", f"{seconds:.3f}", f"{seconds / first:.1f}", f"{difference:.1e} (J)")


def quantecon_rows(table: Table, states: int, repeats: int) -> None:
    """One objective, against quantecon's policy iteration; the difference is the largest over all states' values."""
    world = random_momdp(0, states, 4, 1, gamma=0.9)
    dense = world.transitions.toarray().reshape(states, 4, states)
    other = quantecon.markov.DiscreteDP(world.rewards[0], dense, 0.9)
    other.solve(method="policy_iteration")  # compiles
    ours, solution = timed(lambda: solve(world), repeats)
    theirs, found = timed(lambda: other.solve(method="policy_iteration"), repeats)
    name = f"random, S={states} A=4 M=1"
    table.add_row(name, "policy iteration", f"{ours:.3f}", "1.0", "")
    difference = np.max(np.abs(found.v - solution.values[0]))
    table.add_row(name, "quantecon", f"{theirs:.3f}", f"{theirs / ours:.1f}", f"{difference:.1e} (values)")


def grid_rows(table: Table, side: int, repeats: int) -> None:
    """A grid with obstacles and slips, by sparse elimination and by an iterative linear solver."""
    world = grid(side)
    order = "min cost > max reward"
    name = f"grid, S={side * side} A=4 M=2"
    first, reference = timed(lambda: solve(world, order), repeats)
    table.add_row(name, "policy iteration", f"{first:.3f}", "1.0", "")
    seconds, found = timed(lambda: solve(world, order, method="iterative"), repeats)
    difference = np.max(np.abs(found.values - reference.values))
    table.add_row(name, "the same, iterative", f"{seconds:.3f}", f"{seconds / first:.1f}", f"{difference:.1e} (values)")
    Console().print(f"{name}: {reference}", soft_wrap=True)


def grid(side: int, *, gamma: float = 0.99, slip: float = 0.1, seed: int = 0) -> MOMDP:
    """Four moves on a square with obstacles; from the bottom right corner to the top right one."""
    states = np.arange(side * side)
    row, column = np.divmod(states, side)
    moves = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    ways = [np.clip(row + y, 0, side - 1) * side + np.clip(column + x, 0, side - 1) for y, x in moves]
    parts = [(states * 4 + a, ways[b], slip / 4 + (1 - slip) * (a == b)) for a in range(4) for b in range(4)]
    rows, columns = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    weights = np.repeat([part[2] for part in parts], len(states))
    matrix = sp.csr_array((weights, (rows, columns)), shape=(4 * len(states), len(states)))
    obstacle = np.random.default_rng(seed).random(len(states)) < 0.3
    goal = side - 1
    signals = np.stack([100.0 * (matrix.indices == goal), 1.0 * obstacle[matrix.indices]], axis=1)
    start = np.eye(1, len(states), len(states) - 1)[0]
    return from_outcomes(matrix, signals, 4, gamma, initial=start, terminal=[goal], objectives=["reward", "cost"])


def timed(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The median time of several runs, and what the last one found."""
    seconds, found = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        found = run()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds)), found


if __name__ == "__main__":
    main()
