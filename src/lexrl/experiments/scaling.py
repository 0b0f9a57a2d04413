"""E1, scaling (the paper's figure 1): how learning time grows with the number of objectives.

Random MOMDPs with 4 actions; one learner in each. Learning is stable from the point on where the objectives' levels,
averaged over the worlds, have come nine tenths of their way, and stay there; the exponent p of `time ~ M^p` is fitted.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lexrl import exact
from lexrl.algorithms import LA2C, LPPO, DoubleQLearning, ExpectedSarsa, Networks, QLearning
from lexrl.dual import Dual
from lexrl.experiments.power_law import Times, fit
from lexrl.experiments.schedule import Finished, Job
from lexrl.experiments.sections import Section, cell, claims, numbers, seen, table
from lexrl.order import Order
from lexrl.report import stats
from lexrl.report.stats import Interval
from lexrl.runs import Result
from lexrl.tolerance import Relative

TITLE = "Scaling: learning time against the number of objectives"
QUESTION = "Does the time until a learner is stable grow more slowly than the number of its objectives?"
EPISODE = 100
NEAR = 0.1
"""Learning is stable when what is left of the way of the objectives' levels is at most this share of it."""

TOLERANCE, GAMMA = Relative(0.01), 0.9
TABLES: dict[str, Any] = {"tolerance": TOLERANCE, "alpha": 0.01, "gamma": GAMMA}
LINEAR: dict[str, Any] = {
    "networks": Networks(hidden_sizes=(), use_bias=False), "tolerance": TOLERANCE, "gamma": GAMMA, "rate": 0.05,
    "critic_rate": 0.05, "dual": Dual(beta=1.0, eta=0.3),
}  # fmt: skip
ALGORITHMS: dict[str, tuple[str, Callable[[], Any], int]] = {
    "q-learning": ("Q-learning", lambda: QLearning(**TABLES), 400_000),
    "expected-sarsa": ("Expected SARSA", lambda: ExpectedSarsa(**TABLES), 400_000),
    "double-q": ("Double Q", lambda: DoubleQLearning(**TABLES), 400_000),
    "lppo": ("LPPO", lambda: LPPO(**LINEAR), 2_000_000),
    "la2c": ("LA2C", lambda: LA2C(**LINEAR), 2_000_000),
}
"""Its name, its settings (the paper's for tables), and how long it learns in 256 states (in more of them, longer);
another learner is one more line."""
SIZES: dict[str, dict[str, Any]] = {
    "smoke": {"states": (16,), "objectives": (1, 2), "worlds": 2, "share": 0.05, "algorithms": ("q-learning",)},
    "laptop": {"states": (256,), "objectives": (1, 2, 4, 8), "worlds": 30, "share": 0.5, "algorithms": ALGORITHMS},
    "paper": {
        "states": (256, 512), "objectives": (1, 2, 4, 8, 16), "worlds": 30, "share": 1.0, "algorithms": ALGORITHMS
    },
}  # fmt: skip


def runs(size: str) -> list[Job]:
    """Every learner, in worlds of every size, with every number of objectives."""
    chosen = SIZES[size]
    return [
        _job(name, states, objectives, chosen["worlds"], chosen["share"])
        for states in chosen["states"]
        for name in chosen["algorithms"]
        for objectives in chosen["objectives"]
    ]


def _job(name: str, states: int, objectives: int, worlds: int, share: float) -> Job:
    label, make, steps = ALGORITHMS[name]
    return Job(
        name=f"random-momdps/{states}/{name}-{objectives}",
        label=f"{label}, M = {objectives}, {states} states",
        algorithm=make(),
        world="random-momdps",
        order=" > ".join(f"max signal_{i + 1}" for i in range(objectives)),
        seeds=worlds,
        steps=round(share * steps * max(1.0, states / 256)),
        settings={"states": states, "objectives": objectives, "max_steps": EPISODE},
        num_log_points=100,
        tags={"algorithm": name, "states": states, "objectives": objectives},
        measure=to_the_optimum,
    )


def to_the_optimum(result: Result) -> dict[str, Any]:
    """How far each greedy policy is from objective 1's best return in its world, and whether it is the exact optimum.

    The less important objectives are looked at only where the first one is within its tolerance: they take a linear
    program each.
    """
    worlds, order = result.run.env, result.run.order
    first = Order(order.objectives[:1])
    gaps, found = [], []
    for i, policy in enumerate(result.probabilities()):
        process = worlds.one(i).momdp(GAMMA)
        best = float(exact.solve(process, first).returns[0])
        gaps.append(best - float(exact.evaluate(process, policy, first).returns[0]))
        near = gaps[-1] <= TOLERANCE.share * abs(best)
        found.append(near and exact.gap(process, policy, order, TOLERANCE).level is None)
    return {"first_gap": gaps, "exact": found}


