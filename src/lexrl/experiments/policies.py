"""E5, trajectories of the policies of E2: ten episodes of each seed, one panel for each."""

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lexrl.envs.cart_safe import HALF_LENGTH, SAFE, TRACK
from lexrl.envs.cost_aware import CostAwareObservation
from lexrl.envs.cost_aware_batched import CostAwareBatch
from lexrl.envs.intersection.roads import OUTER, WIDTH
from lexrl.envs.intersection.state import POSITION_RANGE
from lexrl.experiments import safety
from lexrl.experiments.schedule import Finished, Job
from lexrl.loops.trajectories import record_trajectories, record_trajectories_on_host
from lexrl.report.picture import Picture
from lexrl.report.sections.images import Image, Images
from lexrl.runs import Result, load
from lexrl.runs.run import on_host
from lexrl.types import unwrapped

QUESTION = "What do the policies of the safety experiment do?"
EPISODES = 10
Draw = Callable[[Any, np.ndarray, Sequence[str]], Picture]
"""From an environment, observations `[seeds, episodes, T + 1, ...]` and a title for each seed."""


def runs(size: str) -> list[Job]:
    """Those of the safety experiment, on environments that can be drawn."""
    return [job for job in safety.runs(size) if job.tags["env"] in DRAWN]


def summarize(results: Sequence[Finished]) -> list[Any]:
    """One image for each algorithm."""
    return [_images(env, preset, here) for env, preset, here in safety.groups(results)]


def _images(env: str, preset: str, here: Sequence[Finished]) -> Images:
    what, draw = DRAWN[env]
    return Images(
        title=f"{safety.ENVS[env].title}, {preset} settings",
        caption=f"{EPISODES} episodes of each seed's greedy policy. {what}",
        images=tuple(_image(one, draw) for one in here),
        name=f"{env}-{preset}-policies",
    )


def _image(one: Finished, draw: Draw) -> Image:
    result = load(one.found.path)
    observations = _record(result)
    titles = [f"seed {seed}" for seed in result.run.seeds]
    label = one.job.label
    return Image(
        file=pathlib.Path("figures", f"{one.job.name.replace('/', '-')}.png"),
        alt=f"Trajectories of {label}, {len(titles)} seeds",
        label=label,
        content=draw(result.run.env, observations, titles).png,
    )


def _record(result: Result) -> np.ndarray:
    """Observations `[seeds, episodes, T + 1, ...]` of each seed's greedy policy."""
    population, agents = result.on_devices()
    if on_host(result.run.env):
        return record_trajectories_on_host(population, result.run.env, agents, EPISODES).observations
    return record_trajectories(population, agents, EPISODES).observations


def _draw_cart(env: Any, observations: np.ndarray, titles: Sequence[str]) -> Picture:
    from lexrl.report import maps  # matplotlib takes its time to import

    cart, tip = positions(observations, unwrapped(env).observe_cos_sin)
    return maps.cart_trajectories(cart, tip, titles, SAFE, TRACK)


def _draw_grid(env: Any, observations: np.ndarray, titles: Sequence[str]) -> Picture:
    from lexrl.report import maps

    cells = env.inner_observation(observations) if isinstance(env, CostAwareObservation) else observations
    inside = unwrapped(env)
    obstacles, goal = np.asarray(inside.obstacles), int(inside.goal)
    return maps.grid_trajectories(cells, titles, inside.size, obstacles, goal)


def _draw_intersection(env: Any, observations: np.ndarray, titles: Sequence[str]) -> Picture:
    from lexrl.report import maps

    rows = env.inner_observation(observations) if isinstance(env, CostAwareBatch) else observations
    there, places = rows[..., 0] > 0, rows[..., 1:3] * POSITION_RANGE
    return maps.crossing_trajectories(np.where(there[..., None], places, np.nan), titles, WIDTH, OUTER)


DRAWN: dict[str, tuple[str, Draw]] = {
    "cart-safe": (
        "The trajectory of the cart (green) and of the pole's tip (orange); the cart is safe between the dotted lines.",
        _draw_cart,
    ),
    "grid-nav": (
        "The trajectory on the grid (orange) from the start, bottom right; the goal is green, obstacles are gray.",
        _draw_grid,
    ),
    "intersection": (
        "The trajectory of the ego (blue), which comes from the south and turns left to the west, and the vehicles "
        "that it sees (gray dots, once a second).",
        _draw_intersection,
    ),
}
"""How trajectories are drawn; runs on other environments have no images."""


def positions(observations: np.ndarray, observe_cos_sin: bool) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the cart and of the pole's tip, `[..., 2]` each, from CartSafe's observations."""
    x, angle = observations[..., 0], observations[..., 2]
    sine, cosine = (observations[..., 3], angle) if observe_cos_sin else (np.sin(angle), np.cos(angle))
    cart = np.stack([x, np.zeros_like(x)], axis=-1)
    return cart, cart + 2 * HALF_LENGTH * np.stack([sine, cosine], axis=-1)
