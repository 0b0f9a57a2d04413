"""Runs on disk: what a folder says about its run, what a finished run leaves in it, and reading both again."""

import datetime
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lexrl import store
from lexrl.order import Order
from lexrl.report.run_folder import objectives
from lexrl.runs import codec, optimum
from lexrl.runs.policy import Policy
from lexrl.runs.result import Result
from lexrl.runs.run import Run, make_run
from lexrl.runs.versions import commit, machine, versions


def describe(run: Run) -> dict[str, Any]:
    """Everything needed to repeat a run."""
    return {
        "format": store.FORMAT,
        "title": run.title,
        "order": str(run.order),
        "objectives": [list(each) for each in objectives(run.order)],
        "seeds": list(run.seeds),
        "total_timesteps": run.total_timesteps,
        "num_log_points": run.num_log_points,
        "eval_episodes": run.eval_episodes,
        "name": run.name,
        "preset": run.preset,
        "label": run.label,
        "log": list(run.log),
        "algorithm": codec.encode(run.algorithm),
        "env": describe_env(run),
    }


def describe_env(run: Run) -> Any:
    """The name and the settings of an environment, or all of an instance."""
    if not run.env_id:
        return codec.encode(run.env)
    kwargs = [dict(one) for one in run.env_kwargs] if isinstance(run.env_kwargs, Sequence) else dict(run.env_kwargs)
    return {"name": run.env_id, "kwargs": kwargs}


def begin(folder: pathlib.Path, run: Run) -> None:
    """Write what is going to be run."""
    content = describe(run) | {
        "command": run.command,
        "begun": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "commit": commit(),
        "machine": machine(),
    }
    store.write_json(folder / store.RUN, content)


def read(folder: pathlib.Path, env: Any = None, algorithm: Any = None) -> Run:
    """The run that a folder is about; an environment or algorithm that has no name must be given again."""
    content = store.read_run(folder)
    if algorithm is None:
        algorithm = codec.decode(content["algorithm"])
        algorithm = list(algorithm) if isinstance(content["algorithm"], list) else algorithm
    target, kwargs = content["env"], None
    if env is None and "name" in target:
        env, kwargs = target["name"], target["kwargs"]
    about = {name: content[name] for name in ("eval_episodes", "name", "preset", "label") if name in content}
    return make_run(
        algorithm,
        codec.decode(target) if env is None else env,
        content["order"],
        content["seeds"],
        content["total_timesteps"],
        content["num_log_points"],
        env_kwargs=kwargs,
        log=tuple(content.get("log", ())),
        command=content.get("command", ""),
        **about,
    )


def finish(folder: pathlib.Path, result: Result, measured: Mapping[str, Any]) -> Result:
    """Evaluate the policies, write everything a finished run leaves, the summary last, and remove the checkpoints."""
    run = result.run
    evaluation = result.evaluate(run.eval_episodes)
    store.write_csv(folder / store.METRICS, result.table())
    for policy in result.policies:
        policy.save(folder / store.POLICIES / f"seed-{policy.seed}.safetensors")
    store.write_bytes(folder / store.CURVES, result.plot().png)
    exact = optimum.compare(result)
    if exact is not None and exact.map is not None:
        store.write_bytes(folder / store.MAP, exact.map)
    summary = {
        "order": str(run.order),
        "seeds": list(run.seeds),
        "steps": int(result.steps[-1]),
        "seconds": round(result.seconds, 2),
        "eval_episodes": run.eval_episodes,
        "per_episode": by_objective(evaluation.returns.mean(axis=1), run.order),
        **({} if exact is None else exact.summary(run.order)),
        **measured,
        "stopped": {str(run.seeds[position]): sentence for position, sentence in result.faults.items()},
    }
    store.write_json(folder / store.SUMMARY, summary)
    store.remove_checkpoints(folder)
    return result.with_summary(summary)


def by_objective(values: np.ndarray, order: Order) -> dict[str, list[float]]:
    """Values `[seeds, M]` by the names of the objectives."""
    return {name: values[:, i].tolist() for i, name in enumerate(order.names)}


def load(folder: str | pathlib.Path, *, env: Any = None, algorithm: Any = None) -> Result:
    """The result of a finished run. What is not in the catalog (`env`, `algorithm`) must be given again."""
    folder = pathlib.Path(folder)
    run = read(folder, env, algorithm)
    store.require_finished(folder)
    summary = store.read_summary(folder, run.seeds, run.order.names)
    steps, metrics = store.read_curves(folder, run.seeds, run.order.names)
    each = run.algorithm if isinstance(run.algorithm, Sequence) else [run.algorithm] * len(run.seeds)
    policies = tuple(
        Policy.load(folder / store.POLICIES / f"seed-{seed}.safetensors", None if algorithm is None else one)
        for seed, one in zip(run.seeds, each, strict=True)
    )
    faults = {run.seeds.index(int(seed)): sentence for seed, sentence in summary["stopped"].items()}
    curves = {name: values.astype(np.float32) for name, values in metrics.items()}  # as they were computed
    return Result(run, policies, steps, curves, faults, summary["seconds"], summary)
