"""A run is a value: which algorithm, which world, which order, how long, which seeds. A result is what came of it."""

import dataclasses
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lexrl import exact, lex
from lexrl.errors import InputError
from lexrl.momdp import MOMDP
from lexrl.order import Order, as_order
from lexrl.train import compiled, contract, host, keys
from lexrl.train.compiled import Chunk, Seat
from lexrl.train.evaluate import Evaluation, evaluate
from lexrl.train.keys import Purpose
from lexrl.train.population import Population, Worlds, members, population
from lexrl.types import Algorithm, Discrete, Env


@dataclasses.dataclass(frozen=True)
class Run:
    """Everything that decides the numbers."""

    algorithm: Algorithm | Sequence[Algorithm]
    """One for all seeds, or one each: same kind, other numbers."""
    env: Env | Worlds
    """One world for all seeds, or one each (`lexrl.per_seed`)."""
    order: Order
    seeds: tuple[int, ...]
    steps: int
    """Environment steps of each seed."""
    chunks: int = 50
    """Points on the learning curve; they change what is shown, not what is learned."""

    def population(self) -> Population:
        return population(self.algorithm, self.env, self.order, self.seeds)


@dataclasses.dataclass(frozen=True)
class Result:
    """What a run left: learning curves, learners, and the seeds that had to stop."""

    run: Run
    people: Population
    seats: Seat
    steps: np.ndarray
    """`[points]`: environment steps of each seed at each point of the curves."""
    metrics: dict[str, np.ndarray]
    """`[points, seeds]` or `[points, seeds, M]`, in the user's signs."""
    faults: dict[int, str]
    """Why a seed stopped, by its place among the seeds."""
    seconds: float

    def learner(self, place: int = 0) -> Any:
        """The state of one seed's learner."""
        return jax.tree.map(lambda leaf: leaf[place], self.seats.learner)

    def policies(self, *, greedy: bool = True) -> np.ndarray:
        """Each seed's policy as a table, in a world of numbered states: `[seeds, S, A]`."""
        space = self.people.spec.observation
        if not isinstance(space, Discrete):
            raise InputError(f"A policy is a table only where states are numbered, but this world shows {space}.")

        def table(algorithm: Any, learner: Any) -> Any:
            chances = partial(algorithm.probabilities, learner, greedy=greedy)
            return jax.vmap(chances)(jnp.arange(space.n))

        exactly = np.asarray(jax.vmap(table)(self.people.algorithms, self.seats.learner), float)[: self.people.size]
        return exactly / exactly.sum(axis=-1, keepdims=True)

    def evaluate(
        self, episodes: int = 100, *, gamma: float | tuple[float, ...] = 1.0, greedy: bool = True
    ) -> Evaluation:
        """Play fresh episodes with every seed's policy."""
        if on_host(self.run.env):
            return host.evaluate(
                self.people, self.run.env, self.seats.learner, episodes=episodes, gamma=gamma, greedy=greedy
            )
        return evaluate(self.people, self.seats.learner, episodes=episodes, gamma=gamma, greedy=greedy)

    def gaps(self, process: MOMDP | Sequence[MOMDP], tolerance: Any = 0.0) -> list[lex.Gap]:
        """Each seed's exact distance to the lexicographic optimum of the process (or of its own)."""
        each = [process] * self.people.size if isinstance(process, MOMDP) else list(process)
        if len(each) != self.people.size:
            raise InputError(f"{len(each)} processes were given for {self.people.size} seeds; give one, or one each.")
        policies = self.policies()
        return [exact.gap(one, policy, self.run.order, tolerance) for one, policy in zip(each, policies, strict=True)]

    def table(self) -> list[dict[str, Any]]:
        """The learning curves, tidy: one row for each seed, point, metric and objective."""
        rows = []
        for name, values in self.metrics.items():
            for (point, place, *objective), value in np.ndenumerate(values):
                row = {"seed": self.run.seeds[place], "step": int(self.steps[point]), "metric": name}
                rows.append(
                    row | {"objective": self.run.order.names[objective[0]] if objective else "", "value": value}
                )
        return rows

    def __str__(self) -> str:
        name = type(self.people.algorithms).__name__
        lines = [
            f"{name}, {self.run.order}: {len(self.run.seeds)} seeds x {self.steps[-1]:,} steps in {self.seconds:.1f} s"
        ]
        last = self.metrics["return"][-1]
        for i, objective in enumerate(self.run.order.objectives):
            known = last[:, i][np.isfinite(last[:, i])]
            shown = (
                f"{known.mean():.4g} (seeds: {known.min():.4g} to {known.max():.4g})" if len(known) else "no episode"
            )
            lines.append(f"  {objective.name} per episode while learning: {shown}")
        return "\n".join(lines + [f"  {sentence}" for sentence in self.faults.values()])


