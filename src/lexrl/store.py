"""What is written to disk: folders that are never reused, files that are whole or not there at all."""

import csv
import io
import json
import os
import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from lexrl.errors import InputError


def new_folder(wanted: pathlib.Path) -> pathlib.Path:
    """The wanted folder if it is not there yet or empty; else the same name with the first free number."""
    number = 1
    while True:
        folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(
                    f"The folder {str(folder)!r} cannot be made ({error.strerror}); give another with --out."
                ) from None
            return folder
        number += 1


def write_bytes(path: pathlib.Path, content: bytes) -> None:
    """Write a file in one stroke: readers see the old one or the new one, never half of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        pathlib.Path(temporary).unlink(missing_ok=True)
        raise


def write_json(path: pathlib.Path, content: Mapping[str, Any]) -> None:
    write_bytes(path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def write_csv(path: pathlib.Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows as CSV, with the first row's keys as the header."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_bytes(path, text.getvalue().encode())
