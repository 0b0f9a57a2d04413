"""Settings that are one of a few words. Type-checked code never gets this far, so it is turned off here."""

import subprocess
import sys

import pytest

from lexrl.algorithms.validation import require_choice
from lexrl.errors import InputError


class TestChoices:
    @pytest.mark.parametrize("estimate", ["episodes", "critic"])
    @pytest.mark.parametrize("surrogate", ["episodes", "critic"])
    def test_those_that_are_listed(self, estimate, surrogate):
        require_choice(("episodes", "critic"), return_estimate=estimate, surrogate=surrogate)

    @pytest.mark.parametrize(
        ("given", "sentence"),
        [
            (
                {"return_estimate": "critics"},
                "return_estimate is 'critics'; it must be one of 'episodes', 'critic'.",
            ),
            ({"return_estimate": None}, "return_estimate is None; it must be one of 'episodes', 'critic'."),
            ({"first": "critic", "second": "d"}, "second is 'd'; it must be one of 'episodes', 'critic'."),
            ({"first": "rms", "second": "critic"}, "first is 'rms'; it must be one of 'episodes', 'critic'."),
        ],
    )
    def test_others(self, given, sentence):
        with pytest.raises(InputError) as error:
            require_choice(("episodes", "critic"), **given)
        assert str(error.value) == sentence


def test_algorithms_check_their_own():
    """In a program of its own, without type checks."""
    program = """
import lexrl
for make in (
    lambda: lexrl.QLearning(exploration="no"),
    lambda: lexrl.PPO(surrogate="no"),
    lambda: lexrl.PaperLPPO(return_estimate="no"),
    lambda: lexrl.PaperLA2C(return_estimate="no"),
    lambda: lexrl.A2C(networks=lexrl.Networks(activation="no")),
    lambda: lexrl.Projection(networks=lexrl.Networks(optimizer="no")),
    lambda: lexrl.DQN(activation="no"),
    lambda: lexrl.LDQN(optimizer="no"),
):
    try:
        make()
    except lexrl.InputError as error:
        print(str(error).split(";")[0])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    said = [
        "The exploration 'no' cannot be read",
        *(f"{name} is 'no'" for name in ("surrogate", "return_estimate", "return_estimate", "activation")),
        "The optimizer 'no' is not known",
        "activation is 'no'",
        "The optimizer 'no' is not known",
    ]
    assert done.stdout.splitlines() == said, done.stderr
