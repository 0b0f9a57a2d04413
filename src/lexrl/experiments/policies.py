"""E5, pictures of the policies of E2: ten episodes of each seed, one panel for each.

CartSafe: the path of the cart's body and of the pole's tip. GridNav: the path through the grid.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lexrl.envs import CostAwareObservation
from lexrl.envs.cart_safe import HALF_LENGTH, SAFE, TRACK
from lexrl.experiments import safety
from lexrl.experiments.schedule import Finished, Job
from lexrl.experiments.sections import Section
from lexrl.loops.trajectories import paths
from lexrl.runs import load

TITLE = "Policies: what was learned, in pictures"
QUESTION = "What do the policies of the safety experiment do?"
EPISODES = 10
Draw = Callable[[Any, np.ndarray, Sequence[str]], bytes]
"""From a world, what was seen there `[seeds, episodes, T + 1, ...]` and a title for each seed to a PNG."""


def runs(size: str) -> list[Job]:
    """Those of the safety experiment, in worlds that can be drawn."""
    return [job for job in safety.runs(size) if job.tags["world"] in DRAWN]


def summarise(done: Sequence[Finished]) -> list[Section]:
    """One picture for each learner: a panel for each seed."""
    return [_pictures(world, kind, here) for world, kind, here in safety.groups(done)]


def _pictures(world: str, kind: str, here: Sequence[Finished]) -> Section:
    what, draw = DRAWN[world]
    return {
        "kind": "pictures",
        "name": f"{world}-{kind}-policies",
        "title": f"{safety.WORLDS[world].title}, {kind} settings",
        "caption": f"{EPISODES} episodes of each seed's greedy policy. {what}",
        "pictures": [_picture(one, draw) for one in here],
    }


def _picture(one: Finished, draw: Draw) -> dict[str, Any]:
    result = load(one.found.path)
    seen = paths(*result.on_devices(), EPISODES).seen
    titles = [f"seed {seed}" for seed in result.run.seeds]
    label = one.job.label
    return {
        "label": label,
        "alt": f"Paths of {label}, {len(titles)} seeds",
        "name": one.job.name.replace("/", "-"),
        "png": draw(result.run.env, seen, titles),
    }


def _draw_cart(world: Any, seen: np.ndarray, titles: Sequence[str]) -> bytes:
    from lexrl.report import routes  # matplotlib takes its time to import

    inside = world.world if isinstance(world, CostAwareObservation) else world
    body, tip = cart(seen, inside.observe_cos_sin)
    return routes.cart(body, tip, titles, SAFE, TRACK)


def _draw_grid(world: Any, seen: np.ndarray, titles: Sequence[str]) -> bytes:
    from lexrl.report import routes

    # A world that shows what was spent numbers pairs of a cell and a sum.
    inside, sums = (world.world, int(np.prod(world.counts))) if isinstance(world, CostAwareObservation) else (world, 1)
    return routes.grid(seen // sums, titles, inside.size, np.asarray(inside.obstacles), int(inside.goal))


DRAWN: dict[str, tuple[str, Draw]] = {
    "cart-safe": (
        "The path of the cart's body (green) and of the pole's tip (orange); "
        "the cart is safe between the dotted lines.",
        _draw_cart,
    ),
    "grid-nav": (
        "The path through the grid (orange) from the start, bottom right; the goal is green, obstacles are grey.",
        _draw_grid,
    ),
}
"""How policies are drawn; the runs of other worlds have no pictures."""


def cart(seen: np.ndarray, observe_cos_sin: bool) -> tuple[np.ndarray, np.ndarray]:
    """Where the cart's body and the pole's tip are, `[..., 2]` each, from observations."""
    place = seen[..., 0]
    sine, cosine = (seen[..., 3], seen[..., 2]) if observe_cos_sin else (np.sin(seen[..., 2]), np.cos(seen[..., 2]))
    body = np.stack([place, np.zeros_like(place)], axis=-1)
    return body, body + 2 * HALF_LENGTH * np.stack([sine, cosine], axis=-1)
