"""Lexicographic multi-objective reinforcement learning: objectives in order of importance, no weights to guess.

Public names are imported when they are first used, so that `import lexrl` is quick, sets no flag and touches no device.
Algorithms and environments are the catalog's; `NAMES` has the rest.
"""

import importlib
from typing import TYPE_CHECKING, Any

import lexrl.envs.exported  # noqa: F401  registers our environments with Gymnasium: strings only
from lexrl import catalog
from lexrl.errors import InputError

if TYPE_CHECKING:
    from lexrl import exact, lex, presets, schedules, tolerance
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
        EpsilonGreedy,
        ExpectedSarsa,
        LA2CAverageReward,
        LA2CSecondOrder,
        LPPOAverageReward,
        LPPOQCritic,
        LPPOSecondOrder,
        PIDLagrangian,
        PPOLagrangian,
        Projection,
        QLearning,
        Random,
        Sarsa,
        SingleObjective,
        Softmax,
        VaRAC,
    )
    from lexrl.backend import configure
    from lexrl.envs import (
        CartPole,
        CartSafe,
        FiniteEnv,
        GridNav,
        GymEnv,
        GymVectorEnv,
        MountainCarSafe,
        random_env,
    )
    from lexrl.envs.checker import check_env
    from lexrl.envs.factory import make_env
    from lexrl.envs.per_seed import per_seed
    from lexrl.exact import solve
    from lexrl.momdp import MOMDP
    from lexrl.multipliers import Multipliers
    from lexrl.networks import Networks
    from lexrl.order import Order
    from lexrl.presets import preset
    from lexrl.runs import Policy, Result, Run, load, resume, stream, train
    from lexrl.stages import Stages
    from lexrl.theory import check

__version__ = "0.2.0"

NAMES = {
    "EpsilonGreedy": "lexrl.algorithms:EpsilonGreedy",
    "FiniteEnv": "lexrl.envs.finite:FiniteEnv",
    "GymEnv": "lexrl.envs.gym:GymEnv",
    "GymVectorEnv": "lexrl.envs.vector:GymVectorEnv",
    "MOMDP": "lexrl.momdp:MOMDP",
    "Multipliers": "lexrl.multipliers:Multipliers",
    "Networks": "lexrl.networks:Networks",
    "Order": "lexrl.order:Order",
    "PIDLagrangian": "lexrl.algorithms:PIDLagrangian",
    "Policy": "lexrl.runs:Policy",
    "Result": "lexrl.runs:Result",
    "Run": "lexrl.runs:Run",
    "SingleObjective": "lexrl.algorithms:SingleObjective",
    "Softmax": "lexrl.algorithms:Softmax",
    "Stages": "lexrl.stages:Stages",
    "check": "lexrl.theory:check",
    "check_env": "lexrl.envs.checker:check_env",
    "configure": "lexrl.backend:configure",
    "exact": "lexrl.exact",
    "lex": "lexrl.lex",
    "load": "lexrl.runs:load",
    "make_env": "lexrl.envs.factory:make_env",
    "per_seed": "lexrl.envs.per_seed:per_seed",
    "preset": "lexrl.presets:preset",
    "presets": "lexrl.presets",
    "resume": "lexrl.runs:resume",
    "schedules": "lexrl.schedules",
    "solve": "lexrl.exact:solve",
    "stream": "lexrl.runs:stream",
    "tolerance": "lexrl.tolerance",
    "train": "lexrl.runs:train",
}
"""Where public names come from, besides the algorithms and environments of the catalog."""


def public_names() -> dict[str, str]:
    """All public names that are imported when they are first used, and where they come from."""
    lines = [*catalog.ALGORITHMS.values(), *catalog.ENVS.values()]
    return {line.attribute: f"{line.target.partition(':')[0]}:{line.attribute}" for line in lines} | NAMES


def __getattr__(name: str) -> Any:
    target = public_names().get(name)
    if target is None:
        raise AttributeError(f"module 'lexrl' has no attribute {name!r}")
    module, _, attribute = target.partition(":")
    found = importlib.import_module(module)
    return vars(found)[attribute] if attribute else found


def __dir__() -> list[str]:
    return sorted({"InputError", "__version__", "catalog", *public_names()})


__all__ = [
    "A2C",
    "DQN",
    "LA2C",
    "LDQN",
    "LPPO",
    "MOMDP",
    "PPO",
    "RCPO",
    "ApproPO",
    "CartPole",
    "CartSafe",
    "DoubleQLearning",
    "EpsilonGreedy",
    "ExpectedSarsa",
    "FiniteEnv",
    "GridNav",
    "GymEnv",
    "GymVectorEnv",
    "InputError",
    "LA2CAverageReward",
    "LA2CSecondOrder",
    "LPPOAverageReward",
    "LPPOQCritic",
    "LPPOSecondOrder",
    "MountainCarSafe",
    "Multipliers",
    "Networks",
    "Order",
    "PIDLagrangian",
    "PPOLagrangian",
    "Policy",
    "Projection",
    "QLearning",
    "Random",
    "Result",
    "Run",
    "Sarsa",
    "SingleObjective",
    "Softmax",
    "Stages",
    "VaRAC",
    "catalog",
    "check",
    "check_env",
    "configure",
    "exact",
    "lex",
    "load",
    "make_env",
    "per_seed",
    "preset",
    "presets",
    "random_env",
    "resume",
    "schedules",
    "solve",
    "stream",
    "tolerance",
    "train",
]
