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
    EpsilonGreedy,
    Networks,
    PIDLagrangian,
    PPOLagrangian,
    Projection,
    Random,
    SingleObjective,
    Softmax,
    Tabular,
    VaRAC,
    double_q,
    expected_sarsa,
    gabor,
    q_learning,
    sarsa,
)
from lexrl.dual import Dual  # noqa: E402
from lexrl.envs import (  # noqa: E402
    cart_pole,
    cart_safe,
    finite_world,
    grid_nav,
    gym_vector_world,
    gym_world,
    mountain_car_safe,
    per_seed,
    random_world,
)
from lexrl.errors import InputError  # noqa: E402
from lexrl.exact import critical_slack, evaluate, solve, solve_average, solve_horizon, solve_slack  # noqa: E402
from lexrl.momdp import MOMDP, momdp, random_momdp  # noqa: E402
from lexrl.networks import Optimiser  # noqa: E402
from lexrl.order import Order  # noqa: E402
from lexrl.presets import preset  # noqa: E402
from lexrl.runs import Policy, Result, Run, load, resume, stream, train  # noqa: E402
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
    "Dual",
    "EpsilonGreedy",
    "InputError",
    "Networks",
    "Optimiser",
    "Order",
    "PIDLagrangian",
    "PPOLagrangian",
    "Policy",
    "Projection",
    "Random",
    "Result",
    "Run",
    "SingleObjective",
    "Softmax",
    "Tabular",
    "VaRAC",
    "cart_pole",
    "cart_safe",
    "check",
    "critical_slack",
    "double_q",
    "evaluate",
    "exact",
    "expected_sarsa",
    "finite_world",
    "gabor",
    "grid_nav",
    "gym_vector_world",
    "gym_world",
    "lex",
    "load",
    "momdp",
    "mountain_car_safe",
    "per_seed",
    "preset",
    "q_learning",
    "random_momdp",
    "random_world",
    "resume",
    "sarsa",
    "schedules",
    "solve",
    "solve_average",
    "solve_horizon",
    "solve_slack",
    "stream",
    "tolerance",
    "train",
]
