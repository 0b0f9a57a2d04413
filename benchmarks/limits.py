"""Limits in the order against PPO-Lagrangian's constraints, which mean the same: CartSafe at several limits.

    python benchmarks/limits.py [--limits 0 1 5 10 25] [--algorithms lppo ppo-lagrangian] [--seeds 5] [--steps 1.5e6]

LPPO, LA2C and Projection get the order `cost <= LIMIT > max reward`, PPO-Lagrangian the constraint `cost <= LIMIT`;
all have their tuned settings for CartSafe where there are some. Every seed's policy, as it would be handed over, plays
fresh episodes; the table shows means over seeds, the largest mean cost of a seed, and how many seeds are above the
limit by more than two standard errors.
"""

import argparse
import dataclasses
import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import lexrl
from lexrl import catalog
from lexrl.runs.run import find_preset

ENV = "cart-safe"
CONSTRAINED = "ppo-lagrangian"
EPISODES = 500


def main() -> None:
    parser = argparse.ArgumentParser(description="Limits in the order on CartSafe.")
    parser.add_argument("--limits", type=float, nargs="+", default=[0.0, 1.0, 5.0, 10.0, 25.0])
    parser.add_argument("--algorithms", nargs="+", default=["lppo", CONSTRAINED])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=float, default=1.5e6)
    parser.add_argument("--preset", choices=("tuned", "none"), default="tuned")
    arguments = parser.parse_args()
    table = Table("limit", "algorithm", "cost", "largest of a seed", "seeds above the limit", "reward", "s")
    for limit in arguments.limits:
        for name in arguments.algorithms:
            table.add_row(*row(name, limit, arguments))
    Console(width=120).print(table)


def row(name: str, limit: float, arguments: Any) -> tuple[str, ...]:
    """One algorithm at one limit."""
    start = time.perf_counter()
    algorithm, order, settings = problem(name, limit, arguments.preset)
    result = lexrl.train(
        algorithm, ENV, order, seeds=arguments.seeds, total_timesteps=arguments.steps, num_log_points=1,
        env_kwargs=settings,
    )  # fmt: skip
    returns = np.asarray(result.evaluate(EPISODES).returns)  # [seeds, episodes, M], cost first
    cost, reward = returns.mean(axis=1).T
    error = returns[:, :, 0].std(axis=1) / np.sqrt(EPISODES)
    above = int((cost - 2 * error > limit).sum())
    seconds = time.perf_counter() - start
    shown = f"{limit:g}", name, f"{cost.mean():.2f}", f"{cost.max():.2f}", f"{above} of {len(cost)}"
    return (*shown, f"{reward.mean():.1f}", f"{seconds:.0f}")


def problem(name: str, limit: float, preset: Any) -> tuple[Any, str, dict[str, Any]]:
    """The algorithm, its order, and the settings of the environment."""
    found = find_preset(name, ENV, preset)
    algorithm = catalog.ALGORITHMS[name].make() if found is None else found.algorithm
    settings = {} if found is None else dict(found.env_kwargs)
    if name == CONSTRAINED:
        return dataclasses.replace(algorithm, constraints=f"cost <= {limit:g}"), "min cost > max reward", settings
    return algorithm, f"cost <= {limit:g} > max reward", settings


if __name__ == "__main__":
    main()
