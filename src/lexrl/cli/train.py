"""`lexrl train ALGORITHM WORLD`: one learner for each seed, all of them at once."""

import contextlib
import dataclasses
import pathlib
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Generic, Literal, TypeVar

import numpy as np
from tyro.constructors import PrimitiveConstructorSpec

import lexrl
from lexrl import exact, store
from lexrl.cli.names import name_of
from lexrl.cli.show import console, plots, progress, seeds_table
from lexrl.cli.solve import world_map
from lexrl.envs import GridNav
from lexrl.presets import Preset
from lexrl.run import Result, execute, plan
from lexrl.types import Discrete

Steps = Annotated[
    float | None,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="STEPS",
        instance_from_str=lambda words: float(words[0]),
        is_instance=lambda value: value is None or isinstance(value, float),
        str_from_instance=lambda value: ["the preset's, else 1e6"] if value is None else [f"{value:,.0f}"],
    ),
]

Learner = TypeVar("Learner")
World = TypeVar("World")


@dataclasses.dataclass(frozen=True)
class Train(Generic[Learner, World]):
    """Train one learner for each seed, all of them at once."""

    algorithm: Learner
    world: World
    order: str = ""
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
    out: pathlib.Path = pathlib.Path("runs/train")
    """Folder for pictures and numbers; a number is added to the name if it is in use."""


def train(command: Train[Any, Any], algorithm: str, preset: Preset | None) -> None:
    """Train, evaluate, and leave curves and numbers."""
    world, name = command.world, name_of(command.world)
    order = command.order or (preset.order if preset is not None else None)
    usual = 1_000_000 if preset is None else preset.steps
    run = plan(command.algorithm, world, order, command.seeds, usual if command.steps is None else command.steps)
    folder = store.new_folder(command.out)
    settings = f" ({command.preset} settings)" if preset is not None else ""
    title = f"{algorithm} on {name}: {run.order}{settings}"
    with heeding_interrupts() as heed, progress(title, run.steps, run.order) as show:
        result = execute(run, lambda chunk: heed() or show(chunk))
    played = result.evaluate(command.episodes).returns.mean(axis=1)
    console.print(seeds_table(f"Greedy policies, {command.episodes} fresh episodes each", run.order, played))
    worth = _exactly(command, result, folder, algorithm)
    for sentence in result.faults.values():
        console.print(sentence, markup=False)
    console.print(f"{run.steps * len(run.seeds) / result.seconds:,.0f} steps/s, {result.seconds:.1f} s in all.")
    _write_training(folder, title, result, played, worth)
    console.print(f"Pictures and numbers are in [bold]{folder}[/bold].")


@contextlib.contextmanager
def heeding_interrupts() -> Iterator[Callable[[], None]]:
    """Ctrl-C stops at once, or when the function given is called next.

    An interrupt can arrive inside a callback or a destructor, from which Python lets no exception out; so it is kept.
    """
    arrived = False

    def interrupt(*_: Any) -> None:
        nonlocal arrived
        arrived = True
        raise KeyboardInterrupt

    def heed() -> None:
        if arrived:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield heed
    finally:
        signal.signal(signal.SIGINT, before)


def _exactly(command: Train[Any, Any], result: Result, folder: pathlib.Path, algorithm: str) -> np.ndarray | None:
    """What the greedy policies are worth exactly, next to the optimum, where the world is finite; and a map."""
    world, run = command.world, result.run
    if not hasattr(world, "momdp") or not isinstance(world.spec.observation, Discrete):
        return None
    gamma = getattr(command.algorithm, "gamma", 0.99)
    process = world.momdp(run.order.discounts(gamma, world.spec.objectives))
    # With prices, tolerances are about the whole policy's return, and the best policies are randomised.
    if hasattr(run.algorithm, "dual") and len(set(process.gamma)) == 1:
        policies, best = result.policies(greedy=False), exact.solve_slack(process, run.order).returns
        title = "The policies with their randomness, exactly: discounted, without end"
    else:
        policies, best = result.policies(), exact.solve(process, run.order).returns
        title = "The same policies exactly: discounted, without end"
    learned = np.stack([exact.evaluate(process, policy, run.order).returns for policy in policies])
    worth = run.order.unsigned(learned)
    console.print(seeds_table(title, run.order, worth, run.order.unsigned(best)))
    if isinstance(world, GridNav):
        title = f"Learned by {algorithm}, seed {run.seeds[0]}: {run.order}"
        store.write_bytes(folder / "map.png", world_map(world, process, policies[0], title))
    return worth


def _write_training(
    folder: pathlib.Path, title: str, result: Result, played: np.ndarray, worth: np.ndarray | None
) -> None:
    names = [f"{'max' if objective.sign > 0 else 'min'} {objective.name}" for objective in result.run.order.objectives]
    store.write_csv(folder / "metrics.csv", result.table())
    store.write_bytes(
        folder / "curves.png", plots().learning_curves(result.steps, result.metrics["return"], names, title)
    )
    summary = {
        "command": shlex.join(["lexrl", *sys.argv[1:]]),
        "version": lexrl.__version__,
        "order": str(result.run.order),
        "seeds": list(result.run.seeds),
        "steps": result.run.steps,
        "seconds": round(result.seconds, 2),
        "per_episode": {name: played[:, i].tolist() for i, name in enumerate(result.run.order.names)},
        "exact_discounted": None
        if worth is None
        else {name: worth[:, i].tolist() for i, name in enumerate(result.run.order.names)},
        "stopped": list(result.faults.values()),
    }
    store.write_json(folder / "summary.json", summary)
