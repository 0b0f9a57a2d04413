"""Where runs are executed: here, one after the other; by several processes of this machine; or on a Ray cluster.

A planned run is a folder that says what is run. Whoever executes it needs nothing else, so a run whose worker died is
resumed by another one, and the same plan leaves the same numbers on every engine.
"""

from lexrl.engine.engines import Engine
from lexrl.engine.outcomes import Outcome

__all__ = ["Engine", "Outcome"]
