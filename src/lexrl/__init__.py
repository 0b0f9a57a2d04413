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
    from lexrl.algorithms.a2c import A2C
    from lexrl.algorithms.appropo import ApproPO
    from lexrl.algorithms.average_reward import LA2CAverageReward, LPPOAverageReward
    from lexrl.algorithms.double_q import DoubleQLearning
    from lexrl.algorithms.dqn import DQN
    from lexrl.algorithms.expected_sarsa import ExpectedSarsa
    from lexrl.algorithms.exploration import EpsilonGreedy, Prefixes, Softmax
    from lexrl.algorithms.fixed_action import FixedAction
    from lexrl.algorithms.la2c import LA2C
    from lexrl.algorithms.lagrangian import PIDLagrangian, UnitFreeLagrangian
    from lexrl.algorithms.ldqn import LDQN
    from lexrl.algorithms.lppo import LPPO
    from lexrl.algorithms.paper_la2c import PaperLA2C
    from lexrl.algorithms.paper_lppo import PaperLPPO
    from lexrl.algorithms.ppo import PPO
    from lexrl.algorithms.ppo_lagrangian import PPOLagrangian
    from lexrl.algorithms.projection import Projection
    from lexrl.algorithms.q_critic import LPPOQCritic
    from lexrl.algorithms.q_learning import QLearning
    from lexrl.algorithms.random import Random
    from lexrl.algorithms.rcpo import RCPO
    from lexrl.algorithms.sarsa import Sarsa
    from lexrl.algorithms.second_order import LA2CSecondOrder, LPPOSecondOrder
    from lexrl.algorithms.single_objective import SingleObjective
    from lexrl.algorithms.var_ac import VaRAC
    from lexrl.backend import configure
    from lexrl.convergence import Convergence
    from lexrl.dual_ascent import DualAscent
    from lexrl.engine import Engine
    from lexrl.engine.sweeps import sweep
    from lexrl.envs.bridge import momdp_from_env
    from lexrl.envs.cart_pole import CartPole
    from lexrl.envs.cart_safe import CartSafe
    from lexrl.envs.checker import check_env
    from lexrl.envs.factory import make_env
    from lexrl.envs.finite import FiniteEnv
    from lexrl.envs.grid_nav import GridNav
    from lexrl.envs.gym import GymEnv
    from lexrl.envs.intersection.env import Intersection
    from lexrl.envs.mountain_car_safe import MountainCarSafe
    from lexrl.envs.per_seed import per_seed
    from lexrl.envs.random_momdp import random_env
    from lexrl.envs.vector import GymVectorEnv
    from lexrl.exact import solve
    from lexrl.guard import Guard
    from lexrl.momdp import MOMDP
    from lexrl.multipliers import Multipliers
    from lexrl.networks import Networks
    from lexrl.order import Order
    from lexrl.presets import preset
    from lexrl.runs import Policy, Result, Run, load, resume, stream, train
    from lexrl.set_encoders import SetEncoder
    from lexrl.stages import Stages
    from lexrl.theory import check
    from lexrl.tolerance import Evidence

__version__ = "0.2.0"

NAMES = {
    "Convergence": "lexrl.convergence:Convergence",
    "DualAscent": "lexrl.dual_ascent:DualAscent",
    "EpsilonGreedy": "lexrl.algorithms.exploration:EpsilonGreedy",
    "Engine": "lexrl.engine:Engine",
    "Evidence": "lexrl.tolerance:Evidence",
    "Multipliers": "lexrl.multipliers:Multipliers",
    "Stages": "lexrl.stages:Stages",
    "FiniteEnv": "lexrl.envs.finite:FiniteEnv",
    "Guard": "lexrl.guard:Guard",
    "GymEnv": "lexrl.envs.gym:GymEnv",
    "GymVectorEnv": "lexrl.envs.vector:GymVectorEnv",
    "MOMDP": "lexrl.momdp:MOMDP",
    "Networks": "lexrl.networks:Networks",
    "Order": "lexrl.order:Order",
    "PIDLagrangian": "lexrl.algorithms.lagrangian:PIDLagrangian",
    "Prefixes": "lexrl.algorithms.exploration:Prefixes",
    "Policy": "lexrl.runs:Policy",
    "Result": "lexrl.runs:Result",
    "Run": "lexrl.runs:Run",
    "SetEncoder": "lexrl.set_encoders:SetEncoder",
    "SingleObjective": "lexrl.algorithms.single_objective:SingleObjective",
    "Softmax": "lexrl.algorithms.exploration:Softmax",
    "UnitFreeLagrangian": "lexrl.algorithms.lagrangian:UnitFreeLagrangian",
    "check": "lexrl.theory:check",
    "check_env": "lexrl.envs.checker:check_env",
    "configure": "lexrl.backend:configure",
    "exact": "lexrl.exact",
    "lex": "lexrl.lex",
    "load": "lexrl.runs:load",
    "make_env": "lexrl.envs.factory:make_env",
    "momdp_from_env": "lexrl.envs.bridge:momdp_from_env",
    "per_seed": "lexrl.envs.per_seed:per_seed",
    "preset": "lexrl.presets:preset",
    "presets": "lexrl.presets",
    "resume": "lexrl.runs:resume",
    "schedules": "lexrl.schedules",
    "solve": "lexrl.exact:solve",
    "stream": "lexrl.runs:stream",
    "sweep": "lexrl.engine.sweeps:sweep",
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
    "Convergence",
    "DoubleQLearning",
    "DualAscent",
    "Engine",
    "EpsilonGreedy",
    "Evidence",
    "ExpectedSarsa",
    "FiniteEnv",
    "FixedAction",
    "GridNav",
    "Guard",
    "GymEnv",
    "GymVectorEnv",
    "InputError",
    "Intersection",
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
    "PaperLA2C",
    "PaperLPPO",
    "Policy",
    "Prefixes",
    "Projection",
    "QLearning",
    "Random",
    "Result",
    "Run",
    "Sarsa",
    "SetEncoder",
    "SingleObjective",
    "Softmax",
    "Stages",
    "UnitFreeLagrangian",
    "VaRAC",
    "catalog",
    "check",
    "check_env",
    "configure",
    "exact",
    "lex",
    "load",
    "make_env",
    "momdp_from_env",
    "per_seed",
    "preset",
    "presets",
    "random_env",
    "resume",
    "schedules",
    "solve",
    "stream",
    "sweep",
    "tolerance",
    "train",
]