def stable(steps: np.ndarray, levels: np.ndarray) -> float:
    """The step from which on the levels `[points, M]` have come nearly all the way to where they end.

        left(t) = (end - level(t)) . way / |way|^2        way = end - start

    The end is the mean of the last tenth, a level is smoothed over the three points before and after it. Measured along
    the way, noise counts once and not once for each objective. NaN where what is left is not below a tenth for at least
    the last quarter: what still moves has no such point.
    """
    known = np.isfinite(levels).all(axis=1)
    steps, levels = steps[known], levels[known]
    points = len(steps)
    end = levels[-max(1, points // 10) :].mean(axis=0)
    way = end - levels[0]
    smooth = np.stack([levels[max(0, t - 3) : t + 4].mean(axis=0) for t in range(points)])
    far = np.flatnonzero(np.abs((end - smooth) @ way) > NEAR * max(way @ way, 1e-12))
    first = 0 if len(far) == 0 else far[-1] + 1
    return float(steps[first]) if first < 3 * points // 4 else np.nan


def times(steps: np.ndarray, levels: np.ndarray, resamples: int = 400) -> Times:
    """When the mean over worlds of the levels `[points, worlds, M]` is stable; and the same for resampled worlds.

    A single world's levels are too noisy to say: an episode's return scatters more than learning moves it.
    """
    worlds = levels.shape[1]
    picks = np.random.default_rng(0).integers(worlds, size=(resamples, worlds))
    resampled = np.array([stable(steps, levels[:, pick].mean(axis=1)) for pick in picks])
    return Times(stable(steps, levels.mean(axis=1)), resampled, worlds)


def summarise(done: Sequence[Finished]) -> list[Section]:
    """Time against objectives with a fitted exponent, how near the optimum the policies are, and the claim."""
    panels, rows, exponents = [], [], []
    for states in dict.fromkeys(one.job.tags["states"] for one in done):
        series = []
        for name in dict.fromkeys(one.job.tags["algorithm"] for one in done):
            here = [
                one for one in done
                if one.job.tags["algorithm"] == name and one.job.tags["states"] == states
            ]  # fmt: skip
            if not here:
                continue
            one, power, more = _series(name, here)
            series.append(one)
            exponents.append((f"{ALGORITHMS[name][0]}, {states} states", power))
            rows += more
        panels.append({"title": f"{states} states", "series": series})
    heads = ["learner", "states", "M", "steps until stable", "first objective's gap", "exact optimum"]
    return [
        {
            "kind": "scaling",
            "name": "scaling",
            "title": "Steps until stable",
            "caption": (
                "One learner in each random MOMDP; the mean of their levels is stable from the point on where it has "
                "come nine tenths of its way, and stays there. 95 % intervals by bootstrap over worlds, and the "
                "fitted power of M."
            ),
            "x": "objectives M",
            "y": "steps until stable",
            "panels": panels,
        },
        table("scaling-exponents", "Fitted exponents", ["learner", "p in time ~ M^p"],
              [[label, cell(power)] for label, power in exponents]),
        table("scaling-points", "Every point", heads, rows,
              "The gap is what the greedy policy loses of objective 1's best discounted return; exact: every objective "
              "is within what the tolerance of 1 % allows."),
        claims("What the paper says", _claims(exponents)),
    ]  # fmt: skip


def _series(name: str, here: Sequence[Finished]) -> tuple[dict[str, Any], Interval, list[Any]]:
    """The points of one learner, their fitted exponent, and a row for each."""
    sizes = [one.job.tags["objectives"] for one in here]
    found = [times(*one.found.curves()) for one in here]
    intervals = [each.interval() for each in found]
    law = fit(np.array(sizes), found)
    rows = []
    for one, interval in zip(here, intervals, strict=True):
        share = float(np.mean(one.summary["exact"]))
        rows.append([
            ALGORITHMS[name][0], one.job.tags["states"], one.job.tags["objectives"], cell(interval),
            cell(stats.bootstrap([np.array(one.summary["first_gap"])])), {"value": share, "text": f"{share:.0%}"},
        ])  # fmt: skip
    series = {
        "label": ALGORITHMS[name][0],
        "x": sizes,
        **{part: numbers([getattr(each, part) for each in intervals]) for part in ("middle", "low", "high")},
    }
    if law is None:
        return series, Interval(np.nan, np.nan, np.nan), rows
    series["fit"] = {"x": sizes, "y": list(law.line)}
    if np.isfinite(law.exponent.low):
        series["exponent"] = dict(zip(("value", "low", "high"), map(float, law.exponent), strict=True))
    return series, law.exponent, rows


def _claims(exponents: Sequence[tuple[str, Interval]]) -> list[tuple[str, Any, str]]:
    known = [(label, power) for label, power in exponents if np.isfinite(power.high)]
    told = "; ".join(f"{label}: {power}" for label, power in known)
    if not known:
        return [("Learning time grows sub-linearly in the number of objectives.", "not decidable", "no exponent known")]
    answer = seen(all(power.high < 1 for _, power in known), any(power.low > 1 for _, power in known))
    return [("Learning time grows sub-linearly in the number of objectives.", answer, told)]
