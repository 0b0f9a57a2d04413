"""The one pipeline: `lexrl.train`, the command line, `lexrl.resume` and experiments all execute runs here.

A checkpoint holds every agent, every environment in the middle of its episode, and the curves so far. A run that was
killed continues from the latest one that is intact, and ends with the same bits as one that was not.
"""

import contextlib
import pathlib
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from lexrl import backend, catalog, locks, store
from lexrl.loops import chunks, compiled, host, selection
from lexrl.loops.chunks import Chunk, TrainState
from lexrl.loops.evaluation import Evaluation, evaluate, evaluate_on_host
from lexrl.loops.population import Population
from lexrl.runs import codec, footprint, logs, record, verification
from lexrl.runs.observers import Observer, Snapshot, Start
from lexrl.runs.policy import make_policies
from lexrl.runs.result import Result
from lexrl.runs.run import Run, initialize, on_host
from lexrl.runs.sampling import Look
from lexrl.types import HasGamma

MAX_SHARE = 0.05
"""The largest fraction of the time that is spent on writing checkpoints."""


class Checkpoint(NamedTuple):
    """Where a run stopped."""

    arrays: dict[str, np.ndarray]
    """The train states, flattened."""
    steps: np.ndarray
    metrics: dict[str, np.ndarray]
    seconds: float
    """Training time so far."""

    def rebuild(self, template: Any) -> Any:
        """The train states in the structure of a template."""
        return codec.rebuild(template, self.arrays, "train_state/")


def execute(
    run: Run,
    folder: pathlib.Path | None = None,
    observers: Sequence[Observer] = (),
    watch: Callable[[Look], None] | None = None,
) -> Iterator[Result]:
    """Execute a run, or continue the one in the folder; yield a result after every chunk, and leave a finished folder.

    The last result has a verdict if the run asks for one, and a summary, with an evaluation, if there is a folder.
    `watch` is called while policies are verified. The folder is locked meanwhile.
    """
    backend.ensure_configured()
    footprint.require(run)
    with contextlib.nullcontext() if folder is None else locks.hold(folder):
        yield from _execute(run, folder, observers, watch)


def _execute(
    run: Run,
    folder: pathlib.Path | None,
    observers: Sequence[Observer],
    watch: Callable[[Look], None] | None,
) -> Iterator[Result]:
    identity, checkpoint = (None, None) if folder is None else _open(folder, run)
    start = Start(folder, 0 if checkpoint is None else int(checkpoint.steps[-1]), identity)
    kept: list[Observer] = [] if folder is None else [write_checkpoints, *([logs.observe] if run.log else [])]
    result = snapshot = None
    with contextlib.ExitStack() as stack:
        watching = [stack.enter_context(observer(run, start)) for observer in (*kept, *observers)]
        for snapshot in snapshots(run, checkpoint):
            result = snapshot.result
            for see in watching:
                see(snapshot)
            if result.steps[-1] < run.total_timesteps:
                yield result
    assert result is not None
    assert snapshot is not None
    if folder is not None and identity is not None:
        locks.require(folder)
        save_final(folder, snapshot, identity)
        result = record.finish(folder, result, _measure(run)(result), identity)
    snapshot = None  # with replay buffers, which a verdict makes room for
    # The run is safe on disk by now, whatever happens to its verdict.
    verdict = verification.after_training(result, watch)
    yield result if verdict is None else record.with_verdict(result, verdict, folder)


def _measure(run: Run) -> Callable[[Result], dict[str, Any]]:
    """What adds numbers to the summary."""
    if not run.measure:
        return lambda _: {}
    return catalog.find(catalog.MEASURES, run.measure, "measure").load()


