"""Executing a run: to its end, or part by part."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import jax
import numpy as np

from lexrl.backend import ensure_configured
from lexrl.loops import compiled, faults, host
from lexrl.loops.chunks import Chunk, TrainState
from lexrl.loops.population import Population
from lexrl.runs import trees
from lexrl.runs.plan import Run, on_host
from lexrl.runs.result import Result


class Standing(NamedTuple):
    """Where a run stands: all that is needed to go on."""

    train_states: TrainState
    steps: np.ndarray
    metrics: dict[str, np.ndarray]
    seconds: float = 0.0
    """Time it took to get there."""


def stream_run(run: Run, standing: Standing | None = None) -> Iterator[Result]:
    """Execute a run, or go on from where it stands, with a result after each part; at least one."""
    ensure_configured()
    begun = time.monotonic()
    population = run.population()
    points = [] if standing is None else list(standing.steps)
    metrics = {} if standing is None else {name: list(values) for name, values in standing.metrics.items()}
    before = 0.0 if standing is None else standing.seconds

    def result(train_states: TrainState, faults: dict[int, str]) -> Result:
        stacked = {name: np.stack(values) for name, values in metrics.items()}
        return Result(
            run, population, train_states, np.array(points), stacked, faults, before + time.monotonic() - begun
        )

    nothing = True
    for chunk in advance(
        run, population, initial_train_states(run, population) if standing is None else standing.train_states
    ):
        points.append(chunk.steps)
        for name, values in chunk.metrics.items():
            metrics.setdefault(name, []).append(values)
        nothing = False
        yield result(chunk.train_states, chunk.faults)
    if nothing and standing is not None:  # all parts had been done
        fault = jax.tree.map(np.asarray, standing.train_states.fault)
        yield result(standing.train_states, faults.sentences(fault, run.seeds, run.order))


def initial_train_states(run: Run, population: Population) -> TrainState:
    """Everyone before the first step."""
    return host.start(population, run.env) if on_host(run.env) else compiled.start(population)


def advance(run: Run, population: Population, train_states: TrainState) -> Iterator[Chunk]:
    if on_host(run.env):
        return host.advance(population, run.env, train_states, run.total_timesteps, num_log_points=run.num_log_points)
    return compiled.advance(population, train_states, run.total_timesteps, num_log_points=run.num_log_points)


def execute(run: Run, watch: Callable[[Result], None] | None = None) -> Result:
    """Execute a run to its end; `watch` is called after each part."""
    result = None
    for result in stream_run(run):
        if watch is not None:
            watch(result)
    assert result is not None
    return result


def restore_train_states(run: Run, population: Population, arrays: Mapping[str, np.ndarray], prefix: str) -> TrainState:
    """Seats from named arrays, laid out over the devices as those of a running program are."""
    if on_host(run.env):
        return trees.rebuilt(initial_train_states(run, population), arrays, prefix)
    template = jax.eval_shape(lambda: initial_train_states(run, population))
    return jax.device_put(trees.rebuilt(template, arrays, prefix), population.seeds.sharding)
