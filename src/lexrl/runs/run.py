"""A run is a value: which algorithm, which environment, which order, how long, which seeds."""

import dataclasses
import numbers
import reprlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax
import numpy as np

from lexrl import backend, catalog, presets, units
from lexrl.algorithms.validation import require_types
from lexrl.envs.checker import check_env, check_spec
from lexrl.envs.cost_aware import CostAwareObservation
from lexrl.envs.cost_aware_batched import CostAwareBatch
from lexrl.envs.factory import EnvKwargs, ResolvedEnv, env_name, resolve
from lexrl.envs.gym import GymEnv
from lexrl.envs.per_seed import PerSeed
from lexrl.errors import InputError, require_whole
from lexrl.loops import compiled, host, keys
from lexrl.loops.chunks import TrainState, check_length
from lexrl.loops.evaluation import check_episodes
from lexrl.loops.keys import Purpose
from lexrl.loops.population import Population, make_population, members
from lexrl.order import Objective, Order, as_order
from lexrl.types import Algorithm, CostAware, Discrete, HasLimits, HasReplay, HasTable, HasTolerance, Spec

MAX_SEEDS = 100_000
TOTAL_TIMESTEPS, NUM_SEEDS, VERIFY_EPISODES = 1_000_000, 10, 2_000
"""Unless a preset or the user says otherwise."""
DEFAULT = "default"
"""In the place of a preset's name: the algorithm's own defaults."""
Settings = Literal["tuned", "paper", "none"]


@dataclasses.dataclass(frozen=True, repr=False)
class Run:
    """Everything that decides the numbers, and what is done with them."""

    algorithm: Algorithm | Sequence[Algorithm]
    """One for all seeds, or one each: of the same class, with other numbers."""
    env: Any
    """One environment for all seeds, or one each (`lexrl.per_seed`)."""
    order: Order
    seeds: tuple[int, ...]
    total_timesteps: int
    """Environment steps of each seed."""
    num_log_points: int = 50
    """Points on the learning curve; they do not change what is learned."""
    eval_episodes: int = 100
    """Fresh episodes that each policy is evaluated on when the run is finished and kept in a folder."""
    verify_episodes: int = 0
    """At most so many episodes of each policy decide whether the priority was kept; 0: there is no verdict."""
    name: str = ""
    """What the algorithm is called: its name in the catalog, else its class."""
    env_id: str = ""
    """The name that `make_env` knows the environment by; empty for an instance without one."""
    env_kwargs: EnvKwargs = dataclasses.field(default_factory=dict)
    """What `make_env` is given besides the name; one for all seeds, or one each."""
    preset: str = ""
    """Which preset the settings come from; "default" for the algorithm's own, empty for an instance of the user's."""
    label: str = ""
    """A title of the user's own."""
    log: tuple[str, ...] = ()
    """Programs that logs are written for: tensorboard, wandb."""
    command: str = ""
    """The command line that started it."""
    measure: str = ""
    """What adds more numbers to its summary, by its name in `catalog.MEASURES`."""

    def population(self) -> Population:
        """The seeds, laid out over the devices."""
        return make_population(self.algorithm, self.env, self.order, self.seeds)

    @property
    def env_title(self) -> str:
        return self.env_id or env_name(self.env)

    @property
    def title(self) -> str:
        """What is trained, and where its settings come from."""
        settings = {"": "", DEFAULT: " (default settings)"}.get(self.preset, f" ({self.preset} preset)")
        return self.label or f"{self.name} on {self.env_title}: {self.order}{settings}"

    def __repr__(self) -> str:
        return (
            f"{self.name} on {self.env_title}, {self.order}: {len(self.seeds)} seeds x {self.total_timesteps:,} steps"
        )


def directions(order: Order) -> tuple[Objective, ...]:
    """The objectives of an order without their tolerances."""
    return tuple(objective._replace(tolerance=None) for objective in order.objectives)


