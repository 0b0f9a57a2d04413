"""`lexrl train ALGORITHM WORLD` and `lexrl resume RUN`: one learner for each seed, all of them at once."""

import contextlib
import dataclasses
import os
import pathlib
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Generic, Literal, TypeVar

import numpy as np
import tyro
from tyro.constructors import PrimitiveConstructorSpec

from lexrl import exact, store
from lexrl.cli.show import Place, Words, complain, console, next_commands, seeds_table, wanted_order
from lexrl.cli.solve import world_map
from lexrl.envs import GridNav, env_name
from lexrl.errors import InputError
from lexrl.loops.evaluation import check_episodes
from lexrl.presets import Preset
from lexrl.runs import Result, Run, logs, plan, record
from lexrl.runs.execute import Standing
from lexrl.runs.progress import progress
from lexrl.types import Describable, Discrete

Steps = Annotated[
    float | None,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="STEPS",
        instance_from_str=lambda words: float(words[0]),
        is_instance=lambda value: value is None or isinstance(value, float),
        str_from_instance=lambda value: ["of the preset, else 1e6"] if value is None else [f"{value:,.0f}"],
    ),
]

Agent = TypeVar("Agent")
World = TypeVar("World")


@dataclasses.dataclass(frozen=True)
class Train(Generic[Agent, World]):
    """Train one learner for each seed, all of them at once."""

    algorithm: Agent
    world: World
    order: Words = ""
    """Objectives by importance, as in "min cost > max reward", with tolerances as in "min cost ±0.1 > max reward"; by
    default the preset's."""
    preset: Literal["tuned", "paper", "none"] = "tuned"
    """Where settings that are not given come from: ours, where there are some, the paper's, or plain defaults."""
    seeds: int = 10
    """How many learners: seeds 0, 1, 2, ..."""
    steps: Steps = None
    """Environment steps of each seed."""
    episodes: int = 100
    """Fresh episodes to evaluate each greedy policy on, after training."""
    log: tuple[Literal["tensorboard", "wandb"], ...] = ()
    """Also write events for these programs into the folder."""
    out: Place = None
    """Folder for pictures and numbers, by default runs/ALGORITHM-WORLD; a number is added to a name in use."""


@dataclasses.dataclass(frozen=True)
class Resume:
    """Go on with a run that was stopped; it ends with the same numbers as if it had not been."""

    run: tyro.conf.Positional[pathlib.Path]
    """The run's folder."""


def train(command: Train[Any, Any], algorithm: str, preset: Preset | None) -> None:
    """Train, evaluate, and leave curves, policies and numbers."""
    world, name = command.world, env_name(command.world)
    if isinstance(world, Describable):
        console.print(f"{name}: {world.description}", markup=False)
    order = wanted_order(command.order, preset)
    usual = 1_000_000 if preset is None else preset.steps
    run = plan(command.algorithm, world, order, command.seeds, usual if command.steps is None else command.steps)
    check_episodes(command.episodes)
    logs.require(command.log)
    settings = f" ({command.preset} settings)" if preset is not None else ""
    title = f"{algorithm} on {name}: {run.order}{settings}"
    plain = name.replace("/", "-").replace(":", "-")
    folder = store.new_folder(command.out or pathlib.Path("runs") / f"{algorithm}-{plain}")
    spoken = shlex.join(["lexrl", *sys.argv[1:]])
    more = {"name": algorithm, "episodes": command.episodes, "log": list(command.log)}
    record.begin(folder, run, title=title, command=spoken, **more)
    _follow(folder, run, None)


def resume(command: Resume) -> None:
    """Go on where a run stopped."""
    folder = command.run
    run = record.read(folder)
    if store.is_finished(folder):
        raise InputError(f"The run in {str(folder)!r} is finished; look at it with `lexrl evaluate {folder}`.")
    standing, said = record.standing(folder, run)
    for sentence in said:
        console.print(sentence, markup=False)
    at = 0 if standing is None else int(standing.steps[-1])
    console.print(f"Going on at step {at:,} of {run.total_timesteps:,}.")
    _follow(folder, run, standing)


