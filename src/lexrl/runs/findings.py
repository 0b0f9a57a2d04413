"""From the episodes that were played, or from exact returns, to what a verdict says: findings and rare events.

And what findings show about the references, as `[seeds, M]`: of which objectives something is true.
"""

from collections.abc import Sequence

import numpy as np

from lexrl import verify
from lexrl.runs.measuring import Measured, slack_of, tolerances
from lexrl.runs.references import OWN, Exact, Reference
from lexrl.runs.result import Result
from lexrl.runs.sampling import Sample
from lexrl.runs.scales import Scale
from lexrl.runs.statements import BEST, LIMIT, MARGIN, Statement
from lexrl.verdict import NAMES, Finding, RareEvents, Test


def sampled_findings(result: Result, sample: Sample) -> list[Finding]:
    order, found = result.run.order, []
    for statement, decision in zip(sample.statements, sample.decisions, strict=True):
        measured = sample.measure(statement)
        if len(measured.value) == 0:  # there was no time for a second batch
            continue
        if statement.best is not None and decision != verify.KEPT:  # which need not be possible with this environment
            continue
        sign = float(order.signs[statement.objective])
        (value, value_error), (reference, error) = (_mean(sign * x) for x in (measured.value, measured.reference))
        bounds = [0.0] * 3 if statement.same else [float(x) for x in measured.bounds(sample.alpha, sample.episodes)]
        name = statement.name
        if statement.other != statement.seed and statement.limit is None and statement.best is None:
            name = f"{name} (seed {result.run.seeds[statement.other]})"
        found.append(
            Finding(
                seed=result.run.seeds[statement.seed],
                objective=order.names[statement.objective],
                status=NAMES[int(decision)],
                reference=name,
                value=value,
                value_error=value_error,
                reference_value=reference,
                reference_error=error,
                difference=bounds[0],
                low=bounds[1],
                high=bounds[2],
                tolerance=measured.tolerance,
                slack=measured.slack,
                slack_used=max(0.0, -bounds[0]),
                episodes=len(measured.value),
                test=_test(sample, statement, measured),
            )
        )
    return found


def exact_findings(result: Result, exact: Exact, scale: Scale) -> list[Finding]:
    order, found = result.run.order, []
    granted = tolerances([policy.algorithm for policy in result.policies])
    for s, seed in enumerate(result.run.seeds):
        for j, name in enumerate(order.names[:-1]):
            gap, sign = float(exact.returns[s, j] - exact.best[j]), float(order.signs[j])
            # Tolerances at each state may add up: what the optimum of the order itself gives away is granted, too.
            slack = max(
                slack_of(granted[s], exact.returns[s], j, exact.best[j]),
                float(exact.best[j] - exact.optimum[j]),
            )
            tolerance = slack + MARGIN * float(scale.discounted[j]) + 1e-6 * abs(float(exact.best[j]))
            decision = verify.KEPT if gap >= -tolerance else verify.VIOLATED
            found.append(
                Finding(
                    seed,
                    name,
                    NAMES[decision],
                    "the exact optimum",
                    sign * float(exact.returns[s, j]) + 0.0,
                    0.0,
                    sign * float(exact.best[j]) + 0.0,
                    0.0,
                    gap,
                    gap,
                    gap,
                    tolerance,
                    slack,
                    max(0.0, -gap),
                    0,
                    "exact",
                )
            )
    return found


def rare_events(result: Result, sample: Sample) -> list[RareEvents]:
    """For each cost that is never negative, in any episode of any policy, and 0 in some of those that are judged.

    An objective to be maximized is one, too, if it is never positive, and negative at times.
    """
    found = []
    for j, objective in enumerate(result.run.order.objectives):
        costs = -sample.played[0].returns[..., j]
        others = [-each.returns[..., j] for each in (*sample.played, sample.untrained) if each.returns.shape[-1] > j]
        seen = [*others, -objective.sign * result.metrics["episode_return"][..., j]]
        is_cost = objective.sign < 0 or any((each > 0).any() for each in seen)
        negative = any((each < 0).any() for each in seen)
        if not is_cost or negative or not (costs >= 0).all() or not (costs == 0).any():
            continue
        counts = (costs > 0).sum(axis=1)
        n = costs.shape[1]
        found += [
            RareEvents(seed, objective.name, int(count), n, verify.event_bound(int(count), n), objective.sign > 0)
            for seed, count in zip(result.run.seeds, counts, strict=True)
        ]
    return found


def about(
    sample: Sample, known: Sequence[Reference], findings: Sequence[Finding], limits: np.ndarray
) -> tuple[str, str]:
    """What policies were compared with, and how it was decided."""
    names = list(dict.fromkeys(one.name for one in sample.statements))
    listed = f"Compared with: {'; '.join(names)}." if names else "There is nothing to compare with."
    if any(one.limit is None and one.best is None for one in sample.statements):
        listed += " These are the best that are known, not the best there may be."
    if not known and np.isinf(limits[:-1]).any():
        listed += " This algorithm keeps no policies for the first objectives alone."
    count = sum(not one.same for one in sample.statements)
    if sample.cut_off.any():
        listed += f" Episodes were cut off after {sample.longest:,} steps, for want of time."
    played = f"{sample.num_played:,} fresh episodes"
    if count == 0:
        return listed, f"{played} were played."
    used = [test for test in ("betting", "asymptotic") if any(one.test == test for one in findings)]
    what = "differences of discounted returns" if any(one.limit is None for one in sample.statements) else "returns"
    how = (
        f"{played}, the same for all policies of a seed; {what}, {' and '.join(used) or 'asymptotic'} confidence "
        f"sequence{'s' if len(used) > 1 else ''}, 95 % for all statements together ({count})."
    )
    return listed, how


