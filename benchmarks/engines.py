"""Engines: what a second worker process brings, and what Ray costs for each run.

Four runs of tabular Q-learning, two seeds each, with one and with two worker processes; and short runs on a local Ray
cluster that is already up, against the same runs here.
"""

import importlib
import pathlib
import tempfile
import time
from typing import Any

import lexrl
from lexrl.runs import Run, plan

LONG, SHORT = 3_000_000, 20_000
NUM_LONG, NUM_SHORT = 4, 8


def planned(folder: pathlib.Path, count: int, steps: int) -> dict[pathlib.Path, Run]:
    """Runs with the same program and other seeds."""
    settings: dict[str, Any] = {"env_kwargs": {"size": 8}, "eval_episodes": 10}
    return {
        folder / str(i): plan(
            "q-learning", "grid-nav", "min cost > max reward", [2 * i, 2 * i + 1], steps, 5, **settings
        )
        for i in range(count)
    }


def seconds(engine: lexrl.Engine, count: int, steps: int) -> float:
    """How long an engine takes."""
    with tempfile.TemporaryDirectory() as folder:
        runs = planned(pathlib.Path(folder), count, steps)
        begun = time.monotonic()
        outcomes = engine.execute(runs)
        assert all(one.state == "finished" for one in outcomes), outcomes
        return time.monotonic() - begun


def main() -> None:
    """Print the times, and what follows from them."""
    lexrl.configure()
    print_scaling()
    print_overhead()


def print_scaling() -> None:
    """Of one and two worker processes."""
    seconds(lexrl.Engine("processes", 1), 1, SHORT)  # compiled programs are cached on disk from here on
    one, two = (seconds(lexrl.Engine("processes", workers), NUM_LONG, LONG) for workers in (1, 2))
    print(f"{NUM_LONG} runs of {LONG:,} steps: 1 worker process {one:.1f} s, 2 of them {two:.1f} s, {one / two:.2f} x")


def print_overhead() -> None:
    """Of a run on Ray."""
    ray = importlib.import_module("ray")
    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    first = seconds(lexrl.Engine("ray"), 1, SHORT)
    seconds(lexrl.Engine(), 1, SHORT)
    here, there = (seconds(lexrl.Engine(kind), NUM_SHORT, SHORT) for kind in ("here", "ray"))
    ray.shutdown()
    print(f"the first short run on Ray, whose worker imports everything: {first:.1f} s")
    more = (there - here) / NUM_SHORT
    print(f"{NUM_SHORT} short runs: here {here:.1f} s, on Ray {there:.1f} s, {more:.2f} s more for each")


if __name__ == "__main__":
    main()
