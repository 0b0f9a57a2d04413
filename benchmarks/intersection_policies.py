"""What is learned on Intersection: collisions and arrivals in fresh episodes, here and in highway-env itself.

    python benchmarks/intersection_policies.py RUN [RUN ...] [--episodes 2000] [--reference-episodes 300]
                                               [--reference-seeds 1]

A RUN is a folder that `lexrl train` left, or the name of an algorithm, whose preset is then trained (`--seeds`,
`--first-seed`, `--total-timesteps`, `--order`; `--out` keeps the folder). Runs with the same settings are put together,
so that seeds may be trained one by one. The first table has one row for each seed, with Wilson's 95 % intervals; the
second says how many seeds are within the target. Policies that do not look are the baselines. For the third, policies
are exported and loaded again; they play the episodes 0, 1, ... of highway-env, and the same ones here.
"""

import argparse
import math
import pathlib
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from rich.console import Console
from rich.table import Table

import lexrl
from intersection import make_reference, play
from lexrl import Intersection
from lexrl.algorithms.fixed_action import FixedAction
from lexrl.algorithms.single_objective import SingleObjective
from lexrl.presets import intersection, preset
from lexrl.runs import load
from lexrl.types import Box

COLLISION, LARGEST_UPPER, ARRIVAL = 0.05, 0.06, 0.5
"""The target with slack: at most this rate of collisions, and this end of its interval; at least this one of arrivals.
"""
Z = 1.96
"""Standard errors of a 95 % interval."""
BLIND = {"random": lexrl.Random(), "SLOWER": FixedAction(action=0), "IDLE": FixedAction(action=1)}


