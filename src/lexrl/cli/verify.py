"""`lexrl verify RUN`: was the priority kept? With more episodes than after training, or against trained references."""

import dataclasses
import pathlib
import sys

import tyro
from rich.console import Console

from lexrl import locks
from lexrl.cli.arguments import parse
from lexrl.cli.console import console, error_console, print_json, show_verdict
from lexrl.errors import InputError
from lexrl.loops.evaluation import check_episodes
from lexrl.runs import execute, load, progress, record
from lexrl.runs.pipeline import last
from lexrl.runs.references import Reference, retrained_references
from lexrl.runs.result import Result
from lexrl.runs.run import Run
from lexrl.runs.sampling import Limits
from lexrl.runs.verification import verify_result
from lexrl.runs.watching import watching_verification
from lexrl.verdict import Verdict

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
    json: bool = False
    """Print the verdict as JSON, and nothing else."""
    retrain: bool = False
    """Also train policies for the first objectives alone, as long as the run was trained, and compare with them; not
    where the exact optimum is known."""


def main(argv: list[str]) -> None:
    """Verify, print the verdict, and write it into the summary of the run."""
    args = parse(Verify, argv, "lexrl verify")
    check_episodes(args.episodes)
    if not args.seconds > 0:
        raise InputError(f"seconds is {args.seconds:g}; a verification needs some.")
    result = load(args.run)
    with locks.hold(args.run):
        verdict = _verify(result, args)
        record.with_verdict(result, verdict, args.run)
    if args.json:
        print_json({"folder": str(args.run)} | verdict.as_json())
    else:
        show_verdict(verdict)
    sys.exit(EXIT_CODES[verdict.status])


def _verify(result: Result, args: Verify) -> Verdict:
    shown = error_console if args.json else console
    retrain = (lambda: _retrain(result, shown)) if args.retrain else None
    with watching_verification(shown) as watch:
        verdict = verify_result(result, Limits(args.episodes, args.seconds), retrain, watch)
    if verdict is None:
        raise InputError(f"{args.run} has one objective, '{result.run.order}': there is no priority to keep.")
    return verdict


def _retrain(result: Result, shown: Console) -> list[Reference]:
    def train(run: Run) -> Result:
        shown.print(f"Training a reference: {run}", markup=False)
        return last(execute(run, None, [progress.observer(shown)]))

    return retrained_references(result, train)