def plan(
    algorithm: Algorithm | Sequence[Algorithm] | str,
    env: Any,
    order: Order | str | None = None,
    seeds: int | Sequence[int] = NUM_SEEDS,
    total_timesteps: float | int | None = None,
    num_log_points: int = 50,
    *,
    env_kwargs: EnvKwargs | None = None,
    preset: Settings = "tuned",
    **about: Any,
) -> Run:
    """Check what was given and make it a run. `seeds` is how many (0, 1, ...), or which.

    An algorithm's name means the preset of that algorithm on that environment where there is one, else the algorithm
    with its own defaults. `about` are further fields of `Run`.
    """
    if not isinstance(algorithm, str):
        return make_run(algorithm, env, order, seeds, total_timesteps, num_log_points, env_kwargs=env_kwargs, **about)
    entry = catalog.find(catalog.ALGORITHMS, algorithm, "algorithm")
    found = find_preset(algorithm, env, preset)
    about |= {"name": algorithm, "preset": DEFAULT if found is None else preset}
    if found is None:
        return make_run(
            entry.make(), env, order, seeds, total_timesteps, num_log_points, env_kwargs=env_kwargs, **about
        )
    if env_kwargs is None or isinstance(env_kwargs, Mapping):
        env_kwargs = {**found.env_kwargs, **(env_kwargs or {})}
    return make_run(
        found.algorithm, env, order or found.order, seeds,
        found.total_timesteps if total_timesteps is None else total_timesteps, num_log_points,
        env_kwargs=env_kwargs, **about,
    )  # fmt: skip


def find_preset(algorithm: str, env: Any, preset: Settings) -> presets.Preset | None:
    """The preset of a pair of names; `paper` must exist, `tuned` need not."""
    if preset == "none" or not isinstance(env, str):
        return None
    return presets.find(algorithm, env) if preset == "tuned" else presets.preset(algorithm, env, preset)


def make_run(
    algorithm: Any,
    env: Any,
    order: Order | str | None,
    seeds: int | Sequence[int],
    total_timesteps: float | int | None,
    num_log_points: int,
    *,
    env_kwargs: EnvKwargs | None = None,
    **about: Any,
) -> Run:
    """A run of an algorithm with its settings: everything is checked now, before anything is compiled or written."""
    backend.ensure_configured()
    if unknown := about.keys() - {field.name for field in dataclasses.fields(Run)}:
        raise InputError(f"A run has no setting {min(unknown)!r}.")
    total = TOTAL_TIMESTEPS if total_timesteps is None else whole_steps(total_timesteps)
    check_length(total, num_log_points)
    chosen = as_seeds(seeds)
    several = isinstance(algorithm, Sequence)
    target = _resolve_for(algorithm if several else [algorithm], env, env_kwargs)
    for member in algorithm if several else [algorithm]:
        require_algorithm(member)
    placed = observe_costs(algorithm, target.env)
    one = placed.one(0) if isinstance(placed, PerSeed) else placed
    check_spec(one)
    found = as_order(order, one.spec.signals)
    members(algorithm, placed, chosen)
    each = [fit(member, found, total) for member in (algorithm if several else [algorithm])]
    if not on_host(one):
        check_env(one)
    for member in each:
        _try_init(member, found.spec(one.spec))
    run = Run(
        each if several else each[0], placed, found, tuple(map(int, chosen)), total, num_log_points,
        env_id=target.env_id, env_kwargs=target.kwargs, **about,
    )  # fmt: skip
    check_episodes(run.eval_episodes)
    require_whole(0, verify_episodes=run.verify_episodes)
    return run if run.name else dataclasses.replace(run, name=_name(each[0]))


def _resolve_for(algorithms: Sequence[Any], env: Any, kwargs: EnvKwargs | None) -> ResolvedEnv:
    """The environment that is meant; for tables, one of Gymnasium's whose observations are a few integers has them as
    one."""
    target = resolve(env, kwargs)
    given = {} if kwargs is None else kwargs
    of_gymnasium = isinstance(env, str) and isinstance(target.env, GymEnv)
    tables = all(isinstance(one, HasTable) for one in algorithms)
    is_discrete = of_gymnasium and isinstance(target.env.spec.observation_space, Discrete)
    if not (of_gymnasium and tables and isinstance(given, Mapping)) or is_discrete:
        return target
    try:
        return resolve(env, {**given, "discrete_observations": True})
    except InputError:  # they are no integers, or too many: the algorithm will say what it needs
        return target


def _try_init(algorithm: Any, spec: Spec) -> None:
    """Raise an error if an algorithm cannot begin; nothing is allocated."""
    try:
        jax.eval_shape(partial(algorithm.init, spec), keys.stream(0, Purpose.INIT))
    except InputError:
        raise
    except (AttributeError, OverflowError, TypeError, ValueError) as error:
        why = " ".join(str(error).split())
        raise InputError(f"{_name(algorithm)} cannot begin with these settings ({why}).") from error


