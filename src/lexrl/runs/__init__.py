"""A run is a value: which algorithm, which world, which order, how long, which seeds. A result is what came of it."""

from lexrl.runs.execute import execute
from lexrl.runs.plan import Run, plan
from lexrl.runs.policy import Policy
from lexrl.runs.record import load, resume
from lexrl.runs.result import Result
from lexrl.runs.training import stream, train

__all__ = ["Policy", "Result", "Run", "execute", "load", "plan", "resume", "stream", "train"]
