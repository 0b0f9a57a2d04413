"""Folders are never reused, files are whole or not there."""

import pathlib

import pytest

from lexrl import store
from lexrl.errors import InputError


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
    with pytest.raises(InputError, match="cannot be made"):
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
