"""`lexrl verify RUN`: was the priority kept? With more episodes than after training, or against trained references."""

import dataclasses
import pathlib
import sys

import tyro

from lexrl.cli.arguments import parse
from lexrl.cli.console import console, show_verdict, watching_verification
from lexrl.errors import InputError
from lexrl.loops.evaluation import check_episodes
from lexrl.runs import execute, load, progress, record
from lexrl.runs.pipeline import last
from lexrl.runs.references import Reference, retrained_references
from lexrl.runs.result import Result
from lexrl.runs.run import Run
from lexrl.runs.verification import Limits, verify_result

EXIT_CODES = {"kept": 0, "violated": 1, "undecided": 3}


@dataclasses.dataclass(frozen=True)
class Verify:
    """Decide whether the policies of a finished run keep the priority; exit code 0: kept, 1: violated, 3: undecided."""

    run: tyro.conf.Positional[pathlib.Path]
    """The run's folder."""
    episodes: int = 10_000
    """Maximum number of episodes per policy."""
    seconds: float = float("inf")
    """Time limit in seconds; a batch of episodes that has started is finished."""
    retrain: bool = False
    """Also train policies for the first objectives alone, as long as the run was trained, and compare with them; not
    where the exact optimum is known."""


def main(argv: list[str]) -> None:
    """Verify, print the verdict, and write it into the summary of the run."""
    args = parse(Verify, argv, "lexrl verify")
    check_episodes(args.episodes)
    result = load(args.run)
    retrain = (lambda: _retrain(result)) if args.retrain else None
    with watching_verification() as watch:
        verdict = verify_result(result, Limits(args.episodes, args.seconds), retrain, watch)
    if verdict is None:
        raise InputError(f"{args.run} has one objective, '{result.run.order}': there is no priority to keep.")
    show_verdict(verdict)
    record.with_verdict(result, verdict, args.run)
    sys.exit(EXIT_CODES[verdict.status])


def _retrain(result: Result) -> list[Reference]:
    def train(run: Run) -> Result:
        console.print(f"Training a reference: {run}", markup=False)
        return last(execute(run, None, [progress.observer(console)]))

    return retrained_references(result, train)
