"""The one pipeline: `lexrl.train`, the command line, `lexrl.resume` and experiments all execute runs here."""

import contextlib
import pathlib
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from lexrl import backend, store
from lexrl.loops import compiled, faults, host
from lexrl.loops.chunks import Chunk, TrainState
from lexrl.loops.population import Population
from lexrl.runs import checkpoints, logs, record
from lexrl.runs.checkpoints import Checkpoint
from lexrl.runs.observers import Observer, Snapshot, Start
from lexrl.runs.policy import make_policies
from lexrl.runs.result import Result
from lexrl.runs.run import Run, on_host


def execute(
    run: Run,
    folder: pathlib.Path | None = None,
    observers: Sequence[Observer] = (),
    measure: Callable[[Result], dict[str, Any]] | None = None,
) -> Iterator[Result]:
    """Execute a run, or continue the one in the folder; yield a result after every chunk, and leave a finished folder.

    The last result has a summary, with an evaluation, if there is a folder. `measure` adds numbers to it.
    """
    backend.ensure_configured()
    checkpoint = None if folder is None else _open(folder, run)
    start = Start(folder, 0 if checkpoint is None else int(checkpoint.steps[-1]))
    plugged = list(observers) if folder is None else [checkpoints.observe, logs.observe, *observers]
    result = None
    with contextlib.ExitStack() as stack:
        watching = [stack.enter_context(observer(run, start)) for observer in plugged]
        for snapshot in snapshots(run, checkpoint):
            result = snapshot.result
            for see in watching:
                see(snapshot)
            if folder is None or result.steps[-1] < run.total_timesteps:
                yield result
    if folder is not None and result is not None:
        yield record.finish(folder, result, {} if measure is None else measure(result))


def snapshots(run: Run, checkpoint: Checkpoint | None = None) -> Iterator[Snapshot]:
    """A snapshot after every chunk, at least one; `train_states` of the last are where the run ended."""
    started = time.monotonic()
    population = run.population()
    steps = [] if checkpoint is None else list(checkpoint.steps)
    metrics = {} if checkpoint is None else {name: list(values) for name, values in checkpoint.metrics.items()}
    before = 0.0 if checkpoint is None else checkpoint.seconds
    each = run.algorithm if isinstance(run.algorithm, Sequence) else [run.algorithm] * len(run.seeds)

    def snapshot(train_states: TrainState, stopped: dict[int, str]) -> Snapshot:
        policies = make_policies(each, train_states.agent, run.order.spec(population.spec), run.order, run.seeds)
        curves = {name: np.stack(values) for name, values in metrics.items()}
        seconds = before + time.monotonic() - started
        return Snapshot(Result(run, policies, np.array(steps), curves, stopped, seconds), train_states)

    train_states = restore(run, population, checkpoint) if checkpoint else initialize(run, population)
    found = None
    for found in advance(run, population, train_states):
        steps.append(found.steps)
        for name, values in found.metrics.items():
            metrics.setdefault(name, []).append(values)
        yield snapshot(found.train_states, found.faults)
    if found is None:  # the checkpoint was written after the last chunk
        fault = jax.tree.map(np.asarray, train_states.fault)
        yield snapshot(train_states, faults.sentences(fault, run.seeds, run.order))


def last(results: Iterator[Result]) -> Result:
    """The last of the results."""
    result = next(results)
    for result in results:  # noqa: B007
        pass
    return result


def initialize(run: Run, population: Population) -> TrainState:
    """The train states before the first step."""
    return host.start(population, run.env) if on_host(run.env) else compiled.start(population)


def restore(run: Run, population: Population, checkpoint: Checkpoint) -> TrainState:
    """The train states of a checkpoint, laid out over the devices."""
    if on_host(run.env):
        return checkpoint.rebuild(initialize(run, population))
    template = jax.eval_shape(lambda: initialize(run, population))
    return jax.device_put(checkpoint.rebuild(template), population.seeds.sharding)


def advance(run: Run, population: Population, train_states: TrainState) -> Iterator[Chunk]:
    """Train until the end of the run."""
    if on_host(run.env):
        return host.advance(population, run.env, train_states, run.total_timesteps, num_log_points=run.num_log_points)
    return compiled.advance(population, train_states, run.total_timesteps, num_log_points=run.num_log_points)


def _open(folder: pathlib.Path, run: Run) -> Checkpoint | None:
    """Where the run in a folder stopped; a new folder is given its description."""
    if not store.is_run(folder):
        record.begin(folder, run)
        return None
    checkpoint, notes = checkpoints.latest(folder)
    for sentence in notes:
        warnings.warn(sentence, stacklevel=3)
    return checkpoint
