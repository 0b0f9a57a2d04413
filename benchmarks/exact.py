"""How fast the exact solvers are on one core, side by side in one run, and whether they agree.

make bench        or        python benchmarks/exact.py [--states 512] [--objectives 10] [--side 100] [--repeats 3]
"""

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np
import quantecon
from rich.console import Console
from rich.table import Table

from lexrl.envs import GridNav
from lexrl.exact import solve, solve_slack
from lexrl.momdp import MOMDP


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the exact solvers.")
    parser.add_argument("--states", type=int, default=512, help="states of the random MOMDP")
    parser.add_argument("--objectives", type=int, default=10, help="objectives of the random MOMDP")
    parser.add_argument("--side", type=int, default=100, help="side of the grid")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each; the median counts")
    arguments = parser.parse_args()
    table = Table("MOMDP", "solver", "median s", "against policy iteration", "largest difference")
    random_rows(table, arguments.states, arguments.objectives, arguments.repeats)
    quantecon_rows(table, arguments.states, arguments.repeats)
    grid_rows(table, arguments.side, arguments.repeats)
    Console(width=120).print(table)


def random_rows(table: Table, states: int, objectives: int, repeats: int) -> None:
    """Policy iteration, value iteration and linear programs on one random MOMDP with planted ties."""
    momdp = MOMDP.random(0, states, 4, objectives, gamma=0.9, tie_fraction=0.5)
    order = " > ".join(f"max {name}" for name in momdp.signals)
    name = f"random, S={states} A=4 M={objectives}"
    first, reference = timed(lambda: solve(momdp, order), repeats)
    table.add_row(name, "policy iteration", f"{first:.3f}", "1.0", "")
    seconds, values = timed(lambda: solve(momdp, order, method="value"), repeats)
    difference = np.max(np.abs(values.values - reference.values))
    table.add_row(name, "value iteration", f"{seconds:.3f}", f"{seconds / first:.1f}", f"{difference:.1e} (values)")
    seconds, programs = timed(lambda: solve_slack(momdp, order), repeats)
    difference = np.max(np.abs(programs.returns - reference.returns))
    table.add_row(name, "linear programs", f"{seconds:.3f}", f"{seconds / first:.1f}", f"{difference:.1e} (J)")


def quantecon_rows(table: Table, states: int, repeats: int) -> None:
    """One objective, against quantecon's policy iteration; the difference is the largest over all states' values."""
    momdp = MOMDP.random(0, states, 4, 1, gamma=0.9)
    dense = momdp.transitions.toarray().reshape(states, 4, states)
    other = quantecon.markov.DiscreteDP(momdp.rewards[0], dense, 0.9)
    other.solve(method="policy_iteration")  # compiles
    ours, solution = timed(lambda: solve(momdp), repeats)
    theirs, found = timed(lambda: other.solve(method="policy_iteration"), repeats)
    name = f"random, S={states} A=4 M=1"
    table.add_row(name, "policy iteration", f"{ours:.3f}", "1.0", "")
    difference = np.max(np.abs(found.v - solution.values[0]))
    table.add_row(name, "quantecon", f"{theirs:.3f}", f"{theirs / ours:.1f}", f"{difference:.1e} (values)")


def grid_rows(table: Table, side: int, repeats: int) -> None:
    """GridNav, by sparse elimination and by an iterative linear solver."""
    momdp = GridNav.generate(size=side).momdp(gamma=0.99)
    order = "min cost > max reward"
    name = f"GridNav, S={side * side} A=4 M=2"
    first, reference = timed(lambda: solve(momdp, order), repeats)
    table.add_row(name, "policy iteration", f"{first:.3f}", "1.0", "")
    seconds, found = timed(lambda: solve(momdp, order, method="iterative"), repeats)
    difference = np.max(np.abs(found.values - reference.values))
    table.add_row(name, "the same, iterative", f"{seconds:.3f}", f"{seconds / first:.1f}", f"{difference:.1e} (values)")
    Console().print(f"{name}: {reference}", soft_wrap=True)


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
