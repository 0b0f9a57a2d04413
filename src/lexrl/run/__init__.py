"""A run is a value: which algorithm, which world, which order, how long, which seeds. A result is what came of it."""

from lexrl.run.disk import load, resume
from lexrl.run.execute import execute
from lexrl.run.plan import Run, plan
from lexrl.run.policy import Policy
from lexrl.run.result import Result
from lexrl.run.training import stream, train

__all__ = ["Policy", "Result", "Run", "execute", "load", "plan", "resume", "stream", "train"]
