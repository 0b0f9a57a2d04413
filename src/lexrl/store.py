"""A run's folder: files are complete or absent, arrays have checksums, and nothing needs pickle.

    run.json            what is run: everything needed to repeat it, and the run's id
    metrics.csv         the learning curves, one row for each seed, point, metric and objective
    curves.png          the returns, drawn
    map.png             the first seed's policy, where the environment is a grid
    policies/           one file for each seed: settings and parameters
    summary.json        written last: a folder that has one holds a finished run
    final.safetensors   the last state, from which a finished run can be trained further
    checkpoints/        the latest two, until the run is finished; metrics.json has the checksum of the curves so far
    lock, attempt       who works in the folder; only while somebody does

Arrays are stored as safetensors; their description and a checksum are in the file's header. JSON files have a checksum
of their content. Checkpoints, policies and the summary carry the id of their run and the hash of what decides its
numbers; the summary has the checksums of all other files. Links are refused, so that nothing outside the folder is
read, written or deleted.
"""

import contextlib
import csv
import errno
import hashlib
import io
import itertools
import json
import math
import os
import pathlib
import re
import reprlib
import stat
import tempfile
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import numpy as np
import safetensors
import safetensors.numpy

from lexrl import locks
from lexrl.errors import InputError

FORMAT = 2
RUN, METRICS, SUMMARY, POLICIES, CHECKPOINTS = "run.json", "metrics.csv", "summary.json", "policies", "checkpoints"
CURVES, MAP, FINAL = "curves.png", "map.png", "final.safetensors"
TIES = "metrics.json"
MAX_FINAL = 100_000_000
"""Bytes of a last state that is kept; those with large replay buffers take more."""
MAX_DEPTH = 100
"""How deep JSON may be nested."""
KEPT = 2
"""Checkpoints that are kept: the second is used if the first is damaged."""
Kinds = Mapping[str, Any]
"""Types, as `fits` reads them."""
IN_RUN: Kinds = {
    "algorithm": dict | list, "env": dict, "order": str, "objectives": list, "seeds": list[int], "total_timesteps": int,
    "num_log_points": int, "eval_episodes": int, "verify_episodes": int, "name": str, "preset": str, "label": str,
    "log": list[Literal["tensorboard", "wandb"]], "command": str, "id": str, "hash": str,
}  # fmt: skip
"""What `run.json` must hold."""
MAY_BE_IN_RUN: Kinds = {"measure": str, "continued": list, "title": str, "begun": str, "commit": str}
IN_SUMMARY: Kinds = {
    "per_episode": dict[str, list[float]], "stopped": dict[str, str], "seconds": float, "run": dict,
    "files": dict[str, str],
}  # fmt: skip
"""What `summary.json` must hold."""
MAY_BE_IN_SUMMARY: Kinds = {
    "selection": list[dict], "verdict": dict, "exact_discounted": dict[str, list[float]],
    "exact_optimum": dict[str, float], "exact_policies": str,
}  # fmt: skip
IN_CHECKPOINT: Kinds = {"steps": list[int], "seconds": float, "metrics": list[str], "versions": dict[str, str]}
"""What a checkpoint and the last state must hold beside their arrays."""
DECIDING = (
    "algorithm", "env", "order", "objectives", "seeds", "total_timesteps", "num_log_points", "eval_episodes",
)  # fmt: skip
"""Of `run.json`, what decides the numbers."""
LEFTOVER = re.compile(
    r"\.(run\.json|summary\.json|metrics\.(csv|json)|(curves|map)\.png|(final|seed-\d+|\d{12})\.safetensors)\.\w{8}"
)
"""The name of a file that was not written to the end."""
CHECKPOINT = re.compile(r"[0-9]{12}\.safetensors")
"""The name of a checkpoint: its step."""
UNREADABLE = (
    safetensors.SafetensorError, AttributeError, KeyError, ValueError, TypeError, RecursionError, OSError,
)  # fmt: skip
"""What a file of arrays that is damaged may raise; an AttributeError is for a type that NumPy does not have."""
CHECKSUM = "sha256"
OTHERS = "wandb"
"""The folder of another program, which makes links in it."""


