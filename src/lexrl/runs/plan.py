"""A run is a value: which algorithm, which world, which order, how long, which seeds."""

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax

from lexrl import presets
from lexrl.envs import as_env, checker
from lexrl.envs.cost_aware import CostAwareObservation
from lexrl.envs.per_seed import PerSeed
from lexrl.errors import InputError
from lexrl.loops import keys
from lexrl.loops.compiled import check_length
from lexrl.loops.keys import Purpose
from lexrl.loops.population import Population, make_population, members
from lexrl.order import Order, as_order
from lexrl.types import Algorithm

STEPS = 100_000
"""Unless a preset or the user says otherwise."""


@dataclasses.dataclass(frozen=True)
class Run:
    """Everything that decides the numbers."""

    algorithm: Algorithm | Sequence[Algorithm]
    """One for all seeds, or one each: same kind, other numbers."""
    env: Any
    """One world for all seeds, or one each (`lexrl.per_seed`)."""
    order: Order
    seeds: tuple[int, ...]
    total_timesteps: int
    """Environment steps of each seed."""
    num_log_points: int = 50
    """Points on the learning curve; they change what is shown, not what is learned."""

    def population(self) -> Population:
        return make_population(self.algorithm, self.env, self.order, self.seeds)

    def __str__(self) -> str:
        one = self.algorithm[0] if isinstance(self.algorithm, Sequence) else self.algorithm
        return f"{type(one).__name__}, {self.order}: {len(self.seeds)} seeds x {self.total_timesteps:,} steps"


def plan(
    algorithm: Algorithm | Sequence[Algorithm] | str,
    env: Any,
    order: Order | str | None = None,
    seeds: int | Sequence[int] = 10,
    total_timesteps: float | int | None = None,
    num_log_points: int = 50,
) -> Run:
    """Check what was given and make it a run. `seeds` is how many (0, 1, ...), or which."""
    learner, env, order, many = _unnamed(algorithm, env, order, total_timesteps)
    env = shown_so_far(learner, env)
    world = env.one(0) if isinstance(env, PerSeed) else env
    order = as_order(order, world.spec.signals)
    chosen = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not all(seed == int(seed) for seed in chosen):
        raise InputError(f"The seeds {list(chosen)} must be whole numbers.")
    if not (1 <= many < 2**31 and many == int(many)):
        raise InputError(f"{many:g} steps cannot be trained; give a whole number from 1 to {2**31 - 1:,}.")
    check_length(int(many), num_log_points)
    members(learner, env, chosen)
    several = isinstance(learner, Sequence)
    each = [with_order(one, order) for one in (learner if several else [learner])]
    # What does not fit is said now, before anything is compiled or written.
    if not on_host(world):
        checker.check_env(world)
    for one in each:
        jax.eval_shape(partial(one.init, order.spec(world.spec)), keys.stream(0, Purpose.INIT))
    return Run(each if several else each[0], env, order, tuple(map(int, chosen)), int(many), num_log_points)


def _unnamed(algorithm: Any, env: Any, order: Any, steps: Any) -> tuple[Any, Any, Any, Any]:
    """Names as what they stand for. An algorithm's name stands for its tuned settings on the world that is named."""
    if not isinstance(algorithm, str):
        return algorithm, as_env(env), order, STEPS if steps is None else steps
    if not isinstance(env, str):
        raise InputError(
            f"The algorithm {algorithm!r} is only named, which means its tuned settings, and those belong to a world "
            "that is named, too, as in lexrl.train('lppo', 'cart-safe'); else give one, as in lexrl.LPPO()."
        )
    found = presets.preset(algorithm, env)
    world = as_env(env, **found.world)
    return found.algorithm, world, order or found.order, found.steps if steps is None else steps


def shown_so_far(algorithm: Any, env: Any) -> Any:
    """The world, showing what was spent so far to an algorithm that must know it."""
    limits = getattr(algorithm[0] if isinstance(algorithm, Sequence) and algorithm else algorithm, "remembers", ())
    world = env.one(0) if isinstance(env, PerSeed) else env
    if not limits or isinstance(world, CostAwareObservation):
        return env
    shown = CostAwareObservation.wrap(world, limits)
    return PerSeed(dataclasses.replace(shown, env=env.stacked), env.count) if isinstance(env, PerSeed) else shown


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
