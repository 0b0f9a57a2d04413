"""`lexrl video RUN`: an episode of a finished run as GIF, MP4 or PNG."""

import dataclasses
import pathlib

import tyro

from lexrl.cli.arguments import Number, Place, Whole, parse
from lexrl.cli.console import console, print_json
from lexrl.runs import load


@dataclasses.dataclass(frozen=True)
class Video:
    """Record an episode as a video (GIF or MP4) or a strip of pictures (PNG)."""

    run: tyro.conf.Positional[pathlib.Path]
    """The run's folder."""
    seed: Whole = None
    """The seed whose policy is used; by default the first."""
    episode: int = 0
    """Which of the episodes of `lexrl evaluate` to record, counted from 0."""
    out: Place = None
    """The file; by default episode.gif in the run's folder."""
    fps: Number = None
    """Frames per second; by default the environment's own."""
    json: bool = False
    """Print the file and the returns of the episode as JSON, and nothing else."""


def main(argv: list[str]) -> None:
    """Play the episode and write it."""
    args = parse(Video, argv, "lexrl video")
    result = load(args.run)
    seed = result.run.seeds[0] if args.seed is None else args.seed
    path = args.out or args.run / "episode.gif"
    episode = result.video(path, seed, args.episode, args.fps)
    names = result.run.order.names
    if args.json:
        returns = dict(zip(names, map(float, episode.returns), strict=True))
        content = {"seed": seed, "episode": args.episode, "steps": len(episode.frames) - 1, "returns": returns}
        print_json({"file": str(path)} | content)
        return
    returns = ", ".join(f"{name} {value:.4g}" for name, value in zip(names, episode.returns, strict=True))
    console.print(f"Seed {seed}, episode {args.episode}: {len(episode.frames) - 1} steps, {returns}.")
    console.print(f"The video is [bold]{path}[/bold].")
