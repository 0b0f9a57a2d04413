"""A run's folder: files are complete or absent, arrays have checksums, and nothing needs pickle.

    run.json            what is run: everything needed to repeat it
    metrics.csv         the learning curves, one row for each seed, point, metric and objective
    curves.png          the returns, drawn
    map.png             the first seed's policy, where the environment is a grid
    policies/           one file for each seed: settings and parameters
    summary.json        written last: a folder that has one holds a finished run
    checkpoints/        the latest two, until the run is finished

Arrays are stored as safetensors; their description and a checksum are in the file's header.
"""

import csv
import errno
import hashlib
import io
import itertools
import json
import os
import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from lexrl.errors import InputError

FORMAT = 2
RUN, METRICS, SUMMARY, POLICIES, CHECKPOINTS = "run.json", "metrics.csv", "summary.json", "policies", "checkpoints"
CURVES, MAP = "curves.png", "map.png"
KEPT = 2
"""Checkpoints that are kept: the second is used if the first is damaged."""
Kinds = Mapping[str, type | tuple[type, ...]]
IN_RUN: Kinds = {
    "algorithm": (dict, list), "env": dict, "order": str, "objectives": list, "seeds": list, "total_timesteps": int,
    "num_log_points": int,
}  # fmt: skip
"""What `run.json` must hold."""
IN_SUMMARY: Kinds = {"per_episode": dict, "stopped": dict, "seconds": (int, float)}
"""What `summary.json` must hold."""


class Damaged(InputError):
    """A file that is not as it was written."""


def new_folder(wanted: pathlib.Path) -> pathlib.Path:
    """The wanted folder if it does not exist or is empty; else the same name with the first free number."""
    number = 1
    while True:
        folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(
                    f"The folder {str(folder)!r} cannot be created ({error.strerror}); give another with --out."
                ) from None
            return folder
        number += 1


def write_bytes(path: pathlib.Path, content: bytes) -> None:
    """Write a file atomically: readers see the old one or the new one, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException as error:
        pathlib.Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)
        raise


def write_json(path: pathlib.Path, content: Mapping[str, Any]) -> None:
    write_bytes(path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def read_json(path: pathlib.Path) -> dict[str, Any]:
    """The content of a file, or a sentence on what is wrong with it."""
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}; is that the folder of a run?") from None
    except (ValueError, UnicodeDecodeError):
        raise Damaged(f"The file {str(path)!r} is damaged: it is not JSON.") from None
    if not isinstance(content, dict):
        raise Damaged(f"The file {str(path)!r} is damaged: it holds {type(content).__name__}, not a description.")
    return content


def require(path: pathlib.Path, content: Mapping[str, Any], kinds: Kinds) -> None:
    """Complain about a file that lacks what it must hold."""
    for key, kind in kinds.items():
        if key not in content:
            raise Damaged(f"The file {str(path)!r} is damaged: it has no {key!r}.")
        if not isinstance(content[key], kind):
            raise Damaged(f"The file {str(path)!r} is damaged: its {key!r} is {content[key]!r}.")


def write_csv(path: pathlib.Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows as CSV, with the first row's keys as the header."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_bytes(path, text.getvalue().encode())


def read_csv(path: pathlib.Path) -> list[dict[str, str]]:
    """Rows as texts by the header's names."""
    try:
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}; is that the folder of a run?") from None
    except (csv.Error, UnicodeDecodeError):
        raise Damaged(f"The file {str(path)!r} is damaged: it is not CSV.") from None


