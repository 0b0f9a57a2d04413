"""Lexicographic multi-objective reinforcement learning: objectives in order of importance, no weights to guess."""

from lexrl import exact, lex, schedules, tolerance
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
from lexrl.envs.per_seed import per_seed
from lexrl.errors import InputError
from lexrl.exact import critical_slack, evaluate, solve, solve_average, solve_horizon, solve_slack
from lexrl.momdp import MOMDP
from lexrl.multipliers import Multipliers
from lexrl.networks import Networks
from lexrl.order import Order
from lexrl.presets import preset
from lexrl.runs import Policy, Result, Run, load, resume, stream, train
from lexrl.stages import Stages
from lexrl.theory import check

__version__ = "0.1.0"

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
    "check",
    "critical_slack",
    "evaluate",
    "exact",
    "lex",
    "load",
    "per_seed",
    "preset",
    "random_env",
    "resume",
    "schedules",
    "solve",
    "solve_average",
    "solve_horizon",
    "solve_slack",
    "stream",
    "tolerance",
    "train",
]
