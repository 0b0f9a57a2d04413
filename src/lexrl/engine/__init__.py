"""Where runs are executed: here, one after the other, or by several processes of this machine.

A planned run is a folder that says what is run. Whoever executes it needs nothing else, so a run whose worker died is
resumed by another one, and the same plan leaves the same numbers on every engine.
"""

from lexrl.engine.engines import Engine, Outcome

__all__ = ["Engine", "Outcome"]
