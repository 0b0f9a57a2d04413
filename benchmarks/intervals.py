"""How often the intervals and verdicts of `lexrl.report` hold what they promise, by simulation.

    python benchmarks/intervals.py [--samples 2000]

Prints the tables that the docstrings of `report/stats.py`, `ranking.py` and `scaling.py` quote; a few minutes.
"""

import argparse
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

from lexrl.experiments import power_law
from lexrl.report import ranking, stats

Draw = Callable[[np.random.Generator, int], np.ndarray]
VALUES: dict[str, Draw] = {
    "normal": lambda random, n: random.normal(size=n),
    "lognormal": lambda random, n: random.lognormal(size=n),
    "N(0, 0.1) or N(1, 0.1), 7 to 3": lambda random, n: random.normal(random.random(n) < 0.3, 0.1),
    "0 or 1, 7 to 3": lambda random, n: (random.random(n) < 0.3).astype(float),
}
SIZES = np.array([10, 20, 50, 100])
console = Console(width=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2000)
    samples = parser.parse_args().samples
    seeds = (3, 5, 10, 30)
    console.print(of_iqm(samples, seeds))
    console.print(of_strata(samples))
    console.print(of_verdicts(samples, seeds))
    console.print(of_laws(samples))


def of_iqm(samples: int, seeds: tuple[int, ...]) -> Table:
    """Intervals of the interquartile mean, and in brackets those of plain quantiles."""
    table = Table("values", *map(str, seeds), title="IQM: coverage in per cent (plain quantiles)", box=None)
    for name, draw in VALUES.items():
        random = np.random.default_rng(0)
        truth = float(stats.iqm(draw(random, 4_000_000)))
        cells = []
        for n in seeds:
            ours = plain = 0
            for _ in range(samples):
                values = draw(random, n)
                found = stats.bootstrap([values], resamples=1000)
                picks = random.integers(n, size=(1000, n))
                low, high = np.quantile(np.asarray(stats.iqm(values[picks])), (0.025, 0.975))
                ours += found.low <= truth <= found.high
                plain += low <= truth <= high
            cells.append(f"{100 * ours / samples:.0f} ({100 * plain / samples:.0f})")
        table.add_row(name, *cells)
    return table


def of_strata(samples: int) -> Table:
    """The same with five tasks of some seeds each."""
    counts = (3, 5, 10)
    table = Table("values", *(f"5 x {n}" for n in counts), title="IQM of strata: coverage in per cent", box=None)
    for name, draw in list(VALUES.items())[:3]:
        random = np.random.default_rng(1)
        truth = float(stats.iqm(draw(random, 4_000_000)))
        hits = dict.fromkeys(counts, 0)
        for n in counts:
            for _ in range(samples):
                found = stats.bootstrap([draw(random, n) for _ in range(5)], resamples=1000)
                hits[n] += found.low <= truth <= found.high
        table.add_row(name, *(f"{100 * hits[n] / samples:.0f}" for n in counts))
    return table


def of_verdicts(samples: int, seeds: tuple[int, ...]) -> Table:
    """False verdicts on runs with equal means: 10 in 100 are allowed, 5 either way."""
    table = Table("values", *map(str, seeds), title="compare: false verdicts in per cent (10 allowed)", box=None)
    for name in ("normal", "lognormal"):
        random = np.random.default_rng(2)
        wrong = []
        for n in seeds:
            pairs = ((VALUES[name](random, n)[:, None], VALUES[name](random, n)[:, None]) for _ in range(samples))
            wrong.append(np.mean([ranking.compare(a, b, [1], resamples=1000).winner != 0 for a, b in pairs]))
        table.add_row(name, *(f"{100 * share:.0f}" for share in wrong))
    return table


def of_laws(samples: int) -> Table:
    """Exponents of power laws whose times are geometric means over environments, some of which are slow or get slow."""
    counts = (5, 10, 30)
    table = Table(*(f"{n} environments" for n in counts), title="fit: coverage in per cent", box=None)
    shares = []
    for n in counts:
        random = np.random.default_rng(n)
        hits = 0
        for _ in range(samples):
            noise = random.normal(0, 0.3, (len(SIZES), n))
            noise += random.normal(0, 0.5, n) + random.normal(0, 0.2, n) * np.log(SIZES)[:, None]
            logs = 1.5 * np.log(SIZES)[:, None] + noise
            picks = random.integers(n, size=(600, n))
            times = [
                power_law.LearningTime(float(np.exp(row.mean())), np.exp(row[picks].mean(axis=1)), n) for row in logs
            ]
            law = power_law.fit(SIZES, times)
            assert law is not None
            hits += law.exponent.low < 1.5 < law.exponent.high
        shares.append(f"{100 * hits / samples:.0f}")
    table.add_row(*shares)
    return table


if __name__ == "__main__":
    main()