class Rate(NamedTuple):
    """How often something happened, with Wilson's 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f}-{self.high:.3f})"


class Row(NamedTuple):
    """A policy and how its episodes ended."""

    label: str
    seed: int
    collision: Rate
    arrival: Rate
    length: float

    @property
    def within_target(self) -> bool:
        safe = self.collision.mean <= COLLISION and self.collision.high <= LARGEST_UPPER
        return safe and self.arrival.mean >= ARRIVAL


def main() -> None:
    settings = parsed()
    console = Console(highlight=False)
    results = [result for run in settings.runs for result in found(run, settings)]
    rows = [row for result in results for row in played(label_of(result), result, settings.episodes)]
    blind = [row for label in BLIND for row in played(label, untrained(label), settings.episodes)]
    console.print(each_seed([*rows, *blind], settings.episodes))
    console.print(summary(rows))
    if settings.reference_episodes:
        console.print(in_reference(results, settings.reference_episodes, settings.reference_seeds))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What is learned on Intersection.")
    parser.add_argument("runs", nargs="*", metavar="RUN")
    parser.add_argument("--episodes", type=int, default=2_000)
    parser.add_argument("--reference-episodes", type=int, default=300)
    parser.add_argument("--reference-seeds", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--total-timesteps", type=float)
    parser.add_argument("--order")
    parser.add_argument("--out", type=pathlib.Path)
    return parser.parse_args()


def found(run: str, settings: argparse.Namespace) -> Iterator[lexrl.Result]:
    """The result in a folder, or of training the preset."""
    if pathlib.Path(run).is_dir():
        yield load(run)
        return
    chosen = preset(run, "intersection")
    alone = chosen.order == intersection.REWARD
    seeds = range(settings.first_seed, settings.first_seed + settings.seeds)
    yield lexrl.train(
        SingleObjective(chosen.algorithm, chosen.order.split()[-1]) if alone else chosen.algorithm,
        "intersection",
        settings.order or (intersection.ORDER if alone else chosen.order),
        seeds=seeds,
        total_timesteps=settings.total_timesteps or chosen.total_timesteps,
        env_kwargs=dict(chosen.env_kwargs),
        out=settings.out,
    )


def untrained(label: str) -> lexrl.Result:
    """A policy that does not look."""
    return lexrl.train(
        BLIND[label], "intersection", intersection.ORDER, seeds=1, total_timesteps=1_000, verify_episodes=0
    )


def label_of(result: lexrl.Result) -> str:
    algorithm: Any = result.run.algorithm
    if isinstance(algorithm, SingleObjective):
        return f"{type(algorithm.algorithm).__name__}, max {algorithm.objective}"
    return f"{type(algorithm).__name__}, {result.run.order}"


def played(label: str, result: lexrl.Result, episodes: int) -> list[Row]:
    """A row for each seed, from fresh episodes."""
    found = result.evaluate(episodes)
    columns = [result.run.order.names.index(name) for name in ("collision", "arrived")]
    rows = []
    for seed, returns, lengths in zip(result.run.seeds, found.returns, found.lengths, strict=True):
        collision, arrival = (rate(returns[:, column]) for column in columns)
        rows.append(Row(label, seed, collision, arrival, float(lengths.mean())))
    return rows


def rate(happened: np.ndarray) -> Rate:
    """Of zeros and ones."""
    n, p = len(happened), float(happened.mean())
    middle, spread = p + Z**2 / (2 * n), Z * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    return Rate(p, max(middle - spread, 0.0) / (1 + Z**2 / n), (middle + spread) / (1 + Z**2 / n))


def each_seed(rows: Sequence[Row], episodes: int) -> Table:
    table = Table(
        "policy", "seed", "collision", "arrival", "length", "within the target", box=None,
        title=f"{episodes:,} fresh episodes each, with 95 % intervals",
    )  # fmt: skip
    for row in rows:
        shown = str(row.collision), str(row.arrival), f"{row.length:.1f}", "yes" if row.within_target else "no"
        table.add_row(row.label, str(row.seed), *shown)
    return table


def summary(rows: Sequence[Row]) -> Table:
    """The seeds of each kind of policy together."""
    table = Table(
        "policy", "seeds", "collision", "largest", "arrival", "smallest", "within the target", box=None,
        title=f"Target: collision <= {COLLISION}, its interval below {LARGEST_UPPER}, arrival >= {ARRIVAL}",
    )  # fmt: skip
    for label in dict.fromkeys(row.label for row in rows):
        mine = [row for row in rows if row.label == label]
        collisions, arrivals = np.array([(row.collision.mean, row.arrival.mean) for row in mine]).T
        numbers = (collisions.mean(), collisions.max(), arrivals.mean(), arrivals.min())
        table.add_row(
            label, str(len(mine)), *(f"{number:.3f}" for number in numbers), str(sum(row.within_target for row in mine))
        )
    return table


def in_reference(results: Sequence[lexrl.Result], episodes: int, seeds: int) -> Table:
    """The first seeds of each run, exported, in highway-env and here."""
    table = Table(
        "policy", "seed", "collision", "in highway-env", "arrival", "in highway-env", "same end", box=None,
        title=f"Episodes 0 to {episodes - 1} of highway-env, with exported policies",
    )  # fmt: skip
    ours, theirs = gymnasium.make("lexrl/Intersection-v0"), make_reference()
    for result in results:
        for policy in result.policies[:seeds]:
            ends = np.array([compare(exported(policy), ours, theirs, episode) for episode in range(episodes)])
            rates = [str(rate(ends[:, where, what])) for what in (0, 1) for where in (0, 1)]
            same = (ends[:, 0] == ends[:, 1]).all(axis=1).sum()
            table.add_row(label_of(result), str(policy.seed), *rates, str(same))
    return table


def exported(policy: lexrl.Policy) -> lexrl.Policy:
    """The policy from its file."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "policy.safetensors"
        policy.save(file)
        return lexrl.Policy.load(file)


def compare(policy: lexrl.Policy, ours: Any, theirs: Any, episode: int) -> list[tuple[bool, bool]]:
    """How an episode ends here and in highway-env: a collision, an arrival. A mixture draws the same policy in both."""
    drawn = policy.begun(episode)
    seen = drawn.spec.observation_space
    assert isinstance(seen, Box)

    def act(seed: int, t: int, obs: np.ndarray) -> int:
        return int(drawn.predict(with_time(obs, t) if seen.shape != obs.shape else obs)[0])

    return [play(env, episode, act).ends for env in (ours, theirs)]


def with_time(obs: np.ndarray, t: int) -> np.ndarray:
    """What `Intersection(observe_time=True)` adds to an observation of highway-env's."""
    seen = np.pad(obs, ((0, 0), (0, 1)))
    seen[0, -1] = t / Intersection.max_episode_steps
    return seen


if __name__ == "__main__":
    main()
