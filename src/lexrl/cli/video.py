"""`lexrl video RUN`: an episode of a finished run as GIF, MP4 or PNG."""

import dataclasses
import pathlib

import numpy as np
import tyro

from lexrl import store, video
from lexrl.cli.arguments import Number, Place, Whole, parse
from lexrl.cli.console import console, print_json
from lexrl.errors import InputError
from lexrl.runs import episodes, load

ENDINGS = (".gif", ".mp4", ".png")


@dataclasses.dataclass(frozen=True)
class Video:
    """Record an episode as a video (GIF or MP4) or a strip of pictures (PNG)."""

    run: tyro.conf.Positional[pathlib.Path]
    """The run's folder."""
    seed: Whole = None
    """Whose policy; by default the first seed's."""
    episode: int = 0
    """Which of the episodes of `lexrl evaluate`, counted from 0."""
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
    seeds = result.run.seeds
    seed = seeds[0] if args.seed is None else args.seed
    if seed not in seeds:
        raise InputError(f"The run has no seed {seed}; it has {', '.join(map(str, seeds))}.")
    path = args.out or args.run / "episode.gif"
    if path.suffix not in ENDINGS:
        raise InputError(f"A video cannot be written as {path.name!r}; give a name that ends in .gif, .mp4 or .png.")
    episode = episodes.record_episode(result.policies[seeds.index(seed)], result.run.env, args.episode)
    fps = episodes.render_fps(result.run.env) if args.fps is None else args.fps
    store.write_bytes(path, _encode(path.suffix, episode.frames, fps))
    names = result.run.order.names
    if args.json:
        returns = dict(zip(names, map(float, episode.returns), strict=True))
        content = {"seed": seed, "episode": args.episode, "steps": len(episode.frames) - 1, "returns": returns}
        print_json({"file": str(path)} | content)
        return
    returns = ", ".join(f"{name} {value:.4g}" for name, value in zip(names, episode.returns, strict=True))
    console.print(f"Seed {seed}, episode {args.episode}: {len(episode.frames) - 1} steps, {returns}.")
    console.print(f"The video is [bold]{path}[/bold].")


def _encode(ending: str, frames: list[np.ndarray], fps: float) -> bytes:
    if ending == ".png":
        some = np.unique(np.linspace(0, len(frames) - 1, 6).round().astype(int))
        return video.png(np.concatenate([frames[i] for i in some], axis=1))
    if ending == ".mp4":
        return video.mp4(frames, fps)
    every = 1 if fps <= 25 else 2  # every other frame of a fast environment: a GIF of them all would be large
    return video.gif(frames[::every], fps / every)
