"""A run is a value: which algorithm, environment and order, how long, which seeds. Executed, it gives results."""

from lexrl.runs.pipeline import execute
from lexrl.runs.policy import Policy
from lexrl.runs.record import load
from lexrl.runs.result import Result
from lexrl.runs.run import Run, plan
from lexrl.runs.training import resume, stream, train

__all__ = ["Policy", "Result", "Run", "execute", "load", "plan", "resume", "stream", "train"]
