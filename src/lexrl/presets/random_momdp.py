"""RandomMOMDP: the constants of the paper's scaling experiment, for the tabular algorithms."""

from functools import partial

from lexrl.catalog import TEXTBOOK
from lexrl.presets import Preset, Presets, make
from lexrl.tolerance import Relative

ORDER, TIMESTEPS = "max signal_1 > max signal_2", 400_000


def paper() -> Presets:
    """Constant rates, a fixed tolerance, and nothing that the defaults add."""
    return {name: partial(_preset, name) for name in ("q-learning", "sarsa", "expected-sarsa", "double-q")}


def _preset(name: str) -> Preset:
    return Preset(make(name, **TEXTBOOK | {"tolerance": Relative(0.01), "gamma": 0.9}), ORDER, TIMESTEPS)


PRESETS = {"paper": paper}
