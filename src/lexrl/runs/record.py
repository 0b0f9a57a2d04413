"""Runs on disk: what a folder says about its run, what a finished run leaves in it, and reading both again."""

import dataclasses
import datetime
import json
import os
import pathlib
import platform
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

import lexrl
from lexrl import store
from lexrl.errors import InputError, as_path
from lexrl.order import Objective, Order
from lexrl.runs import codec, optimum
from lexrl.runs.policy import Policy
from lexrl.runs.result import Result
from lexrl.runs.run import Run, make_run
from lexrl.types import HasModel
from lexrl.verdict import Verdict, from_json


def describe(run: Run) -> dict[str, Any]:
    """Everything needed to repeat a run."""
    return {
        "format": store.FORMAT,
        "title": run.title,
        "order": str(run.order),
        "objectives": [_stored(one) for one in run.order.objectives],
        "seeds": list(run.seeds),
        "total_timesteps": run.total_timesteps,
        "num_log_points": run.num_log_points,
        "eval_episodes": run.eval_episodes,
        "verify_episodes": run.verify_episodes,
        "name": run.name,
        "preset": run.preset,
        "label": run.label,
        "log": list(run.log),
        "algorithm": codec.encode(run.algorithm),
        "env": describe_env(run),
        **({"measure": run.measure} if run.measure else {}),
    }


def describe_env(run: Run) -> Any:
    """The name and the settings of an environment, or all of an instance."""
    if not run.env_id:
        return codec.encode(run.env)
    kwargs = [dict(one) for one in run.env_kwargs] if isinstance(run.env_kwargs, Sequence) else dict(run.env_kwargs)
    return {"name": run.env_id, "kwargs": kwargs}


def new_folder(run: Run, wanted: pathlib.Path) -> pathlib.Path:
    """A new folder for a run that can have one."""
    require_distinct_seeds(run)
    return store.new_folder(wanted)


def begin(folder: pathlib.Path, run: Run) -> store.Identity:
    """Write what is going to be run, and give it an identity."""
    require_distinct_seeds(run)
    identity = store.Identity(secrets.token_hex(16), hash_of(run))
    content = (
        identity._asdict()
        | describe(run)
        | {
            "command": run.command,
            "begun": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "versions": versions(),
            "commit": commit(),
            "machine": machine(),
        }
    )
    store.write_json(store.inside(folder, store.RUN), content)
    return identity


def require_distinct_seeds(run: Run) -> None:
    """Raise an error for a seed that is given twice."""
    if len(set(run.seeds)) < len(run.seeds):
        raise InputError(f"The seeds {list(run.seeds)} name one twice, but a folder has one policy for each seed.")


def require_same(folder: pathlib.Path, run: Run) -> store.Identity:
    """The identity of the run in a folder; an error if that is finished, or another one."""
    identity = store.read_identity(folder)
    if identity.hash != hash_of(run):
        raise InputError(
            f"The folder {str(folder)!r} holds a run with other settings; give another folder, or continue that run "
            f"with `lexrl resume {folder}`."
        )
    if store.is_finished(folder):
        raise InputError(f"The run in {str(folder)!r} is finished; `lexrl evaluate {folder}` evaluates it again.")
    return identity


def hash_of(run: Run) -> str:
    """The hash of what decides a run's numbers."""
    return store.deciding_hash(json.loads(json.dumps(describe(run))))


