"""What JSON holds: of which type it is, and that NaN is none of it."""

import math
from typing import Literal

import pytest

from lexrl.json_values import finite, fits

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
    assert fits(value, hint)


@pytest.mark.parametrize(("value", "hint"), OTHERS, ids=lambda each: str(each)[:30])
def test_what_does_not(value, hint):
    assert not fits(value, hint)


def test_null_stands_for_what_is_not_finite():
    assert finite({"a": [1, math.nan, (math.inf, "x")], "b": {"c": -math.inf}}) == {
        "a": [1, None, [None, "x"]],
        "b": {"c": None},
    }