def snapshots(run: Run, checkpoint: Checkpoint | None = None) -> Iterator[Snapshot]:
    """A snapshot after every chunk, at least one; `train_states` of the last are where the run ended."""
    started = time.monotonic()
    population = run.population()
    steps = [] if checkpoint is None else list(checkpoint.steps)
    metrics = {} if checkpoint is None else {name: list(values) for name, values in checkpoint.metrics.items()}
    before = 0.0 if checkpoint is None else checkpoint.seconds
    each = _algorithms(run)

    def snapshot(train_states: TrainState, stopped: dict[int, str]) -> Snapshot:
        finished = steps[-1] >= run.total_timesteps
        agents, chosen = hand_over(run, population, train_states.agent) if finished else (train_states.agent, ())
        policies = make_policies(each, agents, run.order.spec(population.spec), run.order, run.seeds)
        curves = {name: np.stack(values) for name, values in metrics.items()}
        seconds = before + time.monotonic() - started
        result = Result(run, policies, np.array(steps), curves, stopped, seconds, selection=chosen)
        return Snapshot(result, train_states)

    train_states = restore(run, population, checkpoint) if checkpoint else initialize(run, population)
    found = None
    for found in advance(run, population, train_states):
        steps.append(found.steps)
        if metrics and metrics.keys() != found.metrics.keys():
            raise store.Damaged(f"The checkpoint is damaged: its metrics are {', '.join(metrics)}.")
        for name, values in found.metrics.items():
            metrics.setdefault(name, []).append(values)
        yield snapshot(found.train_states, found.faults)
    if found is None:  # the checkpoint was written after the last chunk
        fault = jax.tree.map(np.asarray, train_states.fault)
        yield snapshot(train_states, chunks.sentences(fault, run.seeds, run.order))


def hand_over(run: Run, population: Population, agents: Any) -> tuple[Any, tuple[dict[str, Any], ...]]:
    """The agent states of the policies that a finished run hands over; and what each is, if there was a choice."""
    gamma = each[0].gamma if (each := _algorithms(run)) and isinstance(each[0], HasGamma) else 1.0

    def play(agents: Any, first: int) -> Evaluation:
        settings: Any = {
            "first": first,
            "gamma": gamma,
            "max_steps": selection.longest(population, run.total_timesteps),
        }
        if on_host(run.env):
            few = selection.affordable(population, run.total_timesteps)
            return evaluate_on_host(population, run.env, agents, episodes=few, **settings)
        return evaluate(population, agents, episodes=selection.EPISODES, **settings)

    found = selection.select(population, agents, play, len(run.order.objectives), run.total_timesteps)
    if found is None:
        return agents, ()
    about = [
        {"seed": seed}
        | what
        | {"per_episode": dict(zip(run.order.names, returns.tolist(), strict=True)), "references": known.tolist()}
        for seed, what, returns, known in zip(run.seeds, found.about, found.returns, found.references, strict=True)
    ]
    return found.agents, tuple(about)


def _algorithms(run: Run) -> Sequence[Any]:
    """One for each seed."""
    return run.algorithm if isinstance(run.algorithm, Sequence) else [run.algorithm] * len(run.seeds)


def last(results: Iterator[Result]) -> Result:
    """The last of the results."""
    result = next(results)
    for result in results:  # noqa: B007
        pass
    return result


def restore(run: Run, population: Population, checkpoint: Checkpoint) -> TrainState:
    """The train states of a checkpoint, laid out over the devices."""
    seeds, objectives = len(run.seeds), len(run.order.objectives)
    for name, curve in checkpoint.metrics.items():
        if curve.shape[1:] not in ((seeds,), (seeds, objectives)):
            raise store.Damaged(f"The checkpoint is damaged: {name!r} does not have one number for each seed.")
    if on_host(run.env):
        return checkpoint.rebuild(initialize(run, population))
    template = jax.eval_shape(lambda: initialize(run, population))
    return jax.device_put(checkpoint.rebuild(template), population.seeds.sharding)


def advance(run: Run, population: Population, train_states: TrainState) -> Iterator[Chunk]:
    """Train until the end of the run."""
    if on_host(run.env):
        return host.advance(population, run.env, train_states, run.total_timesteps, num_log_points=run.num_log_points)
    return compiled.advance(population, train_states, run.total_timesteps, num_log_points=run.num_log_points)


