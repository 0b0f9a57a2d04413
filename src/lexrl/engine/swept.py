"""What a sweep found: its combinations of values, and which of them is the best."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from lexrl.report.run_folder import RunFolder
from lexrl.runs.run import Run

FILE, TABLE, ROUNDS, CONFIRMATION = "sweep.json", "sweep.csv", "rounds", "confirmation"


class Row(NamedTuple):
    """One combination of values."""

    settings: Mapping[str, Any]
    returns: np.ndarray
    """`[seeds, M]`: what each seed's policy reached per episode; NaN for a seed that stopped."""
    best: float
    """The probability that it is the best of the sweep; 0 if it was dropped on the way."""
    why: str
    """What went wrong, if something did, or why it was dropped."""
    steps: int = 0
    """Environment steps of each seed, in the last round that it was part of."""
    exact: np.ndarray | None = None
    """`[seeds, M]`: exact discounted returns, where the environment is finite."""


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A finished sweep."""

    rows: tuple[Row, ...]
    winner: int
    """The position of the best row."""
    confirmation: RunFolder
    """The best settings, trained with fresh seeds: the result to report."""
    folder: pathlib.Path
    base: Run
    """The run whose settings are varied."""
