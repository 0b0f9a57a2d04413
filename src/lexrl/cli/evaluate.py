"""`lexrl evaluate RUN`: fresh episodes with the policies of a finished run."""

import dataclasses
import pathlib

import tyro

from lexrl import memory, store
from lexrl.cli.arguments import parse
from lexrl.cli.console import console, print_json
from lexrl.cli.execution import seeds_table
from lexrl.runs import load
from lexrl.runs.record import by_objective


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Evaluate the policies of a finished run on fresh episodes."""

    run: tyro.conf.Positional[pathlib.Path]
    """The run's folder."""
    episodes: int = 100
    """Number of episodes per seed."""
    deterministic: bool = True
    """Use greedy actions; otherwise they are sampled, as in training."""
    force: bool = False
    """Evaluate even if what the episodes return does not seem to fit into memory."""
    json: bool = False
    """Print the means of each seed as JSON, and nothing else."""


def main(argv: list[str]) -> None:
    """Evaluate, print the means, and write every episode."""
    args = parse(Evaluate, argv, "lexrl evaluate")
    result = load(args.run)
    order = result.run.order
    with memory.unlimited(args.force):
        played = result.evaluate(args.episodes, deterministic=args.deterministic)
    kind = "Greedy policies" if args.deterministic else "Stochastic policies"
    means = played.returns.mean(axis=1)
    path = args.run / ("evaluation.json" if args.deterministic else "evaluation-stochastic.json")
    per_seed = {
        str(seed): {name: played.returns[i, :, j].tolist() for j, name in enumerate(order.names)}
        for i, seed in enumerate(result.run.seeds)
    }
    content = {"episodes": args.episodes, "returns": per_seed, "lengths": played.lengths.tolist()}
    store.write_json(path, {"run": store.read_identity(args.run)._asdict()} | content)
    if args.json:
        print_json({"episodes": args.episodes, "per_episode": by_objective(means, order), "file": str(path)})
        return
    console.print(seeds_table(f"{kind}, {args.episodes} fresh episodes each", order, means))
    console.print(f"Every episode is in [bold]{path}[/bold].")
