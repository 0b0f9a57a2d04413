"""What runs with default settings end with: their verdicts, and what these cost.

    python benchmarks/default_verdicts.py
    python benchmarks/default_verdicts.py --total-timesteps 20000      shorter, as for a first look
    python benchmarks/default_verdicts.py --only CartSafe GridNav      some of the rows

CartSafe, GridNav and Intersection, two environments of MO-Gymnasium and one of a user's own
(`examples/own_gym_env.py`), all with the settings that `lexrl train` has if none are given; only the length and the
number of seeds are others, so that the table takes minutes and not hours. A verdict may take a tenth of the training
time or ten seconds, whichever is more: it fails if one takes longer.
"""

import argparse
import pathlib
import sys
from typing import Any, NamedTuple

from gymnasium.wrappers import TimeLimit

import lexrl
from lexrl.runs.verification import SECONDS, SHARE

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "examples"))
from own_gym_env import Room  # pyright: ignore[reportMissingImports] # beside the other examples

SOME, MANY = 30_000, 300_000
"""Steps on environments that are stepped from Python, and on compiled ones, if none are given."""


class Case(NamedTuple):
    """A run of the table."""

    algorithm: str
    env: Any
    name: str
    order: str | None = None
    """None: the preset's."""
    total_timesteps: int = MANY


def cases() -> list[Case]:
    heat = "min cost_heat ±0.5 > min cost_power"
    return [
        Case("lppo", "cart-safe", "CartSafe"),
        Case("ldqn", "cart-safe", "CartSafe", total_timesteps=100_000),
        Case("lppo", "grid-nav", "GridNav"),
        Case("q-learning", "grid-nav", "GridNav", "min cost > max reward"),
        Case("lppo", "intersection", "Intersection", "min collision > max arrived", 50_000),
        Case("lppo", "gym:deep-sea-treasure-v0", "deep-sea-treasure-v0", "max reward_1 > max reward_2", SOME),
        Case("ldqn", "gym:mo-mountaincar-v0", "mo-mountaincar-v0", "max reward_1 > max reward_2", SOME),
        Case("lppo", lexrl.GymEnv(TimeLimit(Room(), max_episode_steps=50)), "own_gym_env.py", heat, SOME),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--total-timesteps", type=float)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help="environments of the table; all if none is named")
    args = parser.parse_args()
    heads = (
        "environment",
        "algorithm",
        "order",
        "seeds x steps",
        "verdict",
        "compared with",
        "training",
        "verdict takes",
    )
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    late = []
    for case in cases():
        if args.only and case.name not in args.only:
            continue
        steps = args.total_timesteps or case.total_timesteps
        algorithm = case.algorithm if isinstance(case.env, str) else lexrl.LPPO()
        result = lexrl.train(algorithm, case.env, case.order, seeds=args.seeds, total_timesteps=steps)
        verdict = result.verdict
        if verdict is None:
            raise SystemExit(f"{case.name} ended without a verdict.")
        compared = verdict.references.split(": ", 1)[-1].split(".")[0]
        row = (
            case.name, case.algorithm, f"`{result.run.order}`", f"{args.seeds} x {result.run.total_timesteps:,}",
            verdict.sentence, compared, f"{result.seconds:.0f} s", f"{verdict.seconds:.1f} s",
        )  # fmt: skip
        print(f"| {' | '.join(row)} |", flush=True)
        if verdict.seconds > max(SECONDS, SHARE * result.seconds):
            late.append(case.name)
    if late:
        raise SystemExit(f"The verdict took longer than it may on {', '.join(late)}.")


if __name__ == "__main__":
    main()
