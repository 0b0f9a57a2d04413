"""How fast the exact solvers are on one core, side by side in one run, and whether they agree.

make bench        or        python benchmarks/exact.py [--only random quantecon grid slack curve large] [--repeats 3]

With another version of lexrl in a folder, programs are timed with both, one after the other:

    git worktree add ../other 2ec11db && python benchmarks/exact.py --only slack --against ../other/src
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import quantecon
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table

from lexrl.envs.grid_nav import GridNav
from lexrl.exact import critical_slack, solve, solve_slack
from lexrl.momdp import MOMDP

ORDER = "min cost > max reward"


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the exact solvers.")
    parser.add_argument("--states", type=int, default=512, help="states of the random MOMDP")
    parser.add_argument("--objectives", type=int, default=10, help="objectives of the random MOMDP")
    parser.add_argument("--side", type=int, default=316, help="side of the grid")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each; the median counts")
    parser.add_argument("--against", help="folder with another version of lexrl, to time programs with")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=[name for name in ROWS if name != "large"])
    arguments = parser.parse_args()
    table = Table("MOMDP", "solver", "median s", "against the first row", "largest difference")
    for name in arguments.only:
        ROWS[name](table, arguments)
    Console(width=130).print(table)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    Console().print(f"Largest memory: {most:.1f} GB")


def random_rows(table: Table, arguments: Any) -> None:
    """Policy iteration, value iteration and programs on one random MOMDP with planted ties."""
    states, objectives, repeats = arguments.states, arguments.objectives, arguments.repeats
    momdp = MOMDP.random(0, states, 4, objectives, gamma=0.9, tie_fraction=0.5)
    name, order = f"random, S={states} A=4 M={objectives}", order_of(momdp)
    first, reference = timed(lambda: solve(momdp, order), repeats)
    table.add_row(name, "policy iteration", f"{first:.3f}", "1.0", "")
    seconds, values = timed(lambda: solve(momdp, order, method="value"), repeats)
    difference = np.max(np.abs(values.values - reference.values))
    table.add_row(name, "value iteration", f"{seconds:.3f}", f"{seconds / first:.1f}", f"{difference:.1e} (values)")
    seconds, programs = timed(lambda: solve_slack(momdp, order), repeats)
    difference = np.max(np.abs(programs.returns - reference.returns))
    table.add_row(name, "programs, no slack", f"{seconds:.3f}", f"{seconds / first:.1f}", f"{difference:.1e} (J)")


def quantecon_rows(table: Table, arguments: Any) -> None:
    """One objective, against quantecon's policy iteration; the difference is the largest over all states' values."""
    states, repeats = arguments.states, arguments.repeats
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


def grid_rows(table: Table, arguments: Any) -> None:
    """A sparse grid with both objectives, against quantecon on the first of them alone."""
    momdp = GridNav.generate(size=arguments.side).momdp(gamma=0.99)
    name = f"GridNav, S={momdp.num_states}"
    first, reference = timed(lambda: solve(momdp, ORDER), arguments.repeats)
    table.add_row(f"{name} M=2", "policy iteration", f"{first:.3f}", "1.0", "")
    other = sparse_program(momdp.ordered(ORDER))
    theirs, found = timed(lambda: other.solve(method="policy_iteration"), arguments.repeats)
    difference = np.max(np.abs(found.v - reference.values[0])[~momdp.terminal])
    table.add_row(f"{name} M=1", "quantecon", f"{theirs:.3f}", f"{theirs / first:.1f}", f"{difference:.1e} (values)")
    Console().print(f"{name}: {reference}", soft_wrap=True)


def sparse_program(process: MOMDP) -> Any:
    """The first objective as quantecon takes it: one row for each state and action; terminal states loop, unpaid."""
    pairs = np.arange(process.num_states * process.num_actions)
    ended = np.repeat(process.terminal, process.num_actions)
    stay = sp.csr_matrix((ended.astype(float), (pairs, pairs // process.num_actions)), shape=process.transitions.shape)
    keep = sp.diags_array((~ended).astype(float)) @ process.transitions
    matrix = sp.csr_matrix(keep + stay)
    actions, states = pairs % process.num_actions, pairs // process.num_actions
    return quantecon.markov.DiscreteDP(process.rewards[0].ravel(), matrix, float(process.gamma[0]), states, actions)


def slack_rows(table: Table, arguments: Any) -> None:
    """Policy tolerance: dense and random, and on the grid."""
    for states, objectives, slack in ((200, 3, 0.1), (1000, 4, 0.0), (1000, 4, 0.1)):
        momdp = MOMDP.random(0, states, 4, objectives, gamma=0.95, tie_fraction=0.5)
        seconds, found = timed(lambda momdp=momdp, slack=slack: solve_slack(momdp, order_of(momdp), slack=slack), 1)
        name, solver = f"random, S={states} A=4 M={objectives}", f"programs, slack {slack:g}"
        table.add_row(name, solver, f"{seconds:.2f}", "1.0", f"{np.max(np.abs(found.gaps)):.1e} (primal-dual gap)")
        if arguments.against:
            other = seconds_of_other(arguments.against, states, objectives, slack)
            table.add_row(name, f"{solver}, {arguments.against}", f"{other:.2f}", f"{other / seconds:.1f}", "")
    momdp = GridNav.generate(size=arguments.side).momdp(gamma=0.99)
    seconds, found = timed(lambda: solve_slack(momdp, "min cost ±1 > max reward"), 1)
    note = f"{np.max(np.abs(found.gaps)):.1e} (primal-dual gap)"
    table.add_row(f"GridNav, S={momdp.num_states} M=2", "programs, slack 1", f"{seconds:.2f}", "", note)


OTHER = """
import sys, time
from lexrl.exact import solve_slack
from lexrl.momdp import MOMDP
states, objectives, slack = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
momdp = MOMDP.random(0, states, 4, objectives, gamma=0.95, tie_fraction=0.5)
order = " > ".join(f"max {name}" for name in momdp.signals)
start = time.process_time()
solve_slack(momdp, order, slack=slack)
print(time.process_time() - start)
"""


def seconds_of_other(folder: str, states: int, objectives: int, slack: float) -> float:
    """What another version of lexrl takes for the same program, on the same core."""
    command = [sys.executable, "-c", OTHER, str(states), str(objectives), str(slack)]
    environment = os.environ | {"PYTHONPATH": folder}
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def curve_rows(table: Table, arguments: Any) -> None:
    """The critical-slack curve: every corner."""
    momdp = GridNav.generate(size=25).momdp(gamma=0.99)
    seconds, found = timed(lambda: critical_slack(momdp, ORDER), 1)
    table.add_row("GridNav, S=625 M=2", "critical-slack curve", f"{seconds:.2f}", "", f"{len(found)} corners")


def large_rows(table: Table, arguments: Any) -> None:
    """A million states."""
    momdp = GridNav.generate(size=1000).momdp(gamma=0.99)
    seconds, found = timed(lambda: solve(momdp, ORDER), 1)
    note = f"{np.max(found.certificate.errors):.1e} (bound on the error)"
    table.add_row(f"GridNav, S={momdp.num_states} M=2", "policy iteration", f"{seconds:.1f}", "", note)


ROWS = {
    "random": random_rows,
    "quantecon": quantecon_rows,
    "grid": grid_rows,
    "slack": slack_rows,
    "curve": curve_rows,
    "large": large_rows,
}


def order_of(momdp: MOMDP) -> str:
    return " > ".join(f"max {name}" for name in momdp.signals)


def timed(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The median time of several runs, in seconds of the core, whatever else it does; and what the last one found."""
    seconds, found = [], None
    for _ in range(repeats):
        start = time.process_time()
        found = run()
        seconds.append(time.process_time() - start)
    return float(np.median(seconds)), found


if __name__ == "__main__":
    main()
