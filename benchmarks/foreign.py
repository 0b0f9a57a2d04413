"""Environments of other people, default settings: is the most important objective as good as if it were the only one?

    python benchmarks/foreign.py                                  everything; hours, since most are stepped from Python
    python benchmarks/foreign.py --environments acrobot mountain-car cart-pole pendulum --seeds 10   compiled

In every environment the scalar parent of an algorithm is trained on objective 1 alone, and the algorithm on the whole
order, with the same seeds and steps. A seed *keeps* objective 1 if its mean return is not below the 95 % interval of
the parent's mean over seeds: a strict rule, since seeds of the parent differ by more than their mean does. So the
difference of the two means is shown, too, with Welch's 95 % interval. Returns are undiscounted, in the signs of the
order: larger is better.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

import classic
import lexrl
from hazard_grid import HazardGrid
from lexrl import catalog
from lexrl.order import parse

PARENTS = {"lppo": "ppo", "la2c": "a2c", "ldqn": "dqn"}
CONTINUOUS = ("pendulum", "half-cheetah")
EPISODES = 100
"""That each policy is evaluated on."""


class Task(NamedTuple):
    """An environment, made when it is needed, and the order of its objectives."""

    make: Callable[[], Any]
    order: str


def gym(name: str, order: str, signals: Callable[..., dict[str, float]], **settings: Any) -> Task:
    """A registered environment, with signals where its reward mixes several."""
    return Task(lambda: lexrl.GymEnv(name, signals=signals, **settings), order)


def mo(name: str, order: str) -> Task:
    """An environment of MO-Gymnasium, with the signals it has."""
    return Task(lambda: lexrl.GymEnv(name), order)


def grid(**settings: float) -> Task:
    """The grid world next door."""
    make = lambda: HazardGrid(**settings)  # noqa: E731
    return Task(lambda: lexrl.GymEnv(make, max_episode_steps=100), "min hazard > max goal > min time")


def crash(obs: Any, action: Any, reward: float, info: Any) -> dict[str, float]:
    return {"crash": float(reward <= -100), "reward": float(reward)}


def speeding(obs: Any, action: Any, reward: float, info: Any) -> dict[str, float]:
    return {"speeding": float(abs(info["x_velocity"]) > 1.0), "reward": float(reward)}


def fall(obs: Any, action: Any, reward: float, info: Any) -> dict[str, float]:
    return {"fall": float(reward <= -100), "time": 1.0}


def hole(obs: Any, action: Any, reward: float, info: Any) -> dict[str, float]:
    return {"hole": float(int(obs) in (5, 7, 11, 12)), "goal": float(reward), "time": 1.0}


TASKS = {
    "acrobot": Task(classic.Acrobot, "min time > min effort"),
    "mountain-car": Task(classic.MountainCar, "min time > min effort"),
    "cart-pole": Task(classic.CenteredCartPole, "max upright > min distance"),
    "pendulum": Task(classic.Pendulum, "max upright > min torque"),
    "lunar-lander": gym("LunarLander-v3", "min crash > max reward", crash),
    "cliff-walking": gym("CliffWalking-v1", "min fall > min time", fall, max_episode_steps=200),
    "frozen-lake": gym("FrozenLake-v1", "min hole > max goal > min time", hole),
    "hazard-grid": grid(slip=0.0),
    "hazard-grid-slippery": grid(slip=0.1, unit=1000.0),
    "half-cheetah": gym("HalfCheetah-v5", "min speeding > max reward", speeding),
    "resource-gathering": mo("resource-gathering-v0", "max reward_1 > max reward_2 > max reward_3"),
    "minecart": mo("minecart-v0", "max reward_1 > max reward_2 > max reward_3"),
    "mo-lunar-lander": mo("mo-lunar-lander-v3", "max reward_1 > max reward_2 > max reward_3 > max reward_4"),
}


class Outcome(NamedTuple):
    """Mean returns `[seeds, M]`, larger is better, and the time of training."""

    returns: np.ndarray
    seconds: float


def train(algorithm: Any, task: Task, setup: argparse.Namespace) -> Outcome:
    begun = time.time()
    result = lexrl.train(
        algorithm, task.make(), task.order, seeds=setup.seeds, total_timesteps=setup.total_timesteps, num_log_points=2
    )
    seconds = time.time() - begun
    returns = result.evaluate(EPISODES).returns.mean(axis=1) * np.asarray(parse(task.order).signs)
    return Outcome(returns, seconds)


def lower_end(values: np.ndarray) -> float:
    """Of the 95 % interval of the mean."""
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(values.mean() - half)


def compare(name: str, task: Task, setup: argparse.Namespace) -> tuple[str, ...]:
    """One row: the parent's returns, the algorithm's, and how many seeds keep objective 1."""
    first = parse(task.order).names[0]
    parent = catalog.ALGORITHMS[PARENTS[name]].make()
    alone = train(lexrl.SingleObjective(parent, first), task, setup)
    ours = train(catalog.ALGORITHMS[name].make(), task, setup)
    kept = ours.returns[:, 0] >= lower_end(alone.returns[:, 0]) - 1e-9
    times = f"{alone.seconds:.0f} s, {ours.seconds:.0f} s"
    return _shown(alone), _shown(ours), f"{kept.sum()}/{len(kept)}", _difference(ours, alone), times


def _difference(ours: Outcome, alone: Outcome) -> str:
    """Of the means of objective 1."""
    one, other = ours.returns[:, 0], alone.returns[:, 0]
    mean = one.mean() - other.mean()
    if len(one) == 1 or (one.std() == 0 and other.std() == 0):
        return f"{mean:.3g}"
    low, high = stats.ttest_ind(one, other, equal_var=False).confidence_interval()
    return f"{mean:.3g} [{low:.3g}, {high:.3g}]"


def _shown(outcome: Outcome) -> str:
    """Each objective: mean over seeds, worst and best."""
    each = zip(outcome.returns.mean(axis=0), outcome.returns.min(axis=0), outcome.returns.max(axis=0), strict=True)
    return "\n".join(f"{mean:.4g} ({low:.4g} to {high:.4g})" for mean, low, high in each)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--algorithms", nargs="+", default=list(PARENTS), choices=PARENTS)
    parser.add_argument("--total-timesteps", type=float, default=1e6)
    parser.add_argument("--seeds", type=int, default=5)
    setup = parser.parse_args()
    console = Console(width=140)
    for name in setup.algorithms:
        for env in setup.environments:
            if name == "ldqn" and env in CONTINUOUS:
                continue
            table = Table("objective 1 alone", "in order", "kept", "difference", "time", box=None, title_justify="left")
            table.title = f"{name}, {env}: {TASKS[env].order}"
            table.add_row(*compare(name, TASKS[env], setup))
            console.print(table)


if __name__ == "__main__":
    main()