def versions() -> dict[str, str]:
    """The versions of everything that decides the numbers."""
    return {
        "lexrl": lexrl.__version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def commit() -> str:
    """The commit of lexrl, if it is a working copy; `-dirty` if there are changes."""
    here = pathlib.Path(__file__).parent
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        asked = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return asked.stdout.strip()


def machine() -> dict[str, Any]:
    """The machine that a run is executed on."""
    return {"cores": os.cpu_count(), "system": platform.platform(), "devices": len(jax.devices())}


def read(folder: pathlib.Path, env: Any = None, algorithm: Any = None) -> Run:
    """The run that a folder is about; an environment or algorithm that has no name must be given again."""
    content = store.read_run(folder)
    with codec.reading():
        run = _planned(content, env, algorithm)
    if hash_of(run) != content["hash"]:
        raise InputError(
            f"What was given has other settings than the run in {str(folder)!r}; give environment and algorithm as "
            "they were."
        )
    return run


def _planned(content: Mapping[str, Any], env: Any, algorithm: Any) -> Run:
    """The run that `run.json` describes."""
    if algorithm is None:
        algorithm = codec.decode(content["algorithm"])
        algorithm = list(algorithm) if isinstance(content["algorithm"], list) else algorithm
    target, kwargs = content["env"], None
    if env is None and "name" in target:
        env, kwargs = target["name"], target["kwargs"]
    about = {name: content[name] for name in ("eval_episodes", "verify_episodes", "name", "preset", "label", "command")}
    return make_run(
        algorithm,
        codec.decode(target) if env is None else env,
        content["order"],
        content["seeds"],
        content["total_timesteps"],
        content["num_log_points"],
        env_kwargs=kwargs,
        log=tuple(content["log"]),
        measure=content.get("measure", ""),
        **about,
    )


def _stored(objective: Objective) -> list[Any]:
    """Name and sign, and the limit where there is one."""
    return [objective.name, objective.sign, *([] if objective.limit is None else [objective.limit])]


def finish(folder: pathlib.Path, result: Result, measured: Mapping[str, Any], identity: store.Identity) -> Result:
    """Evaluate the policies, write everything a finished run leaves, the summary last, and remove the checkpoints."""
    run = result.run
    evaluation = result.evaluate(run.eval_episodes)
    store.write_curves(folder, result.table(), identity)
    files = {policy.seed: f"seed-{policy.seed}.safetensors" for policy in result.policies}
    for policy in result.policies:
        policy.save(store.inside(folder, store.POLICIES, files[policy.seed]), identity)
    store.write_bytes(store.inside(folder, store.CURVES), result.plot().png)
    exact = optimum.compare(result, run.env) if isinstance(run.env, HasModel) else None
    if exact is not None and exact.map is not None:
        store.write_bytes(store.inside(folder, store.MAP), exact.map)
    written = (
        store.FINAL,
        store.METRICS,
        store.CURVES,
        store.MAP,
        *(f"{store.POLICIES}/{name}" for name in files.values()),
    )
    summary = {
        "run": identity._asdict(),
        "order": str(run.order),
        "seeds": list(run.seeds),
        "steps": int(result.steps[-1]),
        "seconds": round(result.seconds, 2),
        "eval_episodes": run.eval_episodes,
        "per_episode": by_objective(evaluation.returns.mean(axis=1), run.order),
        **({"selection": list(result.selection)} if result.selection else {}),
        **({} if exact is None else exact.summary(run.order)),
        **measured,
        "stopped": {str(run.seeds[position]): sentence for position, sentence in result.faults.items()},
        "files": store.file_checksums(folder, written),
    }
    store.write_json(store.inside(folder, store.SUMMARY), summary)
    store.remove_checkpoints(folder)
    return result.with_summary(summary)


def with_verdict(result: Result, verdict: Verdict, folder: pathlib.Path | None = None) -> Result:
    """The result with its verdict, which also goes into the summary if there is a folder."""
    if folder is None:
        return dataclasses.replace(result, verdict=verdict)
    summary = {**result.summary, "verdict": verdict.as_json()}
    store.write_json(store.inside(folder, store.SUMMARY), summary)
    return dataclasses.replace(result, verdict=verdict, summary=summary)


def by_objective(values: np.ndarray, order: Order) -> dict[str, list[float]]:
    """Values `[seeds, M]` by the names of the objectives."""
    return {name: values[:, i].tolist() for i, name in enumerate(order.names)}


def load(folder: str | pathlib.Path, *, env: Any = None, algorithm: Any = None) -> Result:
    """The result of a finished run. What is not in the catalog (`env`, `algorithm`) must be given again."""
    folder = as_path(folder)
    run = read(folder, env, algorithm)
    store.require_finished(folder)
    summary = store.read_summary(folder, run.seeds, run.order.names)
    store.require_files(folder, summary)
    identity = store.read_identity(folder)
    steps, metrics = store.read_curves(folder, run.seeds, run.order.names)
    each = run.algorithm if isinstance(run.algorithm, Sequence) else [run.algorithm] * len(run.seeds)
    policies = tuple(
        Policy.load(folder / store.POLICIES / f"seed-{seed}.safetensors", None if algorithm is None else one, identity)
        for seed, one in zip(run.seeds, each, strict=True)
    )
    faults = {run.seeds.index(int(seed)): sentence for seed, sentence in summary["stopped"].items()}
    curves = {name: values.astype(np.float32) for name, values in metrics.items()}  # as they were computed
    chosen = tuple(summary.get("selection", ()))
    judged = from_json(summary["verdict"]) if "verdict" in summary else None
    seconds = float(summary["seconds"])  # JSON does not tell 3 from 3.0
    return Result(run, policies, steps, curves, faults, seconds, chosen, summary, judged)
