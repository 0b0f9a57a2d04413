"""Settings that are one of a few words. Type-checked code never gets this far, so it is turned off here."""

import subprocess
import sys
from typing import Literal

import equinox as eqx
import pytest
import tyro

from lexrl.algorithms.validation import require_choices
from lexrl.errors import InputError


class Inner(eqx.Module):
    method: Literal["adam", "sgd"] = "adam"


class Settings(eqx.Module):
    return_estimate: Literal["episodes", "critic"] = "episodes"
    rule: tyro.conf.Suppress[Literal["a", "b", "c"]] = "a"
    size: int = 3
    inner: Inner = Inner()


class TestChoices:
    @pytest.mark.parametrize("estimate", ["episodes", "critic"])
    @pytest.mark.parametrize("method", ["adam", "sgd"])
    def test_those_that_are_listed(self, estimate, method):
        require_choices(Settings(return_estimate=estimate, inner=Inner(method)))

    @pytest.mark.parametrize(
        ("settings", "sentence"),
        [
            (
                Settings(return_estimate="critics"),
                "return_estimate is 'critics'; it must be one of 'episodes', 'critic'.",
            ),
            (Settings(return_estimate=None), "return_estimate is None; it must be one of 'episodes', 'critic'."),
            (Settings(rule="d"), "rule is 'd'; it must be one of 'a', 'b', 'c'."),
            (Settings(inner=Inner("rms")), "method is 'rms'; it must be one of 'adam', 'sgd'."),
        ],
    )
    def test_others(self, settings, sentence):
        with pytest.raises(InputError) as error:
            require_choices(settings)
        assert str(error.value) == sentence


def test_algorithms_check_their_own():
    """In a program of its own, without type checks."""
    program = """
import lexrl
for make in (
    lambda: lexrl.Tabular(rule="no"),
    lambda: lexrl.PPO(surrogate="no"),
    lambda: lexrl.LPPO(level="no"),
    lambda: lexrl.LA2C(level="no"),
    lambda: lexrl.A2C(networks=lexrl.Networks(activation="no")),
    lambda: lexrl.Projection(networks=lexrl.Networks(optimiser=lexrl.Optimiser(method="no"))),
):
    try:
        make()
    except lexrl.InputError as error:
        print(str(error).split(";")[0])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    said = [
        f"{name} is 'no'"
        for name in ("rule", "surrogate", "return_estimate", "return_estimate", "activation", "method")
    ]
    assert done.stdout.splitlines() == said, done.stderr
