"""`lexrl evaluate RUN`: fresh episodes with the policies of a finished run."""

import dataclasses
import pathlib

import tyro

from lexrl import store
from lexrl.cli.console import console, seeds_table
from lexrl.cli.parsing import parse
from lexrl.runs import load


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Play fresh episodes with the policies of a finished run."""

    run: tyro.conf.Positional[pathlib.Path]
    """The run's folder."""
    episodes: int = 100
    """Episodes with each seed's policy."""
    deterministic: bool = True
    """Greedy actions; else they are sampled, as in training."""


def main(argv: list[str]) -> None:
    """Evaluate, print the means, and write every episode."""
    args = parse(Evaluate, argv, "lexrl evaluate")
    result = load(args.run)
    order = result.run.order
    played = result.evaluate(args.episodes, deterministic=args.deterministic)
    kind = "Greedy policies" if args.deterministic else "Stochastic policies"
    console.print(seeds_table(f"{kind}, {args.episodes} fresh episodes each", order, played.returns.mean(axis=1)))
    path = args.run / ("evaluation.json" if args.deterministic else "evaluation-stochastic.json")
    per_seed = {
        str(seed): {name: played.returns[i, :, j].tolist() for j, name in enumerate(order.names)}
        for i, seed in enumerate(result.run.seeds)
    }
    store.write_json(path, {"episodes": args.episodes, "returns": per_seed, "lengths": played.lengths.tolist()})
    console.print(f"Every episode is in [bold]{path}[/bold].")