def write_arrays(path: pathlib.Path, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
    """Named arrays, and what belongs to them."""
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    header = {"format": FORMAT, "sha256": _digest(arrays, about), "about": about}
    write_bytes(path, safetensors.numpy.save(dict(arrays), {"lexrl": json.dumps(header)}))


def read_arrays(path: pathlib.Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What `write_arrays` wrote, to the last bit; else a sentence."""
    try:
        with safetensors.safe_open(str(path), "numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = json.loads(metadata["lexrl"])
        about, expected, form = header["about"], header["sha256"], header["format"]
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}.") from None
    except (safetensors.SafetensorError, KeyError, ValueError, TypeError, OSError) as error:
        raise Damaged(f"The file {str(path)!r} is damaged, or not written by lexrl ({type(error).__name__}).") from None
    if form != FORMAT:
        raise InputError(
            f"The file {str(path)!r} has format {form}, and this version of lexrl reads format {FORMAT}; "
            "use the version that wrote it, or run it again."
        )
    if _digest(arrays, about) != expected:
        raise Damaged(f"The file {str(path)!r} is damaged: its checksum does not match.")
    return arrays, about


def _digest(arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> str:
    """A checksum of everything: names, types, shapes, numbers, and the text."""
    total = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        total.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        total.update(np.asarray(arrays[name], order="C").data)
    return total.hexdigest()


def write_checkpoint(
    folder: pathlib.Path, steps: int, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]
) -> None:
    """Write a checkpoint; those before the latest two are removed."""
    write_arrays(folder / CHECKPOINTS / f"{steps:012d}.safetensors", arrays, about)
    for path in checkpoints(folder)[KEPT:]:
        path.unlink()


def checkpoints(folder: pathlib.Path) -> list[pathlib.Path]:
    """The latest first."""
    return sorted((folder / CHECKPOINTS).glob("[0-9]*.safetensors"), reverse=True)


def remove_checkpoints(folder: pathlib.Path) -> None:
    """A finished run needs none, and those with a replay buffer are large."""
    inside = folder / CHECKPOINTS
    if inside.is_dir():
        for path in inside.iterdir():  # also what a killed write left behind
            path.unlink()
        inside.rmdir()


def is_run(folder: pathlib.Path) -> bool:
    return (folder / RUN).is_file()


def is_finished(folder: pathlib.Path) -> bool:
    return (folder / SUMMARY).is_file()


def read_run(folder: pathlib.Path) -> dict[str, Any]:
    """What is run: the content of `run.json`."""
    if not folder.is_dir():
        raise InputError(f"There is no folder {str(folder)!r}; give one that `lexrl train` left.")
    if not is_run(folder):
        inside = ", ".join(path.name for path in sorted(folder.iterdir()) if is_run(path))
        hint = f"; there are runs in it: {inside}" if inside else "; give one that `lexrl train` left"
        raise InputError(f"The folder {str(folder)!r} holds no run (no {RUN}){hint}.")
    path = folder / RUN
    content = read_json(path)
    if "format" not in content:
        raise InputError(f"The file {str(path)!r} is from another program; give a folder that `lexrl train` left.")
    if content["format"] != FORMAT:
        raise InputError(
            f"The run in {str(folder)!r} has format {content['format']}, and this version of lexrl reads format "
            f"{FORMAT}; use the version that wrote it, or run it again."
        )
    require(path, content, IN_RUN)
    if not content["seeds"] or not all(isinstance(seed, int) for seed in content["seeds"]):
        raise Damaged(f"The file {str(path)!r} is damaged: its 'seeds' are not whole numbers.")
    if not content["objectives"] or not all(map(_is_objective, content["objectives"])):
        raise Damaged(f"The file {str(path)!r} is damaged: its 'objectives' are not names with a sign each.")
    return content


def require_finished(folder: pathlib.Path) -> None:
    """Complain about a run that is not finished."""
    if not is_finished(folder):
        raise InputError(f"The run in {str(folder)!r} is not finished; `lexrl resume {folder}` continues it.")


def read_summary(folder: pathlib.Path, seeds: Sequence[int], objectives: Sequence[str]) -> dict[str, Any]:
    """The results of a finished run: the content of `summary.json`."""
    path = folder / SUMMARY
    content = read_json(path)
    require(path, content, IN_SUMMARY)
    require(path, content["per_episode"], dict.fromkeys(objectives, list))
    for name in objectives:
        values = content["per_episode"][name]
        if len(values) != len(seeds) or not all(isinstance(value, int | float) for value in values):
            raise Damaged(f"The file {str(path)!r} is damaged: {name!r} does not have one number for each seed.")
    if unknown := content["stopped"].keys() - set(map(str, seeds)):
        raise Damaged(f"The file {str(path)!r} is damaged: the run has no seed {', '.join(sorted(unknown))}.")
    return content


def read_curves(
    folder: pathlib.Path, seeds: Sequence[int], objectives: Sequence[str]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The learning curves in `metrics.csv`: steps `[points]`, and metrics `[points, seeds]` or `[points, seeds, M]`."""
    path = folder / METRICS
    rows, found = read_csv(path), {}
    position = {seed: i for i, seed in enumerate(seeds)}
    column = {"": None} | {name: i for i, name in enumerate(objectives)}
    for line, row in enumerate(rows, 2):  # the first has the names
        try:
            at = (int(row["step"]), position[int(row["seed"])], column[row["objective"]])
            found.setdefault(row["metric"], {})[at] = float(row["value"])
        except (KeyError, ValueError, TypeError):
            raise Damaged(f"The file {str(path)!r} is damaged: line {line} cannot be read.") from None
    steps = sorted({step for values in found.values() for step, _, _ in values})
    metrics = {}
    for name, values in found.items():
        each = (None,) if any(at[2] is None for at in values) else range(len(objectives))
        wanted = list(itertools.product(steps, range(len(seeds)), each))
        if values.keys() != set(wanted):
            raise Damaged(
                f"The file {str(path)!r} is damaged: it does not have one number of {name!r} for each seed and step."
            )
        shape = (len(steps), len(seeds)) if None in each else (len(steps), len(seeds), len(objectives))
        metrics[name] = np.array([values[at] for at in wanted]).reshape(shape)
    if "episode_return" not in metrics:
        raise Damaged(f"The file {str(path)!r} is damaged: it has no 'episode_return'.")
    return np.array(steps), metrics


def is_full(error: OSError) -> bool:
    """Is the disk full?"""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _is_objective(given: Any) -> bool:
    return isinstance(given, list) and len(given) == 2 and isinstance(given[0], str) and given[1] in (1, -1)
