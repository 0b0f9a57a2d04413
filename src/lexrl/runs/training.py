"""Training in one call, or as a loop of one's own."""

import contextlib
import pathlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lexrl import store
from lexrl.loops.evaluation import check_episodes
from lexrl.order import Order
from lexrl.runs import record
from lexrl.runs.execute import execute, stream_run
from lexrl.runs.plan import Run, plan
from lexrl.runs.result import Result
from lexrl.types import Algorithm


def train(
    algorithm: Algorithm | Sequence[Algorithm] | str,
    env: Any,
    order: Order | str | None = None,
    *,
    seeds: int | Sequence[int] = 10,
    total_timesteps: float | int | None = None,
    num_log_points: int = 50,
    out: str | pathlib.Path | None = None,
    eval_episodes: int = 100,
    progress: bool | None = None,
    watch: Callable[[Result], None] | None = None,
) -> Result:
    """Train one learner for each seed, all of them at once.

    Args:
        algorithm: what learns, e.g. `lexrl.LPPO()` or `lexrl.q_learning(tolerance=0.05)`; a list gives each seed its
            own numbers; a name, as in `"lppo"`, means its tuned settings for the world that is named next.
        env: the world, e.g. `lexrl.grid_nav(size=8)`, `"cart-safe"`, `"CartPole-v1"`; or `lexrl.per_seed([...])` for a
            world each.
        order: the objectives by importance, as in `"min cost > max reward"`.
        seeds: how many (0, 1, 2, ...), or which.
        total_timesteps: environment steps of each seed; by default the tuned settings', else 100,000.
        num_log_points: points on the learning curve.
        out: a folder for curves, policies and checkpoints; `lexrl.resume(folder)` goes on with a run that was stopped.
        eval_episodes: fresh ones to evaluate each greedy policy on at the end, for the folder's summary.
        progress: show how it goes; by default only in a notebook.
        watch: called with the result so far after each part.
    """
    run = plan(algorithm, env, order, seeds, total_timesteps, num_log_points)
    shown = "ipykernel" in sys.modules if progress is None else progress
    with _display(run) if shown else contextlib.nullcontext(lambda _: None) as show:

        def see(result: Result) -> None:
            show(result)
            if watch is not None:
                watch(result)

        if out is None:
            return execute(run, see)
        check_episodes(eval_episodes)
        folder = store.new_folder(pathlib.Path(out))
        record.begin(folder, run, episodes=eval_episodes)
        result = None
        for result in record.record(folder, run):
            see(result)
    assert result is not None
    record.finish(folder, result, eval_episodes)
    return result


def stream(
    algorithm: Algorithm | Sequence[Algorithm] | str,
    env: Any,
    order: Order | str | None = None,
    *,
    seeds: int | Sequence[int] = 10,
    total_timesteps: float | int | None = None,
    num_log_points: int = 50,
) -> Iterator[Result]:
    """`train` for people with a loop of their own: a `Result` after each part; stop when you have seen enough."""
    return stream_run(plan(algorithm, env, order, seeds, total_timesteps, num_log_points))


def _display(run: Run) -> contextlib.AbstractContextManager[Callable[[Result], None]]:
    from rich.console import Console

    from lexrl.runs.progress import progress

    return progress(str(run), run, Console(highlight=False))