def _open(folder: pathlib.Path, run: Run) -> tuple[store.Identity, Checkpoint | None]:
    """The identity of the run in a folder, and where it stopped; a new folder is given its description."""
    store.require_plain(folder)
    if not store.is_run(folder):
        return record.begin(folder, run), None
    identity = record.require_same(folder, run)
    store.remove_leftovers(folder)
    checkpoint, notes = latest_checkpoint(folder, identity)
    for sentence in notes:
        warnings.warn(sentence, stacklevel=4)
    return identity, checkpoint


@contextlib.contextmanager
def write_checkpoints(run: Run, start: Start) -> Iterator[Callable[[Snapshot], None]]:
    """Write checkpoints while a run is executed, and one at once when it is interrupted."""
    folder, identity = start.folder, start.identity
    assert folder is not None
    assert identity is not None
    kept, ended, took = start.step, -float("inf"), 0.0
    latest: Snapshot | None = None

    def keep(snapshot: Snapshot) -> None:
        nonlocal kept, ended, took
        started = time.monotonic()
        locks.require(folder)
        save_checkpoint(folder, snapshot, identity)
        kept, ended = int(snapshot.result.steps[-1]), time.monotonic()
        took = ended - started

    def see(snapshot: Snapshot) -> None:
        nonlocal latest
        latest = snapshot
        unfinished = snapshot.result.steps[-1] < run.total_timesteps
        if unfinished and time.monotonic() - ended >= took / MAX_SHARE:
            keep(snapshot)

    try:
        yield see
    except (GeneratorExit, KeyboardInterrupt):
        if latest is not None and latest.result.steps[-1] > kept:
            keep(latest)
        raise


def save_checkpoint(folder: pathlib.Path, snapshot: Snapshot, identity: store.Identity) -> None:
    """Write a checkpoint, and the curves so far."""
    result = snapshot.result
    store.write_checkpoint(folder, int(result.steps[-1]), *_contents(snapshot, identity))
    store.write_curves(folder, result.table(), identity)


def save_final(folder: pathlib.Path, snapshot: Snapshot, identity: store.Identity) -> None:
    """Keep the last state, unless it is large: a finished run can then be trained further."""
    path, (arrays, about) = store.inside(folder, store.FINAL), _contents(snapshot, identity)
    if sum(array.nbytes for array in arrays.values()) <= store.MAX_FINAL:
        store.write_arrays(path, arrays, about)
    else:
        path.unlink(missing_ok=True)


def _contents(snapshot: Snapshot, identity: store.Identity) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays of a checkpoint, and what belongs to them."""
    result = snapshot.result
    arrays = codec.flatten(snapshot.train_states, "train_state/") | {
        f"metrics/{name}": values for name, values in result.metrics.items()
    }
    about = {
        "run": identity._asdict(),
        "seconds": result.seconds,
        "steps": result.steps.tolist(),
        "metrics": list(result.metrics),
        "versions": record.versions(),
    }
    return arrays, about


def latest_checkpoint(folder: pathlib.Path, identity: store.Identity) -> tuple[Checkpoint | None, list[str]]:
    """The latest checkpoint that is intact (None: there is none), and what the user should know about it.

    One of another run is an error.
    """
    notes = []
    for path in store.checkpoints(folder):
        try:
            arrays, about = store.read_checkpoint(path, identity)
            if int(path.stem) != about["steps"][-1]:
                raise store.Damaged(f"The file {str(path)!r} is damaged: it is of step {about['steps'][-1]}.")
        except store.Damaged as error:
            notes.append(f"{error} The one before it is used.")
            continue
        if about["versions"] != (here := record.versions()):
            notes.append(
                f"The checkpoint was written by {_listed(about['versions'])}, this is {_listed(here)}: the numbers may "
                "differ in their last digits."
            )
        metrics = {name: arrays[f"metrics/{name}"] for name in about["metrics"]}
        return Checkpoint(arrays, np.array(about["steps"]), metrics, float(about["seconds"])), notes
    return None, notes


def _listed(found: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in found.items())