class Damaged(InputError):
    """A file that is not as it was written."""


class Identity(NamedTuple):
    """What ties a file to its run."""

    id: str
    """Random."""
    hash: str
    """Of what decides its numbers: the same for every run with the same settings."""


def new_folder(wanted: pathlib.Path) -> pathlib.Path:
    """The wanted folder if it does not exist or is empty; else the same name with the first free number.

    It gets an empty lock file, so that of two processes that want it at the same time the second takes the next number.
    """
    for number in itertools.count(1):
        if number > 1 and wanted.name in ("", ".."):
            raise InputError(f"The folder {str(wanted)!r} is not empty; give another with --out.")
        try:
            folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
            if _take(folder):
                return folder
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise InputError(
                f"The folder {str(wanted)!r} cannot be created ({why}); give another with --out."
            ) from None
    raise AssertionError("numbers do not end")


def _take(folder: pathlib.Path) -> bool:
    """Whether a folder that is new or empty could be made this process's own."""
    if os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    if not locks.claim(folder):
        return False
    sync_folder(folder.parent)
    return True


def inside(folder: pathlib.Path, *names: str) -> pathlib.Path:
    """A path in a run's folder, to write to or to delete; an error where a link leads elsewhere, and for a process
    that lost the folder to another one."""
    locks.require_not_lost(folder)
    path = folder
    for name in names:
        path = path / name
        if path.is_symlink():
            raise _is_link(path)
    return path


def require_plain(folder: pathlib.Path) -> None:
    """Raise an error if there is anything but files and folders in a run's folder: a link may lead out of it."""
    for entry in os.scandir(folder):
        kind = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(kind):
            if entry.name != OTHERS:
                require_plain(pathlib.Path(entry.path))
        elif not stat.S_ISREG(kind):
            raise _is_link(pathlib.Path(entry.path))


def _is_link(path: pathlib.Path) -> InputError:
    what = f"a link to {os.readlink(path)!r}" if path.is_symlink() else "neither a file nor a folder"
    return InputError(
        f"{str(path)!r} is {what}, and a run's folder may hold only files and folders of its own; remove it, or put "
        "the content itself in its place."
    )


def sync_folder(folder: pathlib.Path) -> None:
    """Have the entries of a folder written to the disk: a renamed file is not safe before."""
    with contextlib.suppress(OSError):  # some file systems cannot
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_bytes(path: pathlib.Path, content: bytes) -> None:
    """Write a file atomically: readers see the old one or the new one, never half of it, even if the power fails."""
    if "\0" in str(path) or path.is_dir():
        why = "that is a folder" if path.is_dir() else "no file can have such a name"
        raise InputError(f"The file {str(path)!r} cannot be written: {why}.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(
            f"The file {str(path)!r} cannot be written: there is a file where a folder should be."
        ) from None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        error.filename = str(path)
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
        sync_folder(path.parent)
    except BaseException as error:
        pathlib.Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)
        raise


def write_json(path: pathlib.Path, content: Mapping[str, Any]) -> None:
    """Write a description, with a checksum of it."""
    plain = {str(key): value for key, value in content.items() if key != CHECKSUM}
    sealed = plain | {CHECKSUM: checksum(json.loads(json.dumps(plain)))}
    try:
        text = json.dumps(sealed, indent=2, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a file name may be no text
        text = json.dumps(sealed, indent=2).encode()
    write_bytes(path, text + b"\n")


def read_json(path: pathlib.Path, sealed: bool = False) -> dict[str, Any]:
    """The content of a file without its checksum, which it must have if `sealed`; or a sentence on what is wrong."""
    try:
        content = parse_json(path.read_bytes().decode())
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}; is that the folder of a run?") from None
    except (ValueError, RecursionError):
        raise Damaged(f"The file {str(path)!r} is damaged: it is not JSON, or nested too deep.") from None
    except OSError as error:
        raise Damaged(f"The file {str(path)!r} cannot be read: {error.strerror}.") from None
    if not isinstance(content, dict):
        raise Damaged(f"The file {str(path)!r} is damaged: it holds {type(content).__name__}, not a description.")
    if sealed and CHECKSUM not in content:
        raise Damaged(f"The file {str(path)!r} is damaged: it has no checksum.")
    if CHECKSUM in content and content.pop(CHECKSUM) != checksum(content):
        raise Damaged(f"The file {str(path)!r} was changed after it was written: its checksum does not match.")
    return content


