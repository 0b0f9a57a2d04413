"""Ground truth for finite MOMDPs: exact lexicographic optima, exact evaluation, and what an order of goals costs."""

from lexrl.exact.audit import (
    ActionGaps,
    OrderRow,
    ToleranceRow,
    action_gaps,
    all_orders,
    gap,
    tolerance_table,
)
from lexrl.exact.average import average_returns, solve_average
from lexrl.exact.certificate import Certificate
from lexrl.exact.critical import SlackPoint, critical_slack
from lexrl.exact.evaluation import Evaluation, TimedEvaluation, evaluate, evaluate_horizon
from lexrl.exact.horizon import HorizonSolution, solve_horizon
from lexrl.exact.iteration import Solution, reach, solve
from lexrl.exact.programs import ProgramSolution, occupancy, solve_slack

__all__ = [
    "ActionGaps",
    "Certificate",
    "Evaluation",
    "HorizonSolution",
    "OrderRow",
    "ProgramSolution",
    "SlackPoint",
    "Solution",
    "TimedEvaluation",
    "ToleranceRow",
    "action_gaps",
    "all_orders",
    "average_returns",
    "critical_slack",
    "evaluate",
    "evaluate_horizon",
    "gap",
    "occupancy",
    "reach",
    "solve",
    "solve_average",
    "solve_horizon",
    "solve_slack",
    "tolerance_table",
]
