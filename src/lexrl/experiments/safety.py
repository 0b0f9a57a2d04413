"""E2, safety (the paper's figure 2): reward and cost of nine learners on CartSafe and GridNav.

The lexicographic learners are told `min cost > max reward` and nothing else; the constrained ones are told the paper's
limits; DQN and A2C see the reward alone, and their cost is only watched.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from lexrl import exact
from lexrl.algorithms import SingleObjective
from lexrl.constraints import as_limits
from lexrl.envs import CostAwareObservation, named
from lexrl.experiments.schedule import Finished, Job, finals
from lexrl.experiments.sections import Section, claims, curves, final_table, ranks, seen, text
from lexrl.order import parse
from lexrl.presets import SAFE, preset
from lexrl.presets.cart_safe import CONSTRAINTS
from lexrl.report import stats
from lexrl.runs import Result

TITLE = "Safety: reward and cost on CartSafe and GridNav"
QUESTION = (
    "Do learners that are told only that cost matters more than reward become safe, and what reward do they keep, next "
    "to learners that are told limits and learners that see the reward alone?"
)
ALGORITHMS = {
    "ldqn": "LDQN",
    "la2c": "LA2C",
    "lppo": "LPPO",
    "rcpo": "RCPO",
    "appropo": "ApproPO",
    "var-ac": "VaR-AC",
    "dqn": "DQN",
    "a2c": "A2C",
    "random": "random",
}
"""Another learner is one more line here, if it has a preset."""


class Place(NamedTuple):
    """A world of the experiment."""

    title: str
    tolerance: tuple[float, float]
    """Differences of cost and reward per episode that do not matter in the ranking."""
    settings: Mapping[str, Any] = MappingProxyType({})


WORLDS = {
    "cart-safe": Place("CartSafe", (1.0, 10.0)),
    "grid-nav": Place("GridNav", (0.1, 1.0), {"map_seed": 22}),
}
"""Another world is one more line here, if it has presets; Intersection has its place here."""
SAFE_COST = as_limits(CONSTRAINTS.limit)[0].level
"""What an episode of CartSafe may cost and still be called safe: the limit that constrained learners are told."""
GAMMA = 0.95
"""Of the exact curve on GridNav, and its presets."""
REPLAYED = ("ldqn", "dqn", "appropo")
"""Learners that use each step many times, and need fewer of them."""
SIZES: dict[str, dict[str, Any]] = {
    "smoke": {
        "presets": ("paper",), "seeds": 2, "worlds": ("cart-safe",), "algorithms": ("ldqn", "lppo", "var-ac", "dqn"),
        "steps": 2_000, "replayed": 2_000,
    },
    "laptop": {
        "presets": ("paper", "tuned"), "seeds": 10, "worlds": tuple(WORLDS), "algorithms": tuple(ALGORITHMS),
        "steps": 2_000_000, "replayed": 300_000,
    },
    "paper": {
        "presets": ("paper", "tuned"), "seeds": 10, "worlds": tuple(WORLDS), "algorithms": tuple(ALGORITHMS),
        "steps": 10_000_000, "replayed": 10_000_000,
    },
}  # fmt: skip
"""What is run; `steps` and `replayed` are the most steps of a learner, if its preset has more."""


def runs(size: str) -> list[Job]:
    """Every learner in every world, with the paper's settings and with ours."""
    chosen = SIZES[size]
    return [
        job(algorithm, world, kind, chosen["seeds"], chosen["replayed" if algorithm in REPLAYED else "steps"])
        for world in chosen["worlds"]
        for kind in chosen["presets"]
        for algorithm in chosen["algorithms"]
    ]