def parse_json(text: str) -> Any:
    """What JSON holds; a ValueError if it is nested deeper than anything lexrl writes, which recursion cannot read."""
    content = json.loads(text)
    nested = [content]
    for _ in range(MAX_DEPTH + 1):
        found = [each for each in nested if isinstance(each, dict | list)]
        nested = [part for each in found for part in (each.values() if isinstance(each, dict) else each)]
    if nested:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    return content


def checksum(content: Mapping[str, Any]) -> str:
    """Of what JSON holds, however it is laid out."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def finite(value: Any) -> Any:
    """The same with null for every number that is not finite: JSON has no NaN."""
    if isinstance(value, Mapping):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def fits(value: Any, hint: Any) -> bool:
    """Is a value of a type, such as `dict[str, list[float]]`? Lists stand for tuples, whole numbers for floats."""
    kind, parts = get_origin(hint), get_args(hint)
    if kind is Literal:
        return isinstance(value, str) and value in parts
    if kind in (Union, types.UnionType):
        return any(fits(value, part) for part in parts)
    if kind in (list, tuple):
        return isinstance(value, list | tuple) and all(fits(each, parts[0]) for each in value)
    if kind is dict:
        return isinstance(value, dict) and all(fits(each, parts[1]) for each in value.values())
    return _is_number(value) if hint is float else type(value) is hint


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def require(path: pathlib.Path, content: Mapping[str, Any], kinds: Kinds, optional: Kinds | None = None) -> None:
    """Raise an error for a file that lacks something it must hold, or has something of another type."""
    for key in kinds:
        if key not in content:
            raise Damaged(f"The file {str(path)!r} is damaged: it has no {key!r}.")
    for key, kind in {**kinds, **(optional or {})}.items():
        if key in content and not fits(content[key], kind):
            raise Damaged(f"The file {str(path)!r} is damaged: its {key!r} is {reprlib.repr(content[key])}.")


def write_csv(path: pathlib.Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows as CSV, with the first row's keys as the header."""
    write_bytes(path, csv_bytes(rows))


