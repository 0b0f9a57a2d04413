"""Folders are never reused, files are whole or not there."""

import math
import os
import pathlib
import re
from typing import Literal

import numpy as np
import pytest

from lexrl import locks, store
from lexrl.errors import InputError


@pytest.mark.parametrize("name", [".", ".."])
def test_a_folder_that_has_no_name_to_number(tmp_path, monkeypatch, name):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "mine.txt").touch()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(InputError, match=rf"^The folder '{re.escape(name)}' is not empty; give another with --out\.$"):
        store.new_folder(pathlib.Path(name))


def test_a_new_folder_gets_the_name_it_wants(tmp_path):
    assert store.new_folder(tmp_path / "a" / "run") == tmp_path / "a" / "run"


def test_a_used_folder_is_left_alone(tmp_path):
    first = store.new_folder(tmp_path / "run")
    (first / "file").write_text("here")
    assert store.new_folder(tmp_path / "run").name == "run-2"
    (tmp_path / "run-2" / "file").write_text("here")
    assert store.new_folder(tmp_path / "run").name == "run-3"


def test_a_file_in_the_way_is_left_alone(tmp_path):
    (tmp_path / "run").write_text("not a folder")
    assert store.new_folder(tmp_path / "run").name == "run-2"
    assert (tmp_path / "run").read_text() == "not a folder"


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be created"):
        store.new_folder(tmp_path / "file" / "run")


def test_a_failed_write_leaves_the_old_file_and_no_scraps(tmp_path, monkeypatch):
    path = tmp_path / "numbers.json"
    store.write_json(path, {"a": 1})
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "disk full")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="disk full"):
        store.write_json(path, {"a": 2})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_csv_has_a_header_and_rows(tmp_path):
    path = pathlib.Path(tmp_path / "rows.csv")
    store.write_csv(path, [{"a": 1, "b": "x"}, {"a": 2, "b": "y,z"}])
    assert path.read_text() == 'a,b\n1,x\n2,"y,z"\n'


HEADER = "seed,step,metric,objective,value"
ROWS = [
    "5,10,episode_return,cost,1.5", "5,10,episode_return,reward,2.5",
    "3,10,episode_return,cost,nan", "3,10,episode_return,reward,4.5",
    "5,20,episode_return,cost,5.5", "5,20,episode_return,reward,6.5",
    "3,20,episode_return,cost,7.5", "3,20,episode_return,reward,8.5",
    "5,10,episode_length,,1", "3,10,episode_length,,2",
    "5,20,episode_length,,3", "3,20,episode_length,,4",
]  # fmt: skip


def curves(folder, *lines):
    (folder / "metrics.csv").write_text("".join(f"{line}\n" for line in lines))
    return store.read_curves(folder, [5, 3], ["cost", "reward"])


def test_curves(tmp_path):
    steps, metrics = curves(tmp_path, HEADER, *ROWS)
    assert steps.tolist() == [10, 20]
    assert metrics.keys() == {"episode_return", "episode_length"}
    np.testing.assert_array_equal(metrics["episode_return"], [[[1.5, 2.5], [np.nan, 4.5]], [[5.5, 6.5], [7.5, 8.5]]])
    np.testing.assert_array_equal(metrics["episode_length"], [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ((HEADER.replace("value", "worth"), *ROWS), "line 2 cannot be read"),
        ((HEADER.replace("step", "time"), *ROWS), "line 2 cannot be read"),
        ((HEADER, *ROWS, "4,20,episode_return,cost,1"), "line 14 cannot be read"),
        ((HEADER, *ROWS, "5,20,episode_return,speed,1"), "line 14 cannot be read"),
        ((HEADER, *ROWS, "5,20,episode_return,cost,much"), "line 14 cannot be read"),
        ((HEADER, *ROWS, "5,late,episode_return,cost,1"), "line 14 cannot be read"),
        ((HEADER, *ROWS, "5,20,ret"), "line 14 cannot be read"),
        ((HEADER, *ROWS[1:]), "does not have one number of 'episode_return' for each seed and step"),
        ((HEADER, *ROWS[:-1]), "does not have one number of 'episode_length' for each seed and step"),
        (
            (HEADER, "5,10,episode_return,,1.5", *ROWS[1:]),
            "does not have one number of 'episode_return' for each seed and step",
        ),
        ((HEADER, *ROWS[8:]), "has no 'episode_return'"),
        ((HEADER,), "has no 'episode_return'"),
        ((), "has no 'episode_return'"),
        (("\0",), "has no 'episode_return'|is not CSV"),
    ],
)
def test_damaged_curves_are_a_sentence(tmp_path, lines, sentence):
    with pytest.raises(store.Damaged, match=rf"^The file '.*metrics\.csv' is damaged: .*({sentence})\.$"):
        curves(tmp_path, *lines)


def test_curves_that_are_no_text(tmp_path):
    (tmp_path / "metrics.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(store.Damaged, match="is not CSV"):
        store.read_curves(tmp_path, [5], ["cost"])


def test_of_two_that_want_a_new_folder_at_once_one_takes_the_next(tmp_path):
    """Between making a folder and writing into it there are seconds in which it is empty."""
    first, second = (store.new_folder(tmp_path / "run") for _ in range(2))
    assert [first.name, second.name] == ["run", "run-2"]
    for folder in (first, second):
        with locks.hold(folder):
            assert locks.read_holder(folder / locks.FILE).pid == os.getpid()
        assert list(folder.iterdir()) == []
    assert store.new_folder(tmp_path / "run") == first  # nothing came of it


@pytest.mark.parametrize(("name", "sentence"), [("a\0b", "no file can have such a name"), (".", "that is a folder")])
def test_what_cannot_be_a_file_is_a_sentence(tmp_path, name, sentence):
    with pytest.raises(InputError, match=sentence):
        store.write_bytes(tmp_path / name, b"")


FITTING = [
    (3, int),
    (3, float),
    (0.5, float),
    (math.nan, float),
    ("x", str),
    (True, bool),
    ([], list),
    ({}, dict),
    ([1, 2], list[int]),
    ([1, 2], tuple[int, ...]),
    ([], list[int]),
    ({"a": [1, 0.5]}, dict[str, list[float]]),
    ([{}], dict | list[dict]),
    ("kept", Literal["kept", "violated"]),
    (None, float | None),
]
OTHERS = [
    (True, int),
    (1, bool),
    (True, float),
    (10**400, float),
    ("1", float),
    (None, float),
    (0.5, int),
    ([1, "x"], list[int]),
    ([1, None], tuple[int, ...]),
    ("ab", list[str]),
    ({"a": 1}, dict[str, list[float]]),
    ([], dict[str, str]),
    ([[]], dict | list[dict]),
    ("lost", Literal["kept", "violated"]),
    ([], Literal["kept", "violated"]),
]


@pytest.mark.parametrize(("value", "hint"), FITTING, ids=str)
def test_what_fits(value, hint):
    assert store.fits(value, hint)


@pytest.mark.parametrize(("value", "hint"), OTHERS, ids=lambda each: str(each)[:30])
def test_what_does_not(value, hint):
    assert not store.fits(value, hint)


def test_null_stands_for_what_is_not_finite():
    assert store.finite({"a": [1, math.nan, (math.inf, "x")], "b": {"c": -math.inf}}) == {
        "a": [1, None, [None, "x"]],
        "b": {"c": None},
    }