def plan(
    algorithm: Algorithm | Sequence[Algorithm],
    env: Env | Worlds,
    order: Order | str | None,
    seeds: int | Sequence[int] = 10,
    steps: float | int = 100_000,
    chunks: int = 50,
) -> Run:
    """Check what was given and make it a run. `seeds` is how many (0, 1, ...), or which."""
    world = env.one(0) if isinstance(env, Worlds) else env
    order = as_order(order, world.spec.objectives)
    chosen = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not all(seed == int(seed) for seed in chosen):
        raise InputError(f"The seeds {list(chosen)} must be whole numbers.")
    if not (1 <= steps < 2**31 and steps == int(steps)):
        raise InputError(f"{steps:g} steps cannot be trained; give a whole number from 1 to {2**31 - 1:,}.")
    if chunks < 1:
        raise InputError(f"Training for {steps:g} steps in {chunks} parts cannot be; both must be 1 or more.")
    members(algorithm, env, chosen)
    several = isinstance(algorithm, Sequence)
    each = [with_order(one, order) for one in (algorithm if several else [algorithm])]
    # What does not fit is said now, before anything is compiled or written.
    if not on_host(world):
        contract.check_world(world, keys.stream(0, Purpose.STEP))
    for one in each:
        jax.eval_shape(partial(one.init, order.spec(world.spec)), keys.stream(0, Purpose.INIT))
    return Run(each if several else each[0], env, order, tuple(map(int, chosen)), int(steps), chunks)


def with_order(algorithm: Any, order: Order) -> Any:
    """The algorithm with the tolerances written in the order."""
    if not hasattr(algorithm, "tolerance"):
        return algorithm
    return eqx.tree_at(
        lambda one: one.tolerance, algorithm, order.tolerances(algorithm.tolerance), is_leaf=lambda leaf: leaf is None
    )


def on_host(env: Any) -> bool:
    """Must the world be stepped from Python?"""
    return not isinstance(env, eqx.Module)


def execute(run: Run, watch: Callable[[Chunk], None] | None = None) -> Result:
    """Execute a run to its end; `watch` is called after each part."""
    begun = time.monotonic()
    people = run.population()
    steps, metrics, chunk = [], [], None
    if on_host(run.env):
        loop = host.train(run.algorithm, run.env, run.order, run.seeds, run.steps, chunks=run.chunks)
    else:
        loop = compiled.advance(people, compiled.start(people), run.steps, chunks=run.chunks)
    for chunk in loop:
        steps.append(chunk.steps)
        metrics.append(chunk.metrics)
        if watch is not None:
            watch(chunk)
    assert chunk is not None
    return Result(
        run=run,
        people=people,
        seats=chunk.seats,
        steps=np.array(steps),
        metrics={name: np.stack([point[name] for point in metrics]) for name in metrics[0]},
        faults=chunk.faults,
        seconds=time.monotonic() - begun,
    )


def train(
    algorithm: Algorithm | Sequence[Algorithm],
    env: Env | Worlds,
    order: Order | str | None = None,
    *,
    seeds: int | Sequence[int] = 10,
    steps: float | int = 100_000,
    chunks: int = 50,
    watch: Callable[[Chunk], None] | None = None,
) -> Result:
    """Train one learner for each seed, all of them at once.

    Args:
        algorithm: what learns, e.g. `lexrl.q_learning(tolerance=0.05)`; a list gives each seed its own numbers.
        env: the world, e.g. `lexrl.grid_nav(size=8)`, or `lexrl.per_seed([...])` for a world each.
        order: the objectives by importance, as in `"min cost > max reward"`.
        seeds: how many (0, 1, 2, ...), or which.
        steps: environment steps of each seed.
        chunks: points on the learning curve.
        watch: called after each of them.
    """
    return execute(plan(algorithm, env, order, seeds, steps, chunks), watch)
