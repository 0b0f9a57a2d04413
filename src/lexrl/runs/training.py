"""Training in one call, or as a loop of your own."""

import contextlib
import pathlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lexrl import memory, store
from lexrl.envs.factory import EnvKwargs
from lexrl.errors import as_path
from lexrl.order import Order
from lexrl.runs import continuing, footprint, logs, observers, record
from lexrl.runs.observers import Observer
from lexrl.runs.pipeline import execute, last
from lexrl.runs.result import Result
from lexrl.runs.run import NUM_SEEDS, VERIFY_EPISODES, Run, Settings, plan
from lexrl.runs.sampling import Look
from lexrl.types import Algorithm


def train(
    algorithm: Algorithm | Sequence[Algorithm] | str | Run,
    env: Any = None,
    order: Order | str | None = None,
    *,
    seeds: int | Sequence[int] = NUM_SEEDS,
    total_timesteps: float | int | None = None,
    num_log_points: int = 50,
    env_kwargs: EnvKwargs | None = None,
    preset: Settings = "tuned",
    out: str | pathlib.Path | None = None,
    eval_episodes: int = 100,
    verify_episodes: int | None = None,
    log: Sequence[str] = (),
    progress: bool | None = None,
    callback: Callable[[Result], object] | None = None,
    force: bool = False,
) -> Result:
    """Train one agent for each seed, all of them at once.

    Args:
        algorithm: an instance, e.g. `lexrl.LPPO()`; a list of them, one for each seed; or a name, as in `"lppo"`, which
            means the preset for the environment where there is one, else the algorithm's defaults. Or a `Run`.
        env: a name, e.g. `"cart-safe"` or `"CartPole-v1"`; an instance, e.g. `lexrl.CartSafe()`; a class or a function
            that makes one; or `lexrl.per_seed([...])` for one each.
        order: the objectives by importance, as in `"min cost > max reward"`.
        seeds: how many (0, 1, 2, ...), or which.
        total_timesteps: environment steps of each seed; by default the preset's, else 1,000,000.
        num_log_points: points on the learning curve.
        env_kwargs: settings of an environment that is named; one dict for all seeds, or a list with one for each.
        preset: which settings a name stands for: `"tuned"`, `"paper"`, or `"none"` for the defaults.
        out: a folder for curves, policies and checkpoints; `lexrl.resume(folder)` continues a run that was stopped.
        eval_episodes: fresh episodes to evaluate each policy on at the end, if there is a folder.
        verify_episodes: at most so many episodes of each policy, by default 2,000, decide whether the priority was kept
            (`result.verdict`), in at most ten seconds or a tenth of the training time; 0: no verdict.
        log: also write logs into the folder, for `"tensorboard"` or `"wandb"`.
        progress: show the progress; by default only in a notebook.
        callback: called with the result so far after every chunk.
        force: train although it does not seem to fit into memory.
    """
    with memory.unlimited(force or memory.is_unlimited()):
        run = algorithm if isinstance(algorithm, Run) else plan(
            algorithm, env, order, seeds, total_timesteps, num_log_points,
            env_kwargs=env_kwargs, preset=preset, eval_episodes=eval_episodes,
            verify_episodes=VERIFY_EPISODES if verify_episodes is None else verify_episodes, log=logs.as_kinds(log),
        )  # fmt: skip
        footprint.require(run)
        folder = None if out is None else record.new_folder(run, as_path(out))
        with _showing(progress, callback) as (shown, watch):
            return last(execute(run, folder, shown, watch))


def stream(
    algorithm: Algorithm | Sequence[Algorithm] | str | Run,
    env: Any = None,
    order: Order | str | None = None,
    *,
    seeds: int | Sequence[int] = NUM_SEEDS,
    total_timesteps: float | int | None = None,
    num_log_points: int = 50,
    env_kwargs: EnvKwargs | None = None,
    preset: Settings = "tuned",
) -> Iterator[Result]:
    """`train` as a loop of your own: yields a `Result` after every chunk; stop whenever you like."""
    run = algorithm if isinstance(algorithm, Run) else plan(
        algorithm, env, order, seeds, total_timesteps, num_log_points, env_kwargs=env_kwargs, preset=preset
    )  # fmt: skip
    return execute(run)


def resume(
    folder: str | pathlib.Path,
    *,
    env: Any = None,
    algorithm: Any = None,
    steps: float | int | None = None,
    progress: bool | None = None,
    force: bool = False,
) -> Result:
    """Continue a run that was stopped, to its end. What is not in the catalog must be given again.

    With `steps`, a finished run is trained further, by that many environment steps of each seed. Schedules have the
    lengths they had: what fell over the run stays at its last value, and algorithms with stages extend the last one.
    `force` continues although it does not seem to fit into memory.
    """
    folder = as_path(folder)
    with memory.unlimited(force or memory.is_unlimited()):
        run = record.read(folder, env, algorithm)
        if steps is not None:
            run = continuing.extend(folder, steps, env, algorithm)
        elif store.is_finished(folder):
            return record.load(folder, env=env, algorithm=algorithm)
        with _showing(progress) as (shown, watch):
            return last(execute(run, folder, shown, watch))


@contextlib.contextmanager
def _showing(
    progress: bool | None, callback: Callable[[Result], object] | None = None
) -> Iterator[tuple[list[Observer], Callable[[Look], None] | None]]:
    """What follows training, and its verdict: a callback, and lines on how far they are."""
    called = [] if callback is None else [observers.callback(callback)]
    if not ("ipykernel" in sys.modules if progress is None else progress):
        yield called, None
        return
    from rich.console import Console  # only where something is shown

    from lexrl.runs.progress import observer
    from lexrl.runs.watching import watching_verification

    console = Console(highlight=False)
    with watching_verification(console) as watch:
        yield [observer(console), *called], watch
