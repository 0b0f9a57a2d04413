"""E2, safety (the paper's figure 2): reward and cost of nine algorithms on CartSafe, GridNav and Intersection.

The lexicographic algorithms optimize `min cost > max reward`; the constrained ones have the paper's limits on the cost;
DQN and A2C optimize the reward alone, and their cost is only recorded. On Intersection the cost is a collision and the
reward an arrival, and two more blind policies, always SLOWER and always IDLE, frame the results.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lexrl import catalog, exact
from lexrl.algorithms.single_objective import SingleObjective
from lexrl.envs.cost_aware import CostAwareObservation
from lexrl.experiments import safety_claims
from lexrl.experiments.safety_envs import ENVS
from lexrl.experiments.schedule import Finished, Job
from lexrl.experiments.summary import curves, final_table, plane, rank
from lexrl.order import parse
from lexrl.presets import SAFE, known, preset
from lexrl.report.sections.claims import Claims
from lexrl.report.sections.front import Front, Points
from lexrl.report.sections.text import Text
from lexrl.runs import Result
from lexrl.runs.run import VERIFY_EPISODES

QUESTION = (
    "Do algorithms that only know that cost matters more than reward learn safe policies, and how much reward do they "
    "reach, compared with constrained algorithms and with algorithms that optimize the reward alone?"
)
ALGORITHMS = {
    "ldqn": "LDQN",
    "la2c": "LA2C",
    "lppo": "LPPO",
    "paper-la2c": "LA2C (paper)",
    "paper-lppo": "LPPO (paper)",
    "rcpo": "RCPO",
    "appropo": "ApproPO",
    "var-ac": "VaR-AC",
    "dqn": "DQN",
    "a2c": "A2C",
    "random": "random",
}
"""To add an algorithm that has a preset, add a line."""
LEXICOGRAPHIC = ("ldqn", "la2c", "lppo", "paper-la2c", "paper-lppo")
"""Algorithms that know the order, and are therefore asked whether they kept it."""
ONLY = {"la2c": "tuned", "lppo": "tuned", "paper-la2c": "paper", "paper-lppo": "paper"}
"""Algorithms that run with one preset only: the paper's settings are those of LA2C and LPPO as it describes them."""


GAMMA = 0.95
"""Of the exact trade-off on GridNav, and of its presets."""
REPLAYED = ("ldqn", "dqn", "appropo")
"""Algorithms with a replay buffer, which need fewer time steps."""
BLIND_TIMESTEPS = 2_000
"""Of policies that learn nothing."""
SIZES: dict[str, dict[str, Any]] = {
    "smoke": {
        "presets": ("paper",), "seeds": 2, "envs": ("cart-safe", "intersection"),
        "algorithms": ("ldqn", "paper-lppo", "var-ac", "dqn"), "on_host": ("paper-lppo", "random"), "max_episodes": 100,
        "max_timesteps": 2_000, "max_replayed": 2_000, "max_on_host": 500,
    },
    "laptop": {
        "presets": ("paper", "tuned"), "seeds": 10, "envs": tuple(ENVS),
        "algorithms": tuple(ALGORITHMS), "on_host": tuple(ALGORITHMS), "max_episodes": 2_000,
        "max_timesteps": 2_000_000, "max_replayed": 300_000, "max_on_host": 30_000,
    },
    "paper": {
        "presets": ("paper", "tuned"), "seeds": 10, "envs": tuple(ENVS),
        "algorithms": tuple(ALGORITHMS), "on_host": tuple(ALGORITHMS), "max_episodes": 2_000,
        "max_timesteps": 10_000_000, "max_replayed": 10_000_000, "max_on_host": 10_000_000,
    },
}  # fmt: skip
"""What is run: `algorithms`, and `on_host` those on environments that are stepped from Python. Presets are shortened to
at most `max_timesteps`, `max_replayed` if there is a replay buffer, `max_on_host` on such environments; policies are
evaluated on at most `max_episodes`."""


