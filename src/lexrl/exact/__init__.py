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
from lexrl.exact.average import solve_average
from lexrl.exact.certificate import Certificate, NearTie
from lexrl.exact.certification import certify, certify_program
from lexrl.exact.chains import average_returns
from lexrl.exact.clock import Progress
from lexrl.exact.critical import SlackPoint, critical_slack
from lexrl.exact.evaluation import Evaluation, TimedEvaluation, evaluate, evaluate_horizon
from lexrl.exact.horizon import HorizonSolution, solve_horizon
from lexrl.exact.iteration import Solution, reach, solve
from lexrl.exact.mixtures import stationary
from lexrl.exact.programs import ProgramSolution, occupancy, solve_slack

__all__ = [
    "ActionGaps",
    "Certificate",
    "Evaluation",
    "HorizonSolution",
    "NearTie",
    "OrderRow",
    "ProgramSolution",
    "Progress",
    "SlackPoint",
    "Solution",
    "TimedEvaluation",
    "ToleranceRow",
    "action_gaps",
    "all_orders",
    "average_returns",
    "certify",
    "certify_program",
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
    "stationary",
    "tolerance_table",
]