def needed(findings: Sequence[Finding]) -> int | None:
    """Episodes that would decide the statement that needs most; None if that cannot be said."""
    each = [
        verify.episodes_needed(verify.Bounds(*map(np.array, one[8:11])), one.tolerance, one.episodes)
        for one in findings
        if one.status == "undecided"
    ]
    return None if not each or None in each else max(one for one in each if one is not None)


def _test(sample: Sample, statement: Statement, measured: Measured) -> Test:
    """How a statement was decided."""
    if statement.same:
        return "same policy"
    return "betting" if measured.by_betting(sample.alpha, sample.episodes) else "asymptotic"


def _mean(values: np.ndarray) -> tuple[float, float]:
    """The mean and half of its 95 % interval."""
    n = len(values)
    if n < 2:
        return (float(values.mean()) if n else float("nan")), float("nan")
    return float(values.mean()) + 0.0, float(1.96 * values.std(ddof=1) / np.sqrt(n))


def at_limit(result: Result, findings: Sequence[Finding]) -> np.ndarray:
    """Objectives that have reached their limits: more is of no use."""
    kept = {(one.seed, one.objective) for one in findings if one.reference == LIMIT and one.status == "kept"}
    return np.array([[(seed, name) in kept for name in result.run.order.names] for seed in result.run.seeds])


def best_known(result: Result, findings: Sequence[Finding]) -> np.ndarray:
    """Objectives of which it is known what is best, or enough; there is none above it for the last one."""

    def is_known(seed: int, objective: str) -> bool:
        own = [one for one in findings if (one.seed, one.objective) == (seed, objective)]
        return any(one.test == "exact" or one.reference in (BEST, LIMIT) for one in own)

    found = np.array([[is_known(seed, name) for name in result.run.order.names] for seed in result.run.seeds])
    found[:, -1] = True
    return found


def go_back_to_own(result: Result, findings: Sequence[Finding]) -> np.ndarray:
    """Objectives of which what is known goes back to the seed's own policies, and is not as good as
    possible."""

    def is_own(seed: int, objective: str) -> bool:
        known = [one.reference for one in findings if (one.seed, one.objective) == (seed, objective)]
        return BEST not in known and any(one.startswith(OWN) for one in known)

    return np.array([[is_own(seed, name) for name in result.run.order.names] for seed in result.run.seeds])


def uncompared(result: Result, findings: Sequence[Finding]) -> np.ndarray:
    """Objectives but the last that no finding is about, although there are findings about the seed."""
    known = {(one.seed, one.objective) for one in findings}
    seeds = {one.seed for one in findings}
    found = np.array(
        [[seed in seeds and (seed, name) not in known for name in result.run.order.names] for seed in result.run.seeds]
    )
    found[:, -1] = False
    return found


def surpassed(result: Result, findings: Sequence[Finding]) -> np.ndarray:
    """References that the policies themselves surpass by more than the tolerance: to keep them shows little."""
    better = {
        (one.seed, one.objective) for one in findings if one.low > one.tolerance and one.reference.startswith(OWN)
    }
    return np.array([[(seed, name) in better for name in result.run.order.names] for seed in result.run.seeds])


def hidden(result: Result, findings: Sequence[Finding], scale: Scale) -> np.ndarray:
    """Objectives that keep their discounted return, but not what one counts."""
    order = result.run.order
    found = np.zeros((len(result), len(order.names)), bool)
    for one in findings:
        j = order.names.index(one.objective)
        loss, spread = order.signs[j] * (one.reference_value - one.value), one.value_error + one.reference_error
        # The tolerance is one of discounted returns; undiscounted, the same share of the range is granted.
        granted = one.tolerance * _undiscounted(scale, j)
        sampled = one.episodes > 0 and one.reference != LIMIT
        found[result.run.seeds.index(one.seed), j] |= bool(
            sampled and one.status == "kept" and loss > max(granted, spread)
        )
    return found


def granted(result: Result, findings: Sequence[Finding], scale: Scale) -> np.ndarray:
    """The slack of each objective in undiscounted returns, as the same share of the range."""
    names, found = result.run.order.names, np.zeros((len(result), len(result.run.order.names)))
    for one in findings:
        s, j = result.run.seeds.index(one.seed), names.index(one.objective)
        found[s, j] = max(found[s, j], one.slack * _undiscounted(scale, j))
    return found


def _undiscounted(scale: Scale, objective: int) -> float:
    """How much larger undiscounted returns are."""
    return float(scale.undiscounted[objective] / max(float(scale.discounted[objective]), 1e-30))
