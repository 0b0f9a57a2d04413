"""Three objectives on CartSafe: does the third improve, and do the first two keep what they have?

    python examples/three_objectives.py [--seeds 10] [--total-timesteps 6e6]

Two groups of agents learn by the paper's LPPO and differ in one number: how much the third objective, fewer changes of
direction, moves the policy. With 0 it is only measured. Everything else is the same, seeds included, so the differences
are due to the third objective. Intervals are 95 % bootstrap intervals over seeds.
"""

import argparse
import dataclasses

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import bootstrap

import lexrl

ORDER = "min cost ±0.02 > max reward ±0.5 > min effort"
"""Tolerances are in units of discounted return."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Three objectives on CartSafe.")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--total-timesteps", type=float, default=6e6)
    args = parser.parse_args()

    env = lexrl.CartSafe(effort_signal=True, observe_cos_sin=True)
    groups = {"effort measured": lppo(beta=0.0), "effort minimized": lppo(beta=0.1)}
    algorithms = [algorithm for algorithm in groups.values() for _ in range(args.seeds)]
    seeds = list(range(args.seeds)) * len(groups)
    result = lexrl.train(algorithms, env, ORDER, seeds=seeds, total_timesteps=args.total_timesteps)
    print(f"{len(algorithms)} agents, {args.total_timesteps:,.0f} steps each, in {result.seconds:.0f} s")
    returns = result.evaluate(episodes=100).returns.mean(axis=1)
    show(list(groups), returns.reshape(len(groups), args.seeds, 3))


def lppo(beta: float) -> lexrl.PaperLPPO:
    """The paper's LPPO as tuned here, with this weight for the third objective."""
    tuned = lexrl.preset("paper-lppo", "cart-safe").algorithm
    return dataclasses.replace(tuned, tolerance=0.0, multipliers=lexrl.DualAscent(beta=(1.0, 0.3, beta), eta=0.3))


def show(names: list[str], returns: np.ndarray) -> None:
    """Means over seeds with their intervals, and the difference seed by seed."""
    table = Table("per greedy episode", "cost", "reward", "effort", box=None)
    rows = dict(zip(names, returns, strict=True)) | {"difference": returns[1] - returns[0]}
    for name, values in rows.items():
        table.add_row(name, *(interval(values[:, i]) for i in range(3)))
    worst = returns[1, :, 0].max(), returns[1, :, 1].min()
    table.add_row("worst seed, minimized", *(f"{value:.2f}" for value in worst), "")
    Console(highlight=False, width=120).print(table)


def interval(values: np.ndarray) -> str:
    """The mean and its 95 % bootstrap interval."""
    if np.ptp(values) == 0:
        return f"{values[0]:.2f}"
    low, high = bootstrap((values,), np.mean, rng=np.random.default_rng(0)).confidence_interval
    return f"{values.mean():.2f} [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    main()
