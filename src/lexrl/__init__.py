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
    Networks,
    PIDLagrangian,
    PPOLagrangian,
    Projection,
    QLearning,
    Random,
    Sarsa,
    SingleObjective,
    Softmax,
    Tabular,
    VaRAC,
    gabor,
)
from lexrl.backend import configure
from lexrl.dual import Dual
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
from lexrl.networks import Optimiser
from lexrl.order import Order
from lexrl.presets import preset
from lexrl.runs import Policy, Result, Run, load, resume, stream, train
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
    "Dual",
    "EpsilonGreedy",
    "ExpectedSarsa",
    "FiniteEnv",
    "GridNav",
    "GymEnv",
    "GymVectorEnv",
    "InputError",
    "MountainCarSafe",
    "Networks",
    "Optimiser",
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
    "Tabular",
    "VaRAC",
    "check",
    "configure",
    "critical_slack",
    "evaluate",
    "exact",
    "gabor",
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
