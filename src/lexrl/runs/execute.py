"""Executing a run: to its end, or part by part."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import jax
import numpy as np

from lexrl.loops import compiled, host
from lexrl.loops.compiled import Seat
from lexrl.loops.population import Population
from lexrl.runs import trees
from lexrl.runs.plan import Run, on_host
from lexrl.runs.result import Result


class Standing(NamedTuple):
    """Where a run stands: all that is needed to go on."""

    seats: Seat
    steps: np.ndarray
    metrics: dict[str, np.ndarray]
    seconds: float = 0.0
    """Time it took to get there."""


def stream_run(run: Run, standing: Standing | None = None) -> Iterator[Result]:
    """Execute a run, or go on from where it stands, with a result after each part; at least one."""
    begun = time.monotonic()
    people = run.population()
    points = [] if standing is None else list(standing.steps)
    metrics = {} if standing is None else {name: list(values) for name, values in standing.metrics.items()}
    before = 0.0 if standing is None else standing.seconds

    def result(seats: Seat, faults: dict[int, str]) -> Result:
        stacked = {name: np.stack(values) for name, values in metrics.items()}
        return Result(run, people, seats, np.array(points), stacked, faults, before + time.monotonic() - begun)

    nothing = True
    for chunk in advance(run, people, first_seats(run, people) if standing is None else standing.seats):
        points.append(chunk.steps)
        for name, values in chunk.metrics.items():
            metrics.setdefault(name, []).append(values)
        nothing = False
        yield result(chunk.seats, chunk.faults)
    if nothing and standing is not None:  # all parts had been done
        fault = jax.tree.map(np.asarray, standing.seats.fault)
        yield result(standing.seats, compiled.complaints(fault, run.seeds, run.order))


def first_seats(run: Run, people: Population) -> Seat:
    """Everyone before the first step."""
    return host.start(people, run.env) if on_host(run.env) else compiled.start(people)


def advance(run: Run, people: Population, seats: Seat) -> Iterator[compiled.Chunk]:
    if on_host(run.env):
        return host.advance(people, run.env, seats, run.steps, chunks=run.chunks)
    return compiled.advance(people, seats, run.steps, chunks=run.chunks)


def execute(run: Run, watch: Callable[[Result], None] | None = None) -> Result:
    """Execute a run to its end; `watch` is called after each part."""
    result = None
    for result in stream_run(run):
        if watch is not None:
            watch(result)
    assert result is not None
    return result


def seats_from(run: Run, people: Population, arrays: Mapping[str, np.ndarray], prefix: str) -> Seat:
    """Seats from named arrays, laid out over the devices as those of a running program are."""
    if on_host(run.env):
        return trees.rebuilt(first_seats(run, people), arrays, prefix)
    template = jax.eval_shape(lambda: first_seats(run, people))
    return jax.device_put(trees.rebuilt(template, arrays, prefix), people.seeds.sharding)