def job(algorithm: str, world: str, kind: Any, seeds: int, most: int) -> Job:
    """One learner in one world, for at most so many steps."""
    found = preset(algorithm, world, kind)
    found = found.over(min(most, found.total_timesteps))
    learner = found.algorithm if found.order == SAFE else SingleObjective(found.algorithm, "reward")
    return Job(
        name=f"{world}/{kind}/{algorithm}",
        label=ALGORITHMS.get(algorithm, algorithm),
        algorithm=learner,
        world=world,
        order=SAFE,
        seeds=seeds,
        steps=found.total_timesteps,
        settings={**found.env_kwargs, **WORLDS[world].settings},
        tags={"world": world, "preset": kind, "algorithm": algorithm},
        measure=discounted if world == "grid-nav" else None,
    )


def discounted(result: Result) -> dict[str, Any]:
    """What each seed's greedy policy is worth with discounts, by 1,000 episodes that are hardly cut off."""
    run = dataclasses.replace(result.run, env=_lasting(result.run.env, 400))
    played = dataclasses.replace(result, run=run).evaluate(1000, gamma=GAMMA).discounted.mean(axis=1)
    return {"discounted": {name: played[:, i].tolist() for i, name in enumerate(run.order.names)}}


def _lasting(world: Any, steps: int) -> Any:
    """The same world with longer episodes."""
    if isinstance(world, CostAwareObservation):
        return dataclasses.replace(world, world=_lasting(world.world, steps))
    return dataclasses.replace(world, max_episode_steps=steps)


def summarise(done: Sequence[Finished]) -> list[Section]:
    """For each world and preset: curves, final values, the ranking; on GridNav the exact curve; and the claims."""
    sections = [section for world, kind, here in groups(done) for section in _chapter(world, kind, here)]
    return [*sections, claims("What the paper says", _claims(done))]


def groups(done: Sequence[Finished]) -> Iterator[tuple[str, str, list[Finished]]]:
    """The runs of each world and preset."""
    for place in dict.fromkeys((one.job.tags["world"], one.job.tags["preset"]) for one in done):
        yield *place, [one for one in done if (one.job.tags["world"], one.job.tags["preset"]) == place]


def _chapter(world: str, kind: str, here: Sequence[Finished]) -> list[Section]:
    name, title = f"{world}-{kind}", f"{WORLDS[world].title}, {kind} settings"
    order = SAFE.replace(">", "before")
    sections = [
        curves(f"{name}-curves", f"{title}: curves", here),
        final_table(f"{name}-final", f"{title}: what was learned", here),
        ranks(f"{name}-ranking", f"{title}: ranking, {order}", here, WORLDS[world].tolerance),
    ]
    if world == "grid-nav":
        sections += [_front(f"{name}-front", f"{title}: next to the exact optimum", here), _never()]
    return sections


def _never() -> Section:
    return text(
        "Why nobody should reach the goal here",
        "With a hand that slips, every crossing risks to touch an obstacle. The exact lexicographic optimum of min "
        "cost before max reward therefore never goes to the goal: a learner that stays near the start is right, and "
        "one that reaches the goal is not lexicographically optimal unless a slack on cost is given. The curve shows "
        "what a slack would buy.",
    )


def _front(name: str, title: str, here: Sequence[Finished]) -> Section:
    world = named.world("grid-nav", **WORLDS["grid-nav"].settings)
    corners = exact.critical_slack(world.momdp(GAMMA), SAFE)
    order = parse(SAFE)
    curve = np.array([order.unsigned(np.asarray(corner.returns)) for corner in corners])
    points = []
    for one in here:
        if "discounted" in one.summary:
            worth = one.summary["discounted"]
            points.append({"label": one.job.label, "x": worth["cost"], "y": worth["reward"]})
    return {
        "kind": "front",
        "name": name,
        "title": title,
        "caption": (
            f"Discounted (gamma {GAMMA:g}) cost and reward of each seed's greedy policy, by 1,000 episodes of up to "
            "400 steps, and the exact curve of the most reward for each cost: nothing can be above it."
        ),
        "x": "discounted cost",
        "y": "discounted reward",
        "curve": {"label": "exact critical slack", "x": curve[:, 0].tolist(), "y": curve[:, 1].tolist()},
        "points": points,
    }