def csv_bytes(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The same as bytes."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode(errors="backslashreplace")


def read_csv(path: pathlib.Path) -> list[dict[str, str]]:
    """Rows as texts by the header's names."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}; is that the folder of a run?") from None
    except (csv.Error, UnicodeDecodeError):
        raise Damaged(f"The file {str(path)!r} is damaged: it is not CSV.") from None
    except OSError as error:
        raise Damaged(f"The file {str(path)!r} cannot be read: {error.strerror}.") from None


def write_arrays(path: pathlib.Path, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
    """Named arrays, and what belongs to them."""
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    header = {"format": FORMAT, "sha256": _digest(arrays, about), "about": about}
    write_bytes(path, safetensors.numpy.save(dict(arrays), {"lexrl": json.dumps(header)}))


def read_arrays(path: pathlib.Path, run: Identity | None = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What `write_arrays` wrote, to the last bit; else a sentence. With `run`, it must be a file of that run."""
    try:
        with safetensors.safe_open(str(path), "numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = parse_json(metadata["lexrl"])
        about, expected, form = header["about"], header["sha256"], header["format"]
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}.") from None
    except UNREADABLE as error:
        raise Damaged(f"The file {str(path)!r} is damaged, or not written by lexrl ({type(error).__name__}).") from None
    if form != FORMAT:
        raise InputError(
            f"The file {str(path)!r} has format {form}, and this version of lexrl reads format {FORMAT}; "
            "use the version that wrote it, or run it again."
        )
    if not isinstance(about, dict) or _digest(arrays, about) != expected:
        raise Damaged(f"The file {str(path)!r} is damaged: its checksum does not match.")
    if run is not None:
        require_same_run(path, about.get("run"), run)
    return arrays, about


def require_same_run(path: pathlib.Path, found: Any, run: Identity) -> None:
    """Raise an error for a file of another run."""
    if found == run._asdict():
        return
    other = found.get("id") if isinstance(found, dict) else None
    whose = "not of this run" if other in (None, run.id) else f"of another run ({reprlib.repr(other)})"
    raise InputError(
        f"The file {str(path)!r} is {whose}: this one is {run.id!r}; move the file away, or back to where it belongs."
    )


def _digest(arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> str:
    """A checksum of everything: names, types, shapes, numbers, and the text."""
    total = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        total.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        total.update(np.asarray(arrays[name], order="C").reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def write_checkpoint(
    folder: pathlib.Path, steps: int, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]
) -> None:
    """Write a checkpoint; those before the latest two are removed."""
    write_arrays(inside(folder, CHECKPOINTS, f"{steps:012d}.safetensors"), arrays, about)
    for path in checkpoints(folder)[KEPT:]:
        path.unlink()


def read_checkpoint(path: pathlib.Path, run: Identity) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """A checkpoint, or the last state, of a run, with its curves; else a sentence."""
    arrays, about = read_arrays(path, run)
    require(path, about, IN_CHECKPOINT)
    steps, curves = about["steps"], {name: arrays.get(f"metrics/{name}") for name in about["metrics"]}
    if not steps or steps != sorted(set(steps)) or steps[0] < 0:
        raise Damaged(f"The file {str(path)!r} is damaged: its 'steps' are not increasing whole numbers.")
    for name, curve in curves.items():
        if curve is None or curve.ndim not in (2, 3) or len(curve) != len(steps) or curve.dtype.kind not in "fiu":
            raise Damaged(f"The file {str(path)!r} is damaged: {name!r} does not have one row for each step.")
    if "episode_return" not in curves:
        raise Damaged(f"The file {str(path)!r} is damaged: it has no 'episode_return'.")
    return arrays, about


def write_curves(folder: pathlib.Path, rows: Sequence[Mapping[str, Any]], run: Identity) -> None:
    """Write `metrics.csv`, tied to its run."""
    content = csv_bytes(rows)
    tie_curves(folder, run, content)
    write_bytes(inside(folder, METRICS), content)


def tie_curves(folder: pathlib.Path, run: Identity, *contents: bytes) -> None:
    """Write the checksums that `metrics.csv` of an unfinished run may have: that of the file that is there, and that of
    the one that replaces it, so that a kill in between leaves a file that is known."""
    path = inside(folder, METRICS)
    before = [path.read_bytes()] if path.is_file() else []
    known = [hashlib.sha256(each).hexdigest() for each in (*before, *contents)]
    write_json(inside(folder, CHECKPOINTS, TIES), {"run": run._asdict(), METRICS: known})


def require_own_curves(folder: pathlib.Path) -> None:
    """Raise an error if `metrics.csv` of an unfinished run is not its own."""
    path, ties = folder / METRICS, inside(folder, CHECKPOINTS, TIES)
    if not os.path.lexists(path):
        return
    if not path.is_file():
        raise Damaged(f"{str(path)!r} is not a file.")
    if not ties.is_file():
        raise Damaged(
            f"The file {str(path)!r} is of another run, or the run in {str(folder)!r} lost files: neither {SUMMARY} "
            f"nor {CHECKPOINTS}/{TIES} has its checksum."
        )
    content = read_json(ties, sealed=True)
    require(ties, content, {METRICS: list})
    require_same_run(ties, content.get("run"), read_identity(folder))
    if hashlib.sha256(path.read_bytes()).hexdigest() not in content[METRICS]:
        raise Damaged(f"The file {str(path)!r} is damaged, or of another run: its checksum is not the one in {TIES}.")


def checkpoints(folder: pathlib.Path) -> list[pathlib.Path]:
    """The latest first; a copy that somebody made under another name is not one of them."""
    found = inside(folder, CHECKPOINTS).glob("*.safetensors")
    return sorted((path for path in found if CHECKPOINT.fullmatch(path.name)), reverse=True)


def remove_checkpoints(folder: pathlib.Path) -> None:
    """A finished run needs none, and those with a replay buffer are large; files of anybody else stay."""
    place = inside(folder, CHECKPOINTS)
    if place.is_dir():
        (place / TIES).unlink(missing_ok=True)
        for path in checkpoints(folder):
            path.unlink()
        if not any(place.iterdir()):
            place.rmdir()


def remove_leftovers(folder: pathlib.Path) -> None:
    """Remove what a killed process was writing: files of a run, under the names that `write_bytes` gives them until
    they are complete. For whoever holds the folder."""
    for place in (folder, inside(folder, CHECKPOINTS), inside(folder, POLICIES)):
        for path in place.glob(".*") if place.is_dir() else ():
            if LEFTOVER.fullmatch(path.name) and path.is_file():
                path.unlink()


def is_run(folder: pathlib.Path) -> bool:
    return (folder / RUN).is_file()


def is_finished(folder: pathlib.Path) -> bool:
    """Whether there is a summary that was not left from before the run was continued."""
    if not os.path.lexists(folder / SUMMARY):
        return False
    try:
        about, found = read_json(folder / RUN), read_json(folder / SUMMARY).get("run")
    except InputError:
        return True  # whoever reads them will say what is wrong
    is_older = "continued" in about and isinstance(found, dict) and found.get("hash") != about.get("hash")
    return not is_older


def read_run(folder: pathlib.Path) -> dict[str, Any]:
    """What is run: the content of `run.json`."""
    if not folder.is_dir():
        raise InputError(f"There is no folder {str(folder)!r}; give one that `lexrl train` left.")
    if not is_run(folder):
        inside = ", ".join(path.name for path in sorted(folder.iterdir()) if is_run(path))
        hint = f"; there are runs in it: {inside}" if inside else "; give one that `lexrl train` left"
        raise InputError(f"The folder {str(folder)!r} holds no run (no {RUN}){hint}.")
    require_plain(folder)
    path = folder / RUN
    content = read_json(path)
    if "format" not in content:
        raise InputError(f"The file {str(path)!r} is from another program; give a folder that `lexrl train` left.")
    if content["format"] != FORMAT:
        raise InputError(
            f"The run in {str(folder)!r} has format {content['format']!r}, and this version of lexrl reads format "
            f"{FORMAT}; use the version that wrote it, or run it again."
        )
    require(path, content, IN_RUN, MAY_BE_IN_RUN)
    read_json(path, sealed=True)
    if content["hash"] != deciding_hash(content):
        raise Damaged(f"The file {str(path)!r} was changed after it was written: its hash does not match its settings.")
    if "name" in content["env"]:
        require(path, content["env"], {"name": str, "kwargs": dict | list[dict]})
    if not content["seeds"]:
        raise Damaged(f"The file {str(path)!r} is damaged: it has no seed.")
    if not content["objectives"] or not all(map(_is_objective, content["objectives"])):
        raise Damaged(f"The file {str(path)!r} is damaged: its 'objectives' are not names with a sign each.")
    return content


def deciding_hash(content: Mapping[str, Any]) -> str:
    """The hash of what decides a run's numbers, from the content of `run.json`.

    Of something that has no name in the catalog only that is known, not where it is imported from.
    """

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {"custom": ""} if "custom" in value else {key: plain(part) for key, part in value.items()}
        return [plain(part) for part in value] if isinstance(value, list | tuple) else value

    return checksum({key: plain(content.get(key)) for key in DECIDING})


def read_identity(folder: pathlib.Path) -> Identity:
    """What ties the files of a folder to its run."""
    content = read_run(folder)
    return Identity(content["id"], content["hash"])


def require_finished(folder: pathlib.Path) -> None:
    """Raise an error if the run is not finished."""
    if not is_finished(folder):
        raise InputError(f"The run in {str(folder)!r} is not finished; `lexrl resume {folder}` continues it.")


def read_summary(folder: pathlib.Path, seeds: Sequence[int], objectives: Sequence[str]) -> dict[str, Any]:
    """The results of a finished run: the content of `summary.json`."""
    path = folder / SUMMARY
    content = read_json(path, sealed=True)
    require(path, content, IN_SUMMARY, MAY_BE_IN_SUMMARY)
    require_same_run(path, content["run"], read_identity(folder))
    for returns in (content["per_episode"], content.get("exact_discounted", content["per_episode"])):
        require(path, returns, dict.fromkeys(objectives, list[float]))
        for name in objectives:
            if len(returns[name]) != len(seeds):
                raise Damaged(f"The file {str(path)!r} is damaged: {name!r} does not have one number for each seed.")
    chosen = content.get("selection", [{}] * len(seeds))
    if len(chosen) != len(seeds) or not all(_is_choice(each, len(objectives)) for each in chosen):
        raise Damaged(f"The file {str(path)!r} is damaged: its 'selection' is not about each seed.")
    if unknown := content["stopped"].keys() - set(map(str, seeds)):
        raise Damaged(f"The file {str(path)!r} is damaged: the run has no seed {', '.join(sorted(unknown))}.")
    return content


def file_checksums(folder: pathlib.Path, names: Sequence[str]) -> dict[str, str]:
    """The checksum of each file of a run's folder that is there, for its summary."""
    found = {name: folder / name for name in names if (folder / name).is_file()}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in found.items()}


def require_files(folder: pathlib.Path, summary: Mapping[str, Any]) -> None:
    """Raise an error for a file that is not the one that the summary was written with."""
    for name, expected in summary["files"].items():
        if ".." in pathlib.PurePath(name).parts or pathlib.PurePath(name).is_absolute():
            raise Damaged(f"The summary in {str(folder)!r} is damaged: it names the file {name!r}.")
        path = inside(folder, *pathlib.PurePath(name).parts)
        if not path.is_file():
            raise Damaged(f"There is no file {str(path)!r}, but the run in {str(folder)!r} left one.")
        if file_checksums(folder, [name])[name] != expected:
            raise Damaged(
                f"The file {str(path)!r} is damaged, or of another run: its checksum is not the one in {SUMMARY}."
            )


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
            at = (_step(row["step"]), position[int(row["seed"])], column[row["objective"]])
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


def _step(text: str) -> int:
    """A number of environment steps; a ValueError for what is none."""
    if not 0 <= (found := int(text)) < 2**31:
        raise ValueError(found)
    return found


def is_full(error: OSError) -> bool:
    """Is the disk full?"""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _is_choice(given: Mapping[str, Any], num_objectives: int) -> bool:
    """What was handed over, perhaps with the candidates that serve each prefix of the order best."""
    references = given.get("references", [0] * (num_objectives - 1))
    known = fits(references, list[int]) and len(references) == num_objectives - 1
    return known and all(-1 <= each < 2**31 for each in references)


def _is_objective(given: Any) -> bool:
    """A name and a sign, and a limit where there is one."""
    if not isinstance(given, list) or len(given) not in (2, 3) or not isinstance(given[0], str):
        return False
    return given[1] in (1, -1) and all(isinstance(limit, int | float) for limit in given[2:])
