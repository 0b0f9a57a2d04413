"""Corrupted folders: whatever is done to a file, there is a sentence or nothing has changed, and nothing is deleted.

A fresh seed each time, printed; `LEXRL_FUZZ_SEED=... pytest` repeats it. The long version is under the marker `slow`.
"""

import contextlib
import dataclasses
import errno
import functools
import io
import itertools
import json
import os
import pathlib
import random
import shutil
import struct
import sys
import time
import warnings

import jax.numpy as jnp
import pytest

import lexrl
from lexrl import cli, store
from lexrl.errors import InputError
from lexrl.report import run_folder
from lexrl.runs import execute, pipeline, plan, record

ORDER = "min cost > max reward"
SECONDS, MANY = 60, 2_000
COMMANDS = (
    "evaluate RUN --episodes 2", "verify RUN --episodes 20", "compare RUN RUN", "report RUN", "resume RUN",
    "continue RUN --steps 64", "video RUN --out OUT.png",
)  # fmt: skip
PNG = (store.CURVES, store.MAP)
FAILURES = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.EDQUOT)
WRONG = [
    None,
    True,
    -1,
    0,
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\ud800",
    "../../x",
    [],
    [[]],
    {},
    [None],
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two finished runs and two that were stopped with two checkpoints each, of different settings."""
    place = tmp_path_factory.mktemp("base")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "MAX_SHARE", float("inf"))  # a checkpoint after every chunk
        for name, size in (("a", 4), ("b", 5)):
            run = plan("q-learning", "grid-nav", ORDER, 2, 640, 5, env_kwargs={"size": size}, eval_episodes=2)
            list(execute(dataclasses.replace(run, verify_episodes=20), place / f"finished-{name}"))
            with contextlib.closing(execute(run, place / f"stopped-{name}")) as results:
                for _ in range(3):
                    next(results)
    return place


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".png")


def flip(path, dice, _):
    content = bytearray(path.read_bytes())
    for _ in range(dice.choice([1, 1, 1, 8])):
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    path.write_bytes(content)


def truncate(path, dice, _):
    content = path.read_bytes()
    path.write_bytes(content[: dice.choice([0, 1, 7, 8, dice.randrange(len(content)), len(content) - 1])])


def lengthen(path, dice, _):
    path.write_bytes(path.read_bytes() + dice.choice([b"\0", b"\n\n", b"{}", os.urandom(100)]))


def replace(path, dice, _):
    nested = b"[" * 10_000 + b"]" * 10_000
    deep = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
    path.write_bytes(dice.choice([b"", b"\0" * 100, b"null", b"[]", b"3", nested, deep, b"\xff\xfe", os.urandom(300)]))


def encode(path, dice, _):
    content = path.read_bytes()
    with contextlib.suppress(UnicodeDecodeError):
        content = content.decode().encode(dice.choice(["utf-16", "utf-32", "utf-8-sig", "utf-7", "cp037"]))
    path.write_bytes(content)


def swap(path, dice, other):
    """The same file, or another, of another run."""
    pool = [each for each in files(other) if each.suffix == path.suffix]
    if pool:
        shutil.copyfile(dice.choice(pool), path)


def swap_inside(path, dice, _):
    folder = next(parent for parent in path.parents if (parent / store.RUN).exists())
    shutil.copyfile(dice.choice([each for each in files(folder) if each != path]), path)


def remove(path, dice, _):
    path.unlink()


def as_folder(path, dice, _):
    path.unlink()
    path.mkdir()


def as_link(path, dice, other):
    target = other / path.name
    path.unlink()
    path.symlink_to(target)


def mutate(path, dice, _, sealed=False):
    """JSON of wrong types: a value, or a key, somewhere in it."""
    if path.suffix != ".json":
        return flip(path, dice, _)
    content = spoil(json.loads(path.read_text()), dice)
    path.write_text(json.dumps(seal(content) if sealed else content))
    return None


def spoil(content, dice):
    """With a value of a wrong type, or under another name, somewhere in it."""
    place = content
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = dice.choice(keys)
        if not isinstance(place[key], dict | list) or not place[key] or dice.random() < 0.2:
            break
        place = place[key]
    if isinstance(place, dict) and dice.random() < 0.2:
        place["x" + key] = place.pop(key)
    else:
        place[key] = dice.choice(WRONG)
    return content


def seal(content):
    """With the hash and the checksum that belong to a content."""
    with contextlib.suppress(ValueError, TypeError, KeyError):
        content["hash"] = store.deciding_hash(content) if "hash" in content else content.get("hash")
    content["sha256"] = store.checksum({k: v for k, v in content.items() if k != "sha256"})
    return content


def forge(path, dice, other):
    """With a checksum that is right: only types can tell."""
    return forge_arrays(path, dice) if path.suffix == ".safetensors" else mutate(path, dice, other, sealed=True)


def forge_arrays(path, dice):
    """A description of wrong types, or an array that is lost, renamed, or of another type or shape."""
    arrays, about = store.read_arrays(path)
    name = dice.choice(sorted(arrays))
    change = dice.choice(["description", "lost", "renamed", "type", "shape", "axes"])
    if change == "description":
        about = spoil(about, dice)
    elif change in ("lost", "renamed"):
        array = arrays.pop(name)
        arrays |= {f"x{name}": array} if change == "renamed" else {}
    else:
        array = arrays[name]
        shape = array.reshape(-1)[:-1] if change == "shape" else array[None]
        arrays[name] = array.astype(dice.choice(["float64", jnp.bfloat16])) if change == "type" else shape
    store.write_arrays(path, arrays, about)


DAMAGES = (
    flip, flip, truncate, lengthen, replace, encode, swap, swap, swap_inside, remove, as_folder, as_link, mutate, forge,
)  # fmt: skip


def seen(folder):
    """Everything a folder says: its description, and its results or the checkpoint that would be used."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = run_folder.read(folder)
        about = json.dumps(found.about, sort_keys=True)
        if found.summary is None:
            curves = found.metrics() if (folder / store.METRICS).is_file() else None
            record.read(folder)
            checkpoint, notes = pipeline.latest_checkpoint(folder, store.read_identity(folder))
            steps = None if checkpoint is None else len(checkpoint.steps)
            arrays = None if checkpoint is None else {name: each.tobytes() for name, each in checkpoint.arrays.items()}
            drawn = None if curves is None else {name: each.tobytes() for name, each in curves[1].items()}
            return [about, steps, arrays, drawn], bool(notes) or bool(caught)
        result = lexrl.load(folder)
        parts = [
            about, json.dumps(found.summary, sort_keys=True), [curve.tobytes() for curve in found.curves()],
            {name: values.tobytes() for name, values in result.metrics.items()},
            [str(record.codec.flatten(policy.state)) for policy in result.policies],
        ]  # fmt: skip
        return parts, False


@functools.cache
def said(folder):
    """What an intact folder says."""
    return seen(folder)[0]


def corrupt(runs, place, seed):
    """One corruption; the sentence that answers it, or an empty one if nothing was changed by it."""
    dice = random.Random(seed)
    name, other = dice.sample(["finished-a", "finished-b", "stopped-a", "stopped-b"], 2)
    folder, damage = place / "run", dice.choice(DAMAGES)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(runs / name, folder)
    path = dice.choice(files(folder))
    before = said(runs / name)
    damage(path, dice, runs / other)
    there = {each: each.read_bytes() for each in folder.rglob("*") if each.is_file() and not each.is_symlink()}
    what = f"{damage.__name__} of {name}/{path.relative_to(folder)} (seed {seed})"
    try:
        after, noted = seen(folder)
    except InputError as error:
        sentence = str(error)
        assert sentence.endswith("."), what
        assert len(sentence) < 2_000, what
    except Exception as error:
        raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
    else:
        sentence = "noted" if noted else ""
        assert noted or after == before or is_allowed(damage, path, name), f"{what}: a silent change"
    assert there == {each: each.read_bytes() for each in there}, f"{what}: something was changed or deleted"
    if dice.random() < 0.1:
        command(dice.choice(COMMANDS).replace("RUN", str(folder)).replace("OUT", str(place / "episode")), what)
    return sentence


def command(line, what):
    """A command on a damaged folder: it works, or a sentence says why not."""
    said, code = io.StringIO(), 0
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            cli.main(line.split())
        except SystemExit as stopped:
            code = stopped.code
        except Exception as error:
            raise AssertionError(f"{what}: {line}: {type(error).__name__}: {error}") from error
    assert code in (0, 1, 2, 3), what
    if code == 2:
        assert "lexrl: " in said.getvalue(), f"{what}: {line}: {said.getvalue()}"
    return code, said.getvalue()


def fail_disk(runs, place, seed):
    """A disk that is full or read-only after some writes: a sentence, and what was there can be continued."""
    dice = random.Random(seed)
    name, folder = dice.choice(["a", "b"]), place / "run"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(runs / f"stopped-{name}", folder)
    number, what = dice.choice(FAILURES), f"a disk that fails (seed {seed})"
    with pytest.MonkeyPatch.context() as patch:
        break_disk(patch, number, dice.randrange(12), dice.choice(["fsync", "replace"]))
        code, said = command(f"resume {folder}", what)
    assert code in (0, 1), what  # 0: it was finished before the disk failed
    if code:
        assert os.strerror(number) in said or "The disk is full" in said, what
        assert not [path for path in folder.rglob(".*") if path.is_file()], what
        lexrl.resume(folder)
    expected = lexrl.load(runs / f"finished-{name}").summary["per_episode"]
    assert lexrl.load(folder).summary["per_episode"] == expected, what
    return said


def break_disk(patch, number, after, call):
    """Have a call of the operating system fail after it has worked some times."""
    real, count = vars(os)[call], itertools.count()

    def fail(*given):
        if next(count) >= after:
            raise OSError(number, os.strerror(number))
        return real(*given)

    patch.setattr(os, call, fail)


def is_allowed(damage, path, name):
    """A change that nobody could notice, or that does no harm."""
    older = damage is remove and path.parent.name == store.CHECKPOINTS  # a run then continues from the one before
    unfinished = damage is remove and path.name == store.SUMMARY
    tie = damage is remove and path.name in (store.METRICS, store.TIES)  # curves that were lost are not shown
    return damage is forge or older or unfinished or tie


def test_for_some_seconds(runs, tmp_path, capsys):
    first = int(os.environ.get("LEXRL_FUZZ_SEED", random.SystemRandom().randrange(10**9)))
    end, count = time.monotonic() + SECONDS, 0
    while time.monotonic() < end or count < 20:
        (fail_disk if count % 20 == 19 else corrupt)(runs, tmp_path, first + count)
        count += 1
    with capsys.disabled():
        print(f"\n{count} corruptions, LEXRL_FUZZ_SEED={first}")


FORGED = (
    ("stopped-a", store.RUN), ("stopped-a", "checkpoints/*.safetensors"), ("stopped-a", f"checkpoints/{store.TIES}"),
    ("finished-a", store.RUN), ("finished-a", store.SUMMARY), ("finished-a", store.FINAL),
    ("finished-a", "policies/seed-0.safetensors"),
)  # fmt: skip
LOST = object()
each_file = pytest.mark.parametrize(("name", "file"), FORGED)
each_value = pytest.mark.parametrize(
    "value", [*WRONG, LOST], ids=lambda value: "lost" if value is LOST else repr(value)[:12]
)


def leaves(content, depth=100):
    """The dict or list, and the key in it, of every value of a description, as deep as that."""
    for key in list(content) if isinstance(content, dict) else range(len(content)):
        yield content, key
        if depth > 1 and isinstance(content[key], dict | list):
            yield from leaves(content[key], depth - 1)


def forged(folder, file, value, depth):
    """Put a value in the place of each one of a file in turn, under a checksum that is right; says which it was."""
    path = sorted(folder.glob(file))[-1]
    arrays, intact = store.read_arrays(path) if path.suffix == ".safetensors" else (None, json.loads(path.read_text()))
    for i in range(len(list(leaves(intact, depth)))):
        about = json.loads(json.dumps(intact))
        place, key = list(leaves(about, depth))[i]
        if value is LOST:
            del place[key]
        else:
            place[key] = value
        if arrays is None:
            path.write_text(json.dumps(seal(about)))
        else:
            store.write_arrays(path, arrays, about)
        yield f"{key!r} of {path.name}"


def read_forged(folder, what):
    """Whether it can be read; if not, there must be a sentence."""
    sentence = ""
    try:
        seen(folder)
    except InputError as error:
        sentence = str(error)
    except Exception as error:
        raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
    assert sentence.endswith(".") or not sentence, what
    return not sentence


@each_file
@each_value
def test_every_entry_is_checked(runs, tmp_path, name, file, value):
    """'versions' of a checkpoint once met a list where a number was expected."""
    shutil.copytree(runs / name, tmp_path / "run")
    for what in forged(tmp_path / "run", file, value, depth=2 if name == "stopped-a" else 1):
        read_forged(tmp_path / "run", what)


@pytest.mark.parametrize("depth", [150, 400, 600, 900])
@pytest.mark.parametrize("key", ["env", "algorithm", "label", "title"])
def test_what_is_nested_deep_is_a_sentence(runs, tmp_path, key, depth):
    """Less deep than what JSON refuses to read, it once ended in a RecursionError."""
    shutil.copytree(runs / "stopped-a", tmp_path / "run")
    content, nested = store.read_json(tmp_path / "run" / store.RUN), 1
    for _ in range(depth):
        nested = {"a": nested}
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    sealed = json.dumps(seal(content | {key: nested}))
    sys.setrecursionlimit(before)
    (tmp_path / "run" / store.RUN).write_text(sealed)
    with pytest.raises(InputError, match=r"run.json' is damaged: it is not JSON, or nested too deep"):
        seen(tmp_path / "run")


@pytest.mark.parametrize("kind", ["BF16", "F8_E4M3", "F8_E5M2", "C64", "X"])
def test_numbers_of_a_type_that_nothing_here_has(tmp_path, kind):
    """Two of them once ended in an AttributeError, and one in a ValueError."""
    about = {"lexrl": json.dumps({"format": store.FORMAT, "sha256": "", "about": {}})}
    size = {"BF16": 2, "C64": 8}.get(kind, 1)
    header = json.dumps({"__metadata__": about, "a": {"dtype": kind, "shape": [1], "data_offsets": [0, size]}}).encode()
    (tmp_path / "file").write_bytes(struct.pack("<Q", len(header)) + header + bytes(size))
    with pytest.raises(store.Damaged, match="is damaged"):
        store.read_arrays(tmp_path / "file")


@pytest.mark.slow
@each_file
@each_value
def test_every_value_is_checked(runs, tmp_path, name, file, value):
    """However deep it is; and what can be read can be worked with."""
    shutil.copytree(runs / name, tmp_path / "run")
    lines = itertools.cycle(COMMANDS)
    for number, what in enumerate(forged(tmp_path / "run", file, value, depth=100)):
        if read_forged(tmp_path / "run", what) and number % 10 == 0:
            shutil.copytree(tmp_path / "run", tmp_path / "copy")
            line = next(lines).replace("RUN", str(tmp_path / "copy")).replace("OUT", str(tmp_path / "episode"))
            command(line, what)
            shutil.rmtree(tmp_path / "copy")


@pytest.mark.slow
def test_many(runs, tmp_path, capsys):
    first = int(os.environ.get("LEXRL_FUZZ_SEED", random.SystemRandom().randrange(10**9)))
    every = [fail_disk if i % 20 == 19 else corrupt for i in range(MANY)]
    answered = sum(bool(attack(runs, tmp_path, first + i)) for i, attack in enumerate(every))
    with capsys.disabled():
        print(f"\n{MANY} corruptions, {answered} of them answered by a sentence, LEXRL_FUZZ_SEED={first}")


@pytest.mark.parametrize("number", FAILURES)
@pytest.mark.parametrize("after", [0, 1, 3])
def test_disks_that_fail(runs, tmp_path, monkeypatch, number, after):
    """A resumed run meets a full or read-only disk after some writes: an OSError, which the command line words; what
    was there can be resumed."""
    shutil.copytree(runs / "stopped-a", tmp_path / "run")
    before = seen(tmp_path / "run")[0]
    with monkeypatch.context() as patch:
        break_disk(patch, number, after, "fsync")
        with pytest.raises(OSError, match=os.strerror(number)):
            lexrl.resume(tmp_path / "run")
    assert not list((tmp_path / "run").rglob(".*"))
    if after == 0:
        assert seen(tmp_path / "run")[0] == before
    lexrl.resume(tmp_path / "run")
    assert lexrl.load(tmp_path / "run").summary["per_episode"] == lexrl.load(runs / "finished-a").summary["per_episode"]


def test_a_linked_folder_of_checkpoints_is_not_emptied(runs, tmp_path):
    """Once, resume deleted what was behind the link."""
    shutil.copytree(runs / "stopped-a", tmp_path / "run")
    precious = tmp_path / "precious"
    (tmp_path / "run" / "checkpoints").rename(precious)
    (precious / "letter.txt").write_text("dear")
    (tmp_path / "run" / "checkpoints").symlink_to(precious)
    with pytest.raises(InputError, match=r"checkpoints' is a link to .*precious"):
        lexrl.resume(tmp_path / "run")
    assert len(list(precious.iterdir())) == 4


def test_links_that_come_later_are_not_followed(runs, tmp_path):
    run = record.read(runs / "stopped-a")
    folder, precious = tmp_path / "run", tmp_path / "precious"
    precious.mkdir()
    results = execute(run, folder)
    next(results)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    (folder / "checkpoints").symlink_to(precious)
    (folder / "policies").symlink_to(precious)
    with pytest.raises(InputError, match="is a link"):
        list(results)
    assert list(precious.iterdir()) == []


def test_files_of_others_stay(runs, tmp_path):
    """Also copies of checkpoints: their names ended in a traceback, and they were deleted."""
    shutil.copytree(runs / "stopped-a", tmp_path / "run")
    place = tmp_path / "run" / "checkpoints"
    latest = store.checkpoints(tmp_path / "run")[0]
    names = ["1.safetensors", f"{latest.stem} (copy).safetensors", "notes.txt"]
    for name in names:
        shutil.copyfile(latest, place / name)
    lexrl.resume(tmp_path / "run")
    assert sorted(path.name for path in place.iterdir()) == sorted(names)


def test_what_a_killed_process_was_writing_is_removed(runs, tmp_path):
    """Under any name of a run's files; once, only that of a checkpoint was."""
    shutil.copytree(runs / "stopped-a", tmp_path / "run")
    names = [path.relative_to(runs / kind) for kind in ("stopped-a", "finished-a") for path in files(runs / kind)]
    half = [tmp_path / "run" / name.with_name(f".{name.name}.ihsg_okz") for name in (*names, *map(pathlib.Path, PNG))]
    for path in half:
        path.parent.mkdir(exist_ok=True)
        path.write_text("{")
    (tmp_path / "run" / ".notes.txt").write_text("mine")
    lexrl.resume(tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").rglob(".*")] == [".notes.txt"]


@pytest.mark.parametrize("name", ["checkpoints", "policies"])
def test_a_stranger_is_named(runs, tmp_path, name):
    kind = "stopped" if name == "checkpoints" else "finished"
    shutil.copytree(runs / f"{kind}-a", tmp_path / "run")
    source = sorted((runs / f"{kind}-b" / name).glob("*.safetensors"))[-1]
    target = sorted((tmp_path / "run" / name).glob("*.safetensors"))[-1]
    shutil.copyfile(source, target)
    with pytest.raises(InputError, match=f"{target.name}' is (of another run|damaged, or of another run)"):
        lexrl.resume(tmp_path / "run")


def test_curves_of_another_run_are_not_shown(runs, tmp_path):
    """Also while a run is not finished, and nothing else has their checksum yet."""
    shutil.copytree(runs / "stopped-a", tmp_path / "run")
    shutil.copyfile(runs / "stopped-b" / store.METRICS, tmp_path / "run" / store.METRICS)
    with pytest.raises(InputError, match=r"metrics.csv' is damaged, or of another run"):
        run_folder.read(tmp_path / "run")
    shutil.copyfile(runs / "stopped-b" / "checkpoints" / store.TIES, tmp_path / "run" / "checkpoints" / store.TIES)
    with pytest.raises(InputError, match=r"metrics.json' is of another run"):
        run_folder.read(tmp_path / "run")
    lexrl.resume(tmp_path / "run")  # its checkpoints are its own, and curves are written again
    assert lexrl.load(tmp_path / "run").metrics.keys() == lexrl.load(runs / "finished-a").metrics.keys()


def test_another_run_in_the_folder_is_not_continued(runs, tmp_path):
    shutil.copytree(runs / "stopped-a", tmp_path / "run")
    other = plan("q-learning", "grid-nav", ORDER, 3, 640, 5, env_kwargs={"size": 4}, eval_episodes=2)
    with pytest.raises(InputError, match="holds a run with other settings"):
        list(execute(other, tmp_path / "run"))
    same = record.read(runs / "finished-a")
    with pytest.raises(InputError, match="is finished"):
        list(execute(same, runs / "finished-a"))


def test_two_at_once(runs, tmp_path):
    shutil.copytree(runs / "stopped-a", tmp_path / "run")
    run = record.read(tmp_path / "run")
    with contextlib.closing(execute(run, tmp_path / "run")) as results:
        next(results)
        with pytest.raises(InputError, match=f"is being worked on by .* process {os.getpid()}"):
            lexrl.resume(tmp_path / "run")
    lexrl.resume(tmp_path / "run")


def test_renamed_files_are_synced_with_their_folder(tmp_path, monkeypatch):
    synced, real = [], os.fsync

    def note(handle):
        synced.append(os.path.realpath(f"/proc/self/fd/{handle}"))
        return real(handle)

    monkeypatch.setattr(os, "fsync", note)
    store.write_bytes(tmp_path / "folder" / "file", b"x")
    assert synced[-1] == str(tmp_path / "folder")
    assert len(synced) == 2