def _claims(done: Sequence[Finished]) -> list[tuple[str, Any, str]]:
    rows = []
    for kind in dict.fromkeys(one.job.tags["preset"] for one in done):
        cart = _by_name(done, "cart-safe", kind)
        if {"ldqn", "la2c", "lppo"} <= cart.keys():
            rows += _cart_claims(kind, cart)
        grid = _by_name(done, "grid-nav", kind)
        if {"ldqn"} < grid.keys():
            rows.append(_grid_claim(kind, grid))
    return [*rows, ("On Intersection nobody is safer than random.", "not decidable", "Intersection is not run here.")]


def _by_name(done: Sequence[Finished], world: str, kind: str) -> dict[str, np.ndarray]:
    """`[seeds, (cost, reward)]` of the learners of a world and preset that are finished."""
    return {
        one.job.tags["algorithm"]: finals(one)
        for one in done
        if (one.job.tags["world"], one.job.tags["preset"]) == (world, kind)
    }


def _cart_claims(kind: str, values: dict[str, np.ndarray]) -> list[tuple[str, Any, str]]:
    cost = {name: stats.bootstrap([each[:, 0]]) for name, each in values.items()}
    reward = {name: stats.bootstrap([each[:, 1]]) for name, each in values.items()}
    lexicographic = ("ldqn", "la2c", "lppo")

    def told(some: Any, which: Any) -> str:
        return "; ".join(f"{ALGORITHMS[name]} {which[name]}" for name in some if name in which)

    def is_safe(name: str) -> bool:
        return bool(cost[name].high <= SAFE_COST)

    def is_unsafe(name: str) -> bool:
        return bool(cost[name].low > SAFE_COST)

    rows = []
    for said, names in (
        ("On CartSafe the lexicographic learners are safe", lexicographic),
        ("On CartSafe RCPO and ApproPO learn quite safe policies", ("rcpo", "appropo")),
    ):
        there = [name for name in names if name in cost]
        answer = seen(len(there) > 0 and all(map(is_safe, there)), any(map(is_unsafe, there)))
        rows.append(
            (f"{said} ({kind} settings; safe: cost below {SAFE_COST:g}).", answer, f"cost: {told(there, cost)}")
        )
    safe = [name for name in cost if is_safe(name) and name != "random"]
    others = [name for name in safe if name != "ldqn"]
    most = "ldqn" in safe and all(reward["ldqn"].low > reward[name].high for name in others)
    less = is_unsafe("ldqn") or any(reward["ldqn"].high < reward[name].low for name in others)
    rows.append(
        (
            f"Of the safe ones LDQN has the most reward ({kind} settings).",
            seen(most, less),
            f"reward: {told(['ldqn', *others], reward)}; LDQN's cost {cost['ldqn']}",
        )
    )
    if "var-ac" in cost:
        late = (values["var-ac"][:, 0] > SAFE_COST).mean()
        rows.append(
            (
                f"VaR-AC struggles ({kind} settings).",
                seen(is_unsafe("var-ac"), is_safe("var-ac")),
                f"cost {cost['var-ac']}, reward {reward['var-ac']}; "
                f"{late:.0%} of the seeds above {SAFE_COST:g} on average",
            )
        )
    return rows


def _grid_claim(kind: str, values: dict[str, np.ndarray]) -> tuple[str, Any, str]:
    cost = {name: stats.bootstrap([each[:, 0]]) for name, each in values.items()}
    reward = stats.bootstrap([values["ldqn"][:, 1]])
    others = [name for name in cost if name != "ldqn"]
    safest = all(cost["ldqn"].high < cost[name].low for name in others)
    not_safest = any(cost["ldqn"].low > cost[name].high for name in others)
    idle = reward.high < 1.0
    told = "; ".join(f"{ALGORITHMS[name]} {cost[name]}" for name in cost)
    return (
        f"On GridNav LDQN is safest, with no reward ({kind} settings).",
        seen(safest and idle, not_safest or reward.low >= 1.0),
        f"cost: {told}; LDQN's reward {reward}",
    )