def fit(algorithm: Any, order: Order, total_timesteps: int) -> Any:
    """The algorithm as it is trained: with the tolerances of the order, and sized for the length of the run.

    A replay buffer that would never be filled is made smaller, which changes no number and saves memory.
    """

    def trim(part: Any) -> Any:
        if not isinstance(part, HasReplay):
            return part
        rollout = part.num_steps * part.num_envs
        needed = -(-max(total_timesteps, part.learning_starts) // rollout) * rollout
        settings: Any = part
        return dataclasses.replace(settings, buffer_size=min(part.buffer_size, needed))

    trimmed = jax.tree.map(trim, algorithm, is_leaf=lambda part: isinstance(part, HasReplay))
    return with_limits(with_tolerances(units.resolve(trimmed, total_timesteps), order), order)


def with_limits(algorithm: Any, order: Order) -> Any:
    """The algorithm with the limits that the order states; an error where it cannot honor them."""
    if not order.limited:
        return algorithm
    if isinstance(algorithm, HasLimits):
        return eqx.tree_at(
            lambda one: one.limits, algorithm, tuple(order.limits().tolist()), is_leaf=lambda leaf: leaf is None
        )
    able = [name for name, entry in catalog.ALGORITHMS.items() if isinstance(entry.make(), HasLimits)]
    instead = f"{', '.join(able)} can, and so" if able else "instead"
    raise InputError(
        f"{_name(algorithm)} cannot honor the limit in '{order}', because a limit is about the return of a whole "
        f"policy; {instead} does `lexrl solve --tolerance policy` on finite environments."
    )


def with_tolerances(algorithm: Any, order: Order) -> Any:
    """The algorithm with the tolerances that the order states."""
    if not isinstance(algorithm, HasTolerance):
        return algorithm
    return eqx.tree_at(
        lambda one: one.tolerance, algorithm, order.tolerances(algorithm.tolerance), is_leaf=lambda leaf: leaf is None
    )


def observe_costs(algorithm: Any, env: Any) -> Any:
    """The environment, extended by the accumulated costs for an algorithm that must observe them."""
    one = algorithm[0] if isinstance(algorithm, Sequence) and algorithm else algorithm
    inner = env.one(0) if isinstance(env, PerSeed) else env
    if not isinstance(one, CostAware) or isinstance(inner, CostAwareObservation | CostAwareBatch):
        return env
    if on_host(inner):
        return CostAwareBatch.wrap(inner, one.remembers)
    shown = CostAwareObservation.wrap(inner, one.remembers)
    return PerSeed(dataclasses.replace(shown, env=env.stacked), env.count) if isinstance(env, PerSeed) else shown


def on_host(env: Any) -> bool:
    """Must the environment be stepped from Python?"""
    return not isinstance(env, eqx.Module)


def initialize(run: Run, population: Population) -> TrainState:
    """The train states before the first step."""
    return host.start(population, run.env) if on_host(run.env) else compiled.start(population)


def whole_steps(total_timesteps: float | int) -> int:
    """A number of steps, checked."""
    number = isinstance(total_timesteps, numbers.Real) and not isinstance(total_timesteps, bool)
    shown = f"{total_timesteps:.12g}" if isinstance(total_timesteps, float) else reprlib.repr(total_timesteps)
    if not (number and 1 <= total_timesteps < 2**31 and total_timesteps == int(total_timesteps)):
        raise InputError(f"total_timesteps is {shown}; give a whole number from 1 to {2**31 - 1:,}, such as 1e6.")
    return int(total_timesteps)


def as_seeds(seeds: Any) -> tuple[int, ...]:
    """Seeds 0, 1, ... if a number of them is given, else those that are given."""
    if isinstance(seeds, numbers.Integral):
        require_whole(0, MAX_SEEDS, **{"The number of seeds": seeds})
        return tuple(range(int(seeds)))
    one = isinstance(seeds, str) or (isinstance(seeds, np.ndarray) and seeds.ndim == 0)
    if one or not isinstance(seeds, Sequence | np.ndarray):
        raise InputError(f"The seeds are {reprlib.repr(seeds)}; say how many, as in 10, or which, as in [3, 7, 11].")
    if not all(isinstance(seed, numbers.Integral) or (isinstance(seed, float) and seed.is_integer()) for seed in seeds):
        raise InputError(f"The seeds {reprlib.repr(list(seeds))} must be whole numbers.")
    return tuple(map(int, seeds))


def require_algorithm(given: Any) -> None:
    """Refuse what is not an algorithm, or has settings of a wrong type."""
    if isinstance(given, type) or not isinstance(given, Algorithm):
        what = f"The class {given.__name__}" if isinstance(given, type) else f"A {type(given).__name__}"
        raise InputError(f"{what} is not an algorithm; give a name, as in 'lppo', or an instance, as in lexrl.LPPO().")
    if dataclasses.is_dataclass(given):
        require_types(given)


def _name(algorithm: Any) -> str:
    entry = catalog.entry_of(catalog.ALGORITHMS, algorithm)
    return type(algorithm).__name__ if entry is None else entry.name