def _follow(folder: pathlib.Path, run: Run, standing: Standing | None) -> None:
    """Execute a run to its end, or until it is stopped; then tell what came of it."""
    about = store.read_run(folder)
    title = about.get("title", str(run))
    result, signalled = _executed(folder, run, standing, title, about)
    if signalled:
        complain(f"stopped at step {result.steps[-1]:,}; go on with: lexrl resume {folder}", 128 + signalled)
    _tell(folder, result, title, about)


def _executed(
    folder: pathlib.Path, run: Run, standing: Standing | None, title: str, about: dict[str, Any]
) -> tuple[Result, int]:
    """The result so far, with everything a person wants to see on the way; and the signal that stopped it, or 0."""
    result, signalled = None, 0
    try:
        with (
            stopping() as asked,
            progress(title, run, console) as show,
            logs.logs(about.get("log", ()), folder, about) as write,
        ):
            for result in record.record(folder, run, standing):
                show(result)
                write(result)
                signalled = asked() if result.steps[-1] < run.total_timesteps else 0
                if signalled:
                    break
    except OSError as error:
        if not store.is_full(error):
            raise
        complain(
            f"The disk is full: {error.filename} could not be written. The last checkpoint is whole; make room and go "
            f"on with: lexrl resume {folder}",
            1,
        )
    assert result is not None
    return result, signalled


def _tell(folder: pathlib.Path, result: Result, title: str, about: dict[str, Any]) -> None:
    """Evaluate what was learned, write it down, and say what can be done with it."""
    run, episodes = result.run, about.get("episodes", 100)
    worth = _exactly(result, folder, about.get("name", ""))
    exactly = None if worth is None else record.by_objective(worth, run.order)
    played = record.finish(folder, result, episodes, exact_discounted=exactly)
    means = played.returns.mean(axis=1)
    console.print(seeds_table(f"Greedy policies, {episodes} fresh episodes each", run.order, means))
    for sentence in result.faults.values():
        console.print(sentence, markup=False)
    store.write_bytes(folder / "curves.png", result.plot(title).png)
    speed = run.total_timesteps * len(run.seeds) / result.seconds
    console.print(f"{speed:,.0f} steps/s, {result.seconds:.1f} s in all. Everything is in [bold]{folder}[/bold].")
    next_commands(
        (f"lexrl watch {folder}", "see an episode: a film"),
        (f"lexrl evaluate {folder} --episodes 1000", "play more episodes"),
        (f"lexrl compare {folder} OTHER", "next to another run"),
    )


@contextlib.contextmanager
def stopping() -> Iterator[Callable[[], int]]:
    """Ctrl-C and SIGTERM are noted, for when the part that runs is done; asking gives the signal's number, or 0.

    A second one stops at once.
    """
    arrived = 0

    def note(number: int, _: Any) -> None:
        nonlocal arrived
        if arrived:
            raise KeyboardInterrupt
        arrived = number
        # Not through the console or a buffer: the signal may have come in the middle of a line of theirs.
        os.write(2, b"\nStopping after this part, with a checkpoint (once more: at once).\n")

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, note) for number in numbers]
    try:
        yield lambda: arrived
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _exactly(result: Result, folder: pathlib.Path, algorithm: str) -> np.ndarray | None:
    """What the greedy policies are worth exactly, next to the optimum, where the world is finite; and a map."""
    run = result.run
    world = run.env
    if not hasattr(world, "momdp") or not isinstance(world.spec.observation_space, Discrete):
        return None
    gamma = getattr(run.algorithm, "gamma", 0.99)
    process = world.momdp(run.order.discounts(gamma, world.spec.signals))
    # With prices, tolerances are about the whole policy's return, and the best policies are randomised.
    if hasattr(run.algorithm, "stages") and len(set(process.gamma)) == 1:
        policies, best = result.chances(greedy=False), exact.solve_slack(process, run.order).returns
        title = "The policies with their randomness, exactly: discounted, without end"
    else:
        policies, best = result.chances(), exact.solve(process, run.order).returns
        title = "The greedy policies exactly: discounted, without end"
    learned = np.stack([exact.evaluate(process, policy, run.order).returns for policy in policies])
    worth = run.order.unsigned(learned)
    console.print(seeds_table(title, run.order, worth, run.order.unsigned(best)))
    if isinstance(world, GridNav):
        title = f"Learned by {algorithm}, seed {run.seeds[0]}: {run.order}"
        store.write_bytes(folder / "map.png", world_map(world, process, policies[0], title))
    return worth
