"""One sub-step of a fifteenth of a second."""

from typing import no_type_check

from lexrl.envs.intersection import collisions, drivers, right_of_way
from lexrl.envs.intersection.compiled import compiled
from lexrl.envs.intersection.state import COUNT, SUBSTEPS

FREQUENCY = 15
"""Sub-steps per second."""
RULES_EVERY = 7
"""Sub-steps between two looks at the right of way."""


@compiled
@no_type_check
def substep(vehicles, marks, counters, connected_lanes):
    """Everybody decides, the right of way is enforced, everybody moves, collisions are resolved."""
    dt = 1 / FREQUENCY
    drivers.decide(vehicles, marks, counters, connected_lanes)
    counters[SUBSTEPS] += 1
    if counters[SUBSTEPS] % RULES_EVERY == 0:
        right_of_way.enforce(vehicles, marks, counters)
    for i in range(counters[COUNT]):
        drivers.move(vehicles[i], marks[i], dt)
    collisions.resolve_all(vehicles, marks, counters, dt)
