"""Lexicographic multi-objective reinforcement learning: objectives in order of importance, no weights to guess."""

from lexrl import backend as _backend

_backend.prepare()

from lexrl import exact, lex, schedules, tolerance  # noqa: E402
from lexrl.algorithms import (  # noqa: E402
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
from lexrl.envs import (  # noqa: E402
    CartPole,
    CartSafe,
    FiniteEnv,
    GridNav,
    GymEnv,
    GymVectorEnv,
    MountainCarSafe,
    per_seed,
    random_env,
)
from lexrl.errors import InputError  # noqa: E402
from lexrl.exact import critical_slack, evaluate, solve, solve_average, solve_horizon, solve_slack  # noqa: E402
from lexrl.momdp import MOMDP  # noqa: E402
from lexrl.multipliers import Multipliers  # noqa: E402
from lexrl.networks import Networks  # noqa: E402
from lexrl.order import Order  # noqa: E402
from lexrl.presets import preset  # noqa: E402
from lexrl.runs import Policy, Result, Run, load, resume, stream, train  # noqa: E402
from lexrl.stages import Stages  # noqa: E402
from lexrl.theory import check  # noqa: E402

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
