"""Lexicographic multi-objective reinforcement learning: objectives in order of importance, no weights to guess."""

from lexrl import backend as _backend

_backend.prepare()

from lexrl import exact, lex, schedules, tolerance  # noqa: E402
from lexrl.algos import EpsilonGreedy, Softmax, Tabular, double_q, expected_sarsa, gabor, q_learning, sarsa  # noqa: E402
from lexrl.check import check  # noqa: E402
from lexrl.envs import cart_safe, finite_world, grid_nav, random_world  # noqa: E402
from lexrl.exact import critical_slack, evaluate, solve, solve_average, solve_horizon, solve_slack  # noqa: E402
from lexrl.momdp import MOMDP, momdp, random_momdp  # noqa: E402
from lexrl.order import Order  # noqa: E402
from lexrl.run import Result, Run, train  # noqa: E402
from lexrl.train.population import per_seed  # noqa: E402
from lexrl.types import InputError  # noqa: E402

__version__ = "0.1.0"

__all__ = [
    "MOMDP",
    "EpsilonGreedy",
    "InputError",
    "Order",
    "Result",
    "Run",
    "Softmax",
    "Tabular",
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
    "lex",
    "momdp",
    "per_seed",
    "q_learning",
    "random_momdp",
    "random_world",
    "sarsa",
    "schedules",
    "solve",
    "solve_average",
    "solve_horizon",
    "solve_slack",
    "tolerance",
    "train",
]
