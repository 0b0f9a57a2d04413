"""Runs on disk: executed with checkpoints, taken up again where they stopped, read when they are finished.

A checkpoint holds every learner, every world in the middle of its episode, and the curves so far. A run that was killed
goes on from the latest one that is whole, and ends with the same bits as one that was not.
"""

import datetime
import os
import pathlib
import platform
import subprocess
import time
import warnings
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import lexrl
from lexrl import store
from lexrl.loops.chunks import TrainState
from lexrl.loops.evaluation import Evaluation
from lexrl.loops.faults import Fault
from lexrl.order import Order
from lexrl.report.run_folder import objectives
from lexrl.runs import codec, trees
from lexrl.runs.execute import Standing, restore_train_states, stream_run
from lexrl.runs.plan import Run, plan
from lexrl.runs.policy import Policy
from lexrl.runs.result import Result

SHARE = 0.05
"""Of the time, at most, is spent on writing checkpoints."""


def begin(folder: pathlib.Path, run: Run, **more: Any) -> None:
    """Write down what is going to be run, and anything else that is worth knowing."""
    content = {
        "format": store.FORMAT,
        **more,
        "order": str(run.order),
        "objectives": [list(each) for each in objectives(run.order)],
        "seeds": list(run.seeds),
        "steps": run.total_timesteps,
        "chunks": run.num_log_points,
        "algorithm": codec.encode(run.algorithm),
        "world": codec.encode(run.env),
        "begun": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "commit": commit(),
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "devices": len(jax.devices())},
    }
    store.write_json(folder / store.RUN, content)


def versions() -> dict[str, str]:
    """Of everything that decides the numbers."""
    return {
        "lexrl": lexrl.__version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def commit() -> str:
    """The commit that lexrl is at, if it is a working copy; `-dirty` if that was changed since."""
    here = pathlib.Path(__file__).parent
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        asked = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return asked.stdout.strip()


def read(folder: pathlib.Path, env: Any = None) -> Run:
    """The run that a folder is about; a world of the user's own must be given."""
    content = store.read_run(folder)
    algorithm = codec.decode(content["algorithm"])
    return plan(
        list(algorithm) if isinstance(content["algorithm"], list) else algorithm,
        codec.decode(content["world"]) if env is None else env,
        content["order"],
        content["seeds"],
        content["steps"],
        content["chunks"],
    )


def record(folder: pathlib.Path, run: Run, standing: Standing | None = None) -> Iterator[Result]:
    """Execute a run (or go on with it), keeping checkpoints; one is written at once when the loop over it is left."""
    kept, ended, took = 0 if standing is None else len(standing.steps), -float("inf"), 0.0
    result = None

    def keep(result: Result) -> None:
        nonlocal kept, ended, took
        started = time.monotonic()
        save(folder, result)
        kept, ended = len(result.steps), time.monotonic()
        took = ended - started

    try:
        for result in stream_run(run, standing):
            yield result
            if result.steps[-1] < run.total_timesteps and time.monotonic() - ended >= took / SHARE:
                keep(result)
    except (GeneratorExit, KeyboardInterrupt):
        if result is not None and len(result.steps) > kept:
            keep(result)
        raise


def save(folder: pathlib.Path, result: Result) -> None:
    """Write a checkpoint, and the curves so far."""
    arrays = trees.named(result.train_states, "train_state/") | {
        f"metrics/{name}": each for name, each in result.metrics.items()
    }
    about = {
        "seconds": result.seconds,
        "steps": result.steps.tolist(),
        "metrics": list(result.metrics),
        "versions": versions(),
    }
    store.write_checkpoint(folder, int(result.steps[-1]), arrays, about)
    store.write_csv(folder / store.METRICS, result.table())


def standing(folder: pathlib.Path, run: Run) -> tuple[Standing | None, list[str]]:
    """Where a run stopped (None: before its first checkpoint), and what is to be said about that."""
    population, said = run.population(), []
    for path in store.checkpoints(folder):
        try:
            arrays, about = store.read_arrays(path)
        except store.Damaged as error:
            said.append(f"{error} The one before it is used.")
            continue
        if about["versions"] != versions():
            said.append(
                f"The checkpoint is from {_listed(about['versions'])}, this is {_listed(versions())}: the numbers may "
                "differ in their last digits."
            )
        metrics = {name: arrays[f"metrics/{name}"] for name in about["metrics"]}
        train_states = restore_train_states(run, population, arrays, "train_state/")
        return Standing(train_states, np.array(about["steps"]), metrics, about["seconds"]), said
    return None, said


def finish(folder: pathlib.Path, result: Result, episodes: int = 100, **more: Any) -> Evaluation:
    """Evaluate the policies, write everything a finished run leaves, and put the checkpoints away."""
    played = result.evaluate(episodes)
    store.write_csv(folder / store.METRICS, result.table())
    for policy in result.policies:
        policy.save(folder / store.POLICIES / f"seed-{policy.seed}.safetensors")
    summary = {
        "order": str(result.run.order),
        "seeds": list(result.run.seeds),
        "steps": int(result.steps[-1]),
        "seconds": round(result.seconds, 2),
        "episodes": episodes,
        "per_episode": by_objective(played.returns.mean(axis=1), result.run.order),
        **more,
        "stopped": {str(result.run.seeds[place]): sentence for place, sentence in result.faults.items()},
    }
    store.write_json(folder / store.SUMMARY, summary)
    store.remove_checkpoints(folder)
    return played


def by_objective(values: np.ndarray, order: Order) -> dict[str, list[float]]:
    """What each seed has, `[seeds, M]`, by the objectives' names."""
    return {name: values[:, i].tolist() for i, name in enumerate(order.names)}


def load(folder: str | pathlib.Path, env: Any = None) -> Result:
    """The result of a finished run."""
    folder = pathlib.Path(folder)
    run = read(folder, env)
    store.require_finished(folder)
    summary = store.read_summary(folder, run.seeds, run.order.names)
    steps, metrics = store.read_curves(folder, run.seeds, run.order.names)
    policies = [Policy.load(folder / store.POLICIES / f"seed-{seed}.safetensors") for seed in run.seeds]
    population = run.population()
    padded = [*policies, *[policies[-1]] * (population.seeds.shape[0] - len(policies))]
    learner = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[policy.state for policy in padded])
    learner = jax.device_put(learner, population.seeds.sharding)
    nobody = TrainState(learner, None, None, None, None, None, Fault(None, None, None))
    faults = {run.seeds.index(int(seed)): sentence for seed, sentence in summary["stopped"].items()}
    curves = {name: values.astype(np.float32) for name, values in metrics.items()}  # as they were computed
    return Result(run, population, nobody, steps, curves, faults, summary["seconds"])


def resume(folder: str | pathlib.Path, *, env: Any = None) -> Result:
    """Go on with a run that was stopped, to its end."""
    folder = pathlib.Path(folder)
    run = read(folder, env)
    if store.is_finished(folder):
        return load(folder, env)
    where, said = standing(folder, run)
    for sentence in said:
        warnings.warn(sentence, stacklevel=2)
    *_, result = record(folder, run, where)
    finish(folder, result, store.read_run(folder).get("episodes", 100))
    return result


def _listed(found: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in found.items())
