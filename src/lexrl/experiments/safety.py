"""E2, safety (the paper's figure 2): reward and cost of nine algorithms on CartSafe and GridNav.

The lexicographic algorithms optimize `min cost > max reward`; the constrained ones have the paper's limits on the cost;
DQN and A2C optimize the reward alone, and their cost is only recorded.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from lexrl import catalog, exact
from lexrl.algorithms import SingleObjective
from lexrl.envs import CostAwareObservation
from lexrl.experiments import safety_claims
from lexrl.experiments.schedule import Finished, Job
from lexrl.experiments.summary import curves, final_table, rank
from lexrl.order import parse
from lexrl.presets import SAFE, preset
from lexrl.report.sections.claims import Claims
from lexrl.report.sections.front import Front, Points
from lexrl.report.sections.text import Text
from lexrl.runs import Result

QUESTION = (
    "Do algorithms that only know that cost matters more than reward learn safe policies, and how much reward do they "
    "reach, compared with constrained algorithms and with algorithms that optimize the reward alone?"
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
"""To add an algorithm that has a preset, add a line."""


class EnvRow(NamedTuple):
    """An environment of the experiment."""

    title: str
    tolerance: tuple[float, float]
    """Differences of cost and reward per episode that the ranking ignores."""
    settings: Mapping[str, Any] = MappingProxyType({})


ENVS = {
    "cart-safe": EnvRow("CartSafe", (1.0, 10.0)),
    "grid-nav": EnvRow("GridNav", (0.1, 1.0), {"map_seed": 22}),
}
"""To add an environment that has presets, add a line."""
GAMMA = 0.95
"""Of the exact trade-off on GridNav, and of its presets."""
REPLAYED = ("ldqn", "dqn", "appropo")
"""Algorithms with a replay buffer, which need fewer time steps."""
SIZES: dict[str, dict[str, Any]] = {
    "smoke": {
        "presets": ("paper",), "seeds": 2, "envs": ("cart-safe",), "algorithms": ("ldqn", "lppo", "var-ac", "dqn"),
        "max_timesteps": 2_000, "max_replayed": 2_000,
    },
    "laptop": {
        "presets": ("paper", "tuned"), "seeds": 10, "envs": tuple(ENVS), "algorithms": tuple(ALGORITHMS),
        "max_timesteps": 2_000_000, "max_replayed": 300_000,
    },
    "paper": {
        "presets": ("paper", "tuned"), "seeds": 10, "envs": tuple(ENVS), "algorithms": tuple(ALGORITHMS),
        "max_timesteps": 10_000_000, "max_replayed": 10_000_000,
    },
}  # fmt: skip
"""What is run. Presets are shortened to at most `max_timesteps`, or `max_replayed` if there is a replay buffer."""


def runs(size: str) -> list[Job]:
    """Every algorithm on every environment, with the paper's settings and with ours."""
    chosen = SIZES[size]
    return [
        job(algorithm, env, kind, chosen["seeds"], chosen["max_replayed" if algorithm in REPLAYED else "max_timesteps"])
        for env in chosen["envs"]
        for kind in chosen["presets"]
        for algorithm in chosen["algorithms"]
    ]


def job(algorithm: str, env: str, kind: Any, seeds: int, max_timesteps: int) -> Job:
    """An algorithm on an environment with a preset (`kind`)."""
    found = preset(algorithm, env, kind)
    found = found.over(min(max_timesteps, found.total_timesteps))
    chosen = found.algorithm if found.order == SAFE else SingleObjective(found.algorithm, "reward")
    return Job(
        name=f"{env}/{kind}/{algorithm}",
        label=ALGORITHMS.get(algorithm, algorithm),
        algorithm=chosen,
        env=env,
        order=SAFE,
        seeds=seeds,
        total_timesteps=found.total_timesteps,
        env_settings={**found.env_kwargs, **ENVS[env].settings},
        tags={"env": env, "preset": kind, "algorithm": algorithm},
        measure=discounted_returns if env == "grid-nav" else None,
    )


def discounted_returns(result: Result) -> dict[str, Any]:
    """Discounted returns of each seed's greedy policy, from 1,000 episodes so long that truncation hardly matters."""
    run = dataclasses.replace(result.run, env=_with_length(result.run.env, 400))
    played = dataclasses.replace(result, run=run).evaluate(1000, gamma=GAMMA).discounted.mean(axis=1)
    return {"discounted": {name: played[:, i].tolist() for i, name in enumerate(run.order.names)}}


def _with_length(env: Any, steps: int) -> Any:
    """The same environment with episodes of another length."""
    if isinstance(env, CostAwareObservation):
        return dataclasses.replace(env, env=_with_length(env.env, steps))
    return dataclasses.replace(env, max_episode_steps=steps)


def summarize(results: Sequence[Finished]) -> list[Any]:
    """For each environment and preset: curves, final values, a ranking; the exact trade-off on GridNav; the claims."""
    sections = [section for env, kind, here in groups(results) for section in _sections(env, kind, here)]
    return [*sections, Claims("What the paper says", tuple(safety_claims.all_claims(results, ALGORITHMS)))]


def groups(results: Sequence[Finished]) -> Iterator[tuple[str, str, list[Finished]]]:
    """The runs of each environment and preset."""
    for key in dict.fromkeys((one.job.tags["env"], one.job.tags["preset"]) for one in results):
        yield *key, [one for one in results if (one.job.tags["env"], one.job.tags["preset"]) == key]


def _sections(env: str, kind: str, here: Sequence[Finished]) -> list[Any]:
    name, title = f"{env}-{kind}", f"{ENVS[env].title}, {kind} settings"
    order = SAFE.replace(">", "before")
    sections = [
        curves(f"{name}-curves", f"{title}: curves", here),
        final_table(f"{name}-final", f"{title}: what was learned", here),
        rank(f"{name}-ranking", f"{title}: ranking, {order}", here, ENVS[env].tolerance),
    ]
    if env == "grid-nav":
        sections += [_front(f"{name}-front", f"{title}: compared with the exact optimum", here), _WHY_NOT_THE_GOAL]
    return sections


_WHY_NOT_THE_GOAL = Text(
    "Why staying away from the goal is optimal here",
    (
        "Moves slip at random, so every crossing risks touching an obstacle. The exact lexicographic optimum of min "
        "cost before max reward therefore never goes to the goal: an agent that stays near the start is right, and one "
        "that reaches the goal is not lexicographically optimal unless a slack on cost is given. The curve shows what "
        "a slack would buy.",
    ),
)


def _front(name: str, title: str, here: Sequence[Finished]) -> Front:
    env = catalog.ENVS["grid-nav"].make(**ENVS["grid-nav"].settings)
    corners = exact.critical_slack(env.momdp(GAMMA), SAFE)
    order = parse(SAFE)
    cost, reward = np.array([order.unsigned(np.asarray(corner.returns)) for corner in corners]).T
    reached = [(one.job.label, one.summary["discounted"]) for one in here if "discounted" in one.summary]
    return Front(
        name=name,
        title=title,
        caption=(
            f"Discounted (gamma {GAMMA:g}) cost and reward of each seed's greedy policy, from 1,000 episodes of up to "
            "400 steps, and the exact curve of the most reward for each cost: no policy is above it."
        ),
        x="discounted cost",
        y="discounted reward",
        curve=Points("exact critical slack", cost, reward),
        points=tuple(Points(label, np.array(one["cost"]), np.array(one["reward"])) for label, one in reached),
    )
