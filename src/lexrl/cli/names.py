"""What can be named on the command line: algorithms, worlds, and texts that `lexrl` reads by itself."""

import inspect
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Annotated, Any, Optional

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from lexrl import presets
from lexrl.algorithms import (
    A2C,
    DQN,
    LA2C,
    LDQN,
    LPPO,
    PPO,
    RCPO,
    ApproPO,
    DoubleQLearning,
    ExpectedSarsa,
    PPOLagrangian,
    Projection,
    QLearning,
    Random,
    Sarsa,
    VaRAC,
)
from lexrl.algorithms.tabular import Exploration, as_exploration
from lexrl.constraints import Box, Chance, ConvexSet, Limit, as_box
from lexrl.dual import Schedules, as_schedules
from lexrl.envs import GymEnv
from lexrl.envs.named import WORLDS, in_gymnasium, kind
from lexrl.errors import InputError
from lexrl.networks import Builder, Features, as_builder
from lexrl.optimizers import Optimizer, as_optimizer, find_function
from lexrl.presets import Preset
from lexrl.schedules import Schedule, as_schedule
from lexrl.tolerance import Absolute, Tolerances, as_tolerance

ALGORITHMS: dict[str, Callable[[], Any]] = {
    "q-learning": QLearning,
    "sarsa": Sarsa,
    "expected-sarsa": ExpectedSarsa,
    "double-q": DoubleQLearning,
    "gabor": partial(QLearning, tolerance=Absolute(0.0)),
    "ldqn": LDQN,
    "la2c": LA2C,
    "lppo": LPPO,
    "projection": Projection,
    "dqn": DQN,
    "a2c": A2C,
    "ppo": PPO,
    "rcpo": RCPO,
    "ppo-lagrangian": PPOLagrangian,
    "var-ac": VaRAC,
    "appropo": ApproPO,
    "random": Random,
}


def chosen_preset(words: list[str]) -> Preset | None:
    """The preset a command line asks for: the one it names, else `tuned` where there is one for what it trains."""
    algorithm = next((word for word in words if word in ALGORITHMS), "")
    world = next((word for word in words if word in WORLDS), "")
    flags = [i for i, word in enumerate(words) if word.split("=")[0] == "--preset"]
    if not flags:
        return presets.known("tuned", world).get(algorithm)
    flag = words[flags[0]]
    name = flag.split("=")[1] if "=" in flag else (words[flags[0] + 1 :] or [""])[0]
    if name == "none" or not algorithm or not world:
        return None
    if name not in ("paper", "tuned"):
        raise InputError(f"The preset {name!r} is not known; it is one of 'tuned', 'paper' and 'none'.")
    return presets.preset(algorithm, world, name)


def learners(preset: Preset | None) -> Any:
    """The union of all algorithms, as the parser takes it; the preset's settings are the defaults of its own."""

    def one(name: str, make: Callable[[], Any]) -> Any:
        default = make()
        if preset is not None and type(preset.algorithm) is type(default):
            default = preset.algorithm
        return Annotated[type(default), tyro.conf.subcommand(name, default=default, description=summary(make))]

    return _union([one(*item) for item in ALGORITHMS.items()])


def worlds(preset: Preset | None, words: list[str]) -> Any:
    """The union of all worlds, as the parser takes it; with the Gymnasium environment that the command line names."""
    settings = {} if preset is None else preset.world

    def one(name: str, make: Callable[..., Any]) -> Any:
        fits = settings.keys() <= inspect.signature(make).parameters.keys()
        builder = partial(make, **settings) if settings and fits else make
        return Annotated[kind(make), tyro.conf.subcommand(name, constructor=builder, description=summary(make))]

    outside = [_outside(word, name) for word in words if (name := in_gymnasium(word)) is not None]
    return _union([*(one(*item) for item in WORLDS.items()), *outside[:1]])


def _outside(word: str, name: str) -> Any:
    """A Gymnasium environment as a world of the command line."""

    def build(max_episode_steps: int | None = None, discrete_observations: bool = False) -> GymEnv:
        """A Gymnasium environment.

        Args:
            max_steps: length of an episode; by default the environment's own limit.
            numbered: observations of whole numbers become one number each, so that tables can be learned.
        """
        return GymEnv(name, max_episode_steps, discrete_observations=discrete_observations)

    return Annotated[GymEnv, tyro.conf.subcommand(word, constructor=build, description=f"Gymnasium's {name}.")]


def summary(make: Callable[..., Any]) -> str:
    """The first sentence of what a builder says of itself."""
    return (make.__doc__ or "").strip().splitlines()[0]


def _union(members: list[Any]) -> Any:
    union = members[0]
    for member in members[1:]:
        union = union | member
    return union


def registry() -> ConstructorRegistry:
    """Text that `lexrl` reads by itself, told to the parser of the command line."""
    registry = ConstructorRegistry()
    readers: dict[Any, tuple[Callable[[str], Any], str]] = {
        Schedule: (as_schedule, "RATE"),
        Schedules: (as_schedules, "RATE [..]"),
        Exploration: (as_exploration, "EXPLORATION"),
        Optional[Builder]: (as_builder, "MODULE:FUNCTION"),  # noqa: UP045
        Optional[Features]: (find_function, "MODULE:FUNCTION"),  # noqa: UP045
        Optimizer: (as_optimizer, "OPTIMIZER"),
        Tolerances: (as_tolerance, "TOLERANCE [..]"),
        Tolerances | None: (as_tolerance, "TOLERANCE [..]"),
        tuple[float, ...] | float: (float, "NUMBER [..]"),
        tuple[Limit, ...]: (str, "LIMIT [..]"),
        tuple[Chance, ...]: (str, "CHANCE [..]"),
        Box: (as_box, "BOX"),
        ConvexSet: (as_box, "BOX"),
    }

    @registry.primitive_rule
    def read(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
        if isinstance(info.type, list) or info.type not in readers:  # a list: the arguments of a Callable
            return None
        reader, metavar = readers[info.type]
        missing = "the same" if "TOLERANCE" in metavar else "none"
        return PrimitiveConstructorSpec(
            nargs="*" if "[..]" in metavar else 1,
            metavar=metavar,
            instance_from_str=lambda words: one_or_each(tuple(reader(word) for word in words)),
            is_instance=lambda value: True,
            str_from_instance=lambda value: [missing] if value is None else list(map(_shown, as_tuple(value))),
        )

    return registry


def _shown(value: Any) -> str:
    """A default as text."""
    return value.__qualname__ if isinstance(value, FunctionType) else str(value)


def as_tuple(given: Any) -> tuple[Any, ...]:
    return given if type(given) is tuple else (given,)


def one_or_each(given: tuple[Any, ...]) -> Any:
    return given[0] if len(given) == 1 else given