def runs(size: str) -> list[Job]:
    """Every algorithm on every environment, with the paper's settings and with ours where there are some."""
    chosen, jobs = SIZES[size], []
    seeds, episodes = chosen["seeds"], chosen["max_episodes"]
    for env, kind in itertools.product(chosen["envs"], chosen["presets"]):
        if not known(env, kind):
            continue
        on_host = ENVS[env].on_host
        for algorithm in chosen["on_host" if on_host else "algorithms"]:
            if ONLY.get(algorithm, kind) != kind:
                continue
            limit = chosen["max_replayed"] if algorithm in REPLAYED else chosen["max_timesteps"]
            limit = min(limit, chosen["max_on_host"]) if on_host else limit
            jobs.append(job(algorithm, env, kind, seeds, limit, episodes, min(VERIFY_EPISODES, episodes)))
        jobs += [blind_job(label, env, kind, seeds, episodes) for label in ENVS[env].blind]
    return jobs


def job(
    algorithm: str,
    env: str,
    kind: Any,
    seeds: int,
    max_timesteps: int,
    max_episodes: int = 100,
    verify_episodes: int = VERIFY_EPISODES,
) -> Job:
    """An algorithm on an environment with a preset (`kind`), whose order may have a slack."""
    found, row = preset(algorithm, env, kind), ENVS[env]
    alone = len(parse(found.order).objectives) == 1
    return Job(
        name=f"{env}/{kind}/{algorithm}",
        label=ALGORITHMS.get(algorithm, algorithm),
        algorithm=SingleObjective(found.algorithm, row.reward) if alone else found.algorithm,
        env=env,
        order=row.order if alone else found.order,
        seeds=seeds,
        total_timesteps=min(max_timesteps, found.total_timesteps),
        env_settings={**found.env_kwargs, **row.settings},
        tags={"env": env, "preset": kind, "algorithm": algorithm},
        measure="discounted-returns" if env == "grid-nav" else "",
        eval_episodes=min(row.eval_episodes, max_episodes),
        verify_episodes=verify_episodes if algorithm in LEXICOGRAPHIC else 0,
    )


def blind_job(label: str, env: str, kind: str, seeds: int, max_episodes: int) -> Job:
    """A policy that does not look, beside the algorithms with a preset (`kind`)."""
    algorithm = label.lower()
    return Job(
        name=f"{env}/{kind}/{algorithm}",
        label=label,
        algorithm=ENVS[env].blind[label],
        env=env,
        order=ENVS[env].order,
        seeds=seeds,
        total_timesteps=BLIND_TIMESTEPS,
        env_settings=ENVS[env].settings,
        tags={"env": env, "preset": kind, "algorithm": algorithm},
        eval_episodes=min(ENVS[env].eval_episodes, max_episodes),
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
    order = ENVS[env].order.replace(">", "before")
    sections: list[Any] = [
        plane(f"{name}-plane", f"{title}: final returns", here),
        curves(f"{name}-curves", f"{title}: curves", here),
        final_table(f"{name}-final", f"{title}: what was learned", here),
        rank(f"{name}-ranking", f"{title}: ranking, {order}", here, ENVS[env].tolerance),
    ]
    if env == "grid-nav":
        sections += [_front(f"{name}-front", f"{title}: compared with the exact optimum", here), _WHY_NOT_THE_GOAL]
    if ENVS[env].blind:
        sections.append(_BLIND)
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


_BLIND = Text(
    "How to read the numbers of Intersection",
    (
        "Three policies that do not look frame the others: random actions, always SLOWER, which stops before the "
        "crossing and so never collides and never arrives, and always IDLE, which keeps its speed and drives across "
        "without looking. min collision before max arrived asks for stopping unless something as safe arrives; a slack "
        "on collisions says how much risk an arrival is worth.",
        "The limits of the paper, at most 1 collision per episode, cannot bind: an episode ends at its first "
        "collision. RCPO, ApproPO and VaR-AC are therefore free to maximize arrivals.",
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
