"""Three objectives on CartSafe: does the third improve, and do the first two keep what they have?

    python examples/three_objectives.py [--seeds 10] [--steps 6e6]

Two populations of LPPO learners differ in one number: how much the third objective, fewer changes of direction, moves
the policy. With 0 it is only watched. Everything else is alike, seeds included, so the differences are the third
objective's doing. Intervals are 95 % bootstrap intervals over seeds.
"""

import argparse
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import bootstrap

import lexrl
from lexrl.presets import preset

ORDER = "min cost ±0.02 > max reward ±0.5 > min effort"
"""Tolerances are about discounted returns."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Three objectives on CartSafe.")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=float, default=6e6)
    settings = parser.parse_args()
    tuned = preset("lppo", "cart-safe")
    world = lexrl.CartSafe(effort_signal=True, **tuned.env_kwargs)
    populations = {
        "effort watched": learner(tuned.algorithm, 0.0),
        "effort minimised": learner(tuned.algorithm, 0.1),
    }
    everyone = [one for one in populations.values() for _ in range(settings.seeds)]
    seeds = list(range(settings.seeds)) * len(populations)
    result = lexrl.train(everyone, world, ORDER, seeds=seeds, total_timesteps=settings.total_timesteps)
    print(f"{len(everyone)} learners, {settings.steps:,.0f} steps each, in {result.seconds:.0f} s")
    played = result.evaluate(episodes=100).returns.mean(axis=1).reshape(len(populations), settings.seeds, 3)
    show(list(populations), played)


def learner(like: Any, third: float) -> lexrl.LPPO:
    """The tuned LPPO with a third objective that moves the policy by so much."""
    dual = lexrl.Dual(beta=(1.0, 0.3, third), eta=0.3)
    return lexrl.LPPO(
        num_envs=like.num_envs,
        num_steps=like.num_steps,
        networks=like.networks,
        gae_lambda=like.gae_lambda,
        learning_rate=like.learning_rate,
        critic_learning_rate=like.critic_learning_rate,
        dual=dual,
    )


def show(names: list[str], played: np.ndarray) -> None:
    """Means over seeds with intervals, and of the difference, seed by seed."""
    table = Table("per greedy episode", "cost", "reward", "effort", box=None)
    rows = dict(zip(names, played, strict=True)) | {"difference": played[1] - played[0]}
    for name, values in rows.items():
        table.add_row(name, *(interval(values[:, i]) for i in range(3)))
    table.add_row("worst seed, minimised", *(f"{x:.2f}" for x in (played[1, :, 0].max(), played[1, :, 1].min())), "")
    Console(highlight=False, width=120).print(table)


def interval(values: np.ndarray) -> str:
    if np.ptp(values) == 0:
        return f"{values[0]:.2f}"
    low, high = bootstrap((values,), np.mean, rng=np.random.default_rng(0)).confidence_interval
    return f"{values.mean():.2f} [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    main()
