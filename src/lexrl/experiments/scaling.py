"""E1, scaling (the paper's figure 1): how learning time grows with the number of objectives.

Random MOMDPs with 4 actions, a different one for each seed. Learning has converged where the objectives' returns,
averaged over the MOMDPs, have covered nine tenths of the distance to where they end, and stay there. The exponent p of
`time ~ M^p` is fitted.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl import catalog, exact
from lexrl.algorithms.double_q import DoubleQLearning
from lexrl.algorithms.expected_sarsa import ExpectedSarsa
from lexrl.algorithms.paper_la2c import PaperLA2C
from lexrl.algorithms.paper_lppo import PaperLPPO
from lexrl.algorithms.q_learning import QLearning
from lexrl.dual_ascent import DualAscent
from lexrl.experiments.power_law import fit, learning_time
from lexrl.experiments.schedule import Finished, Job
from lexrl.experiments.summary import cell, decide
from lexrl.networks import Networks
from lexrl.order import Order
from lexrl.report import stats
from lexrl.report.panels import Panel, Series
from lexrl.report.sections.claims import Claim, Claims
from lexrl.report.sections.scaling import Scaling
from lexrl.report.sections.table import Cell, Table, number
from lexrl.report.stats import Interval
from lexrl.runs import Result
from lexrl.tolerance import Relative

QUESTION = "Does learning time grow more slowly than the number of objectives?"
EPISODE = 100
TOLERANCE, GAMMA = Relative(0.01), 0.9
TABLES: dict[str, Any] = {**catalog.TEXTBOOK, "tolerance": TOLERANCE, "gamma": GAMMA}
LINEAR: dict[str, Any] = {
    "networks": Networks(hidden_sizes=(), use_bias=False), "tolerance": TOLERANCE, "gamma": GAMMA,
    "learning_rate": 0.05, "critic_learning_rate": 0.05, "multipliers": DualAscent(beta=1.0, eta=0.3),
}  # fmt: skip
ALGORITHMS: dict[str, tuple[str, Callable[[], Any], int]] = {
    "q-learning": ("Q-learning", lambda: QLearning(**TABLES), 400_000),
    "expected-sarsa": ("Expected SARSA", lambda: ExpectedSarsa(**TABLES), 400_000),
    "double-q": ("Double Q", lambda: DoubleQLearning(**TABLES), 400_000),
    "paper-lppo": ("LPPO (paper)", lambda: PaperLPPO(**LINEAR), 2_000_000),
    "paper-la2c": ("LA2C (paper)", lambda: PaperLA2C(**LINEAR), 2_000_000),
}
"""The title, the algorithm (tables as in the paper) and its time steps for 256 states; for more states, more steps.
To add an algorithm, add a line."""
SIZES: dict[str, dict[str, Any]] = {
    "smoke": {"states": (16,), "objectives": (1, 2), "seeds": 2, "share": 0.05, "algorithms": ("q-learning",)},
    "laptop": {"states": (256,), "objectives": (1, 2, 4, 8), "seeds": 30, "share": 0.5, "algorithms": ALGORITHMS},
    "paper": {
        "states": (256, 512), "objectives": (1, 2, 4, 8, 16), "seeds": 30, "share": 1.0, "algorithms": ALGORITHMS
    },
}  # fmt: skip


def runs(size: str) -> list[Job]:
    """Every algorithm, for every number of states and of objectives."""
    chosen = SIZES[size]
    return [
        _job(name, states, objectives, chosen["seeds"], chosen["share"])
        for states in chosen["states"]
        for name in chosen["algorithms"]
        for objectives in chosen["objectives"]
    ]


def _job(name: str, states: int, objectives: int, seeds: int, share: float) -> Job:
    label, make, steps = ALGORITHMS[name]
    return Job(
        name=f"random-momdps/{states}/{name}-{objectives}",
        label=f"{label}, M = {objectives}, {states} states",
        algorithm=make(),
        env="random-momdps",
        order=" > ".join(f"max signal_{i + 1}" for i in range(objectives)),
        seeds=seeds,
        total_timesteps=round(share * steps * max(1.0, states / 256)),
        env_settings={"num_states": states, "num_signals": objectives, "max_episode_steps": EPISODE},
        num_log_points=100,
        tags={"algorithm": name, "states": states, "objectives": objectives},
        measure="distance-to-optimum",
    )


def distance_to_optimum(result: Result) -> dict[str, Any]:
    """How far each greedy policy is from objective 1's optimal return, and whether it is the exact optimum.

    The less important objectives are checked only where the first is within its tolerance: they take a linear program
    each.
    """
    envs, order = result.run.env, result.run.order
    first = Order(order.objectives[:1])
    gaps, found = [], []
    for i, policy in enumerate(result.probabilities()):
        process = envs.one(i).momdp(GAMMA)
        best = float(exact.solve(process, first).returns[0])
        gaps.append(best - float(exact.evaluate(process, policy, first).returns[0]))
        near = gaps[-1] <= TOLERANCE.share * abs(best)
        found.append(near and exact.gap(process, policy, order, TOLERANCE).level is None)
    return {"first_gap": gaps, "exact": found}


class ScalingCurve(NamedTuple):
    """One algorithm with one number of states."""

    label: str
    states: int
    series: Series
    exponent: Interval
    rows: list[tuple[Cell, ...]]


def summarize(results: Sequence[Finished]) -> list[Any]:
    """Time against objectives with a fitted exponent, how near the optimum the policies are, and the claim."""
    keys = dict.fromkeys((one.job.tags["states"], one.job.tags["algorithm"]) for one in results)
    measured = [
        _measure(key, [one for one in results if (one.job.tags["states"], one.job.tags["algorithm"]) == key])
        for key in keys
    ]
    y = "steps to convergence"
    panels = [
        Panel(f"{states} states", y, True, tuple(one.series for one in measured if one.states == states))
        for states in dict.fromkeys(one.states for one in measured)
    ]
    exponents = [(f"{one.label}, {one.states} states", one.exponent) for one in measured]
    return [
        Scaling("scaling", "Steps to convergence", _CAPTION, "objectives M", y, tuple(panels)),
        Table("scaling-exponents", "Fitted exponents", "", ("algorithm", "p in time ~ M^p"),
              tuple((Cell(label), cell(power)) for label, power in exponents)),
        Table("scaling-points", "Every point",
              "The gap is what the greedy policy loses of objective 1's best discounted return; exact: every objective "
              "is within what the tolerance of 1 % allows.",
              ("algorithm", "states", "M", y, "first objective's gap", "exact optimum"),
              tuple(row for one in measured for row in one.rows)),
        Claims("What the paper says", (_claim(exponents),)),
    ]  # fmt: skip


_CAPTION = (
    "One agent in each random MOMDP; the mean of their returns has converged where it has covered nine tenths of the "
    "distance to its end, and stays there. 95 % intervals by bootstrap over MOMDPs, and the fitted power of M."
)


def _measure(key: tuple[int, str], here: Sequence[Finished]) -> ScalingCurve:
    states, name = key
    sizes = np.array([one.job.tags["objectives"] for one in here])
    times = [learning_time(*one.found.curves()) for one in here]
    intervals = [each.interval() for each in times]
    label = ALGORITHMS[name][0]
    rows = []
    for one, interval in zip(here, intervals, strict=True):
        share = float(np.mean(one.summary["exact"]))
        gap = cell(stats.bootstrap([np.array(one.summary["first_gap"])]))
        objectives = number(one.job.tags["objectives"])
        rows.append((Cell(label), number(states), objectives, cell(interval), gap, Cell(f"{share:.0%}", share)))
    law = fit(sizes, times)
    series = Series(label, sizes, *np.array(intervals).T)
    if law is None:
        return ScalingCurve(label, states, series, Interval(np.nan, np.nan, np.nan), rows)
    exponent = tuple(map(float, law.exponent)) if np.isfinite(law.exponent.low) else None
    series = series._replace(fit=(sizes, np.array(law.line)), exponent=exponent)
    return ScalingCurve(label, states, series, law.exponent, rows)


def _claim(exponents: Sequence[tuple[str, Interval]]) -> Claim:
    claim = "Learning time grows sub-linearly in the number of objectives."
    known = [(label, power) for label, power in exponents if np.isfinite(power.high)]
    if not known:
        return Claim(claim, "not decidable", "no exponent known")
    answer = decide(all(power.high < 1 for _, power in known), any(power.low > 1 for _, power in known))
    return Claim(claim, answer, "; ".join(f"{label}: {power}" for label, power in known))
